"""`Plan`: what is done to one table, step by step, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.clients.model import Access
from deltaproto.clients.verdict import Verdict
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.statement import Action
from deltaproto.protocol.isolation import Isolation, RowLevelSupport
from deltaproto.protocol.protocol import Protocol


class StreamEffect(StrEnum):
    """What becomes of a streaming read when a step is committed."""

    CONTINUES = "continues"
    RESTART = "restart"
    """it stops, and goes on after a restart"""
    ENDS = "ends"
    """it fails for good; only a new checkpoint helps"""
    LOSES = "loses-history"
    """it fails when it is further behind than the history that is left"""


class StreamImpact(NamedTuple):
    """What a step does to one kind of streaming read."""

    reads: str
    """which streams"""
    effect: StreamEffect
    why: str


class Clash(NamedTuple):
    """A concurrent transaction that a step aborts, or that aborts the step."""

    engine: str
    who: str
    exception: str
    why: str
    loser: str
    """`writer`: the other transaction fails; `step`: this one does"""


class Rewrites(NamedTuple):
    """Data files that a step rewrites, at most. None: their number was not looked at."""

    which: Rewrite
    files: int | None
    bytes: int | None


class Step(NamedTuple):
    """One statement, or the wait between two."""

    id: str
    action: Action
    sql: str | None
    feature: str | None
    why: str
    """what it does, in one sentence"""
    operations: tuple[str, ...]
    """the commits in order, as DESCRIBE HISTORY names them; not all need to happen"""
    protocol_before: Protocol
    protocol_after: Protocol
    commits: tuple[int, int]
    """at least and at most"""
    rewrites: Rewrites
    expects: str | None
    """the error class with which the engine answers when all goes well"""
    truncates: bool
    """history older than the retention is deleted"""
    retention_hours: float | None
    """how old the history is that a truncating step deletes"""
    wait_hours: float
    """of a wait; 0 for a statement"""
    setting: str | None
    """the table property that the wait comes from, with its value"""
    clashes: tuple[Clash, ...]
    streams: tuple[StreamImpact, ...]
    losses: tuple[str, ...]
    """what no later statement brings back"""
    undo: str | None
    """the statement that takes it back, as far as one does"""
    warnings: tuple[str, ...]
    optional: bool = False
    """it may turn out not to be needed, because the step that it repeats succeeded at once"""

    @property
    def reversible(self) -> bool:
        """Whether a later statement brings everything back."""
        return not self.losses and not self.truncates


class Blocked(NamedTuple):
    """What keeps the goal from being reached."""

    feature: str | None
    """None: no feature's fault"""
    reason: str
    remedy: str
    error: str = ""
    """the error class of the engine's refusal; empty where there is none"""


class ClientChange(NamedTuple):
    """What a client can do before and after."""

    client: str
    label: str | None
    """as the policy calls it"""
    access: Access
    before: Verdict
    after: Verdict
    because: tuple[str, ...]
    """the features that decide afterwards, or else before"""
    reason: str


class ConcurrencyRules(NamedTuple):
    """How writers of a table are kept apart that run at the same time."""

    isolation: Isolation
    row_level: RowLevelSupport
    """whether Databricks compares them by row"""
    reason: str


class CellOutcome(NamedTuple):
    """What a cell of a conflict matrix says."""

    conflict: str
    exceptions: tuple[str, ...]
    when: str


class ChangedCell(NamedTuple):
    """A cell of an engine's conflict matrix that a plan changes."""

    engine: str
    operation: str
    """of the transaction that commits last"""
    against: str
    before: CellOutcome
    after: CellOutcome


class ConcurrencyChange(NamedTuple):
    """What a plan does to concurrent writers once it is carried out."""

    before: ConcurrencyRules
    after: ConcurrencyRules
    cells: tuple[ChangedCell, ...]


class Alternative(NamedTuple):
    """Another way, side by side with the plan's."""

    name: str
    """fast, fast-then-truncate, truncating, fill-gaps, no-drops, nearest, rewrite, reading,
    lower-versions, other-clients"""
    text: str
    reaches_goal: bool
    protocol_after: Protocol
    cost: Cost
    steps: tuple[Step, ...]


class Fingerprint(NamedTuple):
    """What must not change between planning and executing; data commits may."""

    table_id: str | None
    version: int
    """the version that was looked at; a later one is no conflict by itself"""
    protocol: Protocol
    metadata: str | None
    """digest of schema, partitioning and the properties that protocols depend on; None: not seen"""


class Plan(NamedTuple):
    """The answer to one request about one table. Pure: it holds no time of the clock."""

    command: str
    """plan-upgrade or plan-downgrade"""
    table: str
    """as the user named it"""
    location: str
    sql_name: str
    """as statements name it"""
    goal: Mapping[str, Any]
    """kind and what was asked for, as JSON shows it"""
    goal_text: str
    engine: Engine
    fingerprint: Fingerprint
    protocol_before: Protocol
    protocol_after: Protocol
    steps: tuple[Step, ...]
    cost: Cost
    blocked: tuple[Blocked, ...]
    alternatives: tuple[Alternative, ...]
    kept: tuple[Blocked, ...]
    """features that nothing asked to go and that could be thought to, with the reason"""
    warnings: tuple[str, ...]
    clients: tuple[ClientChange, ...]
    complete: bool
    """False: the table could not be seen whole, so that predictions may miss something"""
    concurrency: ConcurrencyChange | None = None
    """None: the plan comes from a file of an earlier version"""

    @property
    def point_of_no_return(self) -> str | None:
        """The id of the first step that cannot be taken back; None when all can."""
        return next((step.id for step in self.steps if not step.reversible), None)

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps)
