"""Rehearsals on a clone, and the way back."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.verify import StatementResult
from tests.execution.test_apply_on_spark import (
    Cli,
    apply,
    infos,
    newest,
    only,
    plan,
    rows,
    supported,
    table,
    template,
)
from tests.support.logs import Log, commit_info, metadata, protocol

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
__all__ = ["table", "template"]


def files(path: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            seen = (Path(folder) / name).stat()
            found[os.path.join(folder, name)] = seen.st_size, seen.st_mtime_ns
    return found


def rehearse(cli: Cli, *words: str) -> Any:
    return cli("rehearse", *words, "--format", "json")


class TestRehearse:
    @pytest.mark.slow
    def test_a_local_table_by_name_needs_no_scratch(
        self, cli: Cli, table: Path, spark: SparkSession, tmp_path: Path
    ) -> None:
        spark.sql(f"create table default.rehearsed using delta location '{table}'")
        try:
            file, before = str(tmp_path / "named.json"), files(table)
            words = ("--set", "delta.appendOnly=true", "--format", "json", "--output", file)
            assert cli("plan-upgrade", "default.rehearsed", *words).code == 0
            ran = rehearse(cli, file)
            assert (ran.code, only(ran)["status"]) == (0, "done")
            assert files(table) == before
        finally:
            spark.sql("drop table default.rehearsed")

    @pytest.mark.parametrize(
        "feature",
        ["checkConstraints", pytest.param("deletionVectors", marks=pytest.mark.slow)],
    )
    def test_a_plan_goes_as_predicted_and_the_source_is_untouched(
        self, cli: Cli, table: Path, tmp_path: Path, spark: SparkSession, feature: str
    ) -> None:
        spark.sql(
            f"alter table delta.`{table}` set tblproperties ('delta.feature.{feature}'='supported')"
        )
        version = newest(table)
        file = plan(cli, table, "--drop", feature)
        planned = json.loads(Path(file).read_text())
        before, scratch = files(table), tmp_path / "scratch"
        ran = rehearse(cli, file, "--scratch", str(scratch))
        result = only(ran)
        assert (ran.code, result["status"]) == (0, "done")
        assert [step["state"] for step in result["steps"]] == ["done"]
        made = result["steps"][0]["operations"]
        least, most = (planned["steps"][0]["commits"][each] for each in ("min", "max"))
        assert least <= len(made) <= most
        assert f"the source is unchanged: version {version}" in result["message"]
        assert "remove it" not in result["message"]
        assert files(table) == before
        assert list(scratch.iterdir()) == []
        assert sorted(p.name for p in table.parent.iterdir()) == ["orders", "plan.json", "scratch"]

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("goal", "operations"),
        [
            (("--protocol", "2,7"), ["SET TBLPROPERTIES"]),
            (("--set", "delta.enableChangeDataFeed=true"), ["SET TBLPROPERTIES"]),
            (("--drop", "columnMapping"), [*["Empty Commit"] * 3, "DROP FEATURE"]),
        ],
    )
    def test_a_clone_may_store_a_lower_form_of_the_protocol(
        self, cli: Cli, tmp_path: Path, goal: tuple[str, str], operations: list[str]
    ) -> None:
        higher = protocol(3, 7, ["columnMapping"], ["changeDataFeed", "columnMapping"])
        log = Log(tmp_path / "t").commit(0, commit_info("CREATE TABLE"), higher, metadata())
        file, before = plan(cli, log.root, *goal), files(log.root)
        ran = rehearse(cli, file)
        result = only(ran)
        assert (ran.code, result["status"]) == (0, "done"), result["message"]
        assert [step["operations"] for step in result["steps"]] == [operations]
        assert files(log.root) == before

    @pytest.mark.slow
    def test_what_a_clone_cannot_rehearse_is_said(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--drop", "deletionVectors", "--history", "truncate")
        result = only(rehearse(cli, file))
        assert result["status"] == "done"
        assert "s2, s3 cannot be rehearsed" in result["message"]
        assert [step["state"] for step in result["steps"]] == ["done", "waiting", "pending"]

    @pytest.mark.slow
    def test_what_goes_wrong_on_the_clone_is_told_and_removed(
        self, cli: Cli, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        run = StatementRunner.run

        def refuses(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            if "SHALLOW CLONE" in sql:
                return run(self, sql, mark, progress)
            return StatementResult("DELTA_NO", "no")

        monkeypatch.setattr(StatementRunner, "run", refuses)
        before, scratch = files(table), tmp_path / "scratch"
        ran = rehearse(cli, file, "--scratch", str(scratch))
        assert (ran.code, only(ran)["status"]) == (5, "failed")
        assert (files(table), list(scratch.iterdir())) == (before, [])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "statement",
        ["delete from delta.`{t}/` where id = 5", "insert into Delta.`{t}` values (99, 'y')"],
    )
    def test_a_statement_that_names_the_table_otherwise_never_reaches_it(
        self, cli: Cli, table: Path, statement: str
    ) -> None:
        file = plan(cli, table, "--sql", statement.format(t=table))
        before = files(table)
        ran = rehearse(cli, file)
        assert (ran.code, only(ran)["status"]) == (2, "refused")
        assert f"name the table as delta.`{table}`" in only(ran)["message"]
        assert files(table) == before

    @pytest.mark.slow
    def test_a_statement_of_the_users_own_is_rehearsed_on_the_clone(
        self, cli: Cli, table: Path
    ) -> None:
        file = plan(cli, table, "--sql", f"delete from delta.`{table}` where id = 5")
        before = files(table)
        result = only(rehearse(cli, file))
        assert (result["status"], result["steps"][0]["operations"]) == ("done", ["DELETE"])
        assert files(table) == before

    def test_a_stale_plan_is_not_rehearsed(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        spark.sql(f"alter table delta.`{table}` add column more int")
        assert rehearse(cli, file).code == 4

    @pytest.mark.slow
    def test_harm_to_the_source_would_be_seen(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        run = StatementRunner.run

        def harms(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            for name in table.glob("*.parquet"):
                shutil.copy(name, name.with_suffix(".copy"))
                name.unlink()
                break
            return run(self, sql, mark, progress)

        monkeypatch.setattr(StatementRunner, "run", harms)
        ran = rehearse(cli, file)
        assert ran.code == 5
        assert "changed or are missing" in only(ran)["message"]


class TestUndo:
    def undo(self, cli: Cli, file: str) -> Any:
        return apply(cli, file, "--undo")

    def test_what_was_switched_on_is_switched_off_again(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true", "--isolation", "Serializable")
        assert only(apply(cli, file))["status"] == "done"
        ran = self.undo(cli, file)
        assert only(ran)["status"] == "done", ran
        assert "RESTORE removes no features from the protocol" in ran.err
        properties = spark.sql(f"show tblproperties delta.`{table}`").collect()
        assert not {"delta.appendOnly", "delta.isolationLevel"} & {row[0] for row in properties}
        version = newest(table)
        assert only(self.undo(cli, file))["status"] == "done"
        assert newest(table) == version

    @pytest.mark.slow
    def test_a_dropped_feature_comes_back_and_its_rows_stay(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--drop", "deletionVectors")
        assert only(apply(cli, file))["status"] == "done"
        assert "deletionVectors" not in supported(table)
        assert only(self.undo(cli, file))["status"] == "done"
        assert "deletionVectors" in supported(table)
        assert rows(spark, table) == 49

    def test_nothing_done_is_nothing_to_take_back(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        version = newest(table)
        assert only(self.undo(cli, file))["status"] == "nothing-to-do"
        assert newest(table) == version

    @pytest.mark.slow
    def test_a_dry_run_leaves_no_plan_behind(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        assert only(apply(cli, file))["status"] == "done"
        before = sorted(table.parent.rglob("*"))
        ran = cli("apply", file, "--undo", "--dry-run", "--format", "json")
        assert (ran.code, only(ran)["status"]) == (0, "ready")
        assert sorted(table.parent.rglob("*")) == before

    @pytest.mark.slow
    def test_a_way_back_that_was_not_begun_is_made_again(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--drop", "deletionVectors", "--history", "truncate")
        assert only(apply(cli, file))["status"] == "waiting"
        # Nobody is there to confirm it; its plan is written by then.
        assert cli("apply", file, "--undo").code == 2
        spark.sql(f"insert into delta.`{table}` values (1000, 'y')")
        ran = self.undo(cli, file)
        assert only(ran)["status"] == "done", ran
        on = spark.sql(f"show tblproperties delta.`{table}`").collect()
        assert ("delta.enableDeletionVectors", "true") in [tuple(row) for row in on]

    def test_a_table_that_was_changed_since_is_left_alone(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        assert only(apply(cli, file))["status"] == "done"
        spark.sql(f"alter table delta.`{table}` add column more int")
        made = len(infos(table))
        assert self.undo(cli, file).code == 4
        assert len(infos(table)) == made
