"""What pending statements count as, what rules rows out, and what to add to them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.conflicts.classify import classify
from deltaproto.conflicts.operation import Operation
from deltaproto.conflicts.query import (
    Classification,
    MatrixQuery,
    PendingStatement,
    missing_predicates,
)
from deltaproto.conflicts.table_matrix import build_conflict_report
from deltaproto.errors import UsageError
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.conflicts import write_conflicts
from deltaproto.render.interface import Format
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.examples import examples
from tests.support.failures import each_row
from tests.support.logs import Log, metadata, protocol

Cli = Callable[..., Ran]

INSERT, UPDATE, DELETE, MERGE = (
    Operation.INSERT,
    Operation.UPDATE,
    Operation.DELETE,
    Operation.MERGE,
)
METADATA, PROTOCOL = Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE
ON = "MERGE INTO t USING s ON t.id = s.id"
SET = "ALTER TABLE t SET TBLPROPERTIES"

STATEMENTS = [
    ("INSERT INTO t VALUES (1), (2)", INSERT),
    ("insert into t select * from s", INSERT),
    ("INSERT INTO TABLE c.d.t (a, b) SELECT 1, 2", INSERT),
    ("INSERT INTO t BY NAME SELECT a FROM s JOIN r ON s.x = r.x", INSERT),
    ("INSERT INTO d.t SELECT * FROM e.t", INSERT),
    ("WITH t AS (SELECT 1) INSERT INTO t SELECT * FROM t", INSERT),
    ("-- a note\nINSERT INTO t SELECT 'OPTIMIZE; t'", INSERT),
    ("INSERT INTO t SELECT * FROM t", MERGE),
    ("INSERT INTO t SELECT * FROM s WHERE id NOT IN (SELECT id FROM T)", MERGE),
    ("INSERT INTO t SELECT * FROM db.t", MERGE),
    ("WITH t AS (SELECT * FROM t) INSERT INTO t SELECT * FROM t", MERGE),
    ("INSERT INTO delta.`/a` SELECT * FROM delta.`/a`", MERGE),
    ("INSERT OVERWRITE t SELECT * FROM s", DELETE),
    ("INSERT OVERWRITE TABLE t PARTITION (day = 'x') SELECT a FROM s", DELETE),
    ("INSERT INTO t REPLACE WHERE day = 'x' SELECT * FROM s", DELETE),
    ("UPDATE t SET a = 1", UPDATE),
    ("UPDATE t AS x SET a = 1 WHERE x.b = 2;", UPDATE),
    ("DELETE FROM t", DELETE),
    ("DELETE FROM delta.`/a/b` WHERE a = 1", DELETE),
    (f"{ON} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", MERGE),
    (ON.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION") + " WHEN MATCHED THEN DELETE", MERGE),
    ("OPTIMIZE t", Operation.OPTIMIZE),
    ("OPTIMIZE d.t WHERE day = 'ZORDER BY'", Operation.OPTIMIZE),
    ("OPTIMIZE t WHERE day = 1 ZORDER BY (a, b)", Operation.OPTIMIZE_ZORDER),
    ("optimize delta.`/a` zorder by a", Operation.OPTIMIZE_ZORDER),
    (f"{SET} ('delta.isolationLevel' = 'Serializable')", METADATA),
    (f"{SET} ('delta.enableDeletionVectors' = true)", METADATA),
    (f"{SET} (delta.columnMapping.mode = 'none')", METADATA),
    (f"{SET} ('a' = 'delta.feature.x')", METADATA),
    ("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a')", METADATA),
    ("ALTER TABLE c.d.`t x` ADD COLUMNS (c STRING)", METADATA),
    ("ALTER TABLE t ADD COLUMN c INT", METADATA),
    ("ALTER TABLE t RENAME COLUMN a TO b", METADATA),
    ("ALTER TABLE t ALTER COLUMN a TYPE BIGINT", METADATA),
    ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)", METADATA),
    ("ALTER TABLE IF EXISTS t DROP CONSTRAINT c", METADATA),
    ("ALTER TABLE t CLUSTER BY (a)", METADATA),
    (f"{SET} ('delta.feature.deletionVectors' = 'supported')", PROTOCOL),
    (f"{SET} ('a' = 'b', delta.minWriterVersion = 7)", PROTOCOL),
    (f"{SET} ('delta.minReaderVersion' = '3')", PROTOCOL),
    ("ALTER TABLE t DROP FEATURE deletionVectors TRUNCATE HISTORY", PROTOCOL),
    ("RESTORE TABLE t TO VERSION AS OF 1", Operation.RESTORE),
    ("restore c.d.`t x` to timestamp as of '2026-01-01'", Operation.RESTORE),
    ("RESTORE delta.`/a/b` TO VERSION AS OF 0", Operation.RESTORE),
    ("TRUNCATE TABLE t", DELETE),
    ("truncate table delta.`/a/b`", DELETE),
    ("REORG TABLE t APPLY (PURGE)", Operation.REORG),
    ("REORG TABLE t WHERE a = 1 APPLY (PURGE)", Operation.REORG),
    ("REORG TABLE t APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION=2))", PROTOCOL),
    ("CREATE TABLE t (a INT) USING delta", PROTOCOL),
    ("CREATE TABLE IF NOT EXISTS t AS SELECT 1", PROTOCOL),
    ("CREATE OR REPLACE TABLE t AS SELECT 1", PROTOCOL),
    ("REPLACE TABLE t USING delta AS SELECT 1", PROTOCOL),
]
NOT_UNDERSTOOD = [
    "",
    ";",
    "nonsense (",
    "UPDATE",
    "OPTIMIZE t; DELETE FROM t",
    "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
    "OPTIMIZE t for me",
    "VACUUM t",
    "RESTORE TABLE t",
    "RESTORE TABLE t TO",
    "RESTORE TABLE t FROM VERSION AS OF 1",
    "TRUNCATE TABLE t PARTITION (p = 1)",
    "TRUNCATE TABLE t, u",
    "TRUNCATE",
    "COPY INTO t FROM 'x' FILEFORMAT = PARQUET",
    "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE t RENAME TO u",
    f"{SET} ()",
    "REORG TABLE t",
    "FROM s INSERT INTO t SELECT *",
    "(" * 5000,
    f"DELETE FROM t WHERE {'(' * 3000}a = 1{')' * 3000}",
]


@each_row(("sql", "operation"), STATEMENTS)
def test_items_23_to_26_what_it_counts_as(sql: str, operation: Operation) -> None:
    found = classify(sql)
    assert found.understood
    assert found.operation is operation
    assert found.reasons
    by_rows = {INSERT, UPDATE, DELETE, MERGE}
    expected = operation is INSERT if operation in by_rows else None
    assert found.blind_append is expected


@each_row("sql", NOT_UNDERSTOOD)
def test_nothing_is_claimed_of_what_is_not_understood(sql: str) -> None:
    found = classify(sql)
    assert not found.understood
    assert (found.operation, found.blind_append) == (None, None)
    assert found.reasons


def test_a_query_is_in_nobodys_way() -> None:
    found = classify("SELECT * FROM t")
    assert found.understood
    assert found.operation is None


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("a = 1 AND b IN (1, 2)", ()),
        ("a.b = 1", ("struct",)),
        ("t.a = 1", ()),
        ("t.a.b = 1", ("struct",)),
        ("a.b.c.d.e = 1", ("struct",)),
        ("struct(a).a = 1", ("struct",)),
        ("cardinality(a) = 1", ("array",)),
        ("array_max(a) = 1", ("array",)),
        ("map_filter(a, (k, v) -> true) IS NULL", ("map",)),
        ("lower(a) LIKE 'x%'", ()),
        ("a[0] = 1", ("array",)),
        ("m['k'] = 1", ("map",)),
        ("element_at(m, 'k') = 1", ("map",)),
        ("a = array(1)", ("array",)),
        ("s = named_struct('a', 1)", ("struct",)),
        ("rand() > 0.5", ("rand",)),
        ("a < current_timestamp()", ("current_timestamp",)),
        ("a = uuid()", ("uuid",)),
        ("a IN (SELECT a FROM s)", ("a subquery",)),
        ("EXISTS (SELECT 1 FROM s WHERE s.a = t.a)", ("correlated",)),
        ("a[0] = 1 OR rand() > a", ("array", "rand")),
    ],
)
def test_item_24_conditions_that_rule_rows_out(condition: str, words: tuple[str, ...]) -> None:
    for sql in (
        f"UPDATE t SET x = 1 WHERE {condition}",
        f"DELETE FROM t WHERE {condition}",
        f"{ON} WHEN MATCHED AND {condition} THEN DELETE",
    ):
        found = classify(sql).files
        assert len(found) == len(words)
        for word in words:
            assert any(word in line for line in found)


@pytest.mark.parametrize(
    ("sql", "ruled_out"),
    [
        ("DELETE FROM t a WHERE a.x = 1", False),
        ("DELETE FROM t a WHERE t.x = 1", True),
        ("UPDATE c.d.t SET x = 1 WHERE d.t.x = 1", False),
        ("UPDATE c.d.t SET x = 1 WHERE c.d.t.s.x = 1", True),
        ("DELETE FROM delta.`/a` WHERE delta.`/a`.x = 1", False),
        ("MERGE INTO t USING (SELECT 1 id) n ON t.id = n.id WHEN MATCHED THEN DELETE", False),
        ("MERGE INTO t USING d.s ON t.id = s.id AND t.s.x = 1 WHEN MATCHED THEN DELETE", True),
        ("MERGE INTO t USING s ON t.id = s.id AND n.x = 1 WHEN MATCHED THEN DELETE", True),
        ("INSERT INTO t REPLACE WHERE s.x = 1 SELECT * FROM r", True),
        ("INSERT INTO t REPLACE WHERE x = 1 SELECT * FROM r", False),
    ],
)
def test_fields_of_structs_are_told_from_columns_of_tables(sql: str, ruled_out: bool) -> None:
    assert bool(classify(sql).files) is ruled_out


@pytest.mark.parametrize(
    ("sql", "operation"),
    [
        (f"{SET} ('delta.minWriterVersion' = '4')", METADATA),
        (f"{SET} ('delta.minReaderVersion' = 1, delta.minWriterVersion = 5)", METADATA),
        (f"{SET} ('DELTA.MINWRITERVERSION' = '6')", PROTOCOL),
        (f"{SET} ('delta.minReaderVersion' = '3', 'delta.minWriterVersion' = '2')", PROTOCOL),
        (
            f"{SET} ('delta.minWriterVersion' = '4', 'delta.feature.clustering' = 'supported')",
            PROTOCOL,
        ),
    ],
)
def test_versions_that_are_not_higher_change_no_protocol(sql: str, operation: Operation) -> None:
    assert "raises the protocol" not in " ".join(classify(sql).reasons)
    assert classify(sql).operation is PROTOCOL
    assert classify(sql).for_protocol(Protocol(2, 5)).operation is operation


@pytest.mark.parametrize(
    ("sql", "added"),
    [
        (
            f"{ON} WHEN MATCHED THEN DELETE",
            "its ON condition: AND t.site = '<value>' AND t.`a b` = '<value>'",
        ),
        (
            "MERGE INTO t AS x USING s ON x.site = s.site AND x.`A B` = 1 WHEN MATCHED THEN DELETE",
            "its ON condition: AND x.site = '<value>'",
        ),
        (f"{ON} AND t.site = 'x' AND (`a b` = 1 OR `a b` = 2) WHEN MATCHED THEN DELETE", None),
        (
            f"{ON} AND s.site = 'x' AND `a b` IN (1) WHEN MATCHED THEN DELETE",
            "its ON condition: AND t.site = '<value>'",
        ),
        (
            f"{ON} AND (t.site = 'x' OR t.id = 1) AND t.`a b` > 3 WHEN MATCHED THEN DELETE",
            "its ON condition: AND t.site = '<value>'",
        ),
        ("DELETE FROM t WHERE site = 'x'", "its condition: AND `a b` = '<value>'"),
        ("UPDATE t x SET y = 1 WHERE `a b` = 1", "its condition: AND x.site = '<value>'"),
        ("INSERT INTO t VALUES (1)", None),
        ("OPTIMIZE t", None),
    ],
)
def test_item_41_the_literal_predicates_that_it_lacks(sql: str, added: str | None) -> None:
    found = missing_predicates(classify(sql), ("site", "a b"))
    assert found == (() if added is None else (f"Add to {added}",))
    assert missing_predicates(classify(sql), ()) == ()


def test_enabling_a_feature_changes_the_protocol_too() -> None:
    (_, note) = classify(f"{SET} ('delta.enableDeletionVectors' = true)").reasons
    assert "protocol" in note
    assert len(classify(f"{SET} ('delta.enableDeletionVectors' = 'false')").reasons) == 1


def test_item_54_schema_evolution_is_a_metadata_change() -> None:
    sql = "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE"
    assert any("METADATA CHANGE" in line for line in classify(sql).warnings)


class TestCommand:
    @pytest.fixture
    def asked(self, cli: Cli) -> Callable[..., dict[str, Any]]:
        def run(*words: str) -> dict[str, Any]:
            ran = cli("conflicts", *words, "--format", "json")
            assert ran.code == 0
            (document,) = documents(ran, "conflicts")
            return document

        return run

    def test_only_the_cells_of_its_operation(self, asked: Callable[..., dict[str, Any]]) -> None:
        document = asked("--sql", "INSERT INTO t VALUES (1)")
        assert {cell["operation"] for cell in document["cells"]} == {"INSERT"}
        assert document["statement"]["operation"] == "INSERT"
        assert document["statement"]["blind_append"] is True
        (cell,) = asked("--sql", "OPTIMIZE t", "--against", "UPDATE")["cells"]
        assert (cell["operation"], cell["against"]) == ("OPTIMIZE", "UPDATE")

    @pytest.mark.parametrize("format_", Format)
    def test_not_understood_is_said_and_nothing_claimed(self, cli: Cli, format_: Format) -> None:
        ran = cli("conflicts", "--sql", "nonsense (", "--format", format_)
        assert ran.code == 3
        assert "not understood" in ran.out
        assert "against" not in ran.out
        if format_ is Format.JSON:
            assert ran.json["cells"] == []
            assert ran.json["statement"]["understood"] is False
            assert ran.json["complete"] is False

    def test_a_partitioned_table(self, asked: Callable[..., dict[str, Any]], log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata(partition_columns=["site"]))
        document = asked(log.table, "--sql", f"{ON} WHEN MATCHED THEN DELETE")
        (line,) = document["statement"]["advice"]
        assert line.endswith("AND t.site = '<value>'")
        assert document["statement"]["warnings"] == []

    @pytest.mark.parametrize(
        ("condition", "level", "optimize"), [("a = 1", "on", "no"), ("a[0] = 1", "off", "no")]
    )
    def test_rows_ruled_out_are_judged_by_files(
        self,
        asked: Callable[..., dict[str, Any]],
        log: Log,
        condition: str,
        level: str,
        optimize: str,
    ) -> None:
        names = ["deletionVectors"]
        enabled = metadata({"delta.enableDeletionVectors": "true"})
        log.commit(0, protocol(3, 7, names, names), enabled)
        document = asked(log.table, "--sql", f"DELETE FROM t WHERE {condition}")
        assert document["row_level_concurrency"] == level
        assert bool(document["statement"]["warnings"]) is (level == "off")
        by_against = {cell["against"]: cell["conflict"] for cell in document["cells"]}
        assert by_against["OPTIMIZE"] == optimize

    @pytest.mark.parametrize(("column", "level"), [("id", "on"), ("s", "off"), ("M", "off")])
    def test_the_types_of_the_tables_columns_count(
        self, asked: Callable[..., dict[str, Any]], log: Log, column: str, level: str
    ) -> None:
        struct = {"type": "struct", "fields": []}
        mapped = {
            "type": "map",
            "keyType": "string",
            "valueType": "long",
            "valueContainsNull": True,
        }
        fields = [
            {"name": name, "type": type_, "nullable": True, "metadata": {}}
            for name, type_ in (("id", "long"), ("s", struct), ("m", mapped))
        ]
        enabled = metadata(
            {"delta.enableDeletionVectors": "true"},
            schema=json.dumps({"type": "struct", "fields": fields}),
        )
        log.commit(0, protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), enabled)
        document = asked(log.table, "--sql", f"DELETE FROM t WHERE {column} IS NULL")
        assert document["row_level_concurrency"] == level

    @pytest.mark.parametrize(
        ("more", "words"), [("", "explicit predicate"), ("AND t.a = 1", "Photon;")]
    )
    def test_item_25_merge_on_14_2(
        self, asked: Callable[..., dict[str, Any]], more: str, words: str
    ) -> None:
        sql = f"{ON} {more} WHEN MATCHED THEN DELETE"
        (warning,) = asked("--sql", sql)["statement"]["warnings"]
        assert words in warning
        assert asked("--sql", sql, "--engine", "delta-spark")["statement"]["warnings"] == []

    def test_it_does_not_go_with_an_operation(self, cli: Cli) -> None:
        ran = cli("conflicts", "--sql", "OPTIMIZE t", "--operation", "OPTIMIZE")
        assert ran.code == 2
        assert "--operation" in ran.err

    def test_without_sqlglot(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sqlglot", None)
        ran = cli("conflicts", "--sql", "DELETE FROM t")
        assert ran.code == 2
        assert "pip install sqlglot" in ran.err
        with pytest.raises(UsageError):
            classify("DELETE FROM t")
        assert cli("conflicts", "--sql", "OPTIMIZE t").code == 0


WORDS = sorted({word for sql, _ in STATEMENTS for word in sql.split()} | {"(", ")", "'", "`", "/*"})


@settings(max_examples=examples(300), deadline=None)
@given(st.text() | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_text_gets_a_clean_answer(sql: str) -> None:
    found = classify(sql)
    assert isinstance(found, Classification)
    assert found.understood or found.operation is None
    answer = build_conflict_report(MatrixQuery(statement=PendingStatement(sql, found)), None)
    assert bool(answer.cells) is (found.operation is not None)
    for format_ in Format:
        write_conflicts(answer, format_, io.StringIO(), color=False)
