"""Describe a plan's goal in one line, from the goal as stored in plan files. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.planning.plan import Plan
from deltaproto.planning.search.goals import FeaturesAbsent, VersionsAtMost
from deltaproto.protocol.protocol import Protocol


def goal_text(goal: Mapping[str, Any], before: Protocol) -> str:
    """Describe the goal of a plan for a table with the protocol `before`.

    Raises:
        KeyError, TypeError, ValueError: if the goal is invalid.
    """
    if "undo" in goal:
        return f"undo plan {goal['undo']}"
    match goal["kind"]:
        case "upgrade":
            return "; ".join(_upgrade(goal))
        case "drop":
            return FeaturesAbsent(frozenset(goal["features"]) & before.supported).text
        case "to":
            return VersionsAtMost(int(goal["reader"]), int(goal["writer"])).text
        case "for-client":
            return _clients(goal)
        case "lowest":
            what = "is in use, too" if goal["include_enabled"] else "nothing uses"
            text = f"the lowest protocol: drop what {what}"
            return f"{text}; {_clients(goal)}" if goal.get("clients") else text
    raise ValueError(f"{goal['kind']!r} is not a goal")


def approvable_goal(plan: Plan) -> str:
    """Return the goal as an approval must name it: user-written SQL statements are part of it."""
    statements = plan.goal.get("sql")
    return f"{plan.goal_text}: {'; '.join(statements)}" if statements else plan.goal_text


def _upgrade(goal: Mapping[str, Any]) -> Iterator[str]:
    if enabled := goal.get("enable"):
        modes = {"columnMapping": goal.get("mapping_mode")}
        yield f"enable {', '.join(f'{n} {modes[n]}' if modes.get(n) else n for n in enabled)}"
    if columns := goal.get("cluster_by"):
        yield f"cluster by {', '.join(columns)}"
    if properties := goal.get("set"):
        yield f"set {', '.join(f'{key}={value}' for key, value in properties.items())}"
    if goal.get("isolation") is not None:
        yield f"isolation level {goal['isolation']}"
    if (versions := goal.get("to")) is not None:
        reader, writer = int(versions["reader"]), int(versions["writer"])
        yield f"reader version {reader} and writer version {writer} at least"
    if count := len(goal.get("sql") or ()):
        yield f"{count} SQL statement{'s' if count > 1 else ''}"
    if kept := goal.get("keep"):
        yield f"{', '.join(kept)} keep working"


def _clients(goal: Mapping[str, Any]) -> str:
    uses = goal["clients"]
    return "; ".join(f"{use['client']} can {' and '.join(use['access'])}" for use in uses)
