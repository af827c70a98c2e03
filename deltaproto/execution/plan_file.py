"""Plan files: what `plan-upgrade` and `plan-downgrade` wrote as JSON, back as plans."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deltaproto.errors import ErrorCode, ExitCode, UsageError
from deltaproto.execution.append_log import KEPT
from deltaproto.execution.plan_members import earliest_times, plan_of, text
from deltaproto.planning.checksum import KEY, seal
from deltaproto.planning.plan import Plan
from deltaproto.redaction import Redactor, confidential, public

_COMMANDS = ("plan-upgrade", "plan-downgrade")
_SUFFIXES = (".json", ".jsonl")
_MOST_BYTES = 1 << 28
_EMPTY = (
    "write plans: deltaproto plan-downgrade … --format json --output FILE.json; pass --allow-empty "
    "if an empty answer is expected"
)
_PLAN_ID = re.compile(r"[0-9a-f]{16}")


class LoadedPlan(NamedTuple):
    """A plan as a file holds it."""

    id: str
    plan: Plan
    path: str
    """of the file"""
    not_before: tuple[float | None, ...]
    """for each step its earliest time as the plan says, in seconds since the epoch"""


class FailedPlan(NamedTuple):
    """A table for which the file holds an error in place of a plan."""

    table: str
    path: str
    message: str


class NoPlans(UsageError):
    """A file or folder in which there is no plan. Exit code 3."""

    exit_code = ExitCode.UNREADABLE
    code = ErrorCode.NO_TABLES


def plan_files(paths: Sequence[str], *, allow_empty: bool = False) -> list[str]:
    """The files that are meant: a folder stands for the plans in it, by name.

    Raises:
        NoPlans: for a folder without a plan, unless `allow_empty`.
        UsageError: for one that cannot be listed.
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
        if not inside and not allow_empty:
            raise NoPlans(f"{path} holds no plan", _EMPTY)
        found += inside
    return found


def read_plans(path: str, *, allow_empty: bool = False) -> list[LoadedPlan | FailedPlan]:
    """Every plan of a file: one document, with one plan or many, or a document a line.

    Raises:
        NoPlans: when it is empty, or a list without plans, unless `allow_empty`.
        UsageError: when it cannot be read, is no plan, is of another version of the format, or
            was changed after it was written.
    """
    found: list[LoadedPlan | FailedPlan] = []
    for document in _documents(path):
        _check_envelope(document, path)
        entries = document.get("plans", [document])
        if not isinstance(entries, list):
            raise _no_plan(path, "plans is no list")
        found += [_entry(each, document, path) for each in entries]
    if not found and not allow_empty:
        raise NoPlans(f"{path} is no plan: it is empty", _EMPTY)
    return found


def _documents(path: str) -> Iterator[Mapping[str, Any]]:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise UsageError(f"{path} is too large for a plan", "plan fewer tables at a time")
        content = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise _no_plan(path, "it is no text") from None
    if not content.strip():
        return
    try:
        whole = json.loads(content)
    except RecursionError:
        raise _no_plan(path, "it is nested too deep") from None
    except ValueError as error:
        lines = [line for line in content.splitlines() if line.strip()]
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


def _entry(entry: Any, document: Mapping[str, Any], path: str) -> LoadedPlan | FailedPlan:
    if not isinstance(entry, dict):
        raise _no_plan(path, "a plan is no JSON object")
    if "error" in entry:
        error = entry["error"]
        message = error.get("message") if isinstance(error, dict) else error
        return FailedPlan(public(str(entry.get("table", ""))), path, Redactor()(str(message)))
    if KEY not in entry:
        raise UsageError(
            f"{path}: a plan without a seal", "it was made by an older deltaproto: plan again"
        )
    if entry[KEY] != seal(entry):
        raise UsageError(
            f"{path}: the plan was changed after it was made", "plan again; edit nothing in plans"
        )
    try:
        plan = plan_of(entry, str(document["command"]))
        if any(map(confidential, (plan.table, plan.location, plan.sql_name))):
            raise UsageError(
                f"{path}: the address of a plan holds credentials",
                "plan again with an address without them; keep this file secret, or delete it",
            )
        plan_id = text(entry["plan_id"])
        # It becomes a part of file names.
        if _PLAN_ID.fullmatch(plan_id) is None:
            raise ValueError("plan_id is not 16 hexadecimal digits")
        return LoadedPlan(plan_id, plan, path, earliest_times(entry))
    except KeyError as error:
        raise _no_plan(path, f"it lacks {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _no_plan(path, str(error)) from None


def _no_plan(path: str, why: str) -> UsageError:
    return UsageError(
        f"{path} is no plan{': ' + why if why else ''}",
        "make one: deltaproto plan-downgrade TABLE … --format json --output FILE.json",
    )
