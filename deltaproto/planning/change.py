"""What ALTER TABLE … SET and UNSET TBLPROPERTIES do to an existing table.

Source: Delta Spark 4.4's `AlterTableSetPropertiesDeltaCommand`, `OptimisticTransaction`
and `Protocol.upgradeProtocolFromMetadataForExistingTable`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaproto.planning.outcome import REMOVE_MAPPING, Commit, Outcome, Refusal, Rewrite
from deltaproto.planning.table import CONSTRAINT, MODE, Table
from deltaproto.planning.upgrade import upgraded
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Status
from deltaproto.protocol.protocol import Protocol

SET, UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"
FEATURE = "delta.feature."
READER, WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
ISOLATION = "delta.isolationLevel"
_ROW_TRACKING = "delta.enableRowTracking"
_COMPATIBLE = {
    "delta.enableIcebergCompatV1": "icebergCompatV1",
    "delta.enableIcebergCompatV2": "icebergCompatV2",
    "delta.enableIcebergCompatV3": "icebergCompatV3",
}


def set_properties(table: Table, properties: Mapping[str, str]) -> Outcome:
    """What setting these properties in one statement does."""
    refusal = asked_wrongly(properties)
    refusal = refusal or _bad_versions(table, properties) or _bad_mapping(table, properties)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    commits: list[Commit] = []
    rewrites = Rewrite.NONE
    if properties.get(_ROW_TRACKING, "").lower() == "true":
        table, commits = _backfilled(table)
    if properties.get(MODE, "").lower() == "none" and MODE in table.configuration:
        commits.append(Commit(REMOVE_MAPPING, table.protocol))
        rewrites = Rewrite.ALL
        table = table.without_mapping().with_properties({MODE: "none"})
        if len(properties) == 1:
            return Outcome(table, tuple(commits), rewrites)
    after = upgraded(requested(table, properties), {**table.configuration, **properties})
    if isinstance(after, Refusal):
        return Outcome(table, refusal=after)
    stored = {key: value for key, value in properties.items() if not about_protocol(key)}
    table = table.with_properties(stored)._replace(protocol=after)
    return Outcome(table, (*commits, Commit(SET, after)), rewrites)


def unset_properties(table: Table, keys: Iterable[str]) -> Outcome:
    """What unsetting these properties in one statement does.

    The protocol never shrinks by it, and a property that is not set costs a commit all the same.
    """
    names = list(keys)
    commits: list[Commit] = []
    rewrites = Rewrite.NONE
    if MODE in names:
        commits.append(Commit(REMOVE_MAPPING, table.protocol))
        rewrites = Rewrite.ALL
        table = table.without_mapping()
        if len(names) == 1:
            return Outcome(table, tuple(commits), rewrites)
    table = table.without_properties(*names)
    return Outcome(table, (*commits, Commit(UNSET, table.protocol)), rewrites)


def requested(table: Table, properties: Mapping[str, str]) -> Protocol:
    """The protocol with the versions and features that properties ask for by name."""
    after = table.protocol
    versions = _versions(table, properties)
    if versions is not None:
        reader, writer = versions
        after = after.merge(
            Protocol(
                reader,
                writer,
                frozenset() if reader == 3 else None,
                frozenset() if writer == 7 else None,
            )
        )
    for key in properties:
        if key.lower().startswith(FEATURE):
            after = after.with_feature(_named(key) or "")
    return after


def _backfilled(table: Table) -> tuple[Table, list[Commit]]:
    """Row tracking on an existing table: the protocol first, then ids for the files."""
    commits = []
    if "rowTracking" not in table.protocol.supported:
        after = table.protocol.with_feature("rowTracking")
        table = table._replace(protocol=after)
        commits.append(Commit("UPGRADE PROTOCOL", after))
    if not table.on(_ROW_TRACKING):
        # A table without files has nothing to fill.
        commits.append(Commit("ROW TRACKING BACKFILL", table.protocol, sure=False))
    return table._replace(row_ids=True), commits


def asked_wrongly(properties: Mapping[str, str]) -> Refusal | None:
    """The refusal of properties that no table takes."""
    for key, value in properties.items():
        lower = key.lower()
        if lower.startswith(CONSTRAINT):
            return Refusal(
                "DELTA_ADD_CONSTRAINTS", f"{key} is a constraint", "ALTER TABLE … ADD CONSTRAINT"
            )
        if lower.startswith(FEATURE):
            refusal = _bad_feature(key, value)
            if refusal is not None:
                return refusal
        if lower == ISOLATION.lower() and value.lower() != "serializable":
            known = value.lower() in ("writeserializable", "snapshotisolation")
            return Refusal(
                "UNSUPPORTED_TABLE_CHANGE" if known else "DELTA_INVALID_ISOLATION_LEVEL",
                f"Delta Spark takes no {value} for {ISOLATION}",
                "set it on Databricks, or leave it at Serializable",
            )
    return None


def _bad_feature(key: str, value: str) -> Refusal | None:
    name = _named(key)
    if name == "clustering":
        return Refusal(
            "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
            "clustering comes with a clause, not with a property",
            "ALTER TABLE … CLUSTER BY (columns)",
        )
    if name is None:
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            f"Delta Spark knows no feature {key[len(FEATURE) :]}",
            "see `deltaproto features`",
        )
    if value.lower() not in ("supported", "enabled"):
        return Refusal(
            "DELTA_UNSUPPORTED_FEATURE_STATUS", f"{value} is no status", "write 'supported'"
        )
    return None


def _bad_versions(table: Table, properties: Mapping[str, str]) -> Refusal | None:
    for key, highest in ((READER, 3), (WRITER, 7)):
        value = properties.get(key)
        if value is not None and value not in {str(n) for n in range(1, highest + 1)}:
            return Refusal(
                "UNSUPPORTED_TABLE_CHANGE", f"{key} takes 1 to {highest}", "choose one of them"
            )
    versions = _versions(table, properties)
    if versions is not None and versions[0] == 3 and versions[1] < 7:
        return Refusal(
            "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
            f"reader version 3 goes with writer version 7, not {versions[1]}",
            "set the other version as well, or better, enable the feature that is wanted",
        )
    return None


def _bad_mapping(table: Table, properties: Mapping[str, str]) -> Refusal | None:
    before = table.configuration.get(MODE, "none").lower()
    after = properties.get(MODE, before).lower()
    if after not in ("none", "name", "id"):
        return Refusal("", f"no mapping mode is called {after}", "name, id or none")
    if after != before and after != "none" and not (before == "none" and after == "name"):
        return Refusal(
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            f"the mapping mode cannot go from {before} to {after}",
            "an existing table takes name only",
        )
    compatible = [k for k in _COMPATIBLE if properties.get(k, "").lower() == "true"]
    if compatible and after == "none":
        return Refusal(
            "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
            f"{_COMPATIBLE[compatible[0]]} needs column mapping",
            f"set {MODE} = name first",
        )
    if compatible and "deletionVectors" in table.protocol.supported:
        return Refusal(
            "DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED",
            f"{_COMPATIBLE[compatible[0]]} goes without deletion vectors",
            "drop deletionVectors first",
        )
    return None


def _versions(table: Table, properties: Mapping[str, str]) -> tuple[int, int] | None:
    """The pair that is asked for; what is not set counts as it is."""
    if READER not in properties and WRITER not in properties:
        return None
    protocol = table.protocol
    reader = int(properties.get(READER, protocol.min_reader_version))
    return reader, int(properties.get(WRITER, protocol.min_writer_version))


def _named(key: str) -> str | None:
    """The registered feature that a `delta.feature.…` key means, in any case; None when none."""
    wanted = key[len(FEATURE) :].lower()
    for feature in catalogue.all_features():
        if feature.name.lower() == wanted and catalogue.registered(feature.name):
            return None if feature.status is Status.TESTING else feature.name
    return None


def about_protocol(key: str) -> bool:
    """Whether a property is about the protocol, and so never stored."""
    return key in (READER, WRITER) or key.lower().startswith(FEATURE)
