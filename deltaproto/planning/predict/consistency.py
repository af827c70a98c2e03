"""Rules for every metadata change, and for catalog-managed tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from deltaproto.caches import IdentityKey, cache_by_identity
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import iceberg, statistics
from deltaproto.planning.predict.collations import (
    COLLATION_FEATURES,
    UNKNOWN_COLLATION,
    has_collation,
)
from deltaproto.planning.predict.nested_not_null import validate_nested_not_null
from deltaproto.planning.predict.outcome import Refusal, as_known_for
from deltaproto.planning.predict.schema import (
    FORBIDDEN,
    Atomic,
    Struct,
    dotted_path,
    find_duplicate,
    walk_columns,
)
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    MAX_COLUMN_ID,
    ROW_ID_COLUMNS,
    TIMESTAMPS,
    TIMESTAMPS_SINCE,
    Table,
)
from deltaproto.protocol.compatibility_mode import PAGE, is_requested
from deltaproto.protocol.properties import FORMATS, parse_formats

CHANGE_DATA = ("_change_type", "_commit_version", "_commit_timestamp")
_VECTORS = "delta.enableDeletionVectors"
_NOT_IN_HUDI = ("void", "byte", "short", "timestamp_ntz", "geometry", "geography")
_NOT_STORED = ("interval", "time(")
_VIOLATION = "DELTA_UNIVERSAL_FORMAT_VIOLATION"


def complete_properties(before: Table, after: Table) -> Table:
    """Return the table with properties that Delta also sets or unsets."""
    after = complete_enablement(before, iceberg.complete_row_tracking(after))
    formats = parse_formats(after.configuration.get(FORMATS, ""))
    leaves = iceberg.enabled_version(before) is not None and iceberg.enabled_version(after) is None
    if leaves and "iceberg" in formats:
        formats.remove("iceberg")
        after = after.without_properties(FORMATS)
        return after.with_properties({FORMATS: ",".join(formats)}) if formats else after
    return after


def complete_enablement(before: Table, after: Table) -> Table:
    """Return the table with the properties that name its first commit with a timestamp.

    Source: Delta Spark 4.4's `InCommitTimestampUtils`.
    """
    if not after.is_on(TIMESTAMPS):
        return after
    if not before.is_on(TIMESTAMPS):
        # The values are the version and the time of this commit.
        return after.with_properties(dict.fromkeys(TIMESTAMPS_SINCE, "1"))
    stored = {
        key: before.configuration[key] for key in TIMESTAMPS_SINCE if key in before.configuration
    }
    kept = any(key in after.configuration for key in TIMESTAMPS_SINCE)
    return after if kept or len(stored) == 1 else after.with_properties(stored)


def validate_change(
    before: Table, after: Table, engine: Engine, *, setting: bool = False
) -> Refusal | None:
    """Return why a table cannot change to another state, or None.

    `setting`: the change is by SET TBLPROPERTIES. `after` is already `completed`. If the columns
    are unknown, only the properties are checked.
    """
    return (
        statistics.validate_statistics_columns(after)
        or validate_nested_not_null(before, after)
        or unstorable(after)
        or _validate_reserved_names(before, after)
        or validate_hudi(after)
        or _validate_uniform(after)
        or iceberg.validate_change(before, after, engine, setting=setting)
    )


def validate_new_columns(before: Table, after: Table, *, whole: bool = True) -> Refusal | None:
    """Return why a table cannot get new columns, or None.

    Without `whole`, `after` has only the new columns, because the others are unknown.
    """
    return (
        (statistics.validate_statistics_columns(after) if whole else None)
        or _validate_reserved_names(before, after)
        or validate_hudi(after)
        or _validate_uniform(after)
        or iceberg.validate_columns(before, after)
    )


def refuse_rewrite(table: Table) -> Refusal | None:
    """Return why Delta Spark refuses a metadata change that keeps the columns, or None.

    Statements that only change constraints skip one check; `unstorable` has the rest.
    """
    return validate_nested_not_null(table, table) or unstorable(table)


def refuse_constraint_change(table: Table) -> Refusal | None:
    """Return why Delta Spark refuses to add or drop a constraint, or None.

    It stores the metadata unchanged, while other statements first update the highest column id.
    """
    refusal = unstorable(table)
    if refusal is not None or not (table.mapped and table.uncounted) or table.unmapped:
        return refusal
    return Refusal(
        "DELTA_COLUMN_MAPPING_MAX_COLUMN_ID_NOT_SET",
        f"column mapping is enabled, but the table does not store {MAX_COLUMN_ID}",
        "first change any property: SET TBLPROPERTIES stores it",
    )


def unstorable(table: Table) -> Refusal | None:
    """Return why Delta Spark refuses to store the table's columns in any metadata change, or None.

    Another engine created such a column, or spark.databricks.delta.schema.typeCheck.enabled was
    false. Appending rows still works, unless two columns have the same name.
    Source: Delta Spark 4.4's `OptimisticTransaction.assertMetadata`.
    """
    schema = IdentityKey(table.schema or _NO_COLUMNS)
    # Delta Spark changes no table with these features; Databricks stores such columns.
    collated = not table.protocol.supported.isdisjoint(COLLATION_FEATURES)
    return (
        _unstorable(schema, table.partition_columns, mapped=table.mapped, collated=collated)
        or _validate_mapping(table)
        or _validate_row_id_names(table, schema.value)
    )


_NO_COLUMNS = Struct(())


@lru_cache(maxsize=64)
def _unstorable(
    same: IdentityKey[Struct],
    partition_columns: tuple[str, ...],
    *,
    mapped: bool,
    collated: bool,
) -> Refusal | None:
    """Check the columns once for all statements of a plan that keep them."""
    schema = same.value
    return (
        validate_collations(schema)
        or _validate_names(schema, partition_columns, mapped=mapped)
        or _validate_types(schema, collated=collated)
    )


def _validate_names(
    schema: Struct, partition_columns: tuple[str, ...], *, mapped: bool
) -> Refusal | None:
    twice = find_duplicate(schema)
    if twice is not None:
        return Refusal(
            "DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE",
            f"two columns have the name {dotted_path(twice)}, apart from case",
            "write the rows to a new table with other names",
        )
    if mapped:
        return None
    remedy = f"set {MAPPING_MODE} = name first, which allows every name"
    partitions = frozenset(partition_columns)
    for path, _ in walk_columns(schema):
        if path[0] not in partitions and FORBIDDEN & set(path[-1]):
            return Refusal(
                "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                f"without column mapping, Delta Spark does not store the name {dotted_path(path)}",
                remedy,
                on_databricks=False,
            )
    for name in partition_columns:
        if FORBIDDEN & set(name):
            return Refusal(
                "DELTA_INVALID_PARTITION_COLUMN_NAME",
                f"without column mapping, Delta Spark does not store the partition column {name}",
                remedy,
                on_databricks=False,
            )
    return None


@cache_by_identity(64)
def validate_collations(schema: Struct) -> Refusal | None:
    """Refuse collations that Spark does not have: it cannot read the table's columns."""
    for path, column in walk_columns(schema):
        name = column.type.name if isinstance(column.type, Atomic) else ""
        if not name.startswith(UNKNOWN_COLLATION):
            continue
        stored = name[len(UNKNOWN_COLLATION) :]
        known = stored.startswith(("spark.", "icu."))
        error = "COLLATION_INVALID_NAME" if known else "COLLATION_INVALID_PROVIDER"
        return Refusal(
            error if "." in stored else "INTERNAL_ERROR",
            f"{dotted_path(path)} has the collation {stored or 'without a name'}, which Spark does "
            "not have: it refuses every statement, even SELECT",
            "remove it from the column with the client that stored it",
            on_databricks=False,
        )
    return None


def _validate_mapping(table: Table) -> Refusal | None:
    """Refuse columns that column mapping cannot tell apart."""
    if not table.mapped or table.ambiguous is False:
        return None
    return Refusal(
        "",
        "two columns have the same column mapping id or physical name, with which Delta Spark "
        "stores no metadata",
        f"set {MAPPING_MODE} = none first, or write the rows to a new table",
        sure=bool(table.ambiguous),
    )


def _validate_row_id_names(table: Table, schema: Struct) -> Refusal | None:
    """Refuse columns that are named like one of the row id columns.

    Delta compares case-sensitively.

    Source: Delta Spark 4.4's `MaterializedRowTrackingColumn`, which keeps the stored names.
    """
    if "rowTracking" not in table.protocol.supported:
        return None
    columns = {column.name for column in schema.columns}
    for key in ROW_ID_COLUMNS:
        name = table.configuration.get(key)
        if name in columns:
            return Refusal(
                "DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
                f"the column {name} has the name that {key} reserves for row ids",
                f"change {key} with the client that stored it",
            )
    return None


def _validate_types(schema: Struct, *, collated: bool) -> Refusal | None:
    for path, column in walk_columns(schema):
        name = column.type.name if isinstance(column.type, Atomic) else ""
        unknown = name.startswith(_NOT_STORED) or (has_collation(name) and not collated)
        if unknown and not column.widened:
            return Refusal(
                "DELTA_UNSUPPORTED_DATA_TYPES",
                f"{dotted_path(path)} has type {name}, which Delta Spark does not store",
                "choose another type",
                on_databricks=False,
            )
    return None


def _validate_reserved_names(before: Table, after: Table) -> Refusal | None:
    """Refuse reserved names. Delta compares them case-sensitively."""
    columns = after.schema.columns if after.schema is not None else ()
    found = [column.name for column in columns if column.name in CHANGE_DATA]
    if not found or not after.keeps_changes:
        return None
    message = f"the change data feed reserves the name {found[0]}"
    if before.keeps_changes:
        return Refusal("RESERVED_CDC_COLUMNS_ON_WRITE", message, "choose another name")
    error = "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    return Refusal(error, message, "rename the column, or keep the change data feed disabled")


def validate_hudi(table: Table) -> Refusal | None:
    """Return why Hudi refuses the table, if it is one of the formats."""
    if "hudi" not in parse_formats(table.configuration.get(FORMATS, "")):
        return None
    if table.is_on(_VECTORS):
        return Refusal(
            _VIOLATION,
            f"{FORMATS} with hudi excludes deletion vectors",
            f"set {_VECTORS} = false, or remove hudi",
        )
    for path, column in walk_columns(table.schema or Struct(())):
        if isinstance(column.type, Atomic) and column.type.name.startswith(_NOT_IN_HUDI):
            return Refusal(
                _VIOLATION,
                f"Hudi has no type for {dotted_path(path)}, which is {column.type.name}",
                "remove hudi, or drop the column",
            )
    return None


def _validate_uniform(table: Table) -> Refusal | None:
    formats = parse_formats(table.configuration.get(FORMATS, ""))
    if "iceberg" not in formats or iceberg.enabled_version(table) is not None:
        return None
    return Refusal(
        _VIOLATION,
        f"{FORMATS} with iceberg needs icebergCompatV1, V2 or V3",
        f"set {iceberg.KEY.format(2)} = true as well, if the table supports it",
    )


_DEPENDENCIES = frozenset({"delta.enableincommittimestamps"})


def validate_maintenance(table: Table, what: str, engine: Engine) -> Refusal | None:
    """Refuse OPTIMIZE, REORG and VACUUM on catalog-managed tables.

    Databricks maintains them itself: its page on catalog commits lists no such limit.
    """
    if not table.managed or engine.name is not EngineName.DELTA_SPARK:
        return None
    return Refusal(
        "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        f"a catalog manages the table, so Delta Spark refuses {what}",
        "use the catalog's maintenance",
        on_databricks=False,
    )


def validate_catalog_properties(
    table: Table, keys: Iterable[str], engine: Engine
) -> Refusal | None:
    """Refuse changes to properties that catalog-managed tables depend on."""
    changed = sorted(key for key in keys if key.lower() in _DEPENDENCIES)
    if not table.managed or not changed:
        return None
    refusal = Refusal(
        "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
        f"a catalog manages the table, so Delta Spark does not change {', '.join(changed)}",
        "do not change the property",
        on_databricks=False,
    )
    return as_known_for(refusal, engine)


READ_COPY = (
    "or, if Unity Catalog manages the table on Databricks, let the client read the "
    "Compatibility Mode copy"
)


def copy_warnings(table: Table, properties: Mapping[str, str]) -> Iterator[str]:
    """Yield warnings if these properties change a Compatibility Mode copy."""
    if not is_requested(properties) or is_requested(table.configuration):
        return
    yield (
        "Compatibility Mode keeps a read-only copy with the oldest protocol at its location, which "
        "costs storage and compute. Clients that cannot read the table read the copy instead, "
        "which lags behind by its refresh interval. Known from documentation only "
        f"({PAGE}, a public preview)."
    )
    yield (
        "Compatibility Mode requires a managed Unity Catalog table with a three-part name. The "
        "location must be empty, inside an external location, and not used by another copy in the "
        "last 7 days. The first copy takes up to an hour. Tables with row filters, column masks or "
        "some reader features are refused at copy time."
    )
