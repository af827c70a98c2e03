"""Reads plan files: the JSON that `plan-upgrade` and `plan-downgrade` wrote."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deltaproto.errors import ErrorCode, ExitCode, UsageError
from deltaproto.execution.plan_members import deserialize_plan, earliest_times
from deltaproto.execution.rollout_file import (
    ANOTHER_HINT,
    ROLLOUT_FILE,
    other_release,
    require_format,
)
from deltaproto.execution.run_log import RECORD_SUFFIXES
from deltaproto.input_file import open_input
from deltaproto.inspection.json_entries import WrongTypeError, require_string
from deltaproto.planning.plan import CHECKSUM_FIELD, Plan, compute_checksum
from deltaproto.protocol.stored_secrets import hide_in_json
from deltaproto.redaction import Redactor, has_credentials, redact_address

_COMMANDS = ("plan", "plan-upgrade", "plan-downgrade")
PLAN_SUFFIXES = (".json", ".jsonl")
_MAX_BYTES = 1 << 28
_NO_PLANS_HINT = (
    "write plans: deltaproto plan-downgrade … --format json --output FILE.json; pass --allow-empty "
    "if an empty result is expected"
)
_UNKNOWN_MEMBER = re.compile(r"'([\w -]{1,40})' is not a valid \w+")
PLAN_ID = re.compile(r"[0-9a-f]{16}")


class LoadedPlan(NamedTuple):
    """A plan loaded from a file."""

    id: str
    plan: Plan
    path: str
    """path of the file"""
    not_before: tuple[float | None, ...]
    """planned earliest time of each step, in seconds since the epoch"""
    undoes: LoadedPlan | None = None
    """the plan whose finished steps this plan rolls back, if that was verified"""


class FailedPlan(NamedTuple):
    """A table for which the file has an error instead of a plan."""

    table: str
    path: str
    message: str


class NoPlansError(UsageError):
    """A file or folder without plans. Exit code 3."""

    exit_code = ExitCode.UNREADABLE
    code = ErrorCode.NO_TABLES


def load_plans(
    paths: Sequence[str], *, allow_empty: bool = False
) -> tuple[list[LoadedPlan], list[FailedPlan]]:
    """Load each plan once. Return the plans, and the tables that could not be planned.

    Raises:
        NoPlansError: for a file or folder without plans, unless `allow_empty`.
        UsageError: for a file that is not a plan, or the same plan in two files.
    """
    found: dict[str, LoadedPlan] = {}
    unplanned: list[FailedPlan] = []
    for path in find_plan_files(paths, allow_empty=allow_empty):
        for each in read_plans(path, allow_empty=allow_empty):
            if isinstance(each, FailedPlan):
                unplanned.append(each)
                continue
            twin = found.setdefault(each.id, each)
            if twin is not each and twin.path != each.path:
                raise UsageError(
                    f"{twin.path} and {each.path} are the same plan", "pass only one of them"
                )
    return list(found.values()), unplanned


def find_plan_files(paths: Sequence[str], *, allow_empty: bool = False) -> list[str]:
    """Return the plan files; a folder stands for the plans in it, by name.

    Raises:
        NoPlansError: for a folder without a plan, unless `allow_empty`.
        UsageError: for a folder that cannot be listed, and for the file of a rollout.
    """
    found: list[str] = []
    for path in paths:
        if os.path.basename(path) == ROLLOUT_FILE and os.path.isfile(path):
            raise UsageError(f"{path} is not a plan", "pass its folder to apply the rollout")
        if not os.path.isdir(path):
            found.append(path)
            continue
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            raise UsageError(f"cannot list {path}: {error.strerror}", "check the path") from None
        # Journals may be in the same folder; undo plans are used by --undo only.
        inside = [
            os.path.join(path, name)
            for name in names
            if name.endswith(PLAN_SUFFIXES)
            and not name.endswith(RECORD_SUFFIXES)
            and name != ROLLOUT_FILE
        ]
        if not inside and not allow_empty:
            raise NoPlansError(f"{path} contains no plan", _NO_PLANS_HINT)
        found += inside
    return found


def read_plans(path: str, *, allow_empty: bool = False) -> list[LoadedPlan | FailedPlan]:
    """Read every plan of a file: one document with one or several plans, or one document per line.

    Raises:
        NoPlansError: when it is empty, or a list without plans, unless `allow_empty`.
        UsageError: when it cannot be read, is not a plan, has another version of the format, or
            was changed after it was written.
    """
    found: list[LoadedPlan | FailedPlan] = []
    for document in _read_documents(path):
        _check_envelope(document, path)
        entries = document.get("plans", [document])
        if not isinstance(entries, list):
            raise _invalid_plan_error(path, "plans is not a list")
        found += [_load_plan(each, document, path) for each in entries]
    if not found and not allow_empty:
        raise NoPlansError(f"{path} is not a plan: it is empty", _NO_PLANS_HINT)
    return found


def read_plan(path: str) -> LoadedPlan:
    """Read a file with one plan.

    Raises:
        UsageError: for a file that is not a plan, was changed, or has several plans.
    """
    found = read_plans(path)
    if len(found) != 1 or not isinstance(found[0], LoadedPlan):
        raise UsageError(f"{path} is not a single plan", "apply one plan at a time")
    return found[0]


def _read_documents(path: str) -> Iterator[Mapping[str, Any]]:
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise UsageError(f"{path} is too large for a plan", "plan fewer tables at a time")
        with open_input(path) as file:
            content = file.read().decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise _invalid_plan_error(path, "it is not text") from None
    if not content.strip():
        return
    try:
        whole = json.loads(content)
    except RecursionError:
        raise _invalid_plan_error(path, "it is nested too deeply") from None
    except ValueError as error:
        lines = [line for line in content.splitlines() if line.strip()]
        try:
            several = [json.loads(line) for line in lines] if len(lines) > 1 else []
        except (ValueError, RecursionError):
            several = []
        if not several:
            raise _invalid_plan_error(
                path, f"it is not a complete JSON document ({error})"
            ) from None
        yield from several
        return
    yield whole


def _check_envelope(document: Any, path: str) -> None:
    if not isinstance(document, dict):
        raise _invalid_plan_error(path, "it is not a JSON object")
    version = document.get("schema_version")
    if not isinstance(version, str) or document.get("command") not in _COMMANDS:
        named = document.get("command")
        raise _invalid_plan_error(
            path, f"it is the output of {named}" if isinstance(named, str) else ""
        )
    require_format(document, path)


def _load_plan(entry: Any, document: Mapping[str, Any], path: str) -> LoadedPlan | FailedPlan:
    if not isinstance(entry, dict):
        raise _invalid_plan_error(path, "a plan is not a JSON object")
    if "error" in entry:
        error = entry["error"]
        message = error.get("message") if isinstance(error, dict) else error
        return FailedPlan(
            redact_address(str(entry.get("table", ""))), path, Redactor()(str(message))
        )
    if CHECKSUM_FIELD not in entry:
        raise UsageError(
            f"{path}: the plan has no checksum", "it was made by an older deltaproto: plan again"
        )
    if entry[CHECKSUM_FIELD] != compute_checksum(entry):
        raise UsageError(
            f"{path}: the plan was changed after it was made", "plan again, and do not edit plans"
        )
    try:
        plan = deserialize_plan(entry, str(document["command"]))
        if any(map(has_credentials, (plan.table, plan.location, plan.sql_name))):
            raise UsageError(
                f"{path}: the address in a plan contains credentials",
                "plan again with an address without them; keep this file secret, or delete it",
            )
        if hide_in_json(entry) != entry:
            raise UsageError(
                f"{path}: the plan contains a credential",
                "plan again with this deltaproto; keep this file secret, or delete it",
            )
        plan_id = require_string(entry["plan_id"])
        # The id becomes part of file names.
        if PLAN_ID.fullmatch(plan_id) is None:
            raise _invalid_plan_error(path, "plan_id is not 16 hexadecimal digits")
        return LoadedPlan(plan_id, plan, path, earliest_times(entry))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        why = _describe_member_error(error)
        # The checksum is right, so another release wrote the unknown member.
        if version := other_release(document):
            raise UsageError(
                f"{path} was written by deltaproto {version}, and this version cannot read it: "
                f"{why}",
                ANOTHER_HINT,
            ) from None
        raise _invalid_plan_error(path, why) from None


def _describe_member_error(error: Exception) -> str:
    """Return what is wrong with a member; Python's own messages name its own types."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    if isinstance(error, WrongTypeError):
        return str(error)
    if named := _UNKNOWN_MEMBER.fullmatch(str(error)):
        return f'"{named[1]}" is not known'
    return "a member has the wrong type or value"


def _invalid_plan_error(path: str, why: str) -> UsageError:
    return UsageError(
        f"{path} is not a plan{': ' + why if why else ''}",
        "create one: deltaproto plan-downgrade TABLE … --format json --output FILE.json",
    )
