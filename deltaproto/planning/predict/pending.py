"""Protocol requests in a table's metadata, which the next metadata commit applies.

deltalake can store `delta.minWriterVersion` and `delta.feature.…` as properties. Without a feature
list in the protocol, an engine can also set a property or add a column whose feature the protocol
lacks. Delta Spark adds these features with its next commit of metadata, whatever the statement
changes, and removes the protocol properties.

Source: Delta Spark 4.4's `OptimisticTransaction.updateMetadataInternal` and `Protocol`; measured
with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from deltaproto.caches import IdentityKey
from deltaproto.planning import arithmetic
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.auto_enable import (
    features_of_columns,
    features_of_properties,
    upgrade_protocol,
)
from deltaproto.planning.predict.outcome import Outcome, Refusal
from deltaproto.planning.predict.schema import Struct
from deltaproto.planning.predict.table import (
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_TRACKING,
    Table,
)
from deltaproto.planning.predict.validation import (
    requested_versions,
    validate_catalog_only,
    validate_version_pair,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX, feature_from_key
from deltaproto.protocol.protocol import Protocol

UNLISTED = "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
NOT_A_DOWNGRADE = "DELTA_INVALID_PROTOCOL_DOWNGRADE"
VERSIONS = (MIN_READER_VERSION, MIN_WRITER_VERSION)
_STORED = frozenset({*VERSIONS, "delta.ignoreProtocolDefaults"})
_OF_EXPRESSIONS = frozenset({"generatedColumns", "identityColumns"})
_KEEPS_METADATA = frozenset(
    {
        *("Empty Commit", "REORG", "OPTIMIZE", "VACUUM START", "VACUUM END", "UPGRADE PROTOCOL"),
        *("ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL", "Deletion Vector Tombstones"),
        *("DOMAIN METADATA CLEANUP", "WRITE", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "RESTORE"),
    }
)
_KEEPS_REQUESTS = ("ADD CONSTRAINT", "DROP CONSTRAINT")
"""operations that store the metadata without checking it, and keep the protocol properties"""
_NUMBERS = {MIN_READER_VERSION: range(1, 4), MIN_WRITER_VERSION: range(1, 8)}


def stored_requests(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the protocol properties in a table's metadata; Delta Spark never stores any."""
    return {
        key: value
        for key, value in configuration.items()
        if key in _STORED or key.startswith(FEATURE_PREFIX)
    }


def has_pending(table: Table, engine: Engine) -> bool:
    """Return True if the next metadata commit may change more than its statement requests."""
    return bool(stored_requests(table.configuration)) or bool(_unlisted(table, engine))


def settling_keys(table: Table) -> tuple[str, ...]:
    """Return properties whose UNSET settles the table's requests and affects no other property."""
    return tuple(sorted({*stored_requests(table.configuration)} or {*VERSIONS}))


def requested_protocol(table: Table, properties: Mapping[str, str], engine: Engine) -> Protocol:
    """Return the protocol with explicitly requested versions and features."""
    after = table.protocol
    versions = requested_versions(table, properties)
    if versions is not None:
        after = arithmetic.raise_versions(after, versions, engine)
    for key in properties:
        if key.lower().startswith(FEATURE_PREFIX):
            after = arithmetic.add_named_feature(after, feature_from_key(key) or "", engine)
    return after


def settle(
    table: Table, engine: Engine, before: Protocol | None = None, *, listed: bool | None = None
) -> Table | Refusal:
    """Return the table after a metadata commit has applied all pending requests.

    Args:
        before: the protocol before this commit, if the commit itself adds features to it.
        listed: whether the protocol listed features before this commit; default: as `before`.
    """
    before = before or table.protocol
    if listed is None:
        listed = before.writer_features is not None
    stored = stored_requests(table.configuration)
    refusal = validate_stored_requests(table._replace(protocol=before), stored, engine)
    if refusal is not None:
        return refusal
    after = _without_unlisted_expressions(table.without_properties(*stored), engine)
    protocol = table.protocol
    if stored and engine.normalizes:
        asked = requested_protocol(table._replace(protocol=before), stored, engine)
        protocol = protocol if asked == before else protocol.merge(asked)
    elif stored:
        protocol = requested_protocol(table, stored, engine)
    if listed:
        # A pending feature that is not one of these and not in the protocol makes every statement
        # fail.
        return after._replace(protocol=protocol)
    return _settle_features(after._replace(protocol=protocol), engine)


def _settle_features(table: Table, engine: Engine) -> Table | Refusal:
    protocol = upgrade_protocol(table.protocol, table.configuration, table.schema, engine)
    return protocol if isinstance(protocol, Refusal) else table._replace(protocol=protocol)


def validate_stored_requests(
    table: Table, stored: Mapping[str, str], engine: Engine
) -> Refusal | None:
    """Return why Delta Spark fails to apply stored protocol properties, or None."""
    for key, numbers in _NUMBERS.items():
        value = stored.get(key)
        if value is not None and value not in map(str, numbers):
            error = "DELTA_PROTOCOL_PROPERTY_NOT_INT"
            return _refuse(error, f"the table stores {key} = {value}, which is not a version", key)
    features = {key: value for key, value in stored.items() if key.startswith(FEATURE_PREFIX)}
    for key, value in features.items():
        if value.lower() not in ("supported", "enabled"):
            error = "DELTA_UNSUPPORTED_FEATURE_STATUS"
            return _refuse(error, f"the table stores {key} = {value}, which is not a status", key)
    for key in features:
        name = feature_from_key(key)
        if name is None or engine.knows(feature_catalog.feature_record(name)) is False:
            error = "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"
            return _refuse(error, f"the table stores {key}, which {engine} does not know", key)
        refusal = validate_catalog_only(name, table.protocol.supported, engine)
        if refusal is not None:
            return _refuse(refusal.error, f"the table stores {key}, and {refusal.message}", key)
    return validate_version_pair(table, stored)


def _refuse(error: str, message: str, key: str) -> Refusal:
    return Refusal(error, message, f"remove the property {key} with the engine that stored it")


def with_pending(table: Table, engine: Engine, predict: Callable[[Table], Outcome]) -> Outcome:
    """Return the outcome of a statement whose first metadata commit applies the pending requests.

    Args:
        predict: predicts the statement for a table, ignoring pending requests.
    """
    outcome = predict(table)
    if not outcome.commits or not has_pending(table, engine):
        return outcome
    changing = [n for n, c in enumerate(outcome.commits) if stores_metadata(c.operation, table)]
    if not changing:
        return outcome
    if outcome.commits[changing[0]].operation not in _KEEPS_REQUESTS:
        table = _without_unlisted_expressions(table, engine)
        outcome = predict(table)
    last = len(outcome.commits) - 1
    if changing[0] < last:
        restarted = restart(table, outcome, changing[0], engine)
        if isinstance(restarted, Outcome):
            return restarted
        outcome = begin_later(predict(restarted), table, changing[0])
        last = len(outcome.commits) - 1
    if outcome.commits[last].operation in _KEEPS_REQUESTS:
        after = _settle_features(outcome.table, engine)
    else:
        before = outcome.commits[last - 1].protocol if last else table.protocol
        after = settle(outcome.table, engine, before)
    if isinstance(after, Refusal):
        left = table._replace(protocol=outcome.commits[last - 1].protocol) if last else table
        return Outcome(left, outcome.commits[:last], outcome.rewrites, after)
    commits = (*outcome.commits[:last], outcome.commits[last]._replace(protocol=after.protocol))
    return outcome._replace(table=after, commits=commits)


def restart(table: Table, outcome: Outcome, first: int, engine: Engine) -> Table | Outcome:
    """Return the settled table from which to predict a statement again.

    Args:
        outcome: the prediction without pending requests.
        first: the first commit that applies them; the statement ends there if Delta Spark cannot.
    """
    after = outcome.table.configuration
    kept = {key: value for key, value in table.configuration.items() if after.get(key) == value}
    settled = settle(table._replace(configuration=kept), engine)
    if isinstance(settled, Refusal):
        return Outcome(table, outcome.commits[:first], outcome.rewrites, settled)
    plain = table.without_properties(*stored_requests(table.configuration))
    return plain._replace(protocol=settled.protocol, schema=settled.schema)


def begin_later(outcome: Outcome, table: Table, first: int) -> Outcome:
    """Return the outcome of a restarted prediction, with the commits before the first unchanged."""
    commits = tuple(
        commit._replace(protocol=table.protocol) if at < first else commit
        for at, commit in enumerate(outcome.commits)
    )
    return outcome._replace(commits=commits)


def stores_metadata(operation: str, table: Table) -> bool:
    """Return True if a commit of the operation stores the table's metadata again."""
    if operation == "CLUSTER BY":
        # On a table with the feature, only the domain changes.
        return "clustering" not in table.protocol.supported
    return operation not in _KEEPS_METADATA


def follow_metadata(before: Table, outcome: Outcome) -> Table:
    """Return the table after a statement with what Delta assigns when it stores metadata."""
    after = outcome.table
    storing = [each for each in outcome.commits if stores_metadata(each.operation, before)]
    if any(each.sure for each in storing):
        after = after._replace(unmapped=False, uncounted=False)
    named = any(
        (each.sure or not before.is_on(ROW_TRACKING)) and each.operation not in _KEEPS_REQUESTS
        for each in storing
    )
    tracked = "rowTracking" in after.protocol.supported
    return after.with_row_id_names(after.configuration) if named and tracked else after


def _unlisted(table: Table, engine: Engine) -> frozenset[str]:
    """Return the features that a protocol without a list of features lacks."""
    protocol = table.protocol
    if protocol.writer_features is not None:
        return frozenset()
    return used_features(table, engine) - protocol.supported


def used_features(table: Table, engine: Engine) -> frozenset[str]:
    """Return the features that the table's properties and columns need."""
    used = features_of_properties(table.configuration, table.protocol, engine)
    if table.schema is not None:
        used |= _features_of_schema(IdentityKey(table.schema), table.protocol)
    return frozenset(used)


@lru_cache(maxsize=64)
def _features_of_schema(same: IdentityKey[Struct], protocol: Protocol) -> frozenset[str]:
    return frozenset(features_of_columns(same.value, protocol))


def _without_unlisted_expressions(table: Table, engine: Engine) -> Table:
    """Return the table with the columns that Delta Spark stores if the protocol lacks features."""
    lost = _OF_EXPRESSIONS & _unlisted(table, engine)
    if table.schema is None or not lost:
        return table
    generated, identity = "generatedColumns" in lost, "identityColumns" in lost
    columns = (
        column._replace(
            generated=None if generated else column.generated,
            identity=column.identity and not identity,
        )
        for column in table.schema.columns
    )
    return table._replace(schema=Struct(tuple(columns)))
