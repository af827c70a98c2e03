"""Rules for every metadata change, and for catalog-managed tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltaproto.planning.engine import Engine
from deltaproto.planning.predict import iceberg, statistics
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import Atomic, Struct, dotted, walk
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.compatibility_mode import PAGE, requested
from deltaproto.protocol.properties import FORMATS, formats_in

CHANGE_DATA = ("_change_type", "_commit_version", "_commit_timestamp")
_VECTORS = "delta.enableDeletionVectors"
_NOT_IN_HUDI = ("void", "byte", "short", "timestamp_ntz", "geometry", "geography")
_NOT_STORED = ("string collate", "interval")
_VIOLATION = "DELTA_UNIVERSAL_FORMAT_VIOLATION"


def completed(before: Table, after: Table) -> Table:
    """Return the table with properties that Delta also sets or unsets."""
    after = iceberg.completed(after)
    formats = formats_in(after.configuration.get(FORMATS, ""))
    leaves = iceberg.enabled(before) is not None and iceberg.enabled(after) is None
    if leaves and "iceberg" in formats:
        formats.remove("iceberg")
        after = after.without_properties(FORMATS)
        return after.with_properties({FORMATS: ",".join(formats)}) if formats else after
    return after


def broken(before: Table, after: Table, engine: Engine, *, setting: bool = False) -> Refusal | None:
    """Return why a table cannot change to another state, or None.

    `setting`: the change is by SET TBLPROPERTIES. `after` is already `completed`. If the columns
    are unknown, only the properties are checked.
    """
    return (
        statistics.misnamed(after)
        or unstorable(after)
        or _reserved(before, after)
        or hudi(after)
        or _uniform(after)
        or iceberg.broken(before, after, engine, setting=setting)
    )


def unfit(before: Table, after: Table, *, whole: bool = True) -> Refusal | None:
    """Return why a table cannot get new columns, or None.

    Without `whole`, `after` has only the new columns, because the others are unknown.
    """
    return (
        (statistics.misnamed(after) if whole else None)
        or _reserved(before, after)
        or hudi(after)
        or _uniform(after)
        or iceberg.unfit(after, after.schema or Struct(()))
    )


def unstorable(table: Table) -> Refusal | None:
    """Refuse a metadata change if a column has a type that Delta Spark does not store.

    Another engine created such a column, or spark.databricks.delta.schema.typeCheck.enabled was
    false. Appending rows still works.
    """
    for path, column in walk(table.schema or Struct(())):
        name = column.type.name if isinstance(column.type, Atomic) else ""
        if name.startswith(_NOT_STORED) and not column.widened:
            return Refusal(
                "DELTA_UNSUPPORTED_DATA_TYPES",
                f"{dotted(path)} has type {name}, which Delta Spark does not store",
                "choose another type",
            )
    return None


def _reserved(before: Table, after: Table) -> Refusal | None:
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


def hudi(table: Table) -> Refusal | None:
    """Return why Hudi, if it is one of the formats, refuses the table."""
    if "hudi" not in formats_in(table.configuration.get(FORMATS, "")):
        return None
    if table.on(_VECTORS):
        return Refusal(
            _VIOLATION,
            f"{FORMATS} with hudi excludes deletion vectors",
            f"set {_VECTORS} = false, or remove hudi",
        )
    for path, column in walk(table.schema or Struct(())):
        if isinstance(column.type, Atomic) and column.type.name.startswith(_NOT_IN_HUDI):
            return Refusal(
                _VIOLATION,
                f"Hudi has no type for {dotted(path)}, which is {column.type.name}",
                "remove hudi, or drop the column",
            )
    return None


def _uniform(table: Table) -> Refusal | None:
    formats = formats_in(table.configuration.get(FORMATS, ""))
    if "iceberg" not in formats or iceberg.enabled(table) is not None:
        return None
    return Refusal(
        _VIOLATION,
        f"{FORMATS} with iceberg needs icebergCompatV1, V2 or V3",
        f"set {iceberg.KEY.format(2)} = true as well, if the table supports it",
    )


_DEPENDENCIES = frozenset({"delta.enableincommittimestamps"})


def upkeep(table: Table, what: str) -> Refusal | None:
    """Refuse OPTIMIZE, REORG and VACUUM on catalog-managed tables."""
    if not table.managed:
        return None
    return Refusal(
        "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        f"a catalog manages the table, so Delta Spark refuses {what}",
        "use the catalog's maintenance",
    )


def dependencies(table: Table, keys: Iterable[str]) -> Refusal | None:
    """Refuse changes to properties that catalog-managed tables depend on."""
    changed = sorted(key for key in keys if key.lower() in _DEPENDENCIES)
    if not table.managed or not changed:
        return None
    return Refusal(
        "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES",
        f"a catalog manages the table, so {', '.join(changed)} cannot be set or unset",
        "do not change the property",
    )


READ_COPY = (
    "or, if Unity Catalog manages the table on Databricks, let the client read the "
    "Compatibility Mode copy"
)


def warnings(table: Table, properties: Mapping[str, str]) -> Iterator[str]:
    """Yield warnings if these properties change a Compatibility Mode copy."""
    if not requested(properties) or requested(table.configuration):
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
