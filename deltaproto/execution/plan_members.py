"""Converts a plan's JSON back to a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from deltaproto.clients.model import Access
from deltaproto.clients.verdict import Verdict
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.goal_text import goal_text
from deltaproto.planning.plan import (
    Blocked,
    CellOutcome,
    ChangedCell,
    Clash,
    ClientChange,
    ConcurrencyChange,
    ConcurrencyRules,
    Fingerprint,
    Plan,
    Rewrites,
    Step,
    StreamEffect,
    StreamImpact,
)
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.statement import Action
from deltaproto.protocol.isolation import Isolation, IsolationLevel, RowLevelSupport, WriterEngine
from deltaproto.protocol.protocol import Protocol

_Member = TypeVar("_Member")


def plan_of(entry: Mapping[str, Any], command: str) -> Plan:
    """Return the plan, without its alternatives, which are never executed.

    Raises:
        KeyError: naming a missing member.
        TypeError, ValueError, AttributeError, OverflowError: for a member of the wrong type.
    """
    print_ = entry["fingerprint"]
    goal = dict(entry["goal"])
    # Approvals go by the goal in words, so a text of the file's own counts for nothing.
    goal.pop("text")
    for member in ("enable", "sql"):
        if member in goal:
            goal[member] = list(_each(goal[member], text))
    if "set" in goal:
        goal["set"] = {text(key): text(value) for key, value in goal["set"].items()}
    engine = Engine(EngineName(entry["engine"]["name"]), str(entry["engine"]["version"]))
    metadata = print_["metadata"]
    before = Protocol.stored(entry["protocol_before"])
    return Plan(
        command=command,
        table=text(entry["table"]),
        location=text(entry["location"]),
        sql_name=text(entry["sql_name"]),
        goal=MappingProxyType(goal),
        goal_text=goal_text(goal, before),
        engine=engine,
        fingerprint=Fingerprint(
            None if print_["table_id"] is None else text(print_["table_id"]),
            int(print_["version"]),
            Protocol.stored(print_["protocol"]),
            None if metadata is None else text(metadata),
        ),
        protocol_before=before,
        protocol_after=Protocol.stored(entry["protocol_after"]),
        steps=_each(entry["steps"], _step),
        cost=Cost(**entry["cost"]),
        blocked=_each(entry["blocked"], _blocked),
        alternatives=(),
        kept=_each(entry["kept"], _blocked),
        warnings=_each(entry["warnings"], text),
        clients=_each(entry["clients"], _client),
        complete=entry["complete"] is True,
        concurrency=_concurrency(entry["concurrency"]) if "concurrency" in entry else None,
    )


def earliest_times(entry: Mapping[str, Any]) -> tuple[float | None, ...]:
    """Return each step's earliest time, in seconds since the epoch. Raises like `plan_of`."""
    return _each(entry["steps"], lambda step: _moment(step["not_before"]))


def _step(step: Mapping[str, Any]) -> Step:
    wait = step["wait"] or {}
    retention = step["retention_hours"]
    rewrites = step["rewrites"]
    return Step(
        id=text(step["id"]),
        action=Action(step["action"]),
        sql=None if step["sql"] is None else text(step["sql"]),
        feature=step["feature"],
        why=text(step["why"]),
        operations=_each(step["operations"], text),
        protocol_before=Protocol.stored(step["protocol_before"]),
        protocol_after=Protocol.stored(step["protocol_after"]),
        commits=(int(step["commits"]["min"]), int(step["commits"]["max"])),
        rewrites=Rewrites(Rewrite(rewrites["which"]), rewrites["files"], rewrites["bytes"]),
        expects=step["expects"],
        truncates=step["history_lost_before"] is not None,
        retention_hours=None if retention is None else float(retention),
        wait_hours=float(wait.get("hours", 0)),
        setting=wait.get("setting"),
        clashes=_each(step["conflicts"], _clash),
        streams=_each(step["streams"], _stream),
        losses=_each(step["losses"], text),
        undo=step["undo"],
        warnings=_each(step["warnings"], text),
        optional=step["optional"] is True,
    )


def _clash(entry: Mapping[str, Any]) -> Clash:
    return Clash(**{name: text(entry[name]) for name in Clash._fields})


def _stream(entry: Mapping[str, Any]) -> StreamImpact:
    return StreamImpact(text(entry["reads"]), StreamEffect(entry["effect"]), text(entry["why"]))


def _blocked(entry: Mapping[str, Any]) -> Blocked:
    return Blocked(entry["feature"], entry["reason"], entry["remedy"], entry["error"] or "")


def _client(entry: Mapping[str, Any]) -> ClientChange:
    return ClientChange(
        client=text(entry["client"]),
        label=entry["label"],
        access=Access(entry["access"]),
        before=Verdict(entry["before"]),
        after=Verdict(entry["after"]),
        because=_each(entry["because"], text),
        reason=entry["reason"] or "",
    )


def _concurrency(entry: Mapping[str, Any]) -> ConcurrencyChange:
    cells = _each(entry["cells"], _cell)
    return ConcurrencyChange(_rules(entry["before"]), _rules(entry["after"]), cells)


def _rules(entry: Mapping[str, Any]) -> ConcurrencyRules:
    declared, rows = entry["declared"], entry["row_level_concurrency"]
    effective = {
        engine: None if level is None else IsolationLevel(level)
        for engine in WriterEngine
        for level in (entry["effective"][engine.value],)
    }
    level = Isolation(None if declared is None else text(declared), effective)
    return ConcurrencyRules(level, RowLevelSupport(rows["databricks"]), text(rows["reason"]))


def _cell(entry: Mapping[str, Any]) -> ChangedCell:
    return ChangedCell(
        engine=text(entry["engine"]),
        operation=text(entry["operation"]),
        against=text(entry["against"]),
        before=_outcome(entry["before"]),
        after=_outcome(entry["after"]),
    )


def _outcome(entry: Mapping[str, Any]) -> CellOutcome:
    exceptions = _each(entry["exceptions"], text)
    return CellOutcome(text(entry["conflict"]), exceptions, text(entry["when"]))


def _each(values: Any, made: Callable[[Any], _Member]) -> tuple[_Member, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return tuple(made(each) for each in values)


def text(value: Any) -> str:
    """Require a string."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _moment(stamp: Any) -> float | None:
    return None if stamp is None else datetime.fromisoformat(text(stamp)).timestamp()
