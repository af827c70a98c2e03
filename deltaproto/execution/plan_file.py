"""Plan files: what `plan-upgrade` and `plan-downgrade` wrote as JSON, back as plans."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from deltaproto.clients.capability import Access
from deltaproto.clients.judgement import Verdict
from deltaproto.errors import UsageError
from deltaproto.execution.records import KEPT
from deltaproto.planning.cost import Cost
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.outcome import Rewrite
from deltaproto.planning.plan import (
    Blocked,
    Clash,
    ClientChange,
    Effect,
    Fingerprint,
    Plan,
    Rewrites,
    Step,
    Stream,
)
from deltaproto.planning.seal import KEY, seal
from deltaproto.planning.statement import Action
from deltaproto.protocol.protocol import Protocol

_COMMANDS = ("plan-upgrade", "plan-downgrade")
_SUFFIXES = (".json", ".jsonl")
_MOST_BYTES = 1 << 28
_Member = TypeVar("_Member")


class Planned(NamedTuple):
    """A plan as a file holds it."""

    id: str
    plan: Plan
    path: str
    """of the file"""
    not_before: tuple[float | None, ...]
    """for each step its earliest time as the plan says, in seconds since the epoch"""


class Unplanned(NamedTuple):
    """A table for which the file holds an error in place of a plan."""

    table: str
    path: str
    message: str


def plan_files(paths: Sequence[str]) -> list[str]:
    """The files that are meant: a folder stands for the plans in it, by name.

    Raises:
        UsageError: for a folder without a plan, and for one that cannot be listed.
    """
    found: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            raise UsageError(f"cannot list {path}: {error.strerror}", "check the path") from None
        # What --journal keeps may lie beside the plans; a way back is taken by --undo only.
        inside = [
            os.path.join(path, name)
            for name in names
            if name.endswith(_SUFFIXES) and not name.endswith(KEPT)
        ]
        if not inside:
            raise UsageError(
                f"{path} holds no plan",
                "write plans there: deltaproto plan-downgrade … --format json --output FILE.json",
            )
        found += inside
    return found


def read_plans(path: str) -> list[Planned | Unplanned]:
    """Every plan of a file: one document, with one plan or many, or a document a line.

    Raises:
        UsageError: when it cannot be read, is no plan, is of another version of the format, or
            was changed after it was written.
    """
    found: list[Planned | Unplanned] = []
    for document in _documents(path):
        _check_envelope(document, path)
        entries = document.get("plans", [document])
        if not isinstance(entries, list):
            raise _no_plan(path, "plans is no list")
        found += [_entry(each, document, path) for each in entries]
    if not found:
        raise _no_plan(path, "it is empty")
    return found


def _documents(path: str) -> Iterator[Mapping[str, Any]]:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise UsageError(f"{path} is too large for a plan", "plan fewer tables at a time")
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise _no_plan(path, "it is no text") from None
    try:
        whole = json.loads(text)
    except RecursionError:
        raise _no_plan(path, "it is nested too deep") from None
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            several = [json.loads(line) for line in lines] if len(lines) > 1 else []
        except (ValueError, RecursionError):
            several = []
        if not several:
            raise _no_plan(path, f"it is no whole JSON document ({error})") from None
        yield from several
        return
    yield whole


def _check_envelope(document: Any, path: str) -> None:
    if not isinstance(document, dict):
        raise _no_plan(path, "it is no JSON object")
    version = document.get("schema_version")
    if not isinstance(version, str) or document.get("command") not in _COMMANDS:
        said = document.get("command")
        raise _no_plan(path, f"it is the output of {said}" if isinstance(said, str) else "")
    if version.partition(".")[0] != "1":
        raise UsageError(
            f"{path} is of version {version} of the format; this deltaproto knows 1.x",
            "plan again with this version, or use the one that made the plan",
        )


def _entry(entry: Any, document: Mapping[str, Any], path: str) -> Planned | Unplanned:
    if not isinstance(entry, dict):
        raise _no_plan(path, "a plan is no JSON object")
    if "error" in entry:
        error = entry["error"]
        message = error.get("message") if isinstance(error, dict) else error
        return Unplanned(str(entry.get("table", "")), path, str(message))
    if KEY not in entry:
        raise UsageError(
            f"{path}: a plan without a seal", "it was made by an older deltaproto: plan again"
        )
    if entry[KEY] != seal(entry):
        raise UsageError(
            f"{path}: the plan was changed after it was made", "plan again; edit nothing in plans"
        )
    try:
        return _planned(entry, str(document["command"]), path)
    except KeyError as error:
        raise _no_plan(path, f"it lacks {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _no_plan(path, str(error)) from None


def _planned(entry: Mapping[str, Any], command: str, path: str) -> Planned:
    print_ = entry["fingerprint"]
    goal = dict(entry["goal"])
    text = str(goal.pop("text"))
    engine = Engine(EngineName(entry["engine"]["name"]), str(entry["engine"]["version"]))
    metadata = print_["metadata"]
    plan = Plan(
        command=command,
        table=_text(entry["table"]),
        location=_text(entry["location"]),
        sql_name=_text(entry["sql_name"]),
        goal=MappingProxyType(goal),
        goal_text=text,
        engine=engine,
        fingerprint=Fingerprint(
            None if print_["table_id"] is None else _text(print_["table_id"]),
            int(print_["version"]),
            Protocol.stored(print_["protocol"]),
            None if metadata is None else _text(metadata),
        ),
        protocol_before=Protocol.stored(entry["protocol_before"]),
        protocol_after=Protocol.stored(entry["protocol_after"]),
        steps=_each(entry["steps"], _step),
        cost=Cost(**entry["cost"]),
        blocked=_each(entry["blocked"], _blocked),
        alternatives=(),
        kept=_each(entry["kept"], _blocked),
        warnings=_each(entry["warnings"], _text),
        clients=_each(entry["clients"], _client),
        complete=entry["complete"] is True,
    )
    times = _each(entry["steps"], lambda step: _moment(step["not_before"]))
    return Planned(_text(entry["plan_id"]), plan, path, times)


def _step(step: Mapping[str, Any]) -> Step:
    wait = step["wait"] or {}
    retention = step["retention_hours"]
    rewrites = step["rewrites"]
    return Step(
        id=_text(step["id"]),
        action=Action(step["action"]),
        sql=None if step["sql"] is None else _text(step["sql"]),
        feature=step["feature"],
        why=_text(step["why"]),
        operations=_each(step["operations"], _text),
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
        losses=_each(step["losses"], _text),
        undo=step["undo"],
        warnings=_each(step["warnings"], _text),
        optional=step["optional"] is True,
    )


def _clash(entry: Mapping[str, Any]) -> Clash:
    return Clash(**{name: _text(entry[name]) for name in Clash._fields})


def _stream(entry: Mapping[str, Any]) -> Stream:
    return Stream(_text(entry["reads"]), Effect(entry["effect"]), _text(entry["why"]))


def _blocked(entry: Mapping[str, Any]) -> Blocked:
    return Blocked(entry["feature"], entry["reason"], entry["remedy"], entry["error"] or "")


def _client(entry: Mapping[str, Any]) -> ClientChange:
    return ClientChange(
        client=_text(entry["client"]),
        label=entry["label"],
        access=Access(entry["access"]),
        before=Verdict(entry["before"]),
        after=Verdict(entry["after"]),
        because=_each(entry["because"], _text),
        reason=entry["reason"] or "",
    )


def _each(values: Any, made: Callable[[Any], _Member]) -> tuple[_Member, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is no list")
    return tuple(made(each) for each in values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _moment(stamp: Any) -> float | None:
    return None if stamp is None else datetime.fromisoformat(_text(stamp)).timestamp()


def _no_plan(path: str, why: str) -> UsageError:
    return UsageError(
        f"{path} is no plan{': ' + why if why else ''}",
        "make one: deltaproto plan-downgrade TABLE … --format json --output FILE.json",
    )
