"""`deltaproto conflicts`: the matrix for engines and tables, its formats and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from deltaproto.conflicts import ExceptionName, MatrixEngine, Operation
from deltaproto.conflicts.matrix import PREVIEW_SETTING
from deltaproto.conflicts.operation import LISTED_OPERATIONS
from deltaproto.render.schemas import load_schema
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, column, metadata, protocol, schema_string

Cli = Callable[..., Ran]


@pytest.fixture
def answer(cli: Cli) -> Callable[..., dict[str, Any]]:
    def run(*words: str) -> dict[str, Any]:
        ran = cli("conflicts", *words, "--format", "json")
        assert ran.code == 0
        (document,) = documents(ran, "conflicts")
        return document

    return run


def vectors(log: Log, **more: Any) -> Log:
    features = ["deletionVectors"]
    on = {"delta.enableDeletionVectors": "true", **more.pop("configuration", {})}
    return log.commit(0, protocol(3, 7, features, features), metadata(on, **more))


class TestWithoutTable:
    @pytest.mark.parametrize(
        ("words", "level"),
        [
            ((), "WriteSerializable"),
            (("--engine", "delta-spark"), "Serializable"),
            (("--isolation", "serializable"), "Serializable"),
            (("--engine", "delta-spark", "--isolation", "WriteSerializable"), "WriteSerializable"),
        ],
    )
    def test_the_whole_matrix(
        self, answer: Callable[..., dict[str, Any]], words: tuple[str, ...], level: str
    ) -> None:
        document = answer(*words)
        assert document["isolation"] == level
        assert document["row_level_concurrency"] == "off"
        assert document["table"] is None
        assert len(document["cells"]) == len(LISTED_OPERATIONS) ** 2
        assert document["complete"] is True

    def test_one_cell(self, answer: Callable[..., dict[str, Any]]) -> None:
        document = answer(
            "--engine=delta-spark", "--operation", "update", "--against", "streaming-append"
        )
        (cell,) = document["cells"]
        assert (cell["operation"], cell["against"]) == ("UPDATE", "STREAMING APPEND")
        assert cell["exceptions"] == ["ConcurrentAppendException"]

    def test_one_operation(self, answer: Callable[..., dict[str, Any]]) -> None:
        assert {c["against"] for c in answer("--against", "MERGE")["cells"]} == {"MERGE"}
        row = answer("--operation", "MERGE")["cells"]
        assert [c["against"] for c in row] == list(LISTED_OPERATIONS)

    def test_with_row_level_concurrency(self, answer: Callable[..., dict[str, Any]]) -> None:
        words = ("--operation", "OPTIMIZE", "--against", "UPDATE", "--row-level-concurrency")
        for asked, conflict in (("on", "no"), ("off", "maybe")):
            document = answer(*words, asked)
            assert document["row_level_concurrency"] == asked
            assert document["cells"][0]["conflict"] == conflict

    @pytest.mark.parametrize("name", ExceptionName)
    def test_item_68_an_exception(
        self, answer: Callable[..., dict[str, Any]], cli: Cli, name: ExceptionName
    ) -> None:
        for engine in MatrixEngine:
            document = answer("--exception", name.lower(), "--engine", engine)
            assert document["exception"]["name"] == name
            assert all(name in cell["exceptions"] for cell in document["cells"])
        text = cli("conflicts", "--exception", name)
        assert text.code == 0
        assert document["exception"]["error_class"] in text.out
        assert "cause 1" in text.out

    def test_json_lines_are_one_document(self, cli: Cli) -> None:
        ran = cli("conflicts", "--format", "jsonl")
        assert ran.out.count("\n") == 1
        assert documents(ran, "conflicts")

    @pytest.mark.parametrize("engine", MatrixEngine)
    @pytest.mark.parametrize(
        "more", [(), ("--operation", "INSERT"), ("--exception", "metadatachanged")]
    )
    def test_text_fits_into_80_columns(
        self, cli: Cli, engine: MatrixEngine, more: tuple[str, ...]
    ) -> None:
        out = cli("conflicts", "--engine", engine, *more).out
        assert max(map(len, out.splitlines())) <= 80
        assert "INS UPD DEL MRG OPT OPZ REO MET PRO STR" in " ".join(out.split())
        for word in ("may lose", "delta-rs"):
            assert word in out

    def test_a_long_statement_is_cut_in_text_only(
        self, cli: Cli, answer: Callable[..., dict[str, Any]]
    ) -> None:
        sql = f"DELETE FROM t WHERE id IN ({', '.join(['1'] * 5_000)})"
        assert len(cli("conflicts", "--sql", sql).out) < 13_000
        assert answer("--sql", sql)["statement"]["sql"] == sql

    def test_text_explains_one_cell(self, cli: Cli) -> None:
        out = cli("conflicts", "--operation", "UPDATE", "--against", "METADATA CHANGE").out
        assert "UPDATE against METADATA CHANGE: yes" in out
        for label in ("exceptions", "when", "avoid", "source"):
            assert f"\n  {label} " in out

    def test_markdown(self, cli: Cli) -> None:
        out = cli("conflicts", "--format", "markdown", "--operation", "INSERT").out
        assert "| INSERT | no | no |" in out
        assert "## INSERT against PROTOCOL CHANGE: yes" in out


class TestTable:
    @pytest.mark.parametrize(
        ("runtime", "level", "words"),
        [
            ("13.3", "off", "does not show whether the table is clustered"),
            ("14.1", "off", "if it is: "),
            ("14.3", "on", "has it for UPDATE, DELETE and MERGE"),
        ],
    )
    def test_both_answers_are_named_where_clustering_is_not_shown(
        self, log: Log, cli: Cli, runtime: str, level: str, words: str
    ) -> None:
        names = ["clustering", "deletionVectors", "domainMetadata"]
        enabled = metadata({"delta.enableDeletionVectors": "true"})
        domain = {"domain": "delta.clustering", "configuration": "{", "removed": False}
        log.commit(
            0, protocol(3, 7, ["deletionVectors"], names), enabled, {"domainMetadata": domain}
        )
        answer = cli("conflicts", log.table, "--runtime", runtime, "--format", "json").json
        assert answer["row_level_concurrency"] == level
        assert words in answer["reason"]["row_level_concurrency"]

    def test_row_level_concurrency_where_the_reader_does_not_show_clustering(
        self, log: Log, cli: Cli
    ) -> None:
        names = ["clustering", "deletionVectors", "domainMetadata"]
        enabled = metadata({"delta.enableDeletionVectors": "true"})
        log.commit(0, protocol(3, 7, ["deletionVectors"], names), enabled)
        (table,) = cli("inspect", log.table, "--reader", "delta-rs", "--format", "json").json[
            "tables"
        ]
        row_level = table["isolation"]["row_level_concurrency"]
        assert table["clustering_columns"] is None
        assert row_level["databricks"] == "yes"
        assert "13.3 LTS if the table is liquid-clustered" in row_level["reason"]

    def test_item_7_row_level_with_its_reason(
        self, answer: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        document = answer(vectors(log).table)
        assert document["table"] == log.table
        assert document["row_level_concurrency"] == "on"
        assert "14.2" in document["reason"]["row_level_concurrency"]
        assert document["deletion_vectors"] is True
        assert document["identity_columns"] is False
        assert document["partition_columns"] == []

    @pytest.mark.parametrize(
        ("words", "operations"),
        [
            ("--runtime 13.3", []),
            ("--runtime 14.1 --photon on", []),
            (
                f"--runtime 14.1 --spark-conf {PREVIEW_SETTING}=true",
                ["DELETE"],
            ),
            ("--runtime 14.2.x-photon-scala2.12", ["UPDATE", "DELETE", "MERGE"]),
            ("--runtime 14.2 --photon off", ["UPDATE", "DELETE"]),
            ("--runtime 14.3 --photon off", ["UPDATE", "DELETE", "MERGE"]),
        ],
    )
    def test_items_7_25_and_29_the_runtime_decides(
        self,
        answer: Callable[..., dict[str, Any]],
        cli: Cli,
        log: Log,
        words: str,
        operations: list[str],
    ) -> None:
        document = answer(vectors(log).table, *words.split())
        assert document["row_level_operations"] == operations
        assert document["row_level_concurrency"] == ("on" if operations else "off")
        runtime = document["compute"]["runtime"]
        assert runtime == words.split()[1][:4]
        assert runtime in document["reason"]["row_level_concurrency"] or "14.1" in str(document)
        assert ("on for DELETE" in cli("conflicts", log.table, *words.split()).out) is (
            0 < len(operations) < 3
        )

    @pytest.mark.parametrize(("more", "level"), [("", "off"), ("AND t.a = 1", "on")])
    def test_item_25_a_merge_on_14_2_with_photon(
        self, answer: Callable[..., dict[str, Any]], log: Log, more: str, level: str
    ) -> None:
        sql = f"MERGE INTO t USING s ON t.id = s.id {more} WHEN MATCHED THEN DELETE"
        words = (vectors(log).table, "--sql", sql, "--photon", "on")
        assert answer(*words, "--runtime", "14.2")["row_level_concurrency"] == level
        later = answer(*words, "--runtime", "14.3")
        assert later["row_level_concurrency"] == "on"
        assert later["statement"]["warnings"] == []

    @pytest.mark.parametrize(
        ("words", "cause"),
        [
            (("--runtime", "latest"), "latest is not a Databricks Runtime"),
            (("--runtime", "14.3", "--engine", "delta-spark"), "is a Databricks Runtime"),
            (("--photon", "perhaps"), "perhaps"),
            (("--photon", "on", "--engine", "delta-spark"), "--photon is for Databricks Runtime"),
            (("--sql", "changes.sql"), "--sql takes a statement, not a file"),
        ],
    )
    def test_a_runtime_that_is_none(self, cli: Cli, words: tuple[str, ...], cause: str) -> None:
        ran = cli("conflicts", *words)
        assert ran.code == 2
        assert cause in ran.err

    def test_items_41_and_59_a_partitioned_table(
        self, answer: Callable[..., dict[str, Any]], cli: Cli, log: Log
    ) -> None:
        document = answer(vectors(log, partition_columns=["day", "site"]).table)
        assert document["row_level_concurrency"] == "off"
        assert "partitioned" in document["reason"]["row_level_concurrency"]
        assert document["partition_columns"] == ["day", "site"]
        assert any("target.`day`" in line and "`site`" in line for line in document["advice"])
        assert "day, site" in cli("conflicts", log.table).out
        optimize = [c for c in document["cells"] if c["operation"] == "OPTIMIZE"]
        conflicting = {c["against"] for c in optimize if c["conflict"] != "no"}
        assert conflicting == {"OPTIMIZE ZORDER", "METADATA CHANGE", "PROTOCOL CHANGE"}

    @pytest.mark.parametrize(
        ("declared", "engine", "level", "reason"),
        [
            (None, "databricks", "WriteSerializable", "declares no level"),
            (None, "delta-spark", "Serializable", "declares no level"),
            ("Serializable", "databricks", "Serializable", "declares Serializable"),
            ("WriteSerializable", "delta-spark", "WriteSerializable", "declares Write"),
            ("nonsense", "databricks", "WriteSerializable", "which is not allowed"),
            ("nonsense", "delta-spark", "Serializable", "every commit fails"),
            ("SnapshotIsolation", "delta-spark", "Serializable", "never counts added files"),
        ],
    )
    def test_items_6_and_15_the_level_with_its_reason(
        self,
        answer: Callable[..., dict[str, Any]],
        log: Log,
        declared: str | None,
        engine: str,
        level: str,
        reason: str,
    ) -> None:
        settings = {} if declared is None else {"delta.isolationLevel": declared}
        log.commit(0, protocol(1, 2), metadata(settings))
        document = answer(log.table, "--engine", engine)
        assert document["isolation"] == level
        assert reason in document["reason"]["isolation"]

    def test_items_8_and_60_identity_columns(
        self, answer: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        key = column("id", delta__identity__start=1, delta__identity__step=1)
        log.commit(0, protocol(1, 6), metadata(schema=schema_string(key)))
        document = answer(log.table)
        assert document["identity_columns"] is True
        assert {cell["conflict"] for cell in document["cells"]} == {"yes"}

    def test_what_is_asked_for_wins_and_the_table_is_still_heard(
        self, answer: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        vectors(log, partition_columns=["day"])
        document = answer(log.table, "--row-level-concurrency", "on", "--isolation", "Serializable")
        assert document["row_level_concurrency"] == "on"
        assert "according to the table it is no" in document["reason"]["row_level_concurrency"]
        assert document["isolation"] == "Serializable"

    def test_a_table_that_cannot_be_read(self, cli: Cli, log: Log) -> None:
        ran = cli("conflicts", log.table + "-missing", "--format", "json")
        assert ran.code == 3
        assert ran.json["error"]["code"] == "not-found"

    def test_a_catalogs_commits_may_be_missing(self, cli: Cli, log: Log) -> None:
        features = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]
        readers = ["catalogManaged", "vacuumProtocolCheck"]
        log.commit(0, protocol(3, 7, readers, features), metadata())
        ran = cli("conflicts", log.table, "--format", "json")
        assert ran.code == 3
        assert ran.json["complete"] is False


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "hint"),
        [
            (("--operation", "UPDAT"), "did you mean UPDATE"),
            (("--against", "zzzz"), "one of INSERT"),
            (("--exception", "ConcurrentApend"), "did you mean ConcurrentAppendException"),
            (("--exception", "NullPointer"), "ConcurrentAppendException"),
            (("--isolation", "Serialisable"), "did you mean Serializable"),
            (("--isolation", "SnapshotIsolation"), "Serializable"),
            (("--engine", "delta-spark", "--row-level-concurrency", "on"), "databricks"),
        ],
    )
    def test_item_15_unknown_names_end_in_2_with_the_nearest(
        self, cli: Cli, words: tuple[str, ...], hint: str
    ) -> None:
        ran = cli("conflicts", *words)
        assert ran.code == 2
        assert ran.out == ""
        assert hint in ran.err
        assert cli("conflicts", *words, "--format", "json").json["error"]["code"] == "usage"

    def test_an_engine_without_known_rules(self, cli: Cli) -> None:
        assert cli("conflicts", "--engine", "trino").code == 2


class TestItem8:
    """delta-rs, RESTORE and TRUNCATE."""

    def test_the_newest_release_is_the_default(self, answer: Callable[..., dict[str, Any]]) -> None:
        newest = answer("--engine", "delta-rs")
        assert newest["engine_version"] == "1.6.6"
        assert newest["cells"] == answer("--engine", "delta-rs@1.6.6")["cells"]
        assert newest["isolation"] == "Serializable"
        assert answer()["engine_version"] is None

    def test_releases_differ(self, answer: Callable[..., dict[str, Any]]) -> None:
        words = ("--operation", "INSERT", "--against", "DELETE")
        (old,) = answer("--engine", "delta-rs@0.25.5", *words)["cells"]
        (new,) = answer("--engine", "delta-rs@1.6", *words)["cells"]
        assert (old["conflict"], old["raised_as"]) == ("no", [])
        assert (new["conflict"], new["raised_as"]) == ("maybe", ["ConcurrentDeleteRead"])

    def test_two_compactions_are_not_called_harmless(self, cli: Cli) -> None:
        out = cli("conflicts", "--engine", "delta-rs").out
        assert "wrong: both are committed, and the table's rows are wrong" in out
        words = ("--operation", "OPTIMIZE", "--against", "OPTIMIZE")
        one = cli("conflicts", "--engine", "delta-rs", *words).out
        assert "OPTIMIZE against OPTIMIZE: wrong" in one
        assert "any table on delta-rs@1.6.6" in one

    @pytest.mark.parametrize(
        ("engine", "hint"),
        [
            ("delta-rs@0.1", "delta-rs@0.25.5"),
            ("delta-rs@x", "delta-rs@0.25.5"),
            ("delta-rs@", "delta-rs@0.25.5"),
            ("delta-r", "did you mean delta-rs"),
            ("databricks@15.4", "--runtime"),
            ("delta-spark@4.0", "first release"),
        ],
    )
    def test_engines_that_are_not_known(self, cli: Cli, engine: str, hint: str) -> None:
        ran = cli("conflicts", "--engine", engine)
        assert (ran.code, ran.out) == (2, "")
        assert hint in ran.err

    def test_an_exception_by_the_message_of_deltalake(
        self, answer: Callable[..., dict[str, Any]], cli: Cli
    ) -> None:
        said = "Transaction failed: Commit failed: a concurrent transaction deleted data this"
        document = answer("--engine", "delta-rs", "--exception", f"{said} operation read.\nHelp:")
        assert document["exception"]["delta_rs"] == "ConcurrentDeleteRead"
        ran = cli("conflicts", "--exception", "deltalake.exceptions.CommitFailedError")
        assert (ran.code, "pass its message" in ran.err) == (2, True)

    @pytest.mark.parametrize("words", [("--row-level-concurrency", "on"), ("--runtime", "15.4")])
    def test_delta_rs_has_neither_rows_nor_runtimes(self, cli: Cli, words: tuple[str, ...]) -> None:
        assert cli("conflicts", "--engine", "delta-rs", *words).code == 2

    def test_markdown(self, cli: Cli) -> None:
        words = ("--engine", "delta-rs", "--operation", "MERGE", "--format", "markdown")
        assert "ConcurrentAppend" in cli("conflicts", *words).out

    @pytest.mark.parametrize("engine", MatrixEngine)
    def test_restore(self, answer: Callable[..., dict[str, Any]], engine: MatrixEngine) -> None:
        sql = "RESTORE TABLE t TO VERSION AS OF 1"
        document = answer("--engine", engine, "--sql", sql)
        assert document["statement"]["operation"] == "RESTORE"
        assert [cell["against"] for cell in document["cells"]] == list(LISTED_OPERATIONS)
        assert all(cell["conflict"] != "no" for cell in document["cells"])
        assert answer("--engine", engine, "--operation", "restore")["cells"] == document["cells"]

    @pytest.mark.parametrize("engine", MatrixEngine)
    def test_truncate(self, answer: Callable[..., dict[str, Any]], engine: MatrixEngine) -> None:
        document = answer("--engine", engine, "--sql", "TRUNCATE TABLE t")
        assert document["statement"]["operation"] == "DELETE"
        assert document["cells"] == answer("--engine", engine, "--operation", "DELETE")["cells"]


class TestSchema:
    def test_it_is_valid_and_its_closed_lists_are_those_of_the_code(self) -> None:
        document = load_schema("conflicts")
        Draft202012Validator.check_schema(document)
        assert document["$id"] == "conflicts.schema.json"
        assert document["$defs"]["operation"]["enum"] == list(Operation)
        assert document["$defs"]["exception_name"]["enum"] == list(ExceptionName)
        assert document["properties"]["engine"]["enum"] == list(MatrixEngine)

    def test_every_member_is_required(self, cli: Cli) -> None:
        ran = cli("conflicts", "--exception", "ConcurrentWrite", "--format", "json")
        assert {*ran.json} == {*load_schema("conflicts")["required"], "exception"}
