"""`Plan`: the steps for one table and their effects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.clients.model import Access, Verdict
from deltaproto.counts import counted
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.statement import Action
from deltaproto.protocol.isolation import Isolation, RowLevelSupport
from deltaproto.protocol.protocol import Protocol

IN_THE_LOG = "in the log"
"""label of an undeclared client that a recent commit names"""


class StreamEffect(StrEnum):
    """Effect of a step's commit on a streaming read."""

    CONTINUES = "continues"
    RESTART = "restart"
    """it stops and continues after a restart"""
    ENDS = "ends"
    """it fails permanently; only a new checkpoint helps"""
    LOSES = "loses-history"
    """it fails if it lags behind the remaining history"""


class StreamImpact(NamedTuple):
    """The effect of a step on one kind of streaming read."""

    reads: str
    """the affected streams"""
    effect: StreamEffect
    why: str


class StepConflict(NamedTuple):
    """A concurrent transaction that conflicts with a step."""

    engine: str
    who: str
    exception: str
    why: str
    loser: str
    """`writer`: the other transaction fails; `step`: the step fails"""


class Rewrites(NamedTuple):
    """Upper bound of data files that a step rewrites. None: unknown."""

    which: Rewrite
    files: int | None
    bytes: int | None


class Step(NamedTuple):
    """One statement, or a wait between two statements."""

    id: str
    """s1, s2, …"""
    action: Action
    """the kind of the step"""
    sql: str | None
    """the statement; None for a wait"""
    feature: str | None
    """the feature that it adds, drops or uses"""
    why: str
    """the effect, in one sentence"""
    operations: tuple[str, ...]
    """operation names as in DESCRIBE HISTORY, in order; some commits may not happen"""
    protocol_before: Protocol
    """the protocol before the step"""
    protocol_after: Protocol
    """the protocol after the step, exactly as Delta will commit it"""
    commits: tuple[int, int]
    """minimum and maximum"""
    rewrites: Rewrites
    """upper bound of what is rewritten"""
    expects: str | None
    """the error class that the engine returns if all goes well"""
    truncates: bool
    """True if history older than the retention is deleted"""
    retention_hours: float | None
    """retention of a truncating step"""
    wait_hours: float
    """duration of a wait; 0 for a statement"""
    setting: str | None
    """the table property that sets the wait, with its value"""
    clashes: tuple[StepConflict, ...]
    """the concurrent writes that may fail, or may make the step fail"""
    streams: tuple[StreamImpact, ...]
    """the effect on streaming reads"""
    losses: tuple[str, ...]
    """irreversible losses"""
    undo: str | None
    """the statement that undoes the step, as far as possible"""
    warnings: tuple[str, ...]
    """risks of this step, one sentence each"""
    optional: bool = False
    """True if the step is unnecessary after the step that it repeats has succeeded"""

    def __repr__(self) -> str:
        return f"<Step {self.id} {self.action}: {self.why}>"

    @property
    def reversible(self) -> bool:
        """True if a later statement can undo the step completely."""
        return not self.losses and not self.truncates


class Blocked(NamedTuple):
    """A blocker: a reason why the goal cannot be reached."""

    feature: str | None
    """None: not caused by a feature"""
    reason: str
    """the reason, in one sentence"""
    remedy: str
    """what can be done"""
    error: str = ""
    """error class of the engine's refusal, or empty"""

    def __repr__(self) -> str:
        return f"<Blocked {self.feature or 'plan'}: {self.reason}>"


def stays_violated_line(*unmet: Blocked, remedy: bool = False) -> str:
    """Return one line about the violations that a plan leaves, with remedies if requested."""
    texts = [text for each in unmet for text in (each.reason, each.remedy * remedy) if text]
    return f"stays violated: {'; '.join(texts)}"


class ClientChange(NamedTuple):
    """A client's access before and after the plan."""

    client: str
    """the client as ID@VERSION"""
    label: str | None
    """label in the policy, and who was seen to use the client"""
    access: Access
    """what the client does"""
    before: Verdict
    """what happens now"""
    after: Verdict
    """what happens after the plan"""
    because: tuple[str, ...]
    """the features that decide afterwards, or else before"""
    reason: str
    """the reason in one sentence; empty if ok"""

    def __repr__(self) -> str:
        return f"<ClientChange {self.client} {self.access}: {self.before} to {self.after}>"


class ConcurrencyRules(NamedTuple):
    """How concurrent writers of a table are isolated."""

    isolation: Isolation
    row_level: RowLevelSupport
    """whether Databricks detects conflicts by row"""
    reason: str


class CellOutcome(NamedTuple):
    """The content of one cell of a conflict matrix."""

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
    """A plan's lasting effect on concurrent writers."""

    before: ConcurrencyRules
    after: ConcurrencyRules
    cells: tuple[ChangedCell, ...]


class Alternative(NamedTuple):
    """An alternative solution, compared with the plan's."""

    name: str
    """fast, fast-then-truncate, truncating, fill-gaps, no-drops, nearest, rewrite, reading,
    lower-versions, other-clients"""
    text: str
    """the alternative in words"""
    reaches_goal: bool
    """whether it reaches the whole goal"""
    protocol_after: Protocol
    """the protocol after its last step"""
    cost: Cost
    """the cost of all its steps"""
    steps: tuple[Step, ...]
    """its statements and waits, in order"""

    def __repr__(self) -> str:
        return f"<Alternative {self.name}: {self.text}; {counted(len(self.steps), 'step')}>"


class Fingerprint(NamedTuple):
    """Facts that must not change between planning and execution; data commits are allowed."""

    table_id: str | None
    version: int
    """the inspected version; a later version alone is not a conflict"""
    protocol: Protocol
    metadata: str | None
    """digest of schema, partitioning and protocol-related properties; None: unknown"""


class Plan(NamedTuple):
    """The result of one request about one table. Pure: it contains no current time."""

    command: str
    """plan, plan-upgrade or plan-downgrade"""
    table: str
    """name given by the user"""
    location: str
    """absolute URI of the table"""
    sql_name: str
    """name used in statements"""
    goal: Mapping[str, Any]
    """kind and parameters of the request, as in JSON"""
    goal_text: str
    """the goal in words"""
    engine: Engine
    """the engine that will execute the plan"""
    fingerprint: Fingerprint
    """what must not change until the plan is applied"""
    protocol_before: Protocol
    """the protocol of the table now"""
    protocol_after: Protocol
    """the protocol after the last step"""
    steps: tuple[Step, ...]
    """the statements and waits, in order; empty if there is nothing to do"""
    cost: Cost
    """the cost of all steps, by which plans are compared"""
    blocked: tuple[Blocked, ...]
    """why the goal cannot be reached; empty if it can"""
    alternatives: tuple[Alternative, ...]
    """other ways to the goal or near it"""
    kept: tuple[Blocked, ...]
    """features that stay although one could expect their removal, with the reason"""
    warnings: tuple[str, ...]
    """risks of this plan, one sentence each"""
    clients: tuple[ClientChange, ...]
    """the access of each client before and after the plan"""
    complete: bool
    """False: the table was not fully visible, so predictions may be incomplete"""
    concurrency: ConcurrencyChange | None = None
    """None: the plan comes from a file of an earlier version"""
    unmet: tuple[Blocked, ...] = ()
    """the policy's requirements that the plan does not meet, with the reason"""
    fixes: tuple[str, ...] = ()
    """the findings of `check` that the plan removes, each with its rule"""
    everybody: bool = False
    """True: no client was declared; `clients` has the clients in the log, and all known clients
    whose access changes
    """
    other_names: tuple[str, ...] = ()
    """further names of the table in catalogs and through links, which patterns of a policy match"""

    @property
    def features_added(self) -> tuple[str, ...]:
        """The features that the table supports afterwards, and not before."""
        return tuple(sorted(self.protocol_after.supported - self.protocol_before.supported))

    @property
    def features_removed(self) -> tuple[str, ...]:
        """The features that the table supports before, and not afterwards."""
        return tuple(sorted(self.protocol_before.supported - self.protocol_after.supported))

    @property
    def notified_clients(self) -> tuple[ClientChange, ...]:
        """The changes for declared clients, or else for those in the log."""
        if not self.everybody:
            return self.clients
        return tuple(each for each in self.clients if each.label == IN_THE_LOG)

    @property
    def point_of_no_return(self) -> str | None:
        """The id of the first irreversible step, or None."""
        return next((step.id for step in self.steps if not step.reversible), None)

    @property
    def changes(self) -> bool:
        """True if there is anything to do."""
        return bool(self.steps)

    @property
    def stays_violated(self) -> bool:
        """True if the table violates the policy and no statement improves that."""
        return bool(self.unmet) and not self.steps and not self.blocked


CHECKSUM_FIELD = "seal"
_ID_LENGTH = 16
# In a plan for one table, these members come from the envelope of every output.
_EXCLUDED_FIELDS = {CHECKSUM_FIELD, "schema_version", "tool", "command", "generated_at"}


def plan_id(plan: Plan) -> str:
    """Return an id that depends on the table, its version, the goal and the steps.

    A plan that was applied and undone can be planned again: the version then differs.
    """
    before = plan.protocol_before
    protocol = {
        "minReaderVersion": before.min_reader_version,
        "minWriterVersion": before.min_writer_version,
        "readerFeatures": _sorted(before.reader_features),
        "writerFeatures": _sorted(before.writer_features),
    }
    content = json.dumps(
        [
            plan.command,
            plan.location,
            plan.fingerprint.table_id,
            plan.fingerprint.version,
            plan.fingerprint.metadata,
            protocol,
            dict(plan.goal),
            str(plan.engine),
            [step.sql for step in plan.steps],
        ],
        sort_keys=True,
    )
    return hashlib.sha256(content.encode()).hexdigest()[:_ID_LENGTH]


def compute_checksum(fields: Mapping[str, Any]) -> str:
    """Return a SHA-256 hex digest over every member of a plan except the seal itself.

    It detects mistakes and damage. It is not a signature: anyone who can edit a plan can reseal it.
    """
    content = {key: value for key, value in fields.items() if key not in _EXCLUDED_FIELDS}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
