"""Phrases for the cost of plans, and who is affected by their steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients.model import Verdict
from deltaproto.counts import all_names, counted
from deltaproto.planning.plan import (
    ChangedCell,
    ClientChange,
    ConcurrencyChange,
    Plan,
    Step,
    StreamEffect,
)
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.statement import Action
from deltaproto.render import words
from deltaproto.render.terminal import duration, largest_first

_WHICH = {
    Rewrite.VECTORS: "the files with deletion vectors",
    Rewrite.WIDENED: "the files from before a type change",
    Rewrite.SOME: "some files",
    Rewrite.ALL: "every file",
}
_TITLES = {
    "writer": "Concurrent writes that may fail",
    "step": "Concurrent writes that may make a step fail",
}
_EFFECTS = {
    StreamEffect.ENDS: "end permanently",
    StreamEffect.LOSES: "may lack history",
    StreamEffect.RESTART: "need a restart",
}


def cost_text(cost: Cost, steps: Sequence[Step]) -> str:
    """Return the commits, waits, rewritten files and history of some steps together."""
    hours = sum(step.wait_hours for step in steps)
    waits = f"{counted(cost.waits, 'wait')} of {duration(hours)}"
    parts = [
        f"at most {counted(cost.commits, 'commit')}",
        waits if cost.waits else "no wait",
        _rewritten(steps),
        "history truncated" if cost.history else "history kept",
    ]
    if cost.irreversible:
        parts.append(f"{cost.irreversible} irreversible")
    return "; ".join(parts)


def rewrites_text(step: Step) -> str:
    """Return the files that a step rewrites."""
    which = _WHICH[step.rewrites.which]
    if step.rewrites.files is None or step.rewrites.bytes is None:
        return f"{which}; their number is unknown"
    return f"{which}: at most {step.rewrites.files:,}, {size(step.rewrites.bytes)}"


def losses_text(step: Step) -> Iterator[str]:
    """Yield what a step loses; a copy keeps the old table, so its losses are not irreversible."""
    copies = step.action in (Action.REWRITE, Action.SWAP)
    yield from (loss if copies else f"irreversible: {loss}" for loss in step.losses)


def wait_text(step: Step, end: str | None) -> str:
    """Return how long a step waits, why, and when the wait ends."""
    return f"{duration(step.wait_hours)}, by {step.setting}; ends at {end} if started now"


def size(number: int) -> str:
    """Return a number of bytes in a readable unit."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError(number)


def _rewritten(steps: Sequence[Step]) -> str:
    rewriting = [step.rewrites for step in steps if step.rewrites.which is not Rewrite.NONE]
    if not rewriting:
        return "no file rewritten"
    total = 0
    for each in rewriting:
        if each.bytes is None:
            return "rewrites files"
        total += each.bytes
    return f"rewrites at most {size(total)}"


def affected(
    plan_steps: Iterable[Step], *, reasons: bool = False
) -> Iterable[tuple[str, list[tuple[str, str]]]]:
    """Yield who is affected by which steps: writers by exception, then streams.

    Args:
        reasons: whether to show why each stream is affected.
    """
    groups: dict[str, dict[tuple[str, str], dict[str, list[str]]]] = {"writer": {}, "step": {}}
    streams: dict[StreamEffect, dict[tuple[str, str], list[str]]] = {}
    for step in plan_steps:
        for clash in step.clashes:
            found = groups[clash.loser].setdefault((clash.engine, clash.who), {})
            found.setdefault(clash.exception, []).append(step.id)
        for stream in step.streams:
            key = stream.reads, stream.why if reasons else ""
            streams.setdefault(stream.effect, {}).setdefault(key, []).append(step.id)
    for loser, title in _TITLES.items():
        rows = [
            (engine, f"{who}: {_gathered(where)}") for (engine, who), where in groups[loser].items()
        ]
        if rows:
            yield title, rows
    rows = [
        (text, f"{reads}: {', '.join(ids)}" + (f" ({why})" if why else ""))
        for effect, text in _EFFECTS.items()
        for (reads, why), ids in streams.get(effect, {}).items()
    ]
    if rows:
        yield "Streaming reads", rows


def _gathered(where: dict[str, list[str]]) -> str:
    """Group exceptions by the steps that cause them: `A and B in s1; C in s2, s3`."""
    by_steps: dict[str, list[str]] = {}
    for exception, steps in where.items():
        by_steps.setdefault(", ".join(dict.fromkeys(steps)), []).append(exception)
    return "; ".join(f"{all_names(names)} in {steps}" for steps, names in by_steps.items())


class _Uses(NamedTuple):
    """Clients and accesses that a plan affects."""

    gained: tuple[tuple[str, str], ...]
    """those that become usable"""
    lost: tuple[tuple[str, str], ...]
    """those that no longer are"""
    wrong: tuple[tuple[str, str], ...]
    """those whose verdict becomes wrong"""


@cache_by_identity(maxsize=256)
def _affected_uses(clients: tuple[ClientChange, ...]) -> _Uses:
    """Return the uses that change; plans of equal tables share their clients."""
    changed = [
        ((each.client, str(each.access)), each) for each in clients if each.before != each.after
    ]
    return _Uses(
        tuple(use for use, each in changed if each.after == Verdict.OK),
        tuple(use for use, each in changed if each.before == Verdict.OK),
        tuple(use for use, each in changed if each.after == Verdict.WRONG),
    )


class Summary:
    """The totals over plans."""

    def __init__(self) -> None:
        self.tables = self.with_steps = self.nothing_to_do = self.blocked = self.unreadable = 0
        self.stay_violated = 0
        """plans without steps, although the table violates the policy"""
        self.leave_violations = 0
        """plans with steps after which the table still violates the policy"""
        self.saved = 0
        """plans made from an inventory or a saved inspection, without schema and files"""
        self.waits = 0
        """plans that wait for retention periods"""
        self.longest_wait_hours = 0.0
        self.irreversible = 0
        """plans with a point of no return"""
        self.rewriting = 0
        """plans that rewrite data files"""
        self.truncating = 0
        """plans that delete history"""
        self.commits = 0
        """commits of all plans together, at most"""
        self.reasons: Counter[tuple[str, str]] = Counter()
        """number of tables by feature (may be empty) and reason why the plan is blocked"""
        self.gained: Counter[tuple[str, str]] = Counter()
        """number of tables that become usable, by client and access"""
        self.lost: Counter[tuple[str, str]] = Counter()
        """number of tables that become unusable, by client and access"""
        self.wrong: Counter[tuple[str, str]] = Counter()
        """number of tables where the verdict becomes wrong, by client and access"""

    def add(self, plan: Plan) -> None:
        """Add one plan."""
        self.tables += 1
        self.with_steps += bool(plan.steps)
        self.blocked += bool(plan.blocked)
        self.stay_violated += plan.stays_violated
        self.leave_violations += bool(plan.steps and plan.unmet)
        self.nothing_to_do += not (plan.steps or plan.blocked or plan.unmet)
        self.saved += plan.fingerprint.metadata is None
        self.waits += plan.cost.waits > 0
        hours = sum(step.wait_hours for step in plan.steps)
        self.longest_wait_hours = max(self.longest_wait_hours, hours)
        self.irreversible += plan.point_of_no_return is not None
        self.rewriting += any(str(step.rewrites.which) != "none" for step in plan.steps)
        self.truncating += any(step.truncates for step in plan.steps)
        self.commits += plan.cost.commits
        self.reasons.update({(each.feature or "", each.reason): 1 for each in plan.blocked})
        uses = _affected_uses(plan.clients)
        self.gained.update(uses.gained)
        self.lost.update(uses.lost)
        self.wrong.update(uses.wrong)

    def add_unreadable(self) -> None:
        """Add one table that could not be planned."""
        self.tables += 1
        self.unreadable += 1

    def fields(self) -> dict[str, Any]:
        """Return the totals as JSON."""
        return {
            "tables": self.tables,
            "with_steps": self.with_steps,
            "nothing_to_do": self.nothing_to_do,
            "stay_violated": self.stay_violated,
            "leave_violations": self.leave_violations,
            "blocked": self.blocked,
            "unreadable": self.unreadable,
            "waits": self.waits,
            "longest_wait_hours": self.longest_wait_hours,
            "irreversible": self.irreversible,
            "rewriting": self.rewriting,
            "truncating": self.truncating,
            "commits": self.commits,
            "clients_gained": _uses(self.gained),
            "clients_lost": _uses(self.lost),
            "clients_wrong": _uses(self.wrong),
            "blocked_because": [
                {"feature": feature or None, "reason": reason, "tables": count}
                for (feature, reason), count in largest_first(self.reasons)
            ],
        }


def _uses(counter: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"client": client, "access": access, "tables": count}
        for (client, access), count in sorted(counter.items())
    ]


def concurrency_lines(change: ConcurrencyChange) -> Iterator[tuple[str, str]]:
    """Yield label and text of the isolation level, row-level concurrency and changed conflicts."""
    before, after = change.before, change.after
    levels = words.isolation(after.isolation)
    if before.isolation != after.isolation:
        levels = f"{words.isolation(before.isolation)} -> {levels}"
    yield "isolation", levels
    rows = f"{after.row_level} on Databricks: {after.reason}"
    if before.row_level is not after.row_level:
        rows = f"{before.row_level} -> {rows}"
    yield "row-level", rows
    for (engine, how), pairs in _group_cells(change.cells).items():
        changed = (f"{one} with {', '.join(others)}" for one, others in pairs.items())
        yield engine, f"{how}: {'; '.join(changed)}"


def _group_cells(cells: tuple[ChangedCell, ...]) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Group cells by engine and change; a pair that changes in both directions appears once."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for cell in cells:
        how = f"conflict {cell.before.conflict} -> {cell.after.conflict}"
        if cell.before.conflict == cell.after.conflict:
            sentence, *_ = cell.after.when.split(". ")
            how = f"conflict still {cell.after.conflict} ({sentence.rstrip('.')})"
        pairs = found.setdefault((cell.engine, how), {})
        if cell.operation not in pairs.get(cell.against, ()):
            pairs.setdefault(cell.operation, []).append(cell.against)
    return found
