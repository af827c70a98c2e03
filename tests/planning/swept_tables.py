"""Tables of every layout, and what is set on them, for the sweep over Delta's table properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_MAPPED = "'delta.columnMapping.mode' = 'name'"
TYPES = (
    "by tinyint, sh smallint, i int, l bigint, f float, db double, dc decimal(5, 2), s string, "
    "vc varchar(5), d date, t timestamp, bo boolean, bin binary, v variant, n void, ar array<int>, "
    "m map<string, int>, st struct<a: int, b: string, ok: boolean, deep: struct<d: date, v: "
    "variant>>, ars array<struct<e: int>>"
)


class Swept(NamedTuple):
    """A table: how it is made, and the columns that settings about columns are tried with."""

    columns: str
    clause: str = ""
    properties: str = ""
    then: tuple[str, ...] = ()
    names: tuple[str, ...] = ("id", "s", "nope")
    more: tuple[str, ...] = ()
    """further statements"""


TABLES = {
    "plain": Swept("id bigint, s string", then=("insert into {t} values (1, 'a')",)),
    "partitioned": Swept(
        "id bigint, s string, p int, q date",
        "partitioned by (p, q)",
        then=("insert into {t} values (1, 'a', 2, date'2026-01-01')",),
        names=("id", "p", "Q", "id,p", "nope"),
    ),
    "clustered": Swept(
        "id bigint, s string, st struct<a: int, b: string>, z int",
        "cluster by (id, st.a)",
        then=("insert into {t} values (1, 'a', named_struct('a', 1, 'b', 'x'), 3)",),
        names=("id", "s", "st.a", "id,st.a", "z", "st"),
    ),
    "mapped": Swept(
        "id bigint, `a b` string, st struct<a: int, `x,y`: string>, ar array<struct<e: int>>, "
        "p string",
        "partitioned by (p)",
        _MAPPED,
        then=("insert into {t} (id, p) values (1, 'q')",),
        names=("`a b`", "a b", "st.`x,y`", "st", "ar", "ar.element.e", "p", "P", "st.a,st.A"),
    ),
    "mapped clustered": Swept(
        "id bigint, `a b` string, st struct<a: int>",
        "cluster by (`a b`)",
        f"{_MAPPED}, 'delta.enableDeletionVectors' = 'true'",
        then=("insert into {t} (id) values (1), (2), (3)", "delete from {t} where id = 2"),
        names=("`a b`", "id", "st.a"),
    ),
    "nested": Swept(
        TYPES,
        names=(
            *("by", "dc", "S", "vc", "d", "t", "bo", "bin", "v", "n", "ar", "m", "m.key"),
            *("ar.element", "ars.element.e", "ars.e", "st", "st.a", "st.ok", "st.deep"),
            *("st.deep.d", "st.deep.v", "st.nope", "i.x", "i,I", "st,st.a", "st.a,st", "i,l"),
            *("`i`", "`st.a`", "`st`.`a`", "i, l", " i ", "", ",", "i,", "i l", "1", "_x", "i;"),
            *("`i", "i.", ".i", "i-l", "select", "*", "st.*", "BIN", "ST.DEEP", "st.B", "m.nope"),
            *("`st`.`deep`.`v`", "ar.nope", "m.value", "st.deep,ST.a", "i;l", "i /* x */, l"),
        ),
    ),
    "small types": Swept("b tinyint, t timestamp_ntz", names=("b", "t")),
    "tracked": Swept(
        "id bigint, s string",
        properties="'delta.enableRowTracking' = 'true'",
        then=("insert into {t} values (1, 'a')",),
    ),
    "timestamped": Swept(
        "id bigint",
        properties="'delta.enableInCommitTimestamps' = 'true', 'delta.checkpointPolicy' = 'v2'",
    ),
    "iceberg 1": Swept(
        "id bigint, s string",
        properties=f"{_MAPPED}, 'delta.enableIcebergCompatV1' = 'true'",
    ),
    "iceberg 2": Swept(
        "id bigint, s string",
        properties=f"{_MAPPED}, 'delta.enableIcebergCompatV2' = 'true'",
        then=("insert into {t} values (1, 'a')",),
    ),
    "iceberg 3": Swept(
        "id bigint, s string",
        properties=f"{_MAPPED}, 'delta.enableIcebergCompatV3' = 'true', "
        "'delta.enableRowTracking' = 'true'",
    ),
    "change names": Swept(
        "id bigint, _change_type string, _Commit_Version bigint, st struct<_commit_timestamp: int>",
        names=("_change_type",),
    ),
    "a change name": Swept("id bigint, _COMMIT_TIMESTAMP timestamp"),
    "feed": Swept(
        "id bigint",
        properties=f"'delta.enableChangeDataFeed' = 'true', {_MAPPED}",
        more=(
            "alter table {t} add columns (_change_type int)",
            "alter table {t} add columns (_CHANGE_TYPE int)",
            "alter table {t} add columns (st struct<_change_type: int>)",
            "alter table {t} rename column id to _commit_version",
        ),
    ),
    "hudi": Swept(
        "id bigint",
        then=(
            "alter table {t} set tblproperties ('delta.universalFormat.enabledFormats' = 'hudi')",
        ),
        more=(
            "alter table {t} add columns (x tinyint)",
            "alter table {t} add columns (x struct<a: array<timestamp_ntz>>)",
            "alter table {t} add columns (x void)",
            "alter table {t} add columns (x map<string, smallint>)",
            "alter table {t} add columns (x variant)",
            "insert into {t} values (1)",
        ),
    ),
    "uniform": Swept(
        "id bigint, s string",
        properties=f"{_MAPPED}, 'delta.enableIcebergCompatV2' = 'true'",
        then=(
            "alter table {t} set tblproperties "
            "('delta.universalFormat.enabledFormats' = 'hudi,iceberg')",
        ),
        more=(
            "alter table {t} set tblproperties ('delta.enableIcebergCompatV2' = 'false', "
            "'delta.enableIcebergCompatV3' = 'true')",
            "alter table {t} add columns (x map<string, int>)",
            "alter table {t} add columns (x tinyint)",
            "alter table {t} drop feature icebergCompatV2",
            "insert into {t} values (1, 'a')",
        ),
    ),
    "dots": Swept(
        "id bigint, `a.b` int, a struct<b: int, `c.d`: int>",
        properties=_MAPPED,
        names=("`a.b`", "a.b", "a.`c.d`", "a.c.d", "`a.c.d`", "`a.b`,a.b"),
        more=(
            "alter table {t} drop column `a.b`",
            "alter table {t} rename column a.`c.d` to e",
            "alter table {t} rename column a.b to `b.c`",
        ),
    ),
    "renamed statistics": Swept(
        "id bigint, `a b` int, st struct<a: int, `x y`: int>, z int",
        properties=f"{_MAPPED}, 'delta.dataSkippingStatsColumns' = '`a b`, st.a,id'",
        more=(
            "alter table {t} drop column z",
            "alter table {t} drop column ID",
            "alter table {t} drop column `a b`",
            "alter table {t} drop columns (st, `a b`)",
            "alter table {t} rename column `a b` to c",
            "alter table {t} rename column ID to `i d`",
            "alter table {t} rename column st to tt",
            "alter table {t} rename column st.a to `q.r`",
            "alter table {t} rename column id to `1`",
            "alter table {t} alter column z comment 'x'",
            "alter table {t} add columns (y int)",
        ),
    ),
    "oldest": Swept(
        "id bigint, s string",
        properties="'delta.minReaderVersion' = '1', 'delta.minWriterVersion' = '1'",
    ),
    "few indexed": Swept(
        "id bigint, st struct<a: int, b: int>, s string, z int",
        properties="'delta.dataSkippingNumIndexedCols' = '2'",
        names=("id", "st.a", "st.b", "s", "st"),
    ),
    "none indexed": Swept(
        "id bigint, s string", properties="'delta.dataSkippingNumIndexedCols' = '0'"
    ),
    "named statistics": Swept(
        "id bigint, st struct<a: int, B: int>, s string, bin binary",
        properties="'delta.dataSkippingStatsColumns' = 'S,st'",
        names=("id", "st.a", "st.b", "s", "st"),
    ),
    "wide": Swept(
        ", ".join(f"c{n} int" for n in range(40)), names=("c0", "c31", "c32", "c39", "c1,c39")
    ),
    "wide with partitions": Swept(
        ", ".join(f"c{n} int" for n in range(3)) + ", p int",
        "partitioned by (p)",
        properties="'delta.dataSkippingNumIndexedCols' = '1'",
        names=("p", "c0"),
    ),
    "suspended": Swept("id bigint", properties="'delta.rowTrackingSuspended' = 'true'"),
    "short log": Swept(
        "id bigint",
        properties="'delta.logRetentionDuration' = '3 days', "
        "'delta.deletedFileRetentionDuration' = '2 days'",
    ),
}
"""tables of every layout by name"""

_BOOLEANS = [
    "ignoreProtocolDefaults",
    "enableExpiredLogCleanup",
    "enableFullRetentionRollback",
    "randomizeFilePrefixes",
    "appendOnly",
    "enableDeletionVectors",
    "enableVariantShredding",
    "autoOptimize",
    "autoOptimize.optimizeWrite",
    "compatibility.symlinkFormatManifest.enabled",
    "checkpoint.writeStatsAsJson",
    "autoOptimize.autoCompact",
    "checkpoint.writeStatsAsStruct",
    "enableChangeDataCapture",
    "enableChangeDataFeed",
    "enableRowTracking",
    "rowTrackingSuspended",
    "universalFormat.iceberg.atomicConversion.supported",
    "castIcebergTimeType",
    "ignoreIcebergBucketPartition",
    "enableTypeWidening",
    "enableInCommitTimestamps",
    "enableMaterializePartitionColumnsFeature",
    "writePartitionColumnsToParquet",
    "enableIcebergCompatV1",
    "enableIcebergCompatV2",
    "enableIcebergCompatV3",
]
_INTERVALS = [
    "logRetentionDuration",
    "sampleRetentionDuration",
    "checkpointRetentionDuration",
    "dropFeatureTruncateHistory.retentionDuration",
    "deletedFileRetentionDuration",
    "setTransactionRetentionDuration",
]
_JSON = [
    "coordinatedCommits.commitCoordinatorConf-preview",
    "coordinatedCommits.tableConf-preview",
]
_TEXTS = [
    "redirectReaderWriter-preview",
    "redirectWriterOnly-preview",
    "coordinatedCommits.commitCoordinator-preview",
]
_VALUES = {
    "minReaderVersion": ("1", "2", "3", "4", "0", "-1", "x", "", "1.0", " 1"),
    "minWriterVersion": ("1", "2", "3", "4", "5", "6", "7", "8", "0", "x", ""),
    "checkpointInterval": ("1", "0", "2147483647", "2147483648", "1.0", "", "٣", "1_0", "0x1"),
    "checkpointPolicy": ("classic", "v2", "V2", "", "v1"),
    "columnMapping.mode": ("none", "name", "id", "Name", "ID", "NONE", "foo", "", "1", " name"),
    "columnMapping.maxColumnId": ("1", "x", "-1"),
    "dataSkippingNumIndexedCols": ("-1", "0", "1", "100", "-2", "x", "", "1.5"),
    "dataSkippingStringPrefixLength": ("0", "1", "-1", "x", "2147483647"),
    "inCommitTimestampEnablementVersion": ("0", "1", "-1", "99", "x", ""),
    "inCommitTimestampEnablementTimestamp": ("0", "1700000000000", "-1", "x", ""),
    "isolationLevel": (
        *("Serializable", "serializable", "WriteSerializable", "SnapshotIsolation"),
        *("SERIALIZABLE", "snapshot", "", "None"),
    ),
    "parquet.format.version": ("1.0.0", "2.12.0", "2.6.0", "1", "", "V2"),
    "randomPrefixLength": ("1", "0", "x"),
    "requireCheckpointProtectionBeforeVersion": ("0", "1", "99", "-1", "x", ""),
    "universalFormat.enabledFormats": (
        *("iceberg", "hudi", "iceberg,hudi", "hudi,iceberg", "", "ICEBERG", "iceberg,", ","),
        *("hudi, iceberg", "compatibility", "hudi,hudi", " iceberg"),
    ),
    "universalFormat.config.iceberg.x": ("1",),
    "autoOptimize.autoCompact": ("auto", "legacy", ""),
    "lastUpdateVersion": ("1",),
    "lastCommitTimestamp": ("1",),
    "feature.nope": ("supported",),
    "feature.appendOnly": ("supported", "enabled", "SUPPORTED", "disabled", ""),
    "constraints.c": ("id > 0",),
    "rowTracking.materializedRowIdColumnName": ("x",),
}
_ALWAYS = {
    **dict.fromkeys(_BOOLEANS, ("true", "false")),
    "checkpointPolicy": ("classic", "v2"),
    "columnMapping.mode": ("none", "name", "id"),
    "dataSkippingNumIndexedCols": ("-1", "0", "1", "100"),
    "inCommitTimestampEnablementVersion": ("1",),
    "isolationLevel": ("Serializable", "WriteSerializable"),
    "requireCheckpointProtectionBeforeVersion": ("1",),
    "universalFormat.enabledFormats": ("iceberg", "hudi", "hudi,iceberg", ""),
    "logRetentionDuration": ("8 days",),
    "deletedFileRetentionDuration": ("6 days", "40 days"),
}
_RULED = [
    "enableDeletionVectors",
    "enableChangeDataFeed",
    "enableRowTracking",
    "rowTrackingSuspended",
    "enableIcebergCompatV1",
    "enableIcebergCompatV2",
    "enableIcebergCompatV3",
    "columnMapping.mode",
    "universalFormat.enabledFormats",
    "dataSkippingNumIndexedCols",
    "deletedFileRetentionDuration",
]
"""properties with rules that depend on the rest of the table"""
_UNSET = (
    *_RULED[:9],
    *("dataSkippingStatsColumns", "enableInCommitTimestamps", "checkpointPolicy", "appendOnly"),
    *("requireCheckpointProtectionBeforeVersion", "isolationLevel", "columnMapping.maxColumnId"),
)
_LAYOUTS = ("partitioned", "clustered", "mapped", "nested")
"""tables that every property is tried on"""
_BAD_BOOLEANS = ("TRUE", "yes", "", "1", " true", "T")
_SPANS = (
    *(
        "0 days",
        "interval 3 days 4 hours",
        "INTERVAL 3 DAYS",
        "3 days -1 hour",
        "-1 day",
        "1 month",
    ),
    *("1 year 3 days", "", "interval", "abc", "1.5 days", "1.5 seconds", "1e3 days", "30", "P1D"),
    *("'3' days", "1 nanosecond", "3 days,", "1 day 1 day", "9999999999 days", "200000000 days"),
    *("1 microsecond", "3days", "+3 days", "- 3 days", "0 months", "12 months -1 year", "1 d"),
    *("1 week 2 days 3 hours 4 minutes 5 seconds 6 milliseconds 7 microseconds", "\t3 days "),
)
_STRUCTURES = ("{}", '{"a": "b"}', "x", "", '{"a": 1}', "[]", '{"a": {"b": 1}}', "null")
_REDIRECT = (
    '{"type": "PathBasedRedirect", "state": "ENABLE-REDIRECT-IN-PROGRESS", '
    '"spec": "{\\"sourcePath\\": \\"a\\", \\"destPath\\": \\"b\\"}"}'
)
_COMMITS = "coordinatedCommits.commit"
_PAIRS = (
    ("logRetentionDuration", "2 days", "deletedFileRetentionDuration", "1 day"),
    ("logRetentionDuration", "1 day", "deletedFileRetentionDuration", "2 days"),
    ("enableRowTracking", "true", "rowTrackingSuspended", "true"),
    ("columnMapping.mode", "name", "enableIcebergCompatV2", "true"),
    ("enableIcebergCompatV1", "true", "enableIcebergCompatV2", "true"),
    ("enableIcebergCompatV2", "true", "universalFormat.enabledFormats", "iceberg"),
    ("enableIcebergCompatV2", "false", "universalFormat.enabledFormats", "iceberg"),
    ("universalFormat.enabledFormats", "hudi", "enableDeletionVectors", "true"),
    ("universalFormat.enabledFormats", "hudi", "enableDeletionVectors", "false"),
    ("dataSkippingStatsColumns", "id", "dataSkippingNumIndexedCols", "1"),
    ("enableInCommitTimestamps", "true", "inCommitTimestampEnablementVersion", "1"),
    ("minReaderVersion", "3", "minWriterVersion", "7"),
    ("enableChangeDataFeed", "true", "enableChangeDataCapture", "false"),
    (f"{_COMMITS}Coordinator-preview", "x", f"{_COMMITS}CoordinatorConf-preview", "{}"),
    (f"{_COMMITS}Coordinator-preview", "x", "coordinatedCommits.tableConf-preview", "{}"),
    (f"{_COMMITS}Coordinator-preview", "x", "enableInCommitTimestamps", "true"),
)


def statements(table: str) -> Iterator[str]:
    """What is tried on the table of this name, `{t}` in it stands for the table."""
    swept = TABLES[table]
    for key, values in _on_plain() if table == "plain" else _elsewhere(table):
        yield from (_set(key, value) for value in values)
    yield from (_set("dataSkippingStatsColumns", names) for names in swept.names)
    for one, first, other, second in _PAIRS:
        yield _altered(f"'delta.{one}' = '{first}', 'delta.{other}' = '{second}'")
    for names in swept.names:
        plain = names.strip(" ,;.`*") and ";" not in names
        if plain and not names.endswith((",", ".")) and names[0] not in ".*":
            yield f"alter table {{t}} cluster by ({names})"
    for key in _UNSET:
        yield f"alter table {{t}} unset tblproperties ('delta.{key}')"
    yield from swept.more


def _elsewhere(table: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, values in _ALWAYS.items():
        if table in _LAYOUTS or key in _RULED:
            yield key, values


def _on_plain() -> Iterator[tuple[str, tuple[str, ...]]]:
    for key in _BOOLEANS:
        yield key, (*_ALWAYS[key], *_BAD_BOOLEANS)
    for key in _INTERVALS:
        yield key, (*_ALWAYS.get(key, ()), *_SPANS)
    for key in _JSON:
        yield key, _STRUCTURES
    for key in _TEXTS:
        yield key, (*_STRUCTURES, _REDIRECT)
    yield from _VALUES.items()


def _set(key: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return _altered(f"'delta.{key}' = '{escaped}'")


def _altered(properties: str) -> str:
    return f"alter table {{t}} set tblproperties ({properties})"


def made(swept: Swept) -> Iterator[str]:
    """The statements that make a table."""
    properties = f" tblproperties ({swept.properties})" if swept.properties else ""
    yield f"create table {{t}} ({swept.columns}) using delta {swept.clause}{properties}"
    yield from swept.then
