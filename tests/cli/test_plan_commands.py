"""plan-upgrade and plan-downgrade on the command line: goals, formats, exit codes, mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.contract import documents, plan
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
VECTORS = "deletionVectors"


@pytest.fixture
def plain(tmp_path: Path) -> str:
    log = Log(tmp_path / "plain")
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    return log.table


class TestGoals:
    def test_a_feature_is_dropped(self, cli: Cli, vectors: str) -> None:
        found = plan(cli("plan-downgrade", vectors, "--drop", VECTORS, "--format", "json"))
        (step,) = found["steps"]
        assert step["sql"] == f"ALTER TABLE delta.`{vectors}` DROP FEATURE `{VECTORS}`"
        assert step["rewrites"] == {"which": "vectors", "files": 1, "bytes": 32}
        assert found["features_added"] == ["checkpointProtection"]
        assert found["features_removed"] == [VECTORS]
        assert found["protocol_after"]["readerFeatures"] is None
        assert {each["name"] for each in found["alternatives"]} >= {"truncating"}

    def test_names_are_taken_in_any_case_and_several_follow(self, cli: Cli, vectors: str) -> None:
        words = ("--drop", "DeletionVectors", "typewidening", vectors, "--format", "json")
        found = plan(cli("plan-downgrade", *words))
        assert found["goal"]["features"] == [VECTORS, "typeWidening"]
        assert found["table"] == vectors

    def test_history_kept_and_truncated(self, cli: Cli, vectors: str) -> None:
        for history, end in (("keep", 7), ("truncate", 2)):
            words = ("--drop", VECTORS, "--history", history, "--format", "json")
            found = plan(cli("plan-downgrade", vectors, *words))
            assert found["protocol_after"]["minWriterVersion"] == end
            assert bool(found["cost"]["history"]) is (history == "truncate")

    def test_waits_are_counted_from_now(self, cli: Cli, vectors: str) -> None:
        found = plan(cli("plan-downgrade", vectors, "--protocol", "1,2", "--format", "json"))
        first, wait, second = found["steps"]
        assert first["not_before"] is None
        assert wait["wait"]["hours"] == 24
        assert wait["sql"] is None
        assert second["not_before"] == wait["not_before"] > found["generated_at"]
        assert first["expects"] == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
        assert found["point_of_no_return"] == second["id"]

    def test_a_client_and_a_policy_are_one_goal(
        self, cli: Cli, vectors: str, tmp_path: Path
    ) -> None:
        policy = tmp_path / "policy.yaml"
        policy.write_text("policy_version: 1\nclients:\n- {client: trino@400, access: [read]}\n")
        words = ("--for-client", "deltalake/engine@0.25.0", "--policy", str(policy))
        found = plan(cli("plan-downgrade", vectors, *words, "--format", "json"))
        named = {each["client"] for each in found["goal"]["clients"]}
        assert named == {"deltalake/engine@0.25.0", "trino@400"}
        assert {each["after"] for each in found["clients"]} == {"ok"}

    def test_an_upgrade_pulls_in_what_the_feature_needs(self, cli: Cli, plain: str) -> None:
        ran = cli("plan-upgrade", plain, "--enable", "rowTracking", "--format", "json")
        found = plan(ran, "plan-upgrade")
        assert found["features_added"] == ["domainMetadata", "rowTracking"]
        assert found["steps"][0]["operations"][0] == "UPGRADE PROTOCOL"

    def test_several_properties_and_features_may_follow(self, cli: Cli, plain: str) -> None:
        words = ("--set", "delta.appendOnly=true", "a=b", "--enable", VECTORS, "columnMapping=name")
        found = plan(cli("plan-upgrade", *words, plain, "--format", "json"), "plan-upgrade")
        assert found["goal"]["set"] == {"delta.appendOnly": "true", "a": "b"}
        assert found["goal"]["enable"] == [VECTORS, "columnMapping"] or found["goal"]["enable"] == [
            "columnMapping",
            VECTORS,
        ]

    @pytest.mark.parametrize(
        "words",
        [
            ("--protocol", "3,7"),
            ("--protocol", "1,1"),
            ("--set", "delta.appendOnly=false", "--protocol", "1,2"),
        ],
        ids=" ".join,
    )
    def test_versions_alone_change_nothing(
        self, cli: Cli, plain: str, words: tuple[str, ...]
    ) -> None:
        found = plan(cli("plan-upgrade", plain, *words, "--format", "json"), "plan-upgrade")
        assert found["protocol_after"] == found["protocol_before"]
        if words[0] == "--protocol":
            assert found["steps"] == []
            assert found["warnings"]

    @pytest.mark.parametrize(("pair", "reached"), [("3,7", False), ("1,1", True), ("1,2", True)])
    def test_versions_that_no_statement_reaches_are_not_there_already(
        self, cli: Cli, plain: str, pair: str, reached: bool
    ) -> None:
        shown = cli("plan-upgrade", plain, "--protocol", pair).out
        assert ("the table already has the requested state" in shown) == reached
        assert ("No statement reaches these versions" in shown) != reached

    @pytest.mark.parametrize(
        ("words", "feature"),
        [
            (("--enable", VECTORS, "--set", "delta.enableDeletionVectors=false"), VECTORS),
            (("--enable", "icebergCompatV1", "icebergCompatV2"), "icebergCompatV1"),
            (
                (
                    *("--enable", "appendOnly", "--sql"),
                    "ALTER TABLE t UNSET TBLPROPERTIES ('delta.appendOnly')",
                ),
                "appendOnly",
            ),
        ],
    )
    def test_a_request_that_undoes_itself_is_blocked(
        self, cli: Cli, plain: str, words: tuple[str, ...], feature: str
    ) -> None:
        ran = cli("plan-upgrade", plain, *words, "--format", "json")
        found = plan(ran, "plan-upgrade")
        assert (ran.code, found["steps"]) == (1, [])
        (blocked,) = found["blocked"]
        assert blocked["feature"] == feature
        assert blocked["reason"] == "another part of the request disables it again"

    @pytest.mark.parametrize(
        ("words", "cause"),
        [
            (("--enable", "columnMapping=name", "columnMapping=id"), "with the modes name and id"),
            (("--enable", "columnMapping=x"), "write columnMapping=name or columnMapping=id"),
            (("--enable", f"{VECTORS}=x"), "leave out =x: only columnMapping has modes"),
            (("--set", "delta.appendOnly=true", "delta.appendonly=false"), "are one property"),
            (("--set", "delta.appendOnly =true"), "a space around the name delta.appendOnly"),
            (("--sql", "missing.sql"), "cannot read missing.sql: it does not exist"),
        ],
    )
    def test_goals_that_are_mistakes(
        self, cli: Cli, plain: str, words: tuple[str, ...], cause: str
    ) -> None:
        refused = cli("plan-upgrade", plain, *words)
        assert (refused.code, refused.out) == (2, "")
        assert cause in refused.err

    def test_a_client_that_must_keep_working_blocks(self, cli: Cli, plain: str) -> None:
        words = ("--enable", VECTORS, "--for-client", "deltalake/pyarrow@1.6.6")
        ran = cli("plan-upgrade", plain, *words, "--format", "json")
        assert ran.code == 1
        found = plan(ran, "plan-upgrade")
        assert found["steps"] == []
        assert found["blocked"][0]["feature"] == VECTORS


class TestSql:
    def test_statements_are_followed_one_after_the_other(
        self, cli: Cli, plain: str, tmp_path: Path
    ) -> None:
        script = tmp_path / "migration.sql"
        script.write_text(
            "-- two steps\nALTER TABLE orders SET TBLPROPERTIES "
            "('delta.feature.timestampNtz' = 'supported');\n"
            "ALTER TABLE orders ADD COLUMN at TIMESTAMP_NTZ;\nSELECT 1"
        )
        ran = cli("plan-upgrade", plain, "--sql", str(script), "--format", "json")
        found = plan(ran, "plan-upgrade")
        assert [step["action"] for step in found["steps"]] == ["add-feature", "sql"]
        assert found["features_added"] == ["timestampNtz"]
        assert plain in found["steps"][1]["sql"]
        assert any("names the table orders" in warning for warning in found["warnings"])

    def test_what_spark_would_refuse_blocks(self, cli: Cli, plain: str) -> None:
        sql = "ALTER TABLE t ADD COLUMN at TIMESTAMP_NTZ"
        ran = cli("plan-upgrade", plain, "--sql", sql, "--format", "json")
        assert ran.code == 1
        (blocked,) = plan(ran, "plan-upgrade")["blocked"]
        assert blocked["error"] == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"

    @pytest.mark.parametrize("sql", ["frobnicate t", "SELECT 1; ALTER TABLE t FROB"])
    def test_nothing_is_claimed_of_what_is_not_understood(
        self, cli: Cli, plain: str, sql: str
    ) -> None:
        ran = cli("plan-upgrade", plain, "--sql", sql)
        assert ran.code == 1
        assert "its effect is unknown" in " ".join(ran.out.split())

    def test_a_query_is_an_empty_plan(self, cli: Cli, plain: str) -> None:
        ran = cli("plan-upgrade", plain, "--sql", "SELECT * FROM t", "--detailed-exitcode")
        assert ran.code == 0
        assert "Nothing to do" in ran.out

    def test_no_statement_is_a_mistake(self, cli: Cli, plain: str) -> None:
        assert cli("plan-upgrade", plain, "--sql", " ; -- nothing").code == 2


class TestRewrite:
    def test_a_copy_is_an_alternative_and_the_plan_when_asked(self, cli: Cli, log: Log) -> None:
        names = ["appendOnly", "changeDataFeed", "invariants"]
        stored = metadata({"delta.enableChangeDataFeed": "true"})
        log.commit(0, protocol(1, 7, None, names), stored, add(size=5))
        words = ("plan-downgrade", log.table, "--drop", "changeDataFeed", "--format", "json")
        blocked = cli(*words)
        assert blocked.code == 1
        (copy,) = [a for a in plan(blocked)["alternatives"] if a["name"] == "rewrite"]
        asked = plan(cli(*words, "--rewrite"))
        assert asked["steps"] == copy["steps"]
        assert not asked["blocked"]
        assert asked["protocol_after"]["minWriterVersion"] == 2
        assert "changeDataFeed" not in (asked["steps"][0]["sql"] or "").replace(log.table, "")


class TestExitCodes:
    def test_detailed(self, cli: Cli, vectors: str, plain: str) -> None:
        assert cli("plan-downgrade", vectors, "--drop", VECTORS).code == 0
        assert cli("plan-downgrade", vectors, "--drop", VECTORS, "--detailed-exitcode").code == 10
        assert cli("plan-downgrade", plain, "--lowest", "--detailed-exitcode").code == 0

    def test_blocked(self, cli: Cli, log: Log) -> None:
        names = ["appendOnly", "changeDataFeed", "invariants"]
        log.commit(0, protocol(1, 7, None, names), metadata())
        ran = cli("plan-downgrade", log.table, "--drop", "changeDataFeed", "--detailed-exitcode")
        assert ran.code == 1
        assert "no engine can drop it" in ran.out
        assert "copy the table into a new one" in ran.out

    def test_no_copy_is_proposed_that_would_have_the_features_again(
        self, cli: Cli, plain: str
    ) -> None:
        for goal in (("--lowest",), ("--drop", "appendOnly", "--rewrite")):
            ran = cli("plan-downgrade", plain, *goal)
            assert "no engine can drop it" in ran.out
            assert "keep it; every new table has it too" in ran.out
            assert "copy the table" not in ran.out

    @pytest.mark.parametrize(
        ("words", "cause"),
        [
            (("--lowest", "--drop", VECTORS), "different goals"),
            (("--lowest", "--protocol", "1,2", "--for-client", "trino@476"), "different goals"),
            ((), "no goal"),
            (("--protocol", "4,7"), "are not a valid pair"),
            (("--protocol", "x"), "is not a pair of versions"),
            (("--drop", "deletionVector"), "unknown feature deletionVector"),
            (("--for-client", "nosuch@1"), "nosuch"),
            (("--lowest", "--engine", "delta-spark@2.4"), "older than DROP FEATURE"),
            (("--lowest", "--engine", "duckdb@1"), "unknown engine"),
            (("--include-enabled", "--drop", VECTORS), "--include-enabled"),
        ],
    )
    def test_mistakes_are_named_with_a_hint(
        self, cli: Cli, vectors: str, words: tuple[str, ...], cause: str
    ) -> None:
        ran = cli("plan-downgrade", vectors, *words)
        assert ran.code == 2
        assert cause in ran.err
        assert "hint: " in ran.err
        assert ran.out == ""

    def test_an_upgrade_must_ask_for_something(self, cli: Cli, plain: str) -> None:
        ran = cli("plan-upgrade", plain)
        assert (ran.code, ran.out) == (2, "")

    def test_one_table_that_cannot_be_read(self, cli: Cli, tmp_path: Path) -> None:
        ran = cli("plan-downgrade", str(tmp_path / "none"), "--lowest", "--format", "json")
        assert ran.code == 3
        assert json.loads(ran.out)["error"]["code"] == "not-found"

    def test_a_protocol_that_breaks_the_spec(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(3, 7, [VECTORS], []), metadata())
        ran = cli("plan-downgrade", log.table, "--lowest")
        assert ran.code == 3
        assert "violates the spec" in ran.err


class TestManyTables:
    def test_one_plan_each_and_a_summary(
        self, cli: Cli, vectors: str, plain: str, tmp_path: Path
    ) -> None:
        tables = (vectors, plain, str(tmp_path / "none"))
        ran = cli("plan-downgrade", *tables, "--drop", VECTORS, "--format", "json")
        assert ran.code == 3
        found = plan(ran)
        assert found["complete"] is False
        assert [each["table"] for each in found["plans"]] == list(tables)
        summary = found["summary"]
        assert summary["tables"] == 3
        assert (summary["with_steps"], summary["nothing_to_do"]) == (1, 1)
        assert summary["unreadable"] == 1
        assert "3 tables" in cli("plan-downgrade", *tables, "--drop", VECTORS).out

    def test_a_saved_inspection_is_planned_like_the_tables(
        self, cli: Cli, vectors: str, plain: str, tmp_path: Path
    ) -> None:
        saved = tmp_path / "saved.json"
        saved.write_text(cli("inspect", vectors, plain, "--look-in-files", "--format", "json").out)
        live = plan(cli("plan-downgrade", vectors, plain, "--protocol", "1,2", "--format", "json"))
        then = plan(cli("plan-downgrade", str(saved), "--protocol", "1,2", "--format", "json"))
        for one, other in zip(live["plans"], then["plans"], strict=True):
            assert one["protocol_after"] == other["protocol_after"]
            assert [s["sql"] for s in one["steps"]] == [s["sql"] for s in other["steps"]]
            assert any("saved inspection" in warning for warning in other["warnings"])
            assert other["fingerprint"]["metadata"] is None
            assert one["sql_name"] == other["sql_name"]

    def test_lines(self, cli: Cli, vectors: str, plain: str) -> None:
        ran = cli("plan-downgrade", vectors, plain, "--lowest", "--format", "jsonl")
        assert [each["table"] for each in documents(ran, "plan-downgrade")] == [vectors, plain]


class TestScript:
    def test_a_name_that_spark_would_change_is_told(self, cli: Cli, tmp_path: Path) -> None:
        log = Log(tmp_path / "${env}")
        log.commit(0, protocol(1, 3), metadata())
        ran = cli("plan-downgrade", log.table, "--drop", "checkConstraints", "--script", "sql")
        assert "spark.sql.variable.substitute=false" in ran.out

    def test_only_statements_and_comments(self, cli: Cli, vectors: str) -> None:
        ran = cli("plan-downgrade", vectors, "--protocol", "1,2", "--script", "sql")
        lines = [line for line in ran.out.splitlines() if line and not line.startswith("-- ")]
        drop = f"ALTER TABLE delta.`{vectors}` DROP FEATURE `{VECTORS}` TRUNCATE HISTORY;"
        assert lines == [drop, drop]

    def test_a_line_feed_in_a_name_ends_no_comment(self, cli: Cli, tmp_path: Path) -> None:
        log = Log(tmp_path / "a\nDROP TABLE b")
        log.commit(0, protocol(1, 3), metadata())
        ran = cli("plan-downgrade", log.table, "--drop", "checkConstraints", "--script", "sql")
        assert ran.code == 1
        assert "omitted: the statement contains control characters" in ran.out
        assert all(line.startswith("-- ") for line in ran.out.splitlines() if line)


def test_text_names_features_first(cli: Cli, vectors: str) -> None:
    out = cli("plan-downgrade", vectors, "--protocol", "1,2").out
    assert out.index("- deletionVectors") < out.index("(3,7) -> (1,2)")
    assert "point of no return" in out
    headings = [
        line.strip() for line in out.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    order = [h for h in headings if h in ("Features", "Steps", "Impact", "Warnings")]
    assert order == ["Features", "Steps", "Impact", "Warnings"]


@pytest.mark.parametrize(
    "words",
    [
        ("--enable", "clustering", "--cluster-by", "id"),
        ("--sql", "ALTER TABLE {t} CLUSTER BY (id)"),
        ("--sql", "ALTER TABLE {t} CLUSTER BY NONE"),
    ],
)
def test_clustering_says_that_only_optimize_full_rewrites_files(
    words: tuple[str, ...], cli: Cli, log: Log
) -> None:
    listed = protocol(1, 7, None, ["appendOnly", "invariants", "clustering", "domainMetadata"])
    log.commit(0, commit_info(), listed, metadata())
    words = tuple(word.replace("{t}", f"delta.`{log.table}`") for word in words)
    text = " ".join(cli("plan-upgrade", log.table, *words).out.split())
    file = str(Path(log.table).parent / "plan.json")
    assert cli("plan-upgrade", log.table, *words, "--format", "json", "-o", file).code == 0
    runbook = cli("runbook", file, "--no-activity").out
    (step,) = json.loads(Path(file).read_text())["steps"]
    for shown in (text, runbook, step["warnings"][0]):
        assert "rewrites no existing files" in shown
        assert "nly OPTIMIZE … FULL" in shown
    if "NONE" not in words[-1]:
        assert "only OPTIMIZE FULL rewrites existing files" in step["why"]
