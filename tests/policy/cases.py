"""Logs by hand, and exactly what the rules find in each."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

Action = dict[str, Any]
TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col",
}
Found = tuple[str, str | None]


class Case(NamedTuple):
    """A table, and every (rule, feature) that is found on it: no more, no less."""

    name: str
    build: Callable[[Log], object]
    expected: frozenset[Found]


def case(name: str, *actions: Action, finds: set[Found] | None = None) -> Case:
    """A table with one commit."""
    return commits(name, list(actions), finds=finds)


def commits(name: str, *actions: list[Action], finds: set[Found] | None = None) -> Case:
    """A table with several commits."""

    def build(log: Log) -> None:
        for version, each in enumerate(actions):
            log.commit(version, *each)

    return Case(name, build, frozenset(finds or ()))


def listed(*names: str, readers: tuple[str, ...] = ()) -> Action:
    """A table-features protocol; `readers` are listed for both."""
    return protocol(3 if readers else 1, 7, list(readers) if readers else None, [*readers, *names])


def schema(type_: Any = "long", *, nullable: bool = True, **of_column: Any) -> Action:
    """Metadata whose one column has this type and this column metadata."""
    return metadata(schema=schema_string(column("c", type_, nullable=nullable, **of_column)))


def mapped(configuration: dict[str, Any] | None = None) -> Action:
    """Metadata of a table that uses column mapping."""
    ids = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "p"}
    on = {"delta.columnMapping.mode": "name", **(configuration or {})}
    return metadata(on, schema=schema_string(column("c", **ids)))


def domain(name: str, configuration: Any) -> Action:
    """A domainMetadata action."""
    text = json.dumps(configuration)
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}


def without_schema() -> Action:
    action = metadata()
    del action["metaData"]["schemaString"]
    return action


def broken_checkpoint(content: bytes) -> Callable[[Log], object]:
    def build(log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata()).commit(1, add()).commit(2, add("p2"))
        log.raw(1, content, ".checkpoint.parquet")

    return build


def checkpointed(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata()).commit(1, add()).commit(2, add("p2"))
    log.checkpoint(1, protocol(1, 2), metadata(), add())


def hint(version: int) -> Callable[[Log], object]:
    """A log with a checkpoint of version 1 whose `_last_checkpoint` names a version."""

    def build(log: Log) -> None:
        checkpointed(log)
        text = json.dumps({"version": version, "size": 3})
        (log.folder / "_last_checkpoint").write_text(text)

    return build


def sidecar(content: bytes | None) -> Callable[[Log], object]:
    """A checkpoint names a sidecar with this content; None: there is no such file."""

    def build(log: Log) -> None:
        of_table = (protocol(1, 2), metadata())
        log.commit(0, *of_table).commit(1, add())
        named = {"sidecar": {"path": "s.parquet"}}
        log.checkpoint(1, *of_table, named, suffix=".checkpoint.80a083e8.parquet")
        if content is not None:
            (log.folder / "_sidecars").mkdir()
            (log.folder / "_sidecars" / "s.parquet").write_bytes(content)

    return build


def half_readable_checkpoint(log: Log) -> None:
    """One of two parts is garbage; a newer commit has protocol and metadata."""
    log.commit(0, protocol(1, 2), metadata()).commit(1, add())
    part = ".checkpoint.000000000{}.0000000002.parquet"
    log.checkpoint(0, protocol(1, 2), metadata(), suffix=part.format(1))
    log.raw(0, b"PAR1garbage", part.format(2)).commit(2, protocol(1, 2), metadata())


def broken_commit(log: Log) -> None:
    """A commit is garbage; the newest one has protocol and metadata."""
    log.commit(0, protocol(1, 2), metadata()).raw(1, b"{garbage")
    log.commit(2, protocol(1, 2), metadata())


def commit_broken_before_checkpoint(log: Log) -> None:
    checkpointed(log)
    log.raw(0, b"{garbage")


def hint_alone(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata()).commit(1, add())
    (log.folder / "_last_checkpoint").write_text('{"version":1,"size":3}')


def marked(version: int) -> Callable[[Log], object]:
    """One of two commits begins with a byte order mark; the first one has a checkpoint."""

    def build(log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata()).commit(1, add())
        log.checkpoint(0, protocol(1, 2), metadata())
        file = log.path(version, ".json")
        log.raw(version, codecs.BOM_UTF8 + file.read_bytes())

    return build


def incomplete(version: int, **members: Any) -> Callable[[Log], object]:
    """An add action of one of two commits with other members; the first one has a checkpoint."""

    def build(log: Log) -> None:
        adds = [add(), add("p2")]
        for name, value in members.items():
            adds[version]["add"][name] = value
        log.commit(0, protocol(1, 2), metadata(), adds[0]).commit(1, adds[1])
        log.checkpoint(0, protocol(1, 2), metadata(), adds[0])

    return build


def partitioned(physical: str) -> Action:
    """Metadata of a table with column mapping and two columns, partitioned by one of them."""
    ids = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": physical}
    data = {"delta__columnMapping__id": 2, "delta__columnMapping__physicalName": "col-2"}
    columns = schema_string(column("c", **ids), column("d", **data))
    return metadata({"delta.columnMapping.mode": "name"}, columns, partition_columns=["c"])


def only_a_checkpoint(log: Log) -> None:
    log.checkpoint(3, protocol(1, 2), metadata())


def without_newest_commit(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata()).checkpoint(1, protocol(1, 2), metadata())


def misnamed(*names: str) -> Callable[[Log], object]:
    """A commit, and other files with these names."""

    def build(log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata())
        for name in names:
            (log.folder / name).write_text(json.dumps(protocol(1, 7, None, ["appendOnly"])))

    return build


def checksum(**fields: Any) -> Callable[[Log], object]:
    """A commit of transaction `a` in (1,2) with a checksum that has these fields."""

    def build(log: Log) -> None:
        log.commit(0, commit_info("CREATE TABLE", txnId="a"), protocol(1, 2), metadata())
        log.checksum(0, fields.pop("of", protocol(1, 2)), metadata(), **{"txnId": "a", **fields})

    return build


VECTORS = "deletionVectors"
VECTORS_ON = {"delta.enableDeletionVectors": "true"}
DELTA_RS = {"engineInfo": "delta-rs:py-1.6.6"}
ICEBERG = ("columnMapping", "icebergCompatV2")
ICEBERG_ON = {"delta.enableIcebergCompatV2": "true"}
ORDINARY = ("appendOnly", "invariants")
CLUSTERED = domain("delta.clustering", {"clusteringColumns": [["c"]]})


def set_properties(**properties: str) -> Action:
    """The commitInfo of SET TBLPROPERTIES; in keys `__` stands for a dot."""
    named = {key.replace("__", "."): value for key, value in properties.items()}
    return commit_info(
        "SET TBLPROPERTIES", operationParameters={"properties": json.dumps(named)}, **DELTA_RS
    )


CASES: tuple[Case, ...] = (
    # DP101 invalid-protocol
    case("reader-version-0", protocol(0, 2), metadata(), finds={("DP101", None)}),
    case("writer-version-0", protocol(1, 0), metadata(), finds={("DP101", None)}),
    case("reader-3-with-writer-2", protocol(3, 2), metadata(), finds={("DP101", None)}),
    case("lists-missing", protocol(3, 7), metadata(), finds={("DP101", None)}),
    case(
        "list-on-a-legacy-pair",
        protocol(1, 2, None, ["appendOnly"]),
        metadata(),
        finds={("DP101", None)},
    ),
    case(
        "readers-are-not-told",
        protocol(1, 7, None, [VECTORS]),
        metadata(),
        finds={("DP101", VECTORS)},
    ),
    case(
        "readers-are-not-told-at-version-3",
        protocol(3, 7, [], [VECTORS]),
        metadata(),
        finds={("DP101", VECTORS)},
    ),
    case("reader-2-tells-of-column-mapping", protocol(2, 7, None, ["columnMapping"]), mapped()),
    case("plain", protocol(1, 2), metadata()),
    case("lowest-of-all", protocol(1, 1), metadata(), finds={("DP119", None)}),
    # DP102 reader-feature-unlisted
    case(
        "reader-feature-not-for-writers",
        protocol(3, 7, [VECTORS], []),
        metadata(),
        finds={("DP102", VECTORS)},
    ),
    case("reader-feature-in-both-lists", listed(readers=(VECTORS,)), metadata()),
    # DP103 feature-missing
    case(
        "property-without-feature",
        protocol(1, 2),
        metadata(VECTORS_ON),
        finds={("DP103", VECTORS)},
    ),
    case(
        "property-that-is-off",
        protocol(1, 2),
        metadata({"delta.enableDeletionVectors": "no"}),
        finds={("DP150", None)},
    ),
    case(
        "property-key-in-another-case",
        protocol(1, 1),
        metadata({"delta.appendonly": "TRUE"}),
        finds={("DP119", None)},
    ),
    case(
        "column-type-without-feature",
        protocol(1, 2),
        schema("timestamp_ntz"),
        finds={("DP103", "timestampNtz")},
    ),
    case(
        "column-type-deep-inside",
        protocol(1, 2),
        schema({"type": "array", "elementType": "variant", "containsNull": True}),
        finds={("DP103", "variantType")},
    ),
    case(
        "not-null-without-invariants",
        protocol(1, 1),
        schema(nullable=False),
        finds={("DP103", "invariants"), ("DP119", None)},
    ),
    case("not-null-with-invariants", protocol(1, 2), schema(nullable=False)),
    case(
        "generated-column-without-feature",
        protocol(1, 3),
        schema(delta__generationExpression="1"),
        finds={("DP103", "generatedColumns")},
    ),
    case(
        "generated-column-with-version-4", protocol(1, 4), schema(delta__generationExpression="1")
    ),
    case(
        "constraint-without-feature",
        protocol(1, 2),
        metadata({"delta.constraints.positive": "id > 0"}),
        finds={("DP103", "checkConstraints")},
    ),
    case(
        "constraint-with-version-3",
        protocol(1, 3),
        metadata({"delta.constraints.positive": "id > 0"}),
    ),
    case(
        "widened-without-feature",
        protocol(1, 2),
        schema(delta__typeChanges=[{"fromType": "integer", "toType": "long"}]),
        finds={("DP103", "typeWidening")},
    ),
    case(
        "clustered-without-feature",
        listed("domainMetadata", *ORDINARY),
        metadata(),
        CLUSTERED,
        finds={("DP103", "clustering")},
    ),
    case("clustered", listed("domainMetadata", "clustering", *ORDINARY), metadata(), CLUSTERED),
    # DP150 invalid-property-value
    case("property-without-value", protocol(1, 2), metadata({"delta.appendOnly": None})),
    # DP104 requirement-missing
    case(
        "requirement-not-supported",
        listed("rowTracking"),
        metadata({"delta.enableRowTracking": "true"}),
        finds={("DP104", "rowTracking")},
    ),
    case(
        "requirement-met",
        listed("rowTracking", "domainMetadata"),
        metadata({"delta.enableRowTracking": "true"}),
    ),
    case(
        "requirement-not-enabled",
        protocol(2, 7, None, list(ICEBERG)),
        metadata(ICEBERG_ON),
        finds={("DP104", "icebergCompatV2")},
    ),
    case("requirement-enabled", protocol(2, 7, None, list(ICEBERG)), mapped(ICEBERG_ON)),
    case(
        "excluded-feature-enabled",
        listed("icebergCompatV2", readers=("columnMapping", VECTORS)),
        mapped({**ICEBERG_ON, **VECTORS_ON}),
        finds={("DP104", "icebergCompatV2")},
    ),
    case(
        "excluded-feature-supported",
        listed("icebergCompatV1", readers=("columnMapping", VECTORS)),
        mapped({"delta.enableIcebergCompatV1": "true"}),
        finds={("DP104", "icebergCompatV1")},
    ),
    case(
        "excluded-feature-supported-but-off",
        listed("icebergCompatV2", readers=("columnMapping", VECTORS)),
        mapped(ICEBERG_ON),
    ),
    # DP105 implied-features-lost
    commits(
        "upgrade-by-delta-rs-loses-what-the-pair-implied",
        [protocol(1, 2), metadata()],
        [listed(readers=(VECTORS,)), commit_info("ADD FEATURE", **DELTA_RS)],
        finds={("DP105", None)},
    ),
    commits(
        "upgrade-lists-what-the-pair-implied",
        [protocol(1, 2), metadata()],
        [listed(*ORDINARY, readers=(VECTORS,)), commit_info("ADD FEATURE", **DELTA_RS)],
    ),
    commits(
        "lost-and-added-again",
        [protocol(1, 2), metadata()],
        [listed(readers=(VECTORS,)), commit_info("ADD FEATURE", **DELTA_RS)],
        [listed(*ORDINARY, readers=(VECTORS,)), commit_info("ADD FEATURE", **DELTA_RS)],
    ),
    commits(
        "dropping-is-not-losing",
        [protocol(1, 2), metadata()],
        [listed("invariants"), commit_info("DROP FEATURE")],
    ),
    # DP106 unrequested-feature
    commits(
        "a-property-brings-a-feature-along",
        [protocol(1, 2), metadata()],
        [
            listed(*ORDINARY, readers=(VECTORS, "variantType")),
            metadata(VECTORS_ON),
            set_properties(delta__enableDeletionVectors="true"),
        ],
        finds={("DP106", "variantType")},
    ),
    commits(
        "a-property-asks-for-the-feature",
        [protocol(1, 2), metadata()],
        [
            listed(*ORDINARY, readers=(VECTORS, "variantType")),
            metadata(VECTORS_ON),
            set_properties(
                delta__enableDeletionVectors="true", delta__feature__variantType="supported"
            ),
        ],
        finds={("DP110", "variantType")},
    ),
    commits(
        "a-feature-comes-with-the-one-that-requires-it",
        [protocol(1, 2), metadata()],
        [
            listed(*ORDINARY, "rowTracking", "domainMetadata"),
            metadata({"delta.enableRowTracking": "true"}),
            set_properties(delta__enableRowTracking="true"),
        ],
    ),
    commits(
        "versions-ask-for-all-that-they-imply",
        [protocol(1, 2), metadata()],
        [
            listed(*ORDINARY, readers=(VECTORS, "variantType")),
            metadata(VECTORS_ON),
            set_properties(delta__minWriterVersion="7", delta__enableDeletionVectors="true"),
        ],
        finds={("DP110", "variantType")},
    ),
    commits(
        "another-kind-of-commit-is-not-judged",
        [protocol(1, 2), metadata()],
        [listed(*ORDINARY, readers=("variantType",)), commit_info("WRITE"), add()],
        finds={("DP110", "variantType")},
    ),
    commits(
        "a-property-brings-constraints-along",
        [protocol(1, 2), metadata()],
        [
            listed(*ORDINARY, "checkConstraints", readers=(VECTORS,)),
            metadata(VECTORS_ON),
            set_properties(delta__enableDeletionVectors="true"),
        ],
        finds={("DP106", "checkConstraints")},
    ),
    commits(
        "unused-from-the-start-is-nobody's-surprise",
        [listed(*ORDINARY, readers=("variantType",)), metadata(), commit_info("CREATE TABLE")],
        [set_properties(a="b"), metadata({"a": "b"})],
        finds={("DP110", "variantType")},
    ),
    # DP107 not-lowest-protocol
    case("lists-of-a-legacy-pair", listed(*ORDINARY), metadata(), finds={("DP107", None)}),
    case("empty-lists", protocol(3, 7, [], []), metadata(), finds={("DP107", None)}),
    case(
        "reader-3-for-a-writer-feature",
        commit_info(inCommitTimestamp=1),
        protocol(3, 7, [], ["inCommitTimestamp"]),
        metadata({"delta.enableInCommitTimestamps": "true"}),
        finds={("DP107", None)},
    ),
    case("half-of-a-legacy-pair", listed("appendOnly"), metadata()),
    # DP108 preview-feature
    case(
        "preview-name",
        listed(readers=("typeWidening-preview",)),
        metadata({"delta.enableTypeWidening": "true"}),
        finds={("DP108", "typeWidening-preview")},
    ),
    case(
        "retired-name",
        listed("inCommitTimestamp-preview"),
        metadata({"delta.enableInCommitTimestamps-preview": "true"}),
        finds={("DP108", "inCommitTimestamp-preview")},
    ),
    case(
        "final-name",
        listed(readers=("typeWidening",)),
        metadata({"delta.enableTypeWidening": "true"}),
    ),
    # DP109 unknown-feature
    case(
        "wrong-case",
        listed(readers=("deletionvectors",)),
        metadata(),
        finds={("DP109", "deletionvectors")},
    ),
    case("unheard-of", listed("quantumRows"), metadata(), finds={("DP109", "quantumRows")}),
    # DP110 unused-feature
    case(
        "listed-and-unused",
        listed(readers=("timestampNtz",)),
        metadata(),
        finds={("DP110", "timestampNtz")},
    ),
    case("listed-and-used", listed(readers=("timestampNtz",)), schema("timestamp_ntz")),
    case("implied-and-unused", protocol(1, 3), metadata()),
    case("listed-and-not-looked-for", listed(readers=(VECTORS,)), metadata(VECTORS_ON)),
    # DP111 odd-legacy-pair
    case("writer-5-without-reader-2", protocol(1, 5), metadata(), finds={("DP111", None)}),
    case("reader-2-without-writer-5", protocol(2, 3), metadata(), finds={("DP111", None)}),
    case(
        "reader-2-with-writer-1",
        protocol(2, 1),
        metadata(),
        finds={("DP111", None), ("DP119", None)},
    ),
    case("even-legacy-pair", protocol(2, 5), metadata()),
    case("writer-6-without-column-mapping", protocol(1, 6), metadata()),
    # DP112 catalog-managed
    case(
        "managed-by-a-catalog",
        commit_info(inCommitTimestamp=1),
        listed("inCommitTimestamp", readers=("catalogManaged", "vacuumProtocolCheck")),
        metadata({"delta.enableInCommitTimestamps": "true"}),
        finds={("DP112", "catalogManaged")},
    ),
    case(
        "what-a-catalog-requires-alone",
        commit_info(inCommitTimestamp=1),
        listed("inCommitTimestamp", readers=("vacuumProtocolCheck",)),
        metadata({"delta.enableInCommitTimestamps": "true"}),
    ),
    # DP113 invalid-isolation-level
    case(
        "isolation-of-a-snapshot",
        protocol(1, 2),
        metadata({"delta.isolationLevel": "SnapshotIsolation"}),
        finds={("DP113", None)},
    ),
    case(
        "isolation-empty",
        protocol(1, 2),
        metadata({"delta.isolationLevel": ""}),
        finds={("DP113", None)},
    ),
    case(
        "isolation-serializable", protocol(1, 2), metadata({"delta.isolationLevel": "serializable"})
    ),
    case(
        "isolation-write-serializable",
        protocol(1, 2),
        metadata({"delta.isolationLevel": "WriteSerializable"}),
    ),
    # DP150 invalid-property-value
    *(
        case(
            f"property-value-{key}-{value}",
            protocol(1, 2),
            metadata({f"delta.{key}": value}),
            finds={("DP150", None)},
        )
        for key, value in (
            ("columnMapping.mode", "foo"),
            ("appendOnly", "yes"),
            ("enableExpiredLogCleanup", ""),
            ("logRetentionDuration", "1 month"),
            ("deletedFileRetentionDuration", "7 dayz"),
            ("checkpointInterval", "0"),
            ("dataSkippingNumIndexedCols", "-2"),
            ("dataSkippingStatsColumns", "a,,b"),
            ("universalFormat.enabledFormats", "parquet"),
            ("checkpointPolicy", "V3"),
        )
    ),
    *(
        case(f"property-value-{key}-{value}", protocol(1, 2), metadata({f"delta.{key}": value}))
        for key, value in (
            ("logRetentionDuration", "interval 7 days"),
            ("checkpointInterval", "+5"),
            ("autoOptimize.autoCompact", "auto"),
            ("universalFormat.enabledFormats", "compatibility"),
            ("dataSkippingStatsColumns", "a, `b c`.d"),
            ("parquet.format.version", "2.12.0"),
            ("nobodyKnows", "yes"),
            ("checkpoint.writeStatsAsStruct", "FALSE"),
        )
    ),
    # DP114 checkpoint-protection-left
    case(
        "checkpoint-protection",
        listed("checkpointProtection"),
        metadata({"delta.requireCheckpointProtectionBeforeVersion": "7"}),
        finds={("DP114", "checkpointProtection")},
    ),
    case(
        "only-the-property-of-checkpoint-protection",
        protocol(1, 2),
        metadata({"delta.requireCheckpointProtectionBeforeVersion": "7"}),
    ),
    # DP119 writer-version-one
    case("writer-version-1", protocol(1, 1), metadata(), finds={("DP119", None)}),
    case("writer-version-2", protocol(1, 2), metadata()),
    # DP115 schema-missing
    case("no-schema", protocol(1, 2), without_schema(), finds={("DP115", None)}),
    case("schema-is-no-struct", protocol(1, 2), metadata(schema="[]"), finds={("DP115", None)}),
    case(
        "schema-without-columns",
        protocol(1, 2),
        metadata(schema='{"type":"struct","fields":[]}'),
        finds={("DP115", None)},
    ),
    *(
        case(
            f"metadata-without-{name}",
            protocol(1, 2),
            {"metaData": {k: v for k, v in metadata()["metaData"].items() if k != name}},
            finds={("DP115", None)},
        )
        for name in ("id", "format", "partitionColumns", "configuration")
    ),
    case(
        "struct-without-fields", protocol(1, 2), schema({"type": "struct"}), finds={("DP115", None)}
    ),
    # DP130 checkpoint-unreadable
    Case("hint-without-checkpoint", hint_alone, frozenset({("DP130", None)})),
    Case("checkpoint-garbled", broken_checkpoint(b"PAR1garbage"), frozenset({("DP130", None)})),
    Case("checkpoint-of-0-bytes", broken_checkpoint(b""), frozenset({("DP130", None)})),
    Case("checkpoint-good", checkpointed, frozenset()),
    Case("checkpoint-with-a-garbled-part", half_readable_checkpoint, frozenset({("DP130", None)})),
    Case("sidecar-missing", sidecar(None), frozenset({("DP130", None)})),
    Case("sidecar-garbled", sidecar(b"PAR1garbage"), frozenset({("DP130", None)})),
    *(
        Case(f"hint-{version}", hint(version), frozenset({("DP130", None)} if version > 1 else ()))
        for version in (0, 1, 2, 9)
    ),
    # DP138 commit-unreadable
    Case("commit-garbled", broken_commit, frozenset({("DP138", None)})),
    Case("commit-garbled-before-the-checkpoint", commit_broken_before_checkpoint, frozenset()),
    # DP131 checksum-contradicts-log
    Case("checksum-of-another-commit", checksum(txnId="b"), frozenset({("DP131", None)})),
    Case(
        "checksum-of-another-protocol",
        checksum(of=protocol(2, 5)),
        frozenset({("DP131", None)}),
    ),
    Case("checksum-good", checksum(), frozenset()),
    # DP132 several-protocols
    case("two-protocols", protocol(1, 3), protocol(1, 2), metadata(), finds={("DP132", None)}),
    case(
        "two-metadata",
        protocol(1, 2),
        metadata(),
        metadata({"delta.appendOnly": "true"}),
        finds={("DP132", None)},
    ),
    case("one-metadata-twice", protocol(1, 2), metadata(), metadata()),
    case("one-protocol-twice", protocol(1, 2), protocol(1, 2), metadata()),
    # DP133 no-commit-files
    Case("checkpoint-alone", only_a_checkpoint, frozenset({("DP133", None)})),
    Case("checkpoint-of-a-missing-commit", without_newest_commit, frozenset({("DP133", None)})),
    # DP135 misnamed-log-file
    Case("21-digits", misnamed("0" * 20 + "1.json"), frozenset({("DP135", None)})),
    Case("19-digits", misnamed("0" * 18 + "1.json"), frozenset({("DP135", None)})),
    Case("one-digit", misnamed("1.json"), frozenset({("DP135", None)})),
    Case("short-checkpoint", misnamed("7.checkpoint.parquet"), frozenset({("DP135", None)})),
    Case("no-commits", misnamed("1.json.tmp", "1.crc", "a1.json", "1.JSON"), frozenset()),
    # DP134 byte-order-mark
    Case("marked", marked(1), frozenset({("DP134", None)})),
    Case("marked-before-the-checkpoint", marked(0), frozenset()),
    # DP136 file-size-missing, DP137 incomplete-add-actions
    *(
        Case(f"add-with-{name}-{value}", incomplete(1, **{name: value}), frozenset({(rule, None)}))
        for rule, name, value in (
            *(("DP136", "size", value) for value in (None, 0, -1)),
            *(("DP137", "size", value) for value in ("12", 1.5, True, 1 << 63)),
            *(("DP137", "modificationTime", value) for value in (None, "12", 1.5, [1])),
            *(("DP137", "path", value) for value in (None, 5)),
            *(("DP137", "dataChange", value) for value in (None, "true", 1)),
            *(("DP137", "partitionValues", value) for value in (None, [])),
            *(
                ("DP137", "stats", each)
                for each in ("", "[]", '{"numRecords":1', {"numRecords": 1})
            ),
        )
    ),
    *(
        Case(f"add-with-{name}-{value}", incomplete(1, **{name: value}), frozenset())
        for name, value in (
            ("size", 1),
            *(("modificationTime", value) for value in (0, -1)),
            *(("stats", value) for value in (None, "{}", ' {"numRecords":1} ')),
        )
    ),
    *(
        Case(
            f"checkpoint-with-{name}-{value}",
            incomplete(0, **{name: value}),
            frozenset({(rule, None)}),
        )
        for rule, name, value in (
            *(("DP136", "size", value) for value in (None, 0, -1)),
            ("DP137", "modificationTime", None),
            ("DP137", "dataChange", None),
        )
    ),
    Case("complete-checkpoint", incomplete(0), frozenset()),
    # DP140 file-layout
    commits(
        "absolute-path",
        [protocol(1, 2), metadata(), add("file:///elsewhere/part-0.parquet")],
        [add()],
        finds={("DP140", None)},
    ),
    commits(
        "absolute-path-removed",
        [protocol(1, 2), metadata(), add("file:///elsewhere/part-0.parquet")],
        [{"remove": {"path": "file:///elsewhere/part-0.parquet", "dataChange": True}}, add()],
    ),
    case("a-colon-in-a-partition", protocol(1, 2), metadata(), add("at=10:00/part-0.parquet")),
    case("mapped-partition", protocol(2, 5), partitioned("col-1"), finds={("DP140", None)}),
    case("partition-of-the-same-name", protocol(2, 5), partitioned("c")),
    # DP137: other engines may leave a column out of statistics.
    *(
        case(
            f"not-null-column-without-counts-{engine}",
            protocol(1, 2),
            metadata(schema=schema_string(column("c"), column("d", nullable=False))),
            commit_info(engineInfo=engine, operationMetrics={"num_added_rows": 1}),
            add(stats='{"numRecords":1,"nullCount":{"c":0}}'),
            finds=finds,
        )
        for engine, finds in (
            ("delta-rs:py-1.6.6", {("DP137", None)}),
            ("Apache-Spark/4.2.0 Delta-Lake/4.4.0", set[Found]()),
        )
    ),
    # DP141 unusual-type
    case("void", protocol(1, 2), schema("void"), finds={("DP141", None)}),
    *(
        case(f"malformed-{name}", protocol(1, 2), schema(type_), finds={("DP141", None)})
        for name, type_ in (
            ("array", {"type": "array", "elementType": "long"}),
            ("map", {"type": "map", "keyType": "long", "valueType": "long"}),
            ("number", 5),
            ("nothing", None),
        )
    ),
    case("varchar", protocol(1, 2), schema("varchar(5)"), finds={("DP141", None)}),
    case("decimal-too-long", protocol(1, 2), schema("decimal(50,2)"), finds={("DP141", None)}),
    case("decimal-of-38", protocol(1, 2), schema("decimal(38,38)")),
    case("decimal-below-0", protocol(1, 2), schema("decimal(9,-2)"), finds={("DP141", None)}),
    case(
        "udt-in-an-array",
        protocol(1, 2),
        schema({"type": "array", "elementType": {"type": "udt"}, "containsNull": True}),
        finds={("DP141", None)},
    ),
    # DP142 doubtful-columns
    case(
        "columns-that-differ-in-case",
        protocol(1, 2),
        metadata(schema=schema_string(column("c"), column("C"))),
        finds={("DP142", None)},
    ),
    case(
        "partition-not-in-the-schema",
        protocol(1, 2),
        metadata(partition_columns=["gone"]),
        finds={("DP142", None)},
    ),
    case(
        "only-partition-columns",
        protocol(1, 2),
        metadata(partition_columns=["id"]),
        finds={("DP142", None)},
    ),
    case(
        "partition-listed-twice",
        protocol(1, 2),
        metadata(schema=schema_string(column("c"), column("d")), partition_columns=["c", "c"]),
        finds={("DP142", None)},
    ),
    case(
        "column-without-mapping",
        protocol(2, 5),
        metadata({"delta.columnMapping.mode": "name"}),
        finds={("DP142", None)},
    ),
    # DP143 constraint-constructs
    case(
        "constraint-with-a-function",
        protocol(1, 3),
        metadata({"delta.constraints.c": "size(id) > 0"}),
        finds={("DP143", None)},
    ),
    case("plain-constraint", protocol(1, 3), metadata({"delta.constraints.c": "id > 0"})),
    case(
        "generated-with-a-function",
        protocol(1, 4),
        schema(delta__generationExpression="year(id)"),
        finds={("DP143", None)},
    ),
    # DP144 misread-bounds
    case(
        "a-boolean-without-bounds",
        protocol(1, 2),
        schema("boolean"),
        add(stats='{"minValues":{},"maxValues":{}}'),
        finds={("DP144", None)},
    ),
    case("a-boolean-without-statistics", protocol(1, 2), schema("boolean"), add(stats="{}")),
    case(
        "a-column-without-a-maximum",
        protocol(1, 2),
        metadata(),
        add(stats='{"minValues":{"id":1},"maxValues":{}}'),
        finds={("DP144", None)},
    ),
    # DP145 stored-protocol-request
    case(
        "stored-versions",
        protocol(1, 2),
        metadata({"delta.minWriterVersion": "3"}),
        finds={("DP145", "checkConstraints")},
    ),
    case("stored-versions-that-it-has", protocol(1, 2), metadata({"delta.minWriterVersion": "2"})),
    case(
        "a-stored-feature",
        protocol(1, 2),
        metadata({"delta.feature.deletionVectors": "supported"}),
        finds={("DP145", "deletionVectors")},
    ),
    # DP147 commit-without-timestamp
    commits(
        "a-commit-without-timestamp",
        [
            commit_info(inCommitTimestamp=1),
            protocol(1, 7, None, ["inCommitTimestamp"]),
            metadata({"delta.enableInCommitTimestamps": "true"}),
        ],
        [commit_info(), add()],
        finds={("DP147", "inCommitTimestamp")},
    ),
    case(
        "a-timestamp-of-null",
        commit_info(inCommitTimestamp=None),
        protocol(1, 7, None, ["inCommitTimestamp"]),
        metadata({"delta.enableInCommitTimestamps": "true"}),
        finds={("DP147", "inCommitTimestamp")},
    ),
    commits(
        "a-commit-without-any-information",
        [
            commit_info(inCommitTimestamp=1),
            protocol(1, 7, None, ["inCommitTimestamp"]),
            metadata({"delta.enableInCommitTimestamps": "true"}),
        ],
        [add()],
        finds={("DP147", "inCommitTimestamp")},
    ),
    commits(
        "commits-with-timestamps",
        [
            commit_info(inCommitTimestamp=1),
            protocol(1, 7, None, ["inCommitTimestamp"]),
            metadata({"delta.enableInCommitTimestamps": "true"}),
        ],
        [commit_info(inCommitTimestamp=2), add()],
    ),
    # DP148 value-in-another-case
    case(
        "a-mapping-mode-in-upper-case",
        protocol(2, 5),
        metadata({"delta.columnMapping.mode": "NAME"}),
        finds={("DP142", None), ("DP148", None)},
    ),
    case(
        "switches-in-upper-case",
        protocol(1, 4),
        metadata({"delta.appendOnly": "TRUE", "delta.enableChangeDataFeed": "True"}),
        finds={("DP148", None)},
    ),
    case(
        "values-in-lower-case",
        protocol(1, 4),
        metadata({"delta.appendOnly": "true", "delta.enableChangeDataFeed": "FALSE"}),
    ),
    # DP146 files-without-row-ids
    case(
        "a-file-without-row-ids",
        listed("domainMetadata", "rowTracking"),
        metadata(TRACKED),
        add("a", baseRowId=0),
        add("b"),
        finds={("DP146", "rowTracking")},
    ),
    commits(
        "row-ids-given-later",
        [listed("domainMetadata", "rowTracking"), metadata(TRACKED), add()],
        [add(baseRowId=0, dataChange=False)],
    ),
    case(
        "a-stored-version-that-is-refused",
        protocol(1, 2),
        metadata({"delta.minReaderVersion": "x"}),
        finds={("DP145", None), ("DP150", None)},
    ),
)
