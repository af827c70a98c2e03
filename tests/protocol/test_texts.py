"""What people are told about conflicts and layers, word by word."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from syrupy.assertion import SnapshotAssertion

from deltaproto.conflicts import Cell, MatrixEngine, build_cells
from deltaproto.conflicts.classify import classify
from deltaproto.conflicts.matrix import Compute, resolve_by_row
from deltaproto.conflicts.notes import layout_advice, matrix_notes
from deltaproto.conflicts.operation import CHANGE_OPERATIONS, Operation
from deltaproto.conflicts.query import (
    Classification,
    merge_requirements,
    missing_predicates,
    why_predicate_needed,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.databricks_runtime import Runtime
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.isolation import (
    DECLARABLE_LEVELS,
    evaluate_isolation,
    row_level_concurrency,
)
from deltaproto.protocol.layers import feature_states
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from tests.conflicts.test_statement import NOT_UNDERSTOOD, ON, SET, STATEMENTS
from tests.support.golden import Text
from tests.support.logs import column, schema_string

RUNTIMES = (None, *(Runtime(*v) for v in ((12, 2), (13, 3), (14, 0), (14, 1), (14, 2), (14, 3))))
YES_NO_UNKNOWN = (True, False, None)
MORE_STATEMENTS = (
    *("OPTIMIZE t FULL", "OPTIMIZE t NOW", "REORG TABLE t APPLY (PURGE)", "CREATE VIEW v AS s"),
    *("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "RESTORE TABLE t"),
    *("CREATE TABLE t (a INT)", "CREATE OR REPLACE TABLE t AS SELECT 1", "DROP TABLE t"),
    *("ALTER TABLE t ADD COLUMN a INT", "ALTER TABLE t DROP FEATURE deletionVectors"),
    *("ALTER TABLE t UNSET TBLPROPERTIES ('a')", "ALTER TABLE t CLUSTER BY (a)", "ALTER TABLE"),
    *(f"{SET} ('a' = 'b')", f"{SET} ('delta.enableDeletionVectors' = 'true')", SET, f"{SET} ("),
    *(f"{SET} (delta.minWriterVersion = 5)", f"{SET} ('delta.feature.rowTracking' = 'supported')"),
    *("UPDATE t SET a = 1 WHERE id = 3", "DELETE FROM t WHERE id IN (1, 2)", "VACUUM t"),
    *(f"{ON} WHEN MATCHED THEN DELETE", f"{ON} AND t.p = 3 WHEN MATCHED THEN DELETE"),
)


def layouts(engine: MatrixEngine) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Every matrix of an engine, with what it is for."""
    for level, identity in itertools.product(DECLARABLE_LEVELS, (False, True)):
        name = f"{level}{', identity' if identity else ''}"
        if engine is MatrixEngine.DELTA_SPARK:
            yield name, build_cells(engine, level, identity=identity)
            continue
        if engine is MatrixEngine.DELTA_RS:
            for release in ((0, 18), (0, 25), (1, 1), (1, 2), (1, 3), (1, 4), (1, 6, 6)):
                if not identity:
                    yield f"{level}, {release}", build_cells(engine, level, release=release)
            continue
        for vectors in YES_NO_UNKNOWN:
            found = build_cells(engine, level, deletion_vectors=vectors, identity=identity)
            yield f"{name}, vectors {vectors}", found
        # What runtimes resolve by row: all changes, all but MERGE, or DELETE alone.
        for rows in (
            CHANGE_OPERATIONS,
            CHANGE_OPERATIONS - {Operation.MERGE},
            frozenset({Operation.DELETE}),
        ):
            names = " ".join(sorted(rows))
            yield (
                f"{name}, {names} by row",
                build_cells(engine, level, by_row=rows, identity=identity),
            )


@pytest.mark.parametrize("engine", MatrixEngine)
def test_each_cell_of_every_matrix(engine: MatrixEngine, snapshot: SnapshotAssertion) -> None:
    told: dict[str, dict[str, list[str]]] = {}
    for name, matrix in layouts(engine):
        for cell in matrix:
            words = (*map(str, cell.exceptions), cell.when, cell.avoid, cell.source)
            text = "\n".join((str(cell.conflict), *(f"  {word}" for word in words)))
            pair = f"{cell.operation} / {cell.against}"
            told.setdefault(text, {}).setdefault(name, []).append(pair)
    lines = []
    for text, where in told.items():
        lines += [text, *(f"    {name}: {', '.join(pairs)}" for name, pairs in where.items()), ""]
    assert "\n".join(lines) == snapshot(extension_class=Text)


@pytest.mark.parametrize("engine", MatrixEngine)
def test_notes_and_advice(engine: MatrixEngine, snapshot: SnapshotAssertion) -> None:
    lines = []
    for level, rows, identity in itertools.product(
        DECLARABLE_LEVELS, (True, False), YES_NO_UNKNOWN
    ):
        lines += [f"{level}, by row {rows}, identity {identity}"]
        lines += matrix_notes(engine, level, row_level=rows, identity=identity)
    for runtime in RUNTIMES:
        told = matrix_notes(
            engine, DECLARABLE_LEVELS[0], row_level=True, identity=False, runtime=runtime
        )
        lines += [f"runtime {runtime}", *told]
    for rows, columns in itertools.product((True, False), ((), ("a",), ("a", "b`c"))):
        lines += [f"partitioned by {columns}, by row {rows}"]
        lines += layout_advice(engine, columns, row_level=rows)
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)


def test_what_is_compared_by_row(snapshot: SnapshotAssertion) -> None:
    lines = []
    for runtime, photon, preview in itertools.product(RUNTIMES, YES_NO_UNKNOWN, YES_NO_UNKNOWN):
        for liquid in (True, False):
            compute = Compute(runtime, photon, preview)
            found = resolve_by_row(liquid, compute)
            operations = ", ".join(sorted(found.operations))
            asked = f"liquid {liquid}, {runtime}, photon {photon}, preview {preview}"
            lines += [f"{asked}: {operations}: {found.reason}"]
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)


def test_what_statements_count_as(snapshot: SnapshotAssertion) -> None:
    lines = []
    for sql in (*(sql for sql, _ in STATEMENTS), *NOT_UNDERSTOOD, *MORE_STATEMENTS):
        lines += [repr(sql), *_told(classify(sql)), ""]
    assert "\n".join(lines) == snapshot(extension_class=Text)


def _told(found: Classification) -> Iterator[str]:
    yield f"  {found.operation} {found.understood} {found.blind_append}"
    yield from (f"  reason: {text}" for text in found.reasons)
    yield from (f"  warning: {text}" for text in found.warnings)
    yield from (f"  files: {text}" for text in found.files)
    if found.condition is not None:
        yield f"  condition: {found.condition.target} {sorted(found.condition.literals)}"
    for columns in ((), ("p",), ("id", "P", "a`b")):
        yield from (f"  {columns}: {text}" for text in missing_predicates(found, columns))
    for runtime, photon in itertools.product(RUNTIMES, YES_NO_UNKNOWN):
        for text in merge_requirements(found, Compute(runtime, photon)):
            yield f"  {runtime}, photon {photon}: {text}"
        if photon:
            for text in why_predicate_needed(found, runtime):
                yield f"  {runtime}: {text}"


NOT_NULL = {"type": "struct", "fields": [column("f", nullable=False)]}
VECTORS = {"delta.enableDeletionVectors": "true"}
STATES: dict[str, tuple[set[str], dict[str, str], str | None]] = {
    "vectors": ({"deletionVectors"}, VECTORS, None),
    "vectors-off": ({"deletionVectors"}, {"delta.enableDeletionVectors": "false"}, None),
    "liquid": ({"deletionVectors", "clustering"}, VECTORS, schema_string(column("id"))),
    "identity": (
        {"deletionVectors", "identityColumns"},
        VECTORS,
        schema_string(column("n", delta__identity__start=1)),
    ),
    "identity-unseen": ({"deletionVectors", "identityColumns"}, VECTORS, None),
    "vectors-absent": ({"appendOnly", "invariants"}, {"delta.appendOnly": "TRUE"}, None),
    "constrained": (
        {"checkConstraints", "generatedColumns", "typeWidening", "timestampNtz", "columnMapping"},
        {"delta.constraints.b": "x", "delta.constraints.a": "y", "delta.columnMapping.mode": "id"},
        schema_string(
            *(column(name, "timestamp_ntz") for name in ("a", "b", "c", "d")),
            column("g", "long", nullable=False, delta__generationExpression="1"),
            column("w", {"type": "array", "elementType": "variant"}, delta__typeChanges=[]),
            column("m", delta__columnMapping__id=1, CURRENT_DEFAULT="3"),
            column("i", {"type": "struct", "fields": [column("n", "interval day")]}),
            column("u", {"type": "udt", "sqlType": "string"}),
            column("o", {"type": {"type": "map", "keyType": "long", "valueType": "variant"}}),
            column("t", "timestamp_nanos"),
            column("v", delta__invariants="{}"),
            column("k", {"type": "map", "keyType": NOT_NULL, "valueType": NOT_NULL}),
            column(
                "e",
                {
                    "type": "array",
                    "elementType": {
                        "type": "struct",
                        "fields": [
                            column("f", nullable=False),
                            column("h", delta__identity__start=1),
                        ],
                    },
                },
            ),
            column("l", "string collate UTF8_LCASE", __COLLATIONS={}),
        ),
    ),
    "everything": ({f.name for f in feature_catalog.all_features() if f.min_writer == 7}, {}, None),
    "unknown": ({"nosuch"}, {}, None),
}


@pytest.mark.parametrize("name", STATES)
def test_layers_of_features(name: str, snapshot: SnapshotAssertion) -> None:
    features, configuration, schema = STATES[name]
    metadata = Metadata(None, schema_string=schema, configuration=configuration)
    lines = [f"{trait}: {columns}" for trait, columns in (metadata.traits or {}).items()]
    domain = {"delta.clustering": '{"clusteringColumns": [["id"]]}'}
    protocol = Protocol.carrying(features)
    for domains, traces in itertools.product((None, {}, domain), ({}, dict.fromkeys(Trace, True))):
        states = feature_states(protocol, metadata, domains, traces)
        lines += ["", f"domains {domains}, traces {bool(traces)}"]
        for each in states:
            lines += [
                f"{each.name} {each.kind}: listed {each.listed}, implied {each.implied}, enabled "
                f"{each.enabled}, present {each.present}, required by {each.required_by}: "
                f"{each.evidence}"
            ]
        for partitions, clustering in (((), ()), (("p",), ()), ((), ("id",)), ((), None)):
            lines += [f"  {row_level_concurrency(states, partitions, clustering)}"]
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)


LEVELS = [None, "Serializable", "writeserializable", "SnapshotIsolation", "snapshot", " "]


@pytest.mark.parametrize("declared", LEVELS)
def test_isolation_levels(declared: str | None, snapshot: SnapshotAssertion) -> None:
    found = evaluate_isolation(declared)
    lines = [f"{found.declared} {found.valid}"]
    lines += [f"{engine}: {level}" for engine, level in found.effective.items()]
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)
