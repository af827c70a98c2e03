"""Plans that add features to a table's protocol, or change its properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaproto.clients.model import Access, Verdict
from deltaproto.planning.advice import describe_user_statement, find_warnings, may_be_table, shorten
from deltaproto.planning.conflict_impact import concurrency_change
from deltaproto.planning.ddl.user_statement import ParsedStatement
from deltaproto.planning.enable import CannotEnable, enabling_statements
from deltaproto.planning.engine_support import find_engine_blockers
from deltaproto.planning.impact import client_changes, compare_clients, end_state_of
from deltaproto.planning.plan import Blocked, Plan
from deltaproto.planning.predict.consistency import READ_COPY
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.properties import normalize_properties
from deltaproto.planning.predict.table import (
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_TRACKING,
    Table,
)
from deltaproto.planning.request import PlanInput, UpgradeRequest, goal_fields, goal_text
from deltaproto.planning.search.cost import compute_cost
from deltaproto.planning.search.goals import EndState, requirements_after
from deltaproto.planning.search.route import PredictedStatement, predict_statement, raise_to_pair
from deltaproto.planning.statement import SetProperties, Statement
from deltaproto.planning.steps import NOT_STORED, block_secrets, build_steps
from deltaproto.protocol.decoding import parse_whole
from deltaproto.protocol.isolation import ISOLATION_PROPERTY as ISOLATION
from deltaproto.protocol.isolation import IsolationLevel
from deltaproto.redaction import holds_credentials

_LEVELS: dict[str, str] = {
    IsolationLevel.SERIALIZABLE: "Under Serializable, blind appends can also conflict.",
    IsolationLevel.WRITE_SERIALIZABLE: "Under WriteSerializable, the table contents may not match "
    "the order in the history, and readers may see states that are not in the log.",
}

_NEVER_LOWER = (
    "Setting lower versions does not lower a protocol: use plan-downgrade to drop features."
)


def plan_upgrade(inputs: PlanInput, request: UpgradeRequest) -> Plan:
    """Return a plan of predicted statements, blocked if the engine would refuse one."""
    walk = _PlanBuilder(inputs)
    for wanted in request.enable:
        found = enabling_statements(wanted, walk.table, inputs.engine)
        if isinstance(found, CannotEnable):
            walk.blocked.append(Blocked(*found))
            continue
        for statement in found:
            walk.go(statement, together=True)
    if request.set:
        walk.set(normalize_properties(request.set))
    if request.to is not None:
        walk.raised(request.to)
    if request.isolation is not None:
        walk.isolated(request.isolation)
    for parsed in request.statements:
        walk.own(parsed, inputs.sql)
    ending = end_state_of(walk.table)
    walk.blocked += _lost_access(inputs, request, ending)
    if walk.moves:
        walk.blocked += find_engine_blockers(inputs)
    moves = [] if walk.blocked else walk.moves
    made = build_steps(moves, inputs.engine, inputs.files, inputs.sql, inputs.writers)
    made = tuple(
        step._replace(why=describe_user_statement(walk.parsed_by_id[id(move.statement)], step))
        if id(move.statement) in walk.parsed_by_id
        else step
        for step, move in zip(made, moves, strict=True)
    )
    after = made[-1].protocol_after if made else inputs.table.protocol
    plan = Plan(
        command="plan-upgrade",
        table=inputs.name,
        location=inputs.location,
        sql_name=inputs.sql,
        goal=goal_fields(request),
        goal_text=goal_text(goal_fields(request), inputs.table.protocol),
        engine=inputs.engine,
        fingerprint=inputs.fingerprint,
        protocol_before=inputs.table.protocol,
        protocol_after=after,
        steps=made,
        cost=compute_cost(moves, inputs.engine, inputs.files),
        blocked=tuple(walk.blocked),
        alternatives=(),
        kept=(),
        warnings=(*inputs.warnings, *walk.notes, *find_warnings(inputs, made, after)),
        clients=client_changes(
            inputs, requirements_after(inputs.needs, ending) if made else inputs.needs
        ),
        complete=inputs.complete,
        everybody=inputs.everybody,
        concurrency=concurrency_change(inputs, walk.table if made else inputs.table),
    )
    return block_secrets(plan)


class _PlanBuilder:
    """Predicts statements one after the other, up to the first refusal."""

    def __init__(self, inputs: PlanInput) -> None:
        self._engine = inputs.engine
        self.table = inputs.table._replace(version=inputs.fingerprint.version)
        self.moves: list[PredictedStatement] = []
        self.blocked: list[Blocked] = []
        self.notes: list[str] = []
        self.parsed_by_id: dict[int, ParsedStatement] = {}
        """the parsed statements of the user's SQL, by identity"""

    def own(self, parsed: ParsedStatement, table: str) -> None:
        """Add a user's SQL statement, unless it commits nothing."""
        if self.blocked or self._is_secret(parsed.text):
            return
        outcome = predict_statement(parsed.statement, self.table, self._engine)
        refusal = outcome.refusal
        if refusal is not None and not refusal.retry:
            where = f"line {parsed.line}: {shorten(parsed.text)}: {refusal.message}"
            self.blocked.append(
                Blocked(parsed.statement.feature, where, refusal.remedy, refusal.error)
            )
            return
        if parsed.target is not None and not may_be_table(parsed.target, table):
            note = f"The SQL names the table {'.'.join(parsed.target)}; predicted for this one."
            if note not in self.notes:
                self.notes.append(note)
        if outcome.commits:
            self.parsed_by_id[id(parsed.statement)] = parsed
            self.moves.append(PredictedStatement(parsed.statement, self.table, outcome))
        self.table = outcome.table

    def go(self, statement: Statement, *, together: bool = False) -> None:
        """Add a statement, unless it would change nothing.

        With `together`, properties are set in one statement if the result is the same: each
        metadata commit is another conflict for other writers.
        """
        if self.blocked or self._is_secret(statement.sql("t") or ""):
            return
        outcome = predict_statement(statement, self.table, self._engine)
        refusal = outcome.refusal
        if refusal is not None and not refusal.retry:
            self.blocked.append(
                Blocked(statement.feature, refusal.message, refusal.remedy, refusal.error)
            )
            return
        if _has_no_effect(statement, self.table, outcome):
            return
        self.moves.append(PredictedStatement(statement, self.table, outcome))
        self.table = outcome.table
        if together:
            self._join()

    def _is_secret(self, sql: str) -> bool:
        """Block a statement with a credential: the table's own one is hidden as well."""
        if not holds_credentials(sql):
            return False
        self.blocked.append(NOT_STORED)
        return True

    def _join(self) -> None:
        if len(self.moves) < 2:
            return
        (one, before, _), (two, _, _) = self.moves[-2:]
        if not isinstance(one, SetProperties) or not isinstance(two, SetProperties):
            return
        # Its backfill is slow and runs before anything else in the statement.
        if ROW_TRACKING in {*one.properties, *two.properties}:
            return
        feature = one.feature if one.feature == two.feature else None
        both = SetProperties({**one.properties, **two.properties}, feature)
        outcome = predict_statement(both, before, self._engine)
        if outcome.refusal is None and _is_same_table(outcome.table, self.table):
            self.moves[-2:] = [PredictedStatement(both, before, outcome)]
            self.table = outcome.table

    def set(self, properties: Mapping[str, str]) -> None:
        """`--set PROPERTY=VALUE`."""
        before = self.table.protocol
        now = {
            MIN_READER_VERSION: before.min_reader_version,
            MIN_WRITER_VERSION: before.min_writer_version,
        }
        self.go(SetProperties(properties))
        if any(
            (wanted := parse_whole(properties.get(key, ""))) is not None and wanted < version
            for key, version in now.items()
        ):
            self.notes.append(_NEVER_LOWER)

    def raised(self, pair: tuple[int, int]) -> None:
        """`--protocol R,W`."""
        before = self.table.protocol
        self.go(raise_to_pair(pair))
        if self.blocked or self.table.protocol != before:
            return
        reader, writer = pair
        if reader < before.min_reader_version or writer < before.min_writer_version:
            self.notes.append(_NEVER_LOWER)
        elif pair != (before.min_reader_version, before.min_writer_version):
            self.notes.append(
                f"Setting the versions {reader} and {writer} changes nothing: table features come "
                "with the first feature that requires them (--enable)."
                if writer == 7
                else f"The table already has all features that ({reader},{writer}) implies."
            )

    def isolated(self, level: str) -> None:
        """`--isolation LEVEL`."""
        level = next((each for each in IsolationLevel if each.lower() == level.lower()), level)
        if level in _LEVELS:
            self.notes.append(_LEVELS[level])
        if self.table.configuration.get(ISOLATION, "").lower() != level.lower():
            self.go(SetProperties({ISOLATION: level}))


def _has_no_effect(statement: Statement, table: Table, outcome: Outcome) -> bool:
    after = outcome.table
    if isinstance(statement, SetProperties):
        # Setting the mapping mode to none again would rewrite every file.
        return (after.protocol, after.configuration) == (table.protocol, table.configuration)
    return _is_same_table(after, table)


def _is_same_table(one: Table, other: Table) -> bool:
    """Return True if the tables differ at most in their history."""
    one, other = (
        each.without_history()._replace(to_checkpoint=None, v2_checkpoint=None, version=None)
        for each in (one, other)
    )
    return one == other


def _remedy(access: Access) -> str:
    remedy = "upgrade the client first, or remove it from --for-client"
    return f"{remedy}; {READ_COPY}" if access is Access.READ else remedy


def _lost_access(inputs: PlanInput, request: UpgradeRequest, ending: EndState) -> Iterator[Blocked]:
    """Yield a blocker for each protected client that loses access."""
    for change in compare_clients(
        request.keep, inputs.needs, requirements_after(inputs.needs, ending)
    ):
        if change.after is not Verdict.OK:
            also = " (it already cannot)" if change.before is change.after else ""
            yield Blocked(
                change.because[0] if change.because else None,
                f"{change.client} could not {change.access}{also}: {change.reason}",
                _remedy(change.access),
            )
