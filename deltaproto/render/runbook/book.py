"""The runbook model and shared phrases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from deltaproto.errors import DeltaprotoError
from deltaproto.execution.copy_state import is_named_copy
from deltaproto.execution.plan_file import FailedPlan, LoadedPlan
from deltaproto.execution.preflight import GateResult, plan_gate
from deltaproto.execution.progress import reading_address
from deltaproto.execution.rollout_calendar import WaveTimes
from deltaproto.execution.rollout_file import Rollout
from deltaproto.execution.rollout_log import Decisions
from deltaproto.execution.warning import ApplyWarning, build_warning
from deltaproto.inspection.activity import Activity
from deltaproto.planning.advice import reenables_itself
from deltaproto.planning.impact import is_worse
from deltaproto.planning.plan import ClientChange, Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.copy_by_name import loss_names
from deltaproto.policy.approvals import LossRuling
from deltaproto.policy.document.model import Window
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.render.document.blocks import Code, Inline, Line, Link, listed
from deltaproto.render.named_tables import GROUPED_FROM
from deltaproto.render.plan_json import step_times
from deltaproto.render.runbook.groups import Group, kind
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.runbook.shell import command, is_plain

IRREVERSIBLE = "irreversible"
"""the gate that a flag in the printed commands satisfies"""
_MOST_WORDS = 8
"""maximum number of tables named in one command; more are read from standard input"""


class RunbookEntry(NamedTuple):
    """One plan, with the activity of its table and the decisions of the policy."""

    planned: LoadedPlan
    activity: Activity | DeltaprotoError | None = None
    """None: the log was not inspected"""
    windows: tuple[Window, ...] | None = None
    """maintenance windows of the policy; None: there are none, or there is no policy"""
    rulings: tuple[LossRuling, ...] = ()
    """clients that lose access, and whether the policy approves that"""
    gates: tuple[GateResult, ...] | None = None
    """gates of `apply` at the planned start, without the engine's; None: not evaluated"""
    start: float | None = None
    """earliest start in a rollout, in seconds since the epoch; None: the start of the runbook"""
    replaces: str | None = None
    """id of the plan of a rollout that this one replaced; None: it is the first plan"""

    @property
    def plan(self) -> Plan:
        """The plan itself."""
        return self.planned.plan

    @property
    def clients(self) -> tuple[ClientChange, ...]:
        """The access of the clients to notify: declared ones, or else those in the log."""
        return self.plan.notified_clients

    @property
    def name(self) -> Code:
        """The table as the user typed it."""
        return Code(self.plan.table)

    @property
    def refused(self) -> GateResult | None:
        """The gate that fails with any flags, so `apply` refuses the plan, or None."""
        return next((gate for gate in self.failed if gate.name == "plan"), None)

    @property
    def failed(self) -> tuple[GateResult, ...]:
        """The gates at which `apply` would refuse the plan."""
        gates = (plan_gate(self.plan),) if self.gates is None else self.gates
        return tuple(gate for gate in gates if not gate.passed)

    @property
    def blocking(self) -> tuple[GateResult, ...]:
        """The failed gates that no flag in the printed commands satisfies."""
        return tuple(gate for gate in self.failed if gate.name != IRREVERSIBLE)

    @property
    def lasting_changes(self) -> tuple[str, ...]:
        """The features whose rollback does not restore the original table.

        Dropping an added feature rewrites files or leaves checkpointProtection behind; so does
        dropping an existing feature.
        """
        return _stays(self.plan)

    @property
    def needs_backup(self) -> bool:
        """True if a step is not fully reversible or rewrites files."""
        return bool(
            self.plan.point_of_no_return
            or self.lasting_changes
            or any(step.rewrites.which is not Rewrite.NONE for step in self.plan.steps)
        )

    @property
    def loses_access(self) -> bool:
        """True if a client of the plan loses access."""
        return any(is_worse(each) for each in self.clients)


def _leaves_without_trace(name: str) -> bool:
    drop = feature_catalog.feature_record(name).drop
    if name == CHECKPOINT_PROTECTION or drop.delta_spark is None:
        return False
    return not (drop.protects_history or drop.rewrites_data or drop.needs_truncate)


Warned = Sequence[tuple[RunbookEntry, ApplyWarning]]


class Book:
    """The contents of a runbook.

    Args:
        arguments: plan files and folders, as passed on the command line.
        start: planned execution time of the first step, in seconds since the epoch.
        written: current time, in seconds since the epoch.
        policy: path of the policy file.
        catalog: client files that the policy uses.
        rollout: the rollout of the folder of plans, if it has one, without skipped tables.
        waves: its estimated times.
        decisions: the decisions about the rollout so far.
        skipped: the reason for each table that the rollout skips.
        ended: the rollout's ids for the plans that are done.
    """

    def __init__(
        self,
        entries: Sequence[RunbookEntry],
        unplanned: Sequence[FailedPlan],
        arguments: Sequence[str],
        start: float,
        written: float,
        policy: str | None = None,
        catalog: Sequence[str] = (),
        rollout: Rollout | None = None,
        waves: Sequence[WaveTimes] = (),
        decisions: Decisions = Decisions(),
        skipped: Mapping[str, str] = {},
        ended: Collection[str] = (),
    ) -> None:
        self.entries, self.unplanned = tuple(entries), tuple(unplanned)
        self.rollout, self.waves = rollout, tuple(waves)
        self.decisions, self.skipped, self.ended = decisions, skipped, frozenset(ended)
        self.start, self.written, self.policy = start, written, policy
        self._arguments = tuple(arguments)
        self._files = [word for file in catalog for word in ("--client-file", file)]

    @cached_property
    def groups(self) -> tuple[Group[RunbookEntry], ...]:
        """The plans, grouped with those that differ only in their tables."""
        found: dict[str, list[RunbookEntry]] = {}
        for entry in self.entries:
            facts = [
                [list(gate) for gate in entry.failed],
                self.times(entry),
                [ruling.text for ruling in entry.rulings],
            ]
            found.setdefault(kind(entry.plan, facts), []).append(entry)
        return tuple(Group(tuple(each)) for each in found.values())

    @cached_property
    def changing_groups(self) -> tuple[Group[RunbookEntry], ...]:
        """The plans that change something, in the same groups."""
        # Plans of one group have the same steps.
        return tuple(group for group in self.groups if group.first.plan.changes)

    @cached_property
    def refusals(self) -> dict[tuple[GateResult, ...], list[RunbookEntry]]:
        """The plans that `apply` would refuse, by their failed gates."""
        found: dict[tuple[GateResult, ...], list[RunbookEntry]] = {}
        for entry in self.entries:
            if entry.gates is not None and entry.failed:
                found.setdefault(entry.failed, []).append(entry)
        return found

    @cached_property
    def changing(self) -> tuple[RunbookEntry, ...]:
        """The plans that change something."""
        return tuple(entry for entry in self.entries if entry.plan.changes)

    @cached_property
    def applicable(self) -> tuple[RunbookEntry, ...]:
        """The changing plans that `apply` executes."""
        return tuple(entry for entry in self.changing if entry.refused is None)

    @cached_property
    def warned(self) -> Warned:
        """The warning of each changing plan."""
        return tuple(
            (
                entry,
                build_warning(entry.plan, entry.plan.steps, None, None, None, self.start_of(entry)),
            )
            for entry in self.changing
        )

    @cached_property
    def stops_writers(self) -> bool:
        """True if any transaction or stream must be stopped before a step."""
        return any(each.hits or each.streams for _, each in self.warned)

    @property
    def irreversible(self) -> bool:
        """True if any step is irreversible."""
        return any(entry.plan.point_of_no_return for entry in self.changing)

    def start_of(self, entry: RunbookEntry) -> float:
        """Return the planned start of a plan, in seconds since the epoch."""
        return self.start if entry.start is None else entry.start

    def times(self, entry: RunbookEntry) -> list[tuple[float | None, float | None]]:
        """Return `moments` relative to the planned start of the plan.

        A wait before the first statement may have begun earlier, so its end is read from the plan.
        """
        steps = entry.plan.steps
        first = next((n for n, step in enumerate(steps) if step.sql is not None), len(steps))
        known = [moment for moment in entry.planned.not_before[:first] if moment is not None]
        if not known:
            return step_times(steps, self.start_of(entry))
        begin = max(self.start_of(entry), *known)
        later = step_times(steps[first:], begin)
        return [(begin, None)] * first + [
            (begin if earliest is None else earliest, lost) for earliest, lost in later
        ]

    def command(self, name: str, *words: str) -> str:
        """Return a shell command that runs deltaproto on the applicable plans.

        Plans of a rollout are never named one by one, which would ignore its waves.
        """
        files: Sequence[str] = self._arguments
        if self.rollout is not None:
            return command("deltaproto", name, *files, *words)
        if self.unplanned or len(self.applicable) < len(self.entries):
            files = list(dict.fromkeys(entry.planned.path for entry in self.applicable))
        return command("deltaproto", name, *files, *words)

    def apply(self, *words: str) -> str:
        """Return the `apply` command with all options required to complete the plans."""
        copies = [entry.plan for entry in self.applicable if is_named_copy(entry.plan)]
        lost = dict.fromkeys(name for plan in copies for name in loss_names(plan.steps))
        others = any(e.plan.point_of_no_return and e.plan not in copies for e in self.changing)
        flags: tuple[str, ...] = ("--allow-irreversible",) if others else ()
        flags += ("--accept-loss", ",".join(lost)) if lost else ()
        return self.command("apply", *words, *self.judging, *flags)

    @property
    def judging(self) -> tuple[str, ...]:
        """The options that pass the policy to a command; empty without one."""
        return ("--policy", self.policy, *self._files) if self.policy else ()

    def names(self, entries: Iterable[RunbookEntry], say: Phrases) -> Line:
        """Return the tables of plans without duplicates, as `tables` does."""
        return self.tables((entry.plan.table for entry in entries), say)

    def tables(self, names: Iterable[str], say: Phrases) -> Line:
        """Return tables of this runbook: large groups as links to their sections, or by name."""
        left = dict.fromkeys(names)
        if len(left) < GROUPED_FROM:
            return join_names(as_code(left), say)
        if len(left) == self._table_count:
            return (say.text("tables.all", count=say.count("tables", len(left))),)
        links: list[Inline] = []
        for number, tables in self._large_groups:
            if tables.keys() <= left.keys():
                count, first = say.count("tables", len(tables)), next(iter(tables))
                text = say.text("tables.like", count=count, table=first)
                links.append(Link(text, f"table-{number}"))
                left = {name: None for name in left if name not in tables}
        return join_names([*links, *as_code(left)], say)

    def steps_of_tables(self, found: Mapping[str, Sequence[str]], say: Phrases) -> Line:
        """Return tables of this runbook, each with some of its steps."""
        if len(found) < GROUPED_FROM:
            return join_names(
                (f"{name} ({', '.join(steps)})" for name, steps in found.items()), say
            )
        tables: dict[str, list[str]] = {}
        for table, steps in found.items():
            tables.setdefault(", ".join(steps), []).append(table)
        line: Line = ()
        for text, each in tables.items():
            line = (*line, *("; " * bool(line)), *self.tables(each, say), f" ({text})")
        return line

    @cached_property
    def _table_count(self) -> int:
        return len({entry.plan.table for entry in self.entries})

    @cached_property
    def _large_groups(self) -> list[tuple[int, dict[str, None]]]:
        """The tables of groups that are not named one by one, with the numbers of the groups."""
        groups = (dict.fromkeys(e.plan.table for e in group.entries) for group in self.groups)
        return [
            (number, tables)
            for number, tables in enumerate(groups, 1)
            if len(tables) >= GROUPED_FROM
        ]

    def on_tables(self, name: str, *words: str) -> str:
        """Return a command that runs deltaproto on the plans' tables, from any folder."""
        tables = list(dict.fromkeys(reading_address(entry.plan) for entry in self.changing))
        if len(tables) <= _MOST_WORDS:
            return command("deltaproto", name, *tables, *words)
        listed = [table for table in tables if is_plain(table) and table != "TABLES"]
        every = "\n".join(listed)
        lines = [f"{command('deltaproto', name, '-', *words)} <<'TABLES'\n{every}\nTABLES"]
        # A line feed in a name would end its line, or the list.
        if others := [table for table in tables if table not in listed]:
            lines.append(command("deltaproto", name, *others, *words))
        return "\n".join(lines)


def is_leading_wait(step: Step, steps: Sequence[Step]) -> bool:
    """Return True if the step and every step before it have no statement (they only wait)."""
    return all(each.sql is None for each in steps[: steps.index(step) + 1])


def join_names(parts: Iterable[Inline], say: Phrases) -> Line:
    """Join all of the parts with commas."""
    known = list(parts)
    return listed(known, len(known), "") or (say.text("none"),)


def as_code(names: Iterable[str]) -> list[Inline]:
    """Return names as code."""
    return [Code(name) for name in names]


def reversibility_phrase(plan: Plan) -> str | None:
    """Return a phrase on whether a plan can be reverted; None if nothing changes."""
    if not plan.steps or plan.blocked:
        return None
    if plan.point_of_no_return is not None:
        return "summary.irreversible"
    return "summary.partly" if _stays(plan) else "summary.reversible"


def _stays(plan: Plan) -> tuple[str, ...]:
    changed = (*plan.features_added, *plan.features_removed)
    return tuple(name for name in changed if not _leaves_without_trace(name))


def reenabling_causes(feature: str) -> list[str]:
    """Return the known causes that re-enable a dropped feature, ignoring session settings."""
    return list(reenables_itself(feature, {}))
