"""Converts a plan's JSON back to a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

from deltaproto.clients.model import Access, Verdict
from deltaproto.inspection.json_entries import (
    WrongTypeError,
    optional_string,
    require_string,
    require_type,
)
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import (
    Blocked,
    CellOutcome,
    ChangedCell,
    ClientChange,
    ConcurrencyChange,
    ConcurrencyRules,
    Fingerprint,
    Plan,
    Rewrites,
    Step,
    StepConflict,
    StreamEffect,
    StreamImpact,
)
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.request import goal_text
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.statement import Action
from deltaproto.protocol.intervals import MOST_HOURS
from deltaproto.protocol.isolation import Isolation, IsolationLevel, RowLevelSupport, WriterEngine
from deltaproto.protocol.protocol import Protocol

_Member = TypeVar("_Member")


def deserialize_plan(entry: Mapping[str, Any], command: str) -> Plan:
    """Return the plan, without its alternatives, which are never executed.

    Raises:
        KeyError: naming a missing member.
        TypeError, ValueError, AttributeError, OverflowError: for a member of the wrong type.
    """
    fingerprint = entry["fingerprint"]
    goal = dict(require_type(dict, entry["goal"]))
    # Approvals compare the goal's text, so the text in the file must not be trusted.
    goal.pop("text")
    for member in ("enable", "sql", "cluster_by"):
        if member in goal:
            goal[member] = list(_parse_list(goal[member], require_string))
    if "mapping_mode" in goal:
        goal["mapping_mode"] = require_string(goal["mapping_mode"])
    if "set" in goal:
        goal["set"] = {
            require_string(key): require_string(value)
            for key, value in require_type(dict, goal["set"]).items()
        }
    engine = Engine(EngineName(entry["engine"]["name"]), require_string(entry["engine"]["version"]))
    before = Protocol.stored(entry["protocol_before"])
    concurrency = [entry["concurrency"]] if "concurrency" in entry else []
    return Plan(
        command=command,
        table=require_string(entry["table"]),
        location=require_string(entry["location"]),
        sql_name=require_string(entry["sql_name"]),
        goal=MappingProxyType(goal),
        goal_text=goal_text(goal, before),
        engine=engine,
        fingerprint=Fingerprint(
            optional_string(fingerprint["table_id"]),
            require_type(int, fingerprint["version"]),
            Protocol.stored(fingerprint["protocol"]),
            optional_string(fingerprint["metadata"]),
        ),
        protocol_before=before,
        protocol_after=Protocol.stored(entry["protocol_after"]),
        steps=_parse_list(entry["steps"], _parse_step),
        cost=Cost(**{key: require_type(int, value) for key, value in entry["cost"].items()}),
        blocked=_parse_shared(entry["blocked"], _parse_blocked),
        alternatives=(),
        kept=_parse_shared(entry["kept"], _parse_blocked),
        warnings=_parse_shared(entry["warnings"], require_string),
        clients=_parse_shared(entry["clients"], _parse_client_change),
        complete=entry["complete"] is True,
        everybody=entry.get("clients_declared", True) is False,
        concurrency=next(iter(_parse_shared(concurrency, _concurrency)), None),
        unmet=_parse_shared(entry.get("unmet", []), _parse_blocked),
        fixes=_parse_shared(entry.get("fixes", []), require_string),
        other_names=_parse_list(entry.get("other_names", []), require_string),
    )


def earliest_times(entry: Mapping[str, Any]) -> tuple[float | None, ...]:
    """Return each step's earliest time, in seconds since the epoch.

    Raises like `deserialize_plan`.
    """
    return _parse_list(entry["steps"], lambda step: _parse_timestamp(step["not_before"]))


def _parse_step(step: Mapping[str, Any]) -> Step:
    wait = {} if step["wait"] is None else require_type(dict, step["wait"])
    retention = step["retention_hours"]
    rewrites, commits = step["rewrites"], step["commits"]
    return Step(
        id=require_string(step["id"]),
        action=Action(step["action"]),
        sql=optional_string(step["sql"]),
        feature=optional_string(step["feature"]),
        why=require_string(step["why"]),
        operations=_parse_list(step["operations"], require_string),
        protocol_before=Protocol.stored(step["protocol_before"]),
        protocol_after=Protocol.stored(step["protocol_after"]),
        commits=(require_type(int, commits["min"]), require_type(int, commits["max"])),
        rewrites=Rewrites(
            Rewrite(rewrites["which"]),
            _optional_number(rewrites["files"]),
            _optional_number(rewrites["bytes"]),
        ),
        expects=optional_string(step["expects"]),
        truncates=step["history_lost_before"] is not None,
        retention_hours=None if retention is None else _parse_hours(retention),
        wait_hours=_parse_hours(wait.get("hours", 0)),
        setting=optional_string(wait.get("setting")),
        clashes=_parse_shared(step["conflicts"], _parse_clash),
        streams=_parse_shared(step["streams"], _parse_stream_impact),
        losses=_parse_shared(step["losses"], require_string),
        undo=optional_string(step["undo"]),
        warnings=_parse_shared(step["warnings"], require_string),
        optional=step["optional"] is True,
    )


def _parse_clash(entry: Mapping[str, Any]) -> StepConflict:
    return StepConflict(**{name: require_string(entry[name]) for name in StepConflict._fields})


def _parse_stream_impact(entry: Mapping[str, Any]) -> StreamImpact:
    return StreamImpact(
        require_string(entry["reads"]), StreamEffect(entry["effect"]), require_string(entry["why"])
    )


def _parse_blocked(entry: Mapping[str, Any]) -> Blocked:
    return Blocked(
        optional_string(entry["feature"]),
        require_string(entry["reason"]),
        require_string(entry["remedy"]),
        optional_string(entry["error"]) or "",
    )


def _parse_client_change(entry: Mapping[str, Any]) -> ClientChange:
    return ClientChange(
        client=require_string(entry["client"]),
        label=optional_string(entry["label"]),
        access=Access(entry["access"]),
        before=Verdict(entry["before"]),
        after=Verdict(entry["after"]),
        because=_parse_list(entry["because"], require_string),
        reason=optional_string(entry["reason"]) or "",
    )


def _concurrency(entry: Mapping[str, Any]) -> ConcurrencyChange:
    cells = _parse_list(entry["cells"], _cell)
    return ConcurrencyChange(_rules(entry["before"]), _rules(entry["after"]), cells)


def _rules(entry: Mapping[str, Any]) -> ConcurrencyRules:
    declared, rows = entry["declared"], entry["row_level_concurrency"]
    effective = {
        engine: None if level is None else IsolationLevel(level)
        for engine in WriterEngine
        for level in (entry["effective"][engine.value],)
    }
    level = Isolation(optional_string(declared), effective)
    return ConcurrencyRules(
        level, RowLevelSupport(rows["databricks"]), require_string(rows["reason"])
    )


def _cell(entry: Mapping[str, Any]) -> ChangedCell:
    return ChangedCell(
        engine=require_string(entry["engine"]),
        operation=require_string(entry["operation"]),
        against=require_string(entry["against"]),
        before=_outcome(entry["before"]),
        after=_outcome(entry["after"]),
    )


def _outcome(entry: Mapping[str, Any]) -> CellOutcome:
    exceptions = _parse_list(entry["exceptions"], require_string)
    return CellOutcome(require_string(entry["conflict"]), exceptions, require_string(entry["when"]))


def _parse_list(values: Any, made: Callable[[Any], _Member]) -> tuple[_Member, ...]:
    return tuple(made(each) for each in require_type(list, values))


def _parse_shared(values: Any, made: Callable[[Any], _Member]) -> tuple[_Member, ...]:
    """Return the same members for equal values: most plans of a fleet differ in a few texts."""
    found: tuple[_Member, ...] = _parse_text(json.dumps(values), made)
    return found


@lru_cache(maxsize=4096)
def _parse_text(values: str, made: Callable[[Any], _Member]) -> tuple[_Member, ...]:
    return _parse_list(json.loads(values), made)


def _optional_number(value: Any) -> int | None:
    return None if value is None else require_type(int, value)


def _parse_hours(value: Any) -> float:
    hours = float(value) if type(value) in (int, float) else -1.0
    if not 0 <= hours <= MOST_HOURS:
        raise WrongTypeError(f"{json.dumps(value):.40} is not a number of hours")
    return hours


def _parse_timestamp(stamp: Any) -> float | None:
    return None if stamp is None else datetime.fromisoformat(require_string(stamp)).timestamp()
