"""Refusals of the IcebergCompat features for the table after a statement.

Source: Delta Spark 4.4's `IcebergCompat` (the checks and their order), `TypeWidening`; measured
with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.planning.ddl.types import is_literal
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.collations import COLLATED
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.schema import (
    Array,
    Atomic,
    Column,
    Map,
    Struct,
    dotted_path,
    find_column,
    walk_columns,
)
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_TRACKING, Table
from deltaproto.planning.predict.type_widening import widens, widens_in_iceberg

KEY = "delta.enableIcebergCompatV{}"
VERSIONS = (1, 2, 3)
_KEYS = tuple((version, KEY.format(version)) for version in VERSIONS)
_ERROR = "DELTA_ICEBERG_COMPAT_VIOLATION."
_TYPE = _ERROR + "UNSUPPORTED_DATA_TYPE"
_PROPERTY = _ERROR + "WRONG_REQUIRED_TABLE_PROPERTY"
_BY_PROPERTY = "3.3"
_ATOMIC, _ATOMIC_SINCE = "delta.universalFormat.iceberg.atomicConversion.supported", "4.2"
_VECTORS = "delta.enableDeletionVectors"
_OTHER_PARTITIONS = "copy the table into one with different partition columns"


def enabled_version(table: Table) -> int | None:
    """Return the lowest enabled version."""
    return next((version for version, key in _KEYS if table.is_on(key)), None)


def complete_row_tracking(table: Table) -> Table:
    """Enable row tracking if IcebergCompatV3 requires it and it is not set."""
    if table.is_on(KEY.format(3)) and ROW_TRACKING not in table.configuration:
        return table.with_properties({ROW_TRACKING: "true"})
    return table


def with_atomic_conversion(table: Table, engine: Engine) -> Table:
    """Return the table with a property that Delta Spark stores with an IcebergCompat version.

    It does so in tables that it creates or replaces, and in REORG, but not in SET TBLPROPERTIES.
    """
    if enabled_version(table) is None or not engine.at_least(_ATOMIC_SINCE):
        return table
    return table if _ATOMIC in table.configuration else table.with_properties({_ATOMIC: "true"})


def validate_change(
    before: Table, after: Table, engine: Engine, *, setting: bool = False
) -> Refusal | None:
    """Return why a table cannot change to another state, or None.

    `setting`: the change is by SET TBLPROPERTIES. If the columns are unknown, only the properties
    are checked.
    """
    for version, key in _KEYS:
        if after.is_on(key):
            found = next(_validate_version(before, after, version, engine, setting), None)
            if found is not None:
                return found
        elif version == enabled_version(before) == VERSIONS[-1]:
            return Refusal(
                "",
                "icebergCompatV3 cannot be disabled",
                "RESTORE the table to an earlier version, or copy it into a new table",
            )
    return None


def validate_columns(before: Table, after: Table) -> Refusal | None:
    """Refuse columns (maybe only some) that the enabled versions do not support."""
    version = enabled_version(after)
    return None if version is None else next(_validate_schema(before, after, version), None)


def _validate_schema(before: Table, after: Table, version: int) -> Iterator[Refusal]:
    """Yield refusals of new columns, in the order of Delta's checks."""
    schema = after.schema or Struct(())
    renamed = validate_partition_names(before, after)
    if renamed is not None and version == 1:
        yield renamed
    yield from _validate_types(schema, version, on=True)
    if renamed is not None:
        yield renamed
    yield from _validate_widenings(schema, version, on=True)
    yield from _validate_defaults(schema, version)


def validate_partition_names(before: Table, after: Table) -> Refusal | None:
    """Refuse changed partition columns, or changed names of them."""
    version, old = enabled_version(after), before.partition_columns
    if version is None or not old or old == after.partition_columns:
        return None
    return Refusal(
        _ERROR + "REPLACE_TABLE_CHANGE_PARTITION_NAMES",
        f"icebergCompatV{version} does not allow partition columns other than {', '.join(old)}",
        _OTHER_PARTITIONS,
    )


def _validate_version(
    before: Table, after: Table, version: int, engine: Engine, setting: bool
) -> Iterator[Refusal]:
    """Yield refusals of a version to enable, in the order of Delta's checks."""
    name, key = f"icebergCompatV{version}", KEY.format(version)
    schema, on = after.schema or Struct(()), before.is_on(key)
    by_spark = engine.name is EngineName.DELTA_SPARK
    yield from _validate_properties(before, after, version)
    yield from _validate_types(schema, version, on=on)
    if version > 1 and by_spark:
        yield from _validate_partitions(after, schema, version)
    if version < 3 and (before.is_on(_VECTORS) or after.is_on(_VECTORS)):
        yield Refusal(
            _ERROR + "DELETION_VECTORS_SHOULD_BE_DISABLED",
            f"{name} excludes deletion vectors",
            f"set {_VECTORS} = false, and REORG TABLE … APPLY (PURGE)",
        )
    yield from _validate_widenings(schema, version, on=on)
    yield from _validate_defaults(schema, version)
    if on or not setting:
        return
    if version > 1 and by_spark and not engine.at_least(_BY_PROPERTY):
        yield Refusal(
            _ERROR + "CHANGE_VERSION_NEED_REWRITE",
            f"{engine} does not enable {name} with its property",
            f"REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {version}))",
            on_databricks=True,
        )
    if version == 3 and before.is_on(ROW_TRACKING):
        yield Refusal(
            "",
            f"Delta Spark does not enable {name} while row tracking is enabled",
            f"set {ROW_TRACKING} = false first, then true again together with the property",
        )


def _validate_properties(before: Table, after: Table, version: int) -> Iterator[Refusal]:
    name = f"icebergCompatV{version}"
    if not after.mapped:
        # Rewriting the files fails on collections before it reaches the check.
        collections = any(
            isinstance(c.type, Array | Map) for _, c in walk_columns(after.schema or Struct(()))
        )
        error = "" if collections and version > 1 and before.mapped else _PROPERTY
        remedy = _disable_hint(version) if before.mapped else f"set {MAPPING_MODE} = name first"
        yield Refusal(error, f"{name} requires column mapping", remedy)
    tracking = after.configuration.get(ROW_TRACKING, "true").strip().lower()
    if version == 3 and tracking != "true":
        yield Refusal(
            _PROPERTY,
            f"{name} excludes {ROW_TRACKING} = {tracking}",
            f"set {ROW_TRACKING} = true in the same statement",
        )
    on = [each for each in VERSIONS if after.is_on(KEY.format(each))]
    if len(on) > 1:
        first = next((each for each in on if before.is_on(KEY.format(each))), on[0])
        yield Refusal(
            _ERROR + "VERSION_MUTUAL_EXCLUSIVE",
            f"{' and '.join(f'icebergCompatV{each}' for each in on)} exclude each other",
            "icebergCompatV3 cannot be disabled; copy the table into one without it"
            if before.is_on(KEY.format(3))
            else f"set {KEY.format(first)} = false in the same statement",
        )


def _validate_types(schema: Struct, version: int, *, on: bool) -> Iterator[Refusal]:
    for path, column in walk_columns(schema):
        takers = [each for each in VERSIONS if _supports_type(column, each)]
        if version in takers:
            continue
        kind = column.type.name if isinstance(column.type, Atomic) else "a collection"
        other = f"icebergCompatV{takers[0]} supports it" if takers else "drop the column first"
        yield Refusal(
            _TYPE,
            f"icebergCompatV{version} does not support {dotted_path(path)}, which is {kind}",
            _disable_hint(version) if on else other,
        )


def _supports_type(column: Column, version: int) -> bool:
    match column.type:
        case Array() | Map():
            return version != 1
        case Atomic(name):
            spatial = name.startswith(("geometry", "geography"))
            return not (
                name == "void"
                or (name.startswith(COLLATED) and version > 1)
                or (spatial and version < 3)
                or (name == "variant" and version == 2)
            )
        case Struct():
            return True


def _validate_partitions(table: Table, schema: Struct, version: int) -> Iterator[Refusal]:
    """Refuse partition types. Delta Spark up to 4.4 refuses every decimal type."""
    for name in table.partition_columns:
        column = find_column(schema, (name,))
        kind = column.type if column is not None else None
        if isinstance(kind, Atomic) and kind.name.startswith("decimal"):
            yield Refusal(
                _ERROR + "UNSUPPORTED_PARTITION_DATA_TYPE",
                f"icebergCompatV{version} does not support {name}, a partition column of type "
                f"{kind.name}",
                _OTHER_PARTITIONS,
            )


def _validate_widenings(schema: Struct, version: int, *, on: bool) -> Iterator[Refusal]:
    for path, column in walk_columns(schema):
        for old, new in column.type_changes or ():
            if widens(old, new) and not widens_in_iceberg(old, new):
                yield Refusal(
                    _ERROR + "UNSUPPORTED_TYPE_WIDENING",
                    f"Iceberg does not support the change of {dotted_path(path)} "
                    f"from {old.name} to "
                    f"{new.name}",
                    _disable_hint(version) if on else "copy the table into a new one",
                )


def _validate_defaults(schema: Struct, version: int) -> Iterator[Refusal]:
    for column in schema.columns if version == VERSIONS[-1] else ():
        if column.default is not None and not is_literal(column.default, column.type):
            yield Refusal(
                _TYPE,
                f"icebergCompatV{version} supports only literal defaults, and {column.name} has "
                f"{column.default}",
                "set a literal, or drop the default",
            )


def _disable_hint(version: int) -> str:
    if version == VERSIONS[-1]:
        return "icebergCompatV3 cannot be removed; copy the table into one without it"
    return f"set {KEY.format(version)} = false first"
