"""Reads `rollout.json`: the plans of each wave in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from deltaproto import __version__
from deltaproto.errors import UsageError
from deltaproto.input_file import open_input
from deltaproto.inspection.json_entries import require_string, require_type
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from deltaproto.planning.rollout import RolloutTable, Wave
from deltaproto.policy.document.rollout import MAX_PARALLEL

ROLLOUT_FILE = "rollout.json"
_ID_LENGTH = 16
_MAX_HOURS = 1e7
"""more than what a policy accepts, in hours and in minutes"""
_MAX_BYTES = 1 << 28
SETTINGS = ("soak_hours", "parallel", "max_failures", "hook_minutes", "rehearse")
"""the settings of the policy that the file has"""
_MEMBERS = (*SETTINGS, "windows", "waves", "complete")
_PLAN_AGAIN = "plan again into a new folder, and do not edit its files"
ANOTHER_HINT = "plan again with this version, or use the one that wrote the plan"
"""hint for the file of another release"""


class Rollout(NamedTuple):
    """The contents of the file."""

    id: str
    path: str
    waves: tuple[Wave, ...]
    soak_hours: float
    parallel: int
    max_failures: int
    hook_minutes: float
    rehearse: bool
    """True if one table of each group of equal plans is rehearsed before the group starts"""
    windows: bool
    """True if the policy has maintenance windows for any of the tables"""

    @property
    def tables(self) -> tuple[RolloutTable, ...]:
        """Every table, in the order of the waves."""
        return tuple(table for wave in self.waves for table in wave.tables)

    def without(self, plan_ids: Iterable[str]) -> Rollout:
        """Return the rollout without the tables of these plans, and without empty waves."""
        left_out = frozenset(plan_ids)
        waves = (
            Wave(wave.name, tuple(each for each in wave.tables if each.plan_id not in left_out))
            for wave in self.waves
        )
        return self._replace(waves=tuple(wave for wave in waves if wave.tables))


def find_rollout(paths: Iterable[str]) -> Rollout | None:
    """Return the rollout of a folder of plans; None if no argument has one.

    Raises:
        UsageError: when the file is damaged or incomplete, or is not the only argument.
    """
    named = list(paths)
    for path in named:
        if not os.path.lexists(os.path.join(path, ROLLOUT_FILE)):
            continue
        if len(named) > 1:
            raise UsageError(
                f"{path} has a rollout, so it cannot be combined with other arguments",
                f"pass only {path}",
            )
        return load_rollout(path)
    return None


def find_bypassed_rollouts(paths: Iterable[str]) -> list[str]:
    """Return the folders of a rollout that contain one of these plan files."""
    folders = {os.path.dirname(path) or "." for path in paths if os.path.isfile(path)}
    return sorted(
        folder for folder in folders if os.path.lexists(os.path.join(folder, ROLLOUT_FILE))
    )


def require_policy(rollout: Rollout, *, hint: str) -> None:
    """Refuse a rollout whose policy has maintenance windows, for a run without a policy.

    Raises:
        UsageError: with this hint.
    """
    if rollout.windows:
        folder = os.path.dirname(rollout.path)
        raise UsageError(
            f"the policy of the plans in {folder} has maintenance windows, and no policy is passed",
            hint,
        )


def load_rollout(folder: str) -> Rollout:
    """Return the rollout of a folder of plans.

    Raises:
        UsageError: when the folder has none, or the file is damaged or incomplete.
    """
    path = os.path.join(folder, ROLLOUT_FILE)
    if not os.path.isdir(folder):
        what = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"{folder} {what}", "name the folder that `plan --out` created")
    try:
        with open_input(path) as file:
            document = json.loads(file.read(_MAX_BYTES).decode("utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"{folder} has no rollout",
            "plan with --out and a policy that has the section `rollout`",
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not a complete JSON document", _PLAN_AGAIN) from None
    try:
        return _parse(document, path)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise _damaged_error(document, path, "is not the file of a rollout") from None


def _damaged_error(document: Any, path: str, what: str) -> UsageError:
    if isinstance(document, dict) and (version := other_release(document)):
        return UsageError(
            f"{path} was written by deltaproto {version}, and this version cannot read it",
            ANOTHER_HINT,
        )
    return UsageError(f"{path} {what}", _PLAN_AGAIN)


def require_format(document: Mapping[str, Any], path: str) -> None:
    """Require a document of this major version of the format.

    Raises:
        UsageError: for another one.
    """
    version = str(document["schema_version"])
    if version.partition(".")[0] != "1":
        raise UsageError(
            f"{path} has format version {version:.20}; this deltaproto supports 1.x", ANOTHER_HINT
        )


def other_release(document: Mapping[str, Any]) -> str | None:
    """Return the version of deltaproto that wrote a document, unless it is this one or unknown."""
    tool = document.get("tool")
    version = tool.get("version") if isinstance(tool, dict) else None
    return f"{version:.20}" if isinstance(version, str) and version != __version__ else None


def _parse(document: Mapping[str, Any], path: str) -> Rollout:
    require_format(document, path)
    fields = {name: document[name] for name in _MEMBERS}
    seal = compute_checksum(fields)
    if document["command"] != "rollout":
        raise ValueError(path)
    if document[CHECKSUM_FIELD] != seal:
        raise _damaged_error(document, path, "was changed after it was made")
    if fields["complete"] is not True:
        raise UsageError(f"{path} is incomplete: planning was interrupted", _PLAN_AGAIN)
    soak, minutes = float(fields["soak_hours"]), float(fields["hook_minutes"])
    parallel, failures = int(fields["parallel"]), int(fields["max_failures"])
    if not (0 <= soak <= _MAX_HOURS and 0 < minutes <= _MAX_HOURS):
        raise ValueError(path)
    if not (0 < parallel <= MAX_PARALLEL and failures >= 0):
        raise ValueError(path)
    waves = tuple(
        Wave(require_string(wave["name"]), tuple(map(_parse_table, wave["plans"])))
        for wave in fields["waves"]
    )
    ids = [table.plan_id for wave in waves for table in wave.tables]
    if len({*ids}) < len(ids) or len({wave.name for wave in waves}) < len(waves):
        raise ValueError(path)
    rehearse, windows = (require_type(bool, fields[name]) for name in ("rehearse", "windows"))
    return Rollout(
        seal[:_ID_LENGTH], path, waves, soak, parallel, failures, minutes, rehearse, windows
    )


def _parse_table(entry: Mapping[str, Any]) -> RolloutTable:
    return RolloutTable(**{name: require_string(value) for name, value in entry.items()})
