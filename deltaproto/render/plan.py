"""The plans of one run in each format."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import IO, Any, NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients.model import Verdict
from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.planning.impact import is_worse
from deltaproto.planning.plan import ClientChange, Plan, stays_violated_line
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.render.document.blocks import Line, Paragraph, Section, TableBlock, Tone
from deltaproto.render.document.render import BlockWriter
from deltaproto.render.interface import (
    DEFAULT_LIMIT,
    JsonArraySpool,
    PageFormat,
    dump_json,
    envelope,
    error_fields,
    open_envelope,
)
from deltaproto.render.named_tables import (
    GROUPED_FROM,
    NamedCount,
    SharedFolder,
    group_notes,
    groups_title,
)
from deltaproto.render.plan_json import plan_fields
from deltaproto.render.plan_words import Summary, size
from deltaproto.render.terminal import duration

_PIPED_WIDTH = 100


class Script(StrEnum):
    """Values of `--script`."""

    SQL = "sql"


class PlanReport:
    """Writes plans as they arrive.

    For one table, the plan is the JSON document itself; for several, the document lists the plans
    with a summary.

    Args:
        now: seconds since the epoch, from which waits are counted.
        many: whether there may be several tables.
        details: show each plan as text, however many there are.
        limit: number of groups of plans to show as text; 0: all.
    """

    def __init__(
        self,
        command: str,
        format: PageFormat,
        file: IO[str],
        now: float,
        *,
        color: bool,
        script: Script | None,
        many: bool,
        details: bool = False,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.many = many
        self._command, self._format, self._file, self._now = command, format, file, now
        self._script = script
        self._first: dict[str, Any] = {}
        self._summary = Summary()
        self._spool = JsonArraySpool()
        self._complete = True
        self._pages = script is None and format in (PageFormat.MARKDOWN, PageFormat.HTML)
        self._plans: list[Plan] = []
        self._unplanned: list[tuple[str, TableError]] = []
        self._details, self._limit = details, limit
        self._first_plans: list[Plan | tuple[str, TableError]] = []
        self._groups: PlanGroups | None = None
        self._text = None
        if script is None and format is PageFormat.TEXT:
            self._text = BlockWriter(format, file, color=color, piped_width=_PIPED_WIDTH)

    def add(self, plan: Plan) -> None:
        """Add one plan."""
        self._complete = self._complete and plan.complete
        self._summary.add(plan)
        if self._script is not None:
            from deltaproto.render.plan_script import write_script

            write_script(plan, self._file, self._now)
        elif self._text is not None:
            self._show(plan)
        elif self._pages:
            self._plans.append(plan)
        else:
            self._entry(plan_fields(plan, self._now), complete=plan.complete)

    def add_error(self, table: str, error: TableError) -> None:
        """Add a table that could not be planned."""
        self._complete = False
        self._summary.add_unreadable()
        if self._script is not None:
            from deltaproto.render.terminal import single_line

            self._file.write(f"-- {single_line(table)}: {single_line(error.message)}\n\n")
        elif self._text is not None:
            self._show((table, error))
        elif self._pages:
            self._unplanned.append((table, error))
        else:
            self._entry({"table": table, "error": error_fields(error)}, complete=False)

    def close(self) -> None:
        """Write the summary and the JSON document after the last table."""
        if self._text is not None:
            if self._groups is not None:
                self._text.write(self._groups.section())
            for each in self._first_plans:
                self._text.write(self._section(each))
            if self._summary.tables > 1:
                from deltaproto.render.plan_section import summary_blocks

                for block in summary_blocks(self._summary):
                    self._text.write(block)
        elif self._pages:
            self._page()
        elif self._script is None and self._format is PageFormat.JSON:
            if not self.many:
                document = envelope(self._command, self._first, complete=self._complete)
                self._file.write(dump_json(document) + "\n")
                return
            self._file.write(open_envelope(self._command, complete=self._complete))
            self._spool.close("plans", self._file)
            self._file.write(f',\n  "summary": {json.dumps(self._summary.fields())}\n}}\n')

    def _show(self, found: Plan | tuple[str, TableError]) -> None:
        """Write plans one by one if there are few (known only at the end), and in groups if there
        are many.
        """
        if self._details and self._text is not None:
            self._text.write(self._section(found))
            return
        self._first_plans.append(found)
        if self._groups is None and len(self._first_plans) < GROUPED_FROM:
            return

        if self._groups is None:
            self._groups = PlanGroups(self._limit)
        for each in self._first_plans:
            if isinstance(each, Plan):
                self._groups.add(each)
            else:
                self._groups.add_error(*each)
        self._first_plans.clear()

    def _section(self, found: Plan | tuple[str, TableError]) -> Section:
        from deltaproto.render.plan_section import plan_section, unplanned_section

        return (
            plan_section(found, self._now) if isinstance(found, Plan) else unplanned_section(*found)
        )

    def _page(self) -> None:
        from deltaproto.render.document.render import document_text
        from deltaproto.render.plan_page import plan_document

        document = plan_document(self._plans, self._unplanned, self._summary, self._now)
        self._file.write(document_text(document, html=self._format is PageFormat.HTML))

    def _entry(self, fields: dict[str, Any], *, complete: bool) -> None:
        if self._format is PageFormat.JSONL:
            line = envelope(self._command, fields, complete=complete)
            self._file.write(dump_json(line, indent=None) + "\n")
        elif not self.many:
            self._first = fields
        else:
            self._spool.add(json.dumps(fields))


_RULE = re.compile(r"DP\d{3}")
_STEPS = 4
"""maximum number of steps shown for a group"""
_MOST_ERRORS = 1_000
"""maximum number of different messages to count for a group"""
_LOST = 3
"""maximum number of clients named for a group"""
_UNREADABLE, _PLANNED, _BLOCKED, _DONE = range(4)


class PlanGroup(NamedTuple):
    """The common parts of the plans in a group."""

    rank: int
    """0 unreadable, 1 with steps, 2 blocked or violated without steps, 3 nothing to do"""
    protocol: str
    """the versions before and after"""
    text: str
    """the steps, or why there are none; for tables that could not be planned, the error's code"""
    left: str = ""
    """rules that stay violated after the steps"""
    lost: str = ""
    """clients that lose access, or whose verdict becomes wrong"""


class _GroupTotals:
    """The tables of a group, the files that their plans rewrite, and the errors."""

    def __init__(self) -> None:
        self.tables = NamedCount()
        self._files = self._bytes = 0
        self._files_known = True
        self._errors: Counter[str] = Counter()

    def add(self, plan: Plan) -> None:
        """Add one plan."""
        self.tables.add(plan.table)
        for step in plan.steps:
            if step.rewrites.which is not Rewrite.NONE:
                self._files += step.rewrites.files or 0
                self._bytes += step.rewrites.bytes or 0
                self._files_known = self._files_known and step.rewrites.files is not None

    def add_error(self, table: str, message: str) -> None:
        """Add a table that could not be planned."""
        self.tables.add(table)
        if message in self._errors or len(self._errors) < _MOST_ERRORS:
            self._errors[message] += 1

    def rewritten(self) -> str:
        """Return how many files are rewritten, at most; "" for none."""
        if not self._files_known:
            return "an unknown number of files"
        if not self._files:
            return ""
        return f"at most {counted(self._files, 'file')}, {size(self._bytes)}"

    def most_frequent_error(self) -> str:
        """Return the most frequent message, and the number of tables with other messages."""
        if not self._errors:
            return ""
        ((message, tables),) = self._errors.most_common(1)
        others = self.tables.tables - tables
        return f": {message}" + (f"; {others:,} with other messages" if others else "")


class PlanGroups:
    """Groups plans as they arrive. Memory depends on the groups, not on the tables."""

    def __init__(self, limit: int) -> None:
        """`limit`: groups to show; 0: all."""
        self._limit = limit
        self._groups: dict[PlanGroup, _GroupTotals] = {}
        self._folder = SharedFolder()

    def add(self, plan: Plan) -> None:
        """Add one plan."""
        self._totals(plan.table, _group(plan)).add(plan)

    def add_error(self, table: str, error: TableError) -> None:
        """Add a table that could not be planned."""
        group = PlanGroup(_UNREADABLE, "", str(error.code))
        self._totals(table, group).add_error(table, error.message)

    def section(self) -> Section:
        """Return the groups: unreadable tables, then plans with steps; the largest first."""
        groups = sorted(
            self._groups.items(), key=lambda each: (each[0].rank, -each[1].tables.tables)
        )
        counts = [totals.tables for _, totals in groups]
        shown = groups[: self._limit or None]
        blocks = [
            _group_table(shown, len(str(self._folder))),
            *group_notes(counts, len(shown), self._folder),
            Paragraph(("--details shows each plan",), muted=True),
        ]
        return Section("groups", groups_title(counts), blocks)

    def _totals(self, table: str, group: PlanGroup) -> _GroupTotals:
        self._folder.add(table)
        return self._groups.setdefault(group, _GroupTotals())


def _group_table(groups: Sequence[tuple[PlanGroup, _GroupTotals]], skip: int) -> TableBlock:
    rows: list[list[Line]] = []
    for group, totals in groups:
        cells = (
            *(f"{totals.tables.tables:,}", group.protocol),
            group.text + totals.most_frequent_error(),
            *(group.left, totals.rewritten(), group.lost, totals.tables.shown(skip)),
        )
        rows.append([(cell,) if cell else () for cell in cells])
    headings = (
        *("Tables", "Protocol", "Plan", "Stays violated", "Rewrites", "Lose access"),
        "Names",
    )
    return TableBlock(headings, rows, [_TONES.get(group.rank) for group, _ in groups], below=True)


_TONES = {_UNREADABLE: Tone.DANGER, _BLOCKED: Tone.DANGER}


def _group(plan: Plan) -> PlanGroup:
    before, after = plan.protocol_before, plan.protocol_after
    protocol = str(before) if before == after else f"{before} -> {after}"
    incomplete = "" if plan.complete else "NOT COMPLETE: "
    return PlanGroup(
        _UNREADABLE if not plan.complete else _rank(plan),
        protocol,
        incomplete + summarize_steps(plan),
        _rules_left(plan) if plan.steps else "",
        _name_lost(plan.clients),
    )


@cache_by_identity(maxsize=256)
def _name_lost(clients: tuple[ClientChange, ...]) -> str:
    """Return the first clients that lose; plans of equal tables share their clients."""
    lost = [
        f"{each.label or each.client} {each.access}"
        + (" WRONG" if each.after == Verdict.WRONG else "")
        for each in clients
        if is_worse(each)
    ]
    more = [f"{len(lost) - _LOST} more"] if len(lost) > _LOST else []
    return ", ".join([*lost[:_LOST], *more])


def _rank(plan: Plan) -> int:
    if plan.blocked or plan.stays_violated:
        return _BLOCKED
    return _PLANNED if plan.steps else _DONE


def summarize_steps(plan: Plan) -> str:
    """Return what a plan does in one line, or why it has no steps; it names no table."""
    if plan.blocked:
        reasons = dict.fromkeys(
            f"{each.feature}: {each.reason}" if each.feature else each.reason
            for each in plan.blocked
        )
        return f"blocked: {'; '.join(reasons)}"
    if not plan.steps:
        return stays_violated_line(*plan.unmet) if plan.unmet else "nothing to do"
    steps = [
        f"wait {duration(step.wait_hours)}" if step.sql is None else step.why
        for step in plan.steps
        if not step.optional
    ]
    more = [counted(len(steps) - _STEPS, "more step")] if len(steps) > _STEPS else []
    text = "; ".join([*steps[:_STEPS], *more])
    return text if plan.point_of_no_return is None else f"{text} (cannot be reverted)"


def _rules_left(plan: Plan) -> str:
    """Return the rules that the plan leaves violated, and the other requirements that it does not
    meet.
    """
    parts = (each.reason.partition(": ") for each in plan.unmet)
    texts = (rule if _RULE.fullmatch(rule) else rule + sep + rest for rule, sep, rest in parts)
    return "; ".join(dict.fromkeys(texts))
