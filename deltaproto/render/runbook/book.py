"""What a runbook is written from, and the words that its chapters share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from deltaproto.errors import DeltaprotoError
from deltaproto.execution.plan_file import FailedPlan, LoadedPlan
from deltaproto.execution.preflight import GateResult, plan_gate
from deltaproto.execution.progress import table_address
from deltaproto.execution.warning import ApplyWarning, build_warning
from deltaproto.inspection.activity import Activity
from deltaproto.planning.advice import reenables_itself
from deltaproto.planning.impact import is_worse
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.policy.approvals import LossRuling
from deltaproto.policy.document.model import Window
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.document import Code, Inline, Line, listed
from deltaproto.render.plan_json import moments
from deltaproto.render.runbook.groups import Group, kind
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.runbook.shell import command, is_plain

IRREVERSIBLE = "irreversible"
"""the gate that a flag of the printed commands opens"""
_MOST_WORDS = 8
"""tables that are named in one command; more are read by it"""


class RunbookEntry(NamedTuple):
    """One plan, with what its table's log and the policy told."""

    planned: LoadedPlan
    activity: Activity | DeltaprotoError | None = None
    """None: nobody looked"""
    windows: tuple[Window, ...] | None = None
    """maintenance windows of the policy; None: it has none, or there is no policy"""
    rulings: tuple[LossRuling, ...] = ()
    """clients that lose access, and whether the policy approves that"""
    gates: tuple[GateResult, ...] | None = None
    """those of `apply` at the planned start, but for the engine's; None: not evaluated"""

    @property
    def plan(self) -> Plan:
        """The plan itself."""
        return self.planned.plan

    @property
    def name(self) -> Code:
        """The table as its user named it."""
        return Code(self.plan.table)

    @property
    def refused(self) -> GateResult | None:
        """Why `apply` never carries it out as it is; None where it would."""
        return next((gate for gate in self.failed if gate.name == "plan"), None)

    @property
    def failed(self) -> tuple[GateResult, ...]:
        """The gates at which `apply` would refuse it."""
        gates = (plan_gate(self.plan),) if self.gates is None else self.gates
        return tuple(gate for gate in gates if not gate.passed)

    @property
    def blocking(self) -> tuple[GateResult, ...]:
        """Those of them that no flag of the printed commands opens."""
        return tuple(gate for gate in self.failed if gate.name != IRREVERSIBLE)

    @property
    def stays(self) -> tuple[str, ...]:
        """Features after whose way back the table is not as it was.

        Dropping them again rewrites files or leaves checkpointProtection behind, and so does the
        drop itself of those that leave.
        """
        return _stays(self.plan)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Features that the plan takes out of the protocol."""
        return tuple(gone(self.plan.protocol_before, self.plan.protocol_after))

    @property
    def needs_backup(self) -> bool:
        """Whether a step cannot be taken back as it was, or rewrites files."""
        return bool(
            self.plan.point_of_no_return
            or self.stays
            or any(step.rewrites.which is not Rewrite.NONE for step in self.plan.steps)
        )

    @property
    def losing(self) -> bool:
        """Whether a client of the plan loses access."""
        return any(is_worse(each) for each in self.plan.clients)


def _leaves_without_trace(name: str) -> bool:
    drop = feature_catalog.feature_record(name).drop
    if name == CHECKPOINT_PROTECTION or drop.delta_spark is None:
        return False
    return not (drop.protects_history or drop.rewrites_data or drop.needs_truncate)


Warned = Sequence[tuple[RunbookEntry, ApplyWarning]]


class Book:
    """Everything that a runbook tells.

    Args:
        arguments: plan files and folders, as they were given.
        start: when the first step is meant to be carried out, in seconds since the epoch.
        written: now, in seconds since the epoch.
        policy: the policy's file.
        catalogue: files of clients that it takes.
    """

    def __init__(
        self,
        entries: Sequence[RunbookEntry],
        unplanned: Sequence[FailedPlan],
        arguments: Sequence[str],
        start: float,
        written: float,
        policy: str | None = None,
        catalogue: Sequence[str] = (),
    ) -> None:
        self.entries, self.unplanned = tuple(entries), tuple(unplanned)
        self.start, self.written, self.policy = start, written, policy
        self._arguments = tuple(arguments)
        self._files = [word for file in catalogue for word in ("--client-file", file)]

    @cached_property
    def groups(self) -> tuple[Group[RunbookEntry], ...]:
        """The plans, those together that differ in nothing but their tables."""
        return self._grouped(self.entries)

    @cached_property
    def changing_groups(self) -> tuple[Group[RunbookEntry], ...]:
        """The plans that do something, likewise."""
        return self._grouped(self.changing)

    def _grouped(self, entries: Iterable[RunbookEntry]) -> tuple[Group[RunbookEntry], ...]:
        found: dict[str, list[RunbookEntry]] = {}
        for entry in entries:
            facts = [
                [list(gate) for gate in entry.failed],
                self.times(entry),
                [ruling.text for ruling in entry.rulings],
            ]
            found.setdefault(kind(entry.plan, facts), []).append(entry)
        return tuple(Group(tuple(each)) for each in found.values())

    @cached_property
    def refusals(self) -> dict[tuple[GateResult, ...], list[RunbookEntry]]:
        """The plans that `apply` would refuse, by all the gates that fail."""
        found: dict[tuple[GateResult, ...], list[RunbookEntry]] = {}
        for entry in self.entries:
            if entry.gates is not None and entry.failed:
                found.setdefault(entry.failed, []).append(entry)
        return found

    @cached_property
    def changing(self) -> tuple[RunbookEntry, ...]:
        """The plans that do something."""
        return tuple(entry for entry in self.entries if entry.plan.changes)

    @cached_property
    def applicable(self) -> tuple[RunbookEntry, ...]:
        """Those of them that `apply` carries out."""
        return tuple(entry for entry in self.changing if entry.refused is None)

    @cached_property
    def warned(self) -> Warned:
        """Whom each of them hits."""
        return tuple(
            (entry, build_warning(entry.plan, entry.plan.steps, None, None, None, self.start))
            for entry in self.changing
        )

    @cached_property
    def stops_writers(self) -> bool:
        """Whether any transaction or stream has to be stopped before a step."""
        return any(each.hits or each.streams for _, each in self.warned)

    @property
    def irreversible(self) -> bool:
        """Whether any step cannot be taken back."""
        return any(entry.plan.point_of_no_return for entry in self.changing)

    def times(self, entry: RunbookEntry) -> list[tuple[float | None, float | None]]:
        """As `moments`, from the planned start on.

        A wait before the first statement began with what was done earlier: its end is the plan's.
        """
        steps = entry.plan.steps
        first = next((n for n, step in enumerate(steps) if step.sql is not None), len(steps))
        told = [moment for moment in entry.planned.not_before[:first] if moment is not None]
        if not told:
            return moments(steps, self.start)
        begin = max(self.start, *told)
        later = moments(steps[first:], begin)
        return [(begin, None)] * first + [
            (begin if earliest is None else earliest, lost) for earliest, lost in later
        ]

    def command(self, name: str, *words: str) -> str:
        """A command of deltaproto on the plans that can be applied, for a shell."""
        files: Sequence[str] = self._arguments
        if self.unplanned or len(self.applicable) < len(self.entries):
            files = list(dict.fromkeys(entry.planned.path for entry in self.applicable))
        return command("deltaproto", name, *files, *words)

    def apply(self, *words: str) -> str:
        """`apply` with all that it needs to carry the plans out to their end."""
        flags = ("--allow-irreversible",) if self.irreversible else ()
        return self.command("apply", *words, *self.judging, *flags)

    @property
    def judging(self) -> tuple[str, ...]:
        """The options by which a command takes the policy; empty without one."""
        return ("--policy", self.policy, *self._files) if self.policy else ()

    def on_tables(self, name: str, *words: str) -> str:
        """A command of deltaproto on the tables of the plans, from any folder."""
        tables = list(dict.fromkeys(table_address(entry.plan) for entry in self.changing))
        if len(tables) <= _MOST_WORDS:
            return command("deltaproto", name, *tables, *words)
        listed = [table for table in tables if is_plain(table) and table != "TABLES"]
        every = "\n".join(listed)
        lines = [f"{command('deltaproto', name, '-', *words)} <<'TABLES'\n{every}\nTABLES"]
        # A line feed in a name would end its line, or the list.
        if others := [table for table in tables if table not in listed]:
            lines.append(command("deltaproto", name, *others, *words))
        return "\n".join(lines)


def leads(step: Step, steps: Sequence[Step]) -> bool:
    """Whether a wait stands before every statement."""
    return all(each.sql is None for each in steps[: steps.index(step) + 1])


def every(parts: Iterable[Inline], say: Phrases) -> Line:
    """All of the parts, with commas."""
    known = list(parts)
    return listed(known, len(known), "") or (say.text("none"),)


def names(entries: Iterable[RunbookEntry], say: Phrases) -> Line:
    """The tables of plans, each once."""
    return every(codes(dict.fromkeys(entry.plan.table for entry in entries)), say)


def codes(names: Iterable[str]) -> list[Inline]:
    """Names as code."""
    return [Code(name) for name in names]


def caution(plan: Plan) -> str | None:
    """Return the phrase that says whether a plan can be reverted; None if nothing changes."""
    if not plan.steps or plan.blocked:
        return None
    if plan.point_of_no_return is not None:
        return "summary.irreversible"
    return "summary.partly" if _stays(plan) else "summary.reversible"


def _stays(plan: Plan) -> tuple[str, ...]:
    before, after = plan.protocol_before, plan.protocol_after
    found = [name for name in gone(after, before) if not _leaves_without_trace(name)]
    return (*found, *(name for name in gone(before, after) if not _leaves_without_trace(name)))


def gone(before: Protocol, after: Protocol) -> list[str]:
    """Features that leave."""
    return sorted(before.supported - after.supported)


def known(feature: str) -> list[str]:
    """What is known to bring a feature back, without asking the session that writes."""
    return list(reenables_itself(feature, {}))
