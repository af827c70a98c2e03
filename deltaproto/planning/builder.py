"""Predict the statements of a plan in order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from deltaproto.caches import IdentityKey
from deltaproto.counts import shorten
from deltaproto.planning.advice import is_same_table, may_be_table
from deltaproto.planning.ddl.user_statement import ParsedStatement, UserStatement
from deltaproto.planning.enable import FeatureToEnable, enabling_statements
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.schema import Path
from deltaproto.planning.predict.table import (
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_TRACKING,
    Table,
)
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.lowest import is_higher
from deltaproto.planning.search.prediction import PredictedStatement, predict_statement
from deltaproto.planning.search.route import raise_to_pair
from deltaproto.planning.statement import ClusterBy, SetProperties, Statement
from deltaproto.planning.steps import NOT_STORED
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
_LONGEST_STATEMENT = 80
"""characters of a statement in a message"""


def is_clustered(table: Table, columns: tuple[str, ...]) -> bool:
    """Return True if these are the table's clustering columns, ignoring case."""
    found = table.clustering
    return found is not None and [*map(str.casefold, found)] == [*map(str.casefold, columns)]


@lru_cache(maxsize=64)
def _start_at(table: IdentityKey[Table], version: int) -> Table:
    start = table.value._replace(version=version)
    return start.with_earlier({version: start})


class PlanBuilder:
    """Predicts statements in order, up to the first refusal."""

    def __init__(self, inputs: PlanInput, table: Table | None = None) -> None:
        """Start from the observed table, or from `table`."""
        self._engine = inputs.engine
        self.table = (
            _start_at(IdentityKey(inputs.table), inputs.fingerprint.version)
            if table is None
            else table
        )
        self.predictions: list[PredictedStatement] = []
        self.blocked: list[Blocked] = []
        self.notes: list[str] = []
        self.parsed_by_id: dict[int, ParsedStatement] = {}
        """the parsed statements of the user's SQL, by identity"""

    def add_user_statement(self, parsed: ParsedStatement, table: str) -> None:
        """Add a user's SQL statement, unless it commits nothing."""
        if self.blocked or self._is_secret(parsed.text):
            return
        outcome = predict_statement(parsed.statement, self.table, self._engine)
        refusal = outcome.refusal
        if refusal is not None and not refusal.retry:
            statement = shorten(" ".join(parsed.text.split()), _LONGEST_STATEMENT)
            where = f"line {parsed.line}: {statement}: {refusal.message}"
            self.blocked.append(
                Blocked(parsed.statement.feature, where, refusal.remedy, refusal.error)
            )
            return
        notes = [] if parsed.target is None else _notes_on_target(parsed, parsed.target, table)
        self.notes += (note for note in notes if note not in self.notes)
        if outcome.commits:
            self.parsed_by_id[id(parsed.statement)] = parsed
            self.predictions.append(PredictedStatement(parsed.statement, self.table, outcome))
        self.table = outcome.table

    def add(self, statement: Statement, *, together: bool = False) -> None:
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
        self.predictions.append(PredictedStatement(statement, self.table, outcome))
        self.table = outcome.table
        if together:
            self._merge_last_two()

    def _is_secret(self, sql: str) -> bool:
        """Block a statement with a credential, including a stored one that is shown redacted."""
        if not holds_credentials(sql):
            return False
        self.blocked.append(NOT_STORED)
        return True

    def _merge_last_two(self) -> None:
        if len(self.predictions) < 2:
            return
        (one, before, _), (two, _, _) = self.predictions[-2:]
        if not isinstance(one, SetProperties) or not isinstance(two, SetProperties):
            return
        # Its backfill is slow and runs before anything else in the statement.
        if ROW_TRACKING in {*one.properties, *two.properties}:
            return
        feature = one.feature if one.feature == two.feature else None
        both = SetProperties({**one.properties, **two.properties}, feature)
        outcome = predict_statement(both, before, self._engine)
        if outcome.refusal is None and _is_same_table(outcome.table, self.table):
            self.predictions[-2:] = [PredictedStatement(both, before, outcome)]
            self.table = outcome.table

    def enable(self, wanted: FeatureToEnable) -> None:
        """Enable a feature, with what it requires."""
        found = enabling_statements(wanted, self.table, self._engine)
        if isinstance(found, Blocked):
            self.blocked.append(found)
            return
        for statement in found:
            self.add(statement, together=True)

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """`--set PROPERTY=VALUE`."""
        before = self.table.protocol
        now = {
            MIN_READER_VERSION: before.min_reader_version,
            MIN_WRITER_VERSION: before.min_writer_version,
        }
        self.add(SetProperties(properties))
        lowered = is_higher(self.table.protocol.versions, before.versions)
        if not lowered and any(
            (wanted := parse_whole(properties.get(key, ""))) is not None and wanted < version
            for key, version in now.items()
        ):
            self.notes.append(_NEVER_LOWER)

    def raise_versions(self, pair: tuple[int, int], *, together: bool = False) -> None:
        """`--protocol R,W`; `together` as in `add`."""
        before = self.table.protocol
        self.add(raise_to_pair(pair), together=together)
        if self.blocked or self.table.protocol != before:
            return
        reader, writer = pair
        if reader < before.min_reader_version or writer < before.min_writer_version:
            self.notes.append(_NEVER_LOWER)
        elif pair != before.versions:
            self.notes.append(
                f"Setting the versions {reader} and {writer} changes nothing: table features come "
                "with the first feature that requires them (--enable)."
                if writer == 7
                else f"The table already has all features that ({reader},{writer}) implies."
            )

    def cluster_by(self, columns: tuple[str, ...]) -> None:
        """Cluster by these columns, or by none, instead of what the plan last clusters by."""
        statement = ClusterBy(columns)
        later = [] if self.blocked else self._replace_clustering(statement)
        if not is_clustered(self.table, columns):
            self.add(statement)
        for each in later:
            outcome = predict_statement(each.statement, self.table, self._engine)
            self.predictions.append(PredictedStatement(each.statement, self.table, outcome))
            self.table = outcome.table

    def _replace_clustering(self, statement: ClusterBy) -> list[PredictedStatement]:
        """Remove the last statement that clusters, if the other one can replace it.

        Return the statements after it, which are removed, too.
        """
        for number in reversed(range(len(self.predictions))):
            last, before, _ = self.predictions[number]
            if not isinstance(last, ClusterBy) or id(last) in self.parsed_by_id:
                continue
            later = self.predictions[number + 1 :]
            refusal = predict_statement(statement, before, self._engine).refusal
            if later and (refusal is not None or not last.columns):
                break
            del self.predictions[number:]
            self.table = before
            return later
        return []

    def set_isolation(self, level: str) -> None:
        """`--isolation LEVEL`."""
        level = next((each for each in IsolationLevel if each.lower() == level.lower()), level)
        if level in _LEVELS:
            self.notes.append(_LEVELS[level])
        if self.table.configuration.get(ISOLATION, "").lower() != level.lower():
            self.add(SetProperties({ISOLATION: level}))


def _notes_on_target(parsed: ParsedStatement, target: Path, table: str) -> list[str]:
    """Return notes on the name of the table in a user's statement.

    Statements on rows and CREATE keep the name: it may also qualify columns, or occur in a query.
    """
    notes = []
    if not may_be_table(target, table):
        notes.append(f"The SQL names the table {'.'.join(target)}; predicted for this one.")
    statement = parsed.statement
    kept = isinstance(statement, UserStatement) and statement.tail is None
    if kept and not is_same_table(target, table):
        refused = f"`apply` and `rehearse` refuse steps that name {'.'.join(target)}"
        notes.append(f"{refused}: write {table} instead.")
    return notes


def _has_no_effect(statement: Statement, table: Table, outcome: Outcome) -> bool:
    after = outcome.table
    if isinstance(statement, SetProperties):
        # Setting the mapping mode to none again would rewrite every file.
        same = (after.protocol, after.configuration) == (table.protocol, table.configuration)
        # Enabling row tracking again gives ids to files that have none.
        return same and not (table.untracked and after.untracked is False)
    return _is_same_table(after, table)


def _is_same_table(one: Table, other: Table) -> bool:
    """Return True if the tables differ at most in their history."""
    one, other = (
        each.without_history()._replace(
            to_checkpoint=None, v2_checkpoint=None, version=None, earlier={}
        )
        for each in (one, other)
    )
    return one == other
