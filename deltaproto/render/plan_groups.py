"""The plans of many tables, grouped: tables with the same changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deltaproto.errors import TableError
from deltaproto.planning.impact import is_worse
from deltaproto.planning.plan import Plan
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.render.document.blocks import Line, Paragraph, Section, TableBlock, Tone
from deltaproto.render.named_tables import (
    NamedCount,
    SharedFolder,
    group_notes,
    groups_title,
)
from deltaproto.render.plan_words import size
from deltaproto.render.terminal import counted, duration

_STEPS = 4
"""steps of a group that are shown"""
_LOST = 3
"""clients of a group that are named"""
_UNREADABLE, _BLOCKED, _PLANNED, _DONE = range(4)


class PlanGroup(NamedTuple):
    """What the plans of a group have in common."""

    rank: int
    """0 unreadable, 1 blocked, 2 with steps, 3 nothing to do"""
    protocol: str
    """the versions before and after"""
    text: str
    """the steps, or why there are none"""
    lost: str
    """clients that lose access"""


class _Rewritten:
    """Files that the plans of a group rewrite, at most."""

    def __init__(self) -> None:
        self.files = self.bytes = 0
        self.known = True

    def add(self, plan: Plan) -> None:
        for step in plan.steps:
            if step.rewrites.which is not Rewrite.NONE:
                self.files += step.rewrites.files or 0
                self.bytes += step.rewrites.bytes or 0
                self.known = self.known and step.rewrites.files is not None

    def __str__(self) -> str:
        if not self.known:
            return "an unknown number of files"
        return f"{counted(self.files, 'file')}, {size(self.bytes)}" if self.files else ""


class PlanGroups:
    """Groups plans as they arrive. Memory depends on the groups, not on the tables."""

    def __init__(self, limit: int) -> None:
        """`limit`: groups to show; 0: all."""
        self._limit = limit
        self._groups: dict[PlanGroup, tuple[NamedCount, _Rewritten]] = {}
        self._folder = SharedFolder()

    def add(self, plan: Plan) -> None:
        """Add one plan."""
        self._add(plan.table, _group(plan))[1].add(plan)

    def add_error(self, table: str, error: TableError) -> None:
        """Add a table that could not be planned."""
        self._add(table, PlanGroup(_UNREADABLE, "", f"{error.code}: {error.message}", ""))

    def section(self) -> Section:
        """Return the groups: first those without a plan, then the largest."""
        groups = sorted(self._groups.items(), key=lambda each: (each[0].rank, -each[1][0].tables))
        counts = [found for _, (found, _) in groups]
        shown = groups[: self._limit or None]
        blocks = [
            _group_table(shown, len(str(self._folder))),
            *group_notes(counts, len(shown), self._folder),
            Paragraph(("--details shows each plan",), muted=True),
        ]
        return Section("groups", groups_title(counts), blocks)

    def _add(self, table: str, group: PlanGroup) -> tuple[NamedCount, _Rewritten]:
        self._folder.add(table)
        found = self._groups.setdefault(group, (NamedCount(), _Rewritten()))
        found[0].add(table)
        return found


def _group_table(
    groups: Sequence[tuple[PlanGroup, tuple[NamedCount, _Rewritten]]], skip: int
) -> TableBlock:
    rows: list[list[Line]] = []
    for group, (found, rewritten) in groups:
        cells = (
            *(f"{found.tables:,}", group.protocol, group.text),
            *(str(rewritten), group.lost, found.shown(skip)),
        )
        rows.append([(cell,) if cell else () for cell in cells])
    headings = ("Tables", "Protocol", "Plan", "Rewrites", "Lose access", "Names")
    return TableBlock(headings, rows, [_TONES.get(group.rank) for group, _ in groups], below=True)


_TONES = {_UNREADABLE: Tone.DANGER, _BLOCKED: Tone.DANGER}


def _group(plan: Plan) -> PlanGroup:
    lost = [f"{each.label or each.client} {each.access}" for each in plan.clients if is_worse(each)]
    more = [f"{len(lost) - _LOST} more"] if len(lost) > _LOST else []
    before, after = plan.protocol_before, plan.protocol_after
    protocol = str(before) if before == after else f"{before} -> {after}"
    incomplete = "" if plan.complete else "NOT COMPLETE: "
    return PlanGroup(
        _UNREADABLE if not plan.complete else _rank(plan),
        protocol,
        incomplete + _text(plan),
        ", ".join([*lost[:_LOST], *more]),
    )


def _rank(plan: Plan) -> int:
    if plan.blocked:
        return _BLOCKED
    return _PLANNED if plan.steps else _DONE


def _text(plan: Plan) -> str:
    if plan.blocked:
        reasons = dict.fromkeys(
            f"{each.feature}: {each.reason}" if each.feature else each.reason
            for each in plan.blocked
        )
        return f"blocked: {'; '.join(reasons)}"
    if not plan.steps:
        return "nothing to do"
    steps = [
        f"wait {duration(step.wait_hours)}" if step.sql is None else step.why
        for step in plan.steps
        if not step.optional
    ]
    more = [f"{len(steps) - _STEPS} more steps"] if len(steps) > _STEPS else []
    text = "; ".join([*steps[:_STEPS], *more])
    return text if plan.point_of_no_return is None else f"{text} (cannot be reverted)"
