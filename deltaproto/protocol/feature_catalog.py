"""Look-ups in the feature catalog.

Names are compared case-sensitively, as in Delta and DROP FEATURE. `search` is the tolerant look-up
for user input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache

from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    DropBehavior,
    Feature,
    FeatureKind,
    FeatureStatus,
    FirstVersions,
    PropertyIs,
)
from deltaproto.protocol.records import RECORDS

_BY_NAME: dict[str, Feature] = {record.name: record for record in RECORDS}
_REGISTERED = frozenset(
    record.name
    for record in RECORDS
    if record.status in (FeatureStatus.STABLE, FeatureStatus.PREVIEW)
)
_LONGEST_GUESSED = 100
"""characters; longer names are not similar to any catalog name"""
LEGACY: tuple[Feature, ...] = tuple(record for record in RECORDS if record.legacy)
CHECKPOINT_PROTECTION = "checkpointProtection"
NEW_TABLE_FEATURES = frozenset({"appendOnly", "invariants"})
"""features that every new table has: those of writer version 2"""
CATALOG_MANAGED = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})
UNITY_TABLE_ID = "io.unitycatalog.tableId"
"""the property with Unity Catalog's id of a table whose commits it manages"""
UNITY_FEATURES = (
    "catalogManaged",
    "deletionVectors",
    "inCommitTimestamp",
    "v2Checkpoint",
    "vacuumProtocolCheck",
)
"""features that Unity Catalog requires of such a table (its `UcManagedDeltaContract`)"""
COORDINATED_COMMITS = frozenset({"coordinatedCommits-preview"})
FEATURE_PREFIX = "delta.feature."
"""prefix of the properties that add a feature to the protocol"""


def all_features() -> tuple[Feature, ...]:
    """Return every record, in catalog order."""
    return RECORDS


def find_feature(name: str) -> Feature | None:
    """Return the record with exactly this name, or None."""
    return _BY_NAME.get(name)


def feature_record(name: str, *, in_reader_list: bool = False) -> Feature:
    """Return the record of `name`; for an unknown name, a record that fails closed.

    Readers must support every feature in `readerFeatures`, even an unknown one or one that is a
    writer feature elsewhere (PROTOCOL.md, "Table Features").
    """
    known = _BY_NAME.get(name)
    if known is not None and known.kind is FeatureKind.WRITER and in_reader_list:
        return known._replace(kind=FeatureKind.READER_WRITER, min_reader=3)
    if known is not None:
        return known
    return Feature(
        name=name,
        kind=FeatureKind.READER_WRITER if in_reader_list else FeatureKind.WRITER,
        status=FeatureStatus.UNKNOWN,
        summary="Unknown feature: it is not in deltaproto's catalog.",
        min_reader=3 if in_reader_list else 1,
        min_writer=7,
        enablement=AlwaysWhenSupported(),
        since=FirstVersions(delta_spark=None, databricks=None),
        drop=DropBehavior(delta_spark=None, databricks=None, commits=(0, 0)),
    )


def is_registered(name: str) -> bool:
    """Return True if Delta Spark has registered the feature."""
    return name in _REGISTERED


def search_feature(text: str) -> tuple[Feature | None, tuple[str, ...]]:
    """Find a record by user input, or return None with the nearest names."""
    wanted = text.casefold()
    found = _by_folded_name().get(wanted)
    if found is not None:
        return found, ()
    return None, () if len(wanted) > _LONGEST_GUESSED else _find_similar(wanted)


# The tables of a fleet share their unknown features.
@lru_cache(maxsize=1024)
def _find_similar(folded_name: str) -> tuple[str, ...]:
    import difflib

    folded = {name.casefold(): name for name in _BY_NAME}
    near = difflib.get_close_matches(folded_name, folded, n=3, cutoff=0.5)
    return tuple(folded[name] for name in near)


@cache
def _by_folded_name() -> dict[str, Feature]:
    """Return the first record with each name or alias, without regard to case."""
    return {
        name.casefold(): record
        for record in reversed(RECORDS)
        for name in (record.name, *record.aliases)
    }


def feature_from_key(key: str) -> str | None:
    """Return the registered feature of a `delta.feature.…` key (case-insensitive), or None."""
    return _registered_by_lower_name().get(key[len(FEATURE_PREFIX) :].lower())


@cache
def _registered_by_lower_name() -> dict[str, str | None]:
    """Return each registered feature by its lowercase name; None for features of Delta's tests."""
    return {
        feature.name.lower(): None if feature.status is FeatureStatus.TESTING else feature.name
        for feature in reversed(RECORDS)
        if is_registered(feature.name)
    }


LEGACY_PAIRS = ((1, 1), (1, 2), (1, 3), (1, 4), (1, 6), (2, 5), (2, 6))
"""the reader and writer versions without feature lists that Delta Spark stores"""


def features_implied_by(min_reader_version: int, min_writer_version: int) -> frozenset[str]:
    """Return the features of a legacy pair (TableFeatureSupport.implicitlySupportedFeatures).

    Empty if either version uses explicit lists: reader 3 or writer 7.
    """
    if min_reader_version >= 3 or min_writer_version >= 7:
        return frozenset()
    return frozenset(
        feature.name
        for feature in LEGACY
        if feature.min_reader <= min_reader_version and feature.min_writer <= min_writer_version
    )


def features_enabled_by(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the features that these table properties enable, previews included."""
    return frozenset(
        feature.name
        for feature in RECORDS
        if isinstance(rule := feature.enablement, PropertyIs)
        and (key := rule.key_in(properties)) in properties
        and rule.holds(properties[key])
    )


_ADDED_BY_DELTALAKE = {
    **{
        each[0].lower() + each[1:]: each
        for each in (
            "AppendOnly",
            "ChangeDataFeed",
            "CheckConstraints",
            "ColumnMapping",
            "DeletionVectors",
            "DomainMetadata",
            "GeneratedColumns",
            "IcebergCompatV1",
            "IdentityColumns",
            "Invariants",
            "RowTracking",
            "V2Checkpoint",
            "VariantType",
        )
    },
    "timestampNtz": "TimestampWithoutTimezone",
    "variantType-preview": "VariantTypePreview",
}
"""members of deltalake's `TableFeatures`, by feature"""


_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})


def find_dependents(name: str, supported: Collection[str]) -> tuple[str, ...]:
    """Return the `supported` features that directly require `name`, sorted.

    If `supported` is a set, the cost does not depend on its size: logs may list thousands of
    features.
    """
    return tuple(other for other in _required_by().get(name, ()) if other in supported)


def add_unlisted(name: str) -> str:
    """Return how to add a feature that a table uses but does not list.

    Delta Spark refuses such tables before it can add the feature. deltalake 1.6.6 can add some
    features.
    """
    if name in _ADDED_BY_DELTALAKE:
        member = _ADDED_BY_DELTALAKE[name]
        return f"add it with deltalake: DeltaTable(…).alter.add_feature(TableFeatures.{member})"
    return "add it, or remove what uses it, with an engine that still accepts the table"


def features_blocking_drop(
    name: str,
    supported: Collection[str],
    *,
    present: bool | None = None,
    in_unity: bool = False,
) -> tuple[str, ...]:
    """Return the `supported` features that prevent Delta Spark from dropping `name`, sorted.

    Undroppable features also keep their requirements. Catalog-managed tables also keep deletion
    vectors and recorded type changes, because they refuse the REORG of the drop (measured with
    Delta Spark 4.4.0), and those of Unity Catalog also what it requires.

    Args:
        present: the table contains traces of the feature; None: unknown.
        in_unity: the table has an id of Unity Catalog.
    """
    rewrites = name == "deletionVectors" or (present and name in _WIDENING)
    kept = rewrites or (in_unity and name in UNITY_FEATURES)
    found = set(CATALOG_MANAGED & set(supported)) - {name} if kept else set()
    seen, pending = {name}, [name]
    while pending:
        for other in find_dependents(pending.pop(), supported):
            if _BY_NAME[other].drop.delta_spark is None:
                found.add(other)
            elif other not in seen:
                pending.append(other)
            seen.add(other)
    return tuple(sorted(found))


@cache
def _required_by() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for each in sorted(_BY_NAME):
        for required in required_features(each):
            found.setdefault(required, []).append(each)
    return {name: tuple(others) for name, others in found.items()}


def with_required_features(names: Iterable[str]) -> frozenset[str]:
    """Return `names` and every feature they require, transitively."""
    found = frozenset(names)
    closures = _required_closures()
    return found.union(*(closures[name] for name in found if name in closures))


def with_dependents(names: Iterable[str], supported: Collection[str]) -> frozenset[str]:
    """Return `names` and every `supported` feature that requires one of them, transitively."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += find_dependents(name, supported)
    return frozenset(found)


def required_features(name: str) -> tuple[str, ...]:
    """Return the features that `name` directly requires, in catalog order; none if unknown."""
    return _required().get(name, ())


@cache
def _required() -> dict[str, tuple[str, ...]]:
    return {name: record.required_features for name, record in _BY_NAME.items()}


@cache
def _required_closures() -> dict[str, frozenset[str]]:
    """Return what each feature with requirements requires, transitively."""
    found: dict[str, frozenset[str]] = {}
    for name in filter(required_features, _BY_NAME):
        reached: set[str] = set()
        pending = [name]
        while pending:
            pending += set(required_features(pending.pop())) - reached
            reached.update(pending)
        found[name] = frozenset(reached)
    return found
