"""Predict one statement: its own outcome, and what Delta does with every statement."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.caches import BoundedCache
from deltaproto.planning.ddl.user_statement import UserStatement
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.bounds import follow_bounds
from deltaproto.planning.predict.collations import COLLATED, COLLATION_FEATURES
from deltaproto.planning.predict.drop_feature import EMPTY_COMMIT
from deltaproto.planning.predict.outcome import (
    REMOVE_MAPPING,
    Outcome,
    Refusal,
    as_known_for,
)
from deltaproto.planning.predict.pending import follow_metadata
from deltaproto.planning.predict.properties import (
    TRUNCATION_RETENTION,
    find_invalid_stored,
    retention_hours,
    validate_stored,
)
from deltaproto.planning.predict.schema import columns_of_type
from deltaproto.planning.predict.table import Table
from deltaproto.planning.predict.unity_contract import refuse_commit
from deltaproto.planning.predict.unreadable import refuse_every_statement, refuse_lost_clustering
from deltaproto.planning.statement import Statement
from deltaproto.protocol import feature_catalog

_DOUBT = "the table stores {} = {}, which Delta does not accept: Delta Spark may refuse to write"
_COLLATED = (
    "columns get a type with a collation, for which the protocol has no feature, and clients "
    "handle that differently"
)
_REWRITING = frozenset({"OPTIMIZE", "REORG", REMOVE_MAPPING})
"""operations that write the rows of a table to new data files"""
_predictions = BoundedCache[tuple[int, str, Engine], tuple[Table, Outcome]](512)


class PredictedStatement(NamedTuple):
    """A statement, the table before it, and its outcome."""

    statement: Statement
    before: Table
    outcome: Outcome


def predict_statement(statement: Statement, table: Table, engine: Engine) -> Outcome:
    """Predict a statement's outcome, including Delta's automatic checkpoints.

    Routes of one search share most of their statements, so the last predictions are kept. They
    return the same table again, which therefore also has the predictions for what follows.
    """
    # Users' statements are rarely predicted twice, and their effects may have no complete repr().
    if isinstance(statement, UserStatement):
        return _predict(statement, table, engine)
    key = id(table), repr(statement), engine
    found = _predictions.get(key)
    if found is None:
        # While an entry exists, it keeps its table, so that no other one gets the id.
        found = _predictions[key] = table, _predict(statement, table, engine)
    return found[1]


def _predict(statement: Statement, table: Table, engine: Engine) -> Outcome:
    outcome = statement.outcome(table, engine)
    if outcome.refusal is not None:
        outcome = outcome._replace(refusal=as_known_for(outcome.refusal, engine))
    unreadable = refuse_every_statement(table, engine) if outcome.commits else None
    unreadable = unreadable or refuse_lost_clustering(table, outcome, engine)
    if unreadable is not None:
        return Outcome(table, refusal=unreadable)
    outcome = _refuse_unreadable(outcome, table, engine)
    refused = refuse_commit(table, outcome, engine)
    if refused is not None and outcome.refusal is None:
        return Outcome(table, refusal=refused)
    outcome = _refuse_unknown_feature(outcome, table, engine)
    after = follow_metadata(table, outcome)
    if outcome.commits:
        after = follow_bounds(table, after, outcome.rewrites)
    if _adds_collation(table, after):
        after = after._replace(unpredicted=_COLLATED)
    rewriting = [each for each in outcome.commits if each.operation in _REWRITING]
    if rewriting:
        after = after.with_new_files(sure=any(c.sure for c in rewriting), rewritten=True)
    if outcome.commits and table.aged_in_newest_run:
        first = outcome.commits[0]
        # Empty commits exist only for the checkpoint that they trigger.
        ends = first.sure and (first.operation == EMPTY_COMMIT or table.to_checkpoint == 1)
        retention = retention_hours(after.configuration, TRUNCATION_RETENTION)
        after = after._replace(aged_in_newest_run=frozenset()) if ends else after
        after = after.grown(retention, sure=outcome.fewest > 0)
    return outcome._replace(table=after.committed(outcome.fewest, outcome.most))


def _adds_collation(before: Table, after: Table) -> bool:
    """Return True if a column gets a collation, without the feature in the protocol."""
    if not after.protocol.supported.isdisjoint(COLLATION_FEATURES):
        return False
    if after.schema is None or after.schema is before.schema:
        return False
    there = () if before.schema is None else columns_of_type(before.schema, COLLATED)
    return not {*columns_of_type(after.schema, COLLATED)} <= {*there}


def _refuse_unreadable(outcome: Outcome, before: Table, engine: Engine) -> Outcome:
    """Return the outcome, or a refusal if stored values make it fail."""
    if not outcome.commits or engine.name is not EngineName.DELTA_SPARK:
        return outcome
    refusal = validate_stored(before, outcome)
    if refusal is not None:
        return Outcome(before, refusal=refusal)
    kept = outcome.table.configuration == before.configuration
    doubt = find_invalid_stored(before.configuration) if kept else None
    if doubt is None:
        return outcome
    commits = tuple(commit._replace(sure=False) for commit in outcome.commits)
    warning = _DOUBT.format(doubt, before.configuration[doubt])
    return outcome._replace(commits=commits, warnings=(*outcome.warnings, warning))


def _refuse_unknown_feature(outcome: Outcome, before: Table, engine: Engine) -> Outcome:
    """Return the outcome, or a refusal if it adds a feature that the engine lacks."""
    gained = outcome.table.protocol.supported - before.protocol.supported
    records = (feature_catalog.feature_record(name) for name in sorted(gained))
    for feature in records:
        since = feature.since.delta_spark
        if engine.name is EngineName.DELTA_SPARK and engine.knows(feature) is False:
            refusal = Refusal(
                "",
                f"{engine} does not support {feature.name}, which this requires",
                f"delta-spark@{since} or later does" if since else "another engine may",
                on_databricks=True,
            )
            return Outcome(before, refusal=refusal)
    return outcome
