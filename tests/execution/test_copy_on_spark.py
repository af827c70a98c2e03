"""Copies into a new table, executed by real Spark: what is kept, and what writers do meanwhile."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.verify import StatementResult
from deltaproto.tables.log.reader import LogReader
from tests.conftest import Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Cli = Callable[..., Ran]
Hook = Callable[[str], None]
ACCEPTED = "time-travel,streams,location,grants,sharing,tags"
_numbers = itertools.count()


class Catalog:
    """A schema of the session's catalog, and a folder for external tables."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.schema = f"copies{next(_numbers)}"
        spark.sql(f"create schema {self.schema}")

    @property
    def name(self) -> str:
        return f"{self.schema}.orders"

    def create(self, columns: str, clauses: str = "", *, external: bool = True) -> None:
        where = f"location '{self.folder / 'orders'}'" if external else ""
        self.spark.sql(f"create table {self.name} ({columns}) using delta {where} {clauses}")

    def ids(self, name: str | None = None) -> list[int]:
        return sorted(row.id for row in self.spark.table(name or self.name).collect())

    def location(self, name: str) -> str:
        (row,) = self.spark.sql(f"describe detail {name}").collect()
        return str(row.location)

    def names(self) -> set[str]:
        return {row.tableName for row in self.spark.sql(f"show tables in {self.schema}").collect()}


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[Catalog]:
    made = Catalog(spark, tmp_path)
    yield made
    folders = [made.location(f"{made.schema}.`{name}`") for name in made.names()]
    spark.sql(f"drop schema {made.schema} cascade")
    for folder in folders:
        shutil.rmtree(folder.removeprefix("file:"), ignore_errors=True)


def planned(cli: Cli, catalog: Catalog, tmp_path: Path, *goal: str) -> str:
    path = str(tmp_path / "plan.json")
    ran = cli("plan-downgrade", catalog.name, *goal, "--rewrite", "--format", "json", "-o", path)
    assert ran.code == 0, ran.out + ran.err
    return path


def losses(path: str) -> str:
    steps = json.loads(Path(path).read_text())["steps"]
    return ",".join(loss.partition(":")[0] for step in steps for loss in step["losses"])


def predicted(path: str) -> dict[str, Any]:
    protocol = json.loads(Path(path).read_text())["protocol_after"]
    return {key: value for key, value in protocol.items() if value is not None}


def applied(cli: Cli, path: str, *words: str) -> Ran:
    return cli("apply", path, "--yes", "--accept-loss", losses(path), *words)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Hook, Hook], list[str]]:
    """Call hooks before and after each statement; return the list of those that are sent."""

    def install(before: Hook, after: Hook = lambda sql: None) -> list[str]:
        real, sent = StatementRunner.run, list[str]()

        def run(self: StatementRunner, sql: str, *rest: Any) -> StatementResult:
            sent.append(sql)
            before(sql)
            answer = real(self, sql, *rest)
            after(sql)
            return answer

        monkeypatch.setattr(StatementRunner, "run", run)
        return sent

    return install


CLUSTERED = ("--drop", "clustering")


def fill(catalog: Catalog, *, external: bool = True) -> None:
    catalog.create("id bigint, p string", "cluster by (id)", external=external)
    catalog.spark.sql(f"insert into {catalog.name} values (1, 'a'), (2, null)")


@pytest.mark.parametrize("external", [True, False])
def test_a_table_is_replaced_and_put_back(
    cli: Cli, catalog: Catalog, tmp_path: Path, external: bool
) -> None:
    fill(catalog, external=external)
    before, place = catalog.ids(), catalog.location(catalog.name)
    path = planned(cli, catalog, tmp_path, *CLUSTERED)
    refused = cli("apply", path, "--yes")
    assert refused.code == 2
    assert "time-travel" in refused.out
    policies = {}
    for setting in ("require", "forbid"):
        file = policies[setting] = str(tmp_path / f"{setting}.yaml")
        tables = f"{{'*': {{{setting}_features: [clustering]}}}}"
        Path(file).write_text(f"policy_version: 1\ntables: {tables}\n", encoding="utf-8")
    violating = applied(cli, path, "--policy", policies["require"])
    assert violating.code == 1
    assert "the policy requires clustering" in violating.out
    assert catalog.names() == {"orders"}
    ran = applied(cli, path, "--policy", policies["forbid"])
    assert ran.code == 0, ran.out + ran.err
    assert cli("check", catalog.name, "--policy", policies["forbid"]).code == 0
    assert catalog.names() == {"orders", "orders__before"}
    assert catalog.ids() == catalog.ids(f"{catalog.name}__before") == before
    assert catalog.location(catalog.name) == f"{place}__new"
    assert (catalog.location(f"{catalog.name}__before") == place) is external
    protocol = LogReader().read(catalog.location(catalog.name)).protocol
    assert protocol.to_action() == predicted(path)
    assert applied(cli, path).code == 0
    back = cli("apply", path, "--yes", "--undo")
    assert back.code == 0, back.out + back.err
    assert catalog.names() == {"orders", "orders__new"}
    assert catalog.location(catalog.name) == place
    catalog.spark.sql(f"insert into {catalog.name} values (3, 'c')")
    assert catalog.ids() == [*before, 3]


NESTED = "struct<a: int not null comment 'it''s', `o d`: array<struct<z: string>>>"
TABLES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    # columns, clauses, rows, goal
    "clustered": ("id bigint, p string", "cluster by (id)", "(1, 'a'), (2, null)", CLUSTERED),
    "partitioned": (
        "p string, id bigint not null, d date",
        "partitioned by (p, d) tblproperties ('delta.enableChangeDataFeed'='true')",
        "('a b/ü=', 1, date'2026-01-01'), (null, 2, null), ('', 3, date'1999-12-31')",
        ("--drop", "changeDataFeed"),
    ),
    "constrained": (
        "id bigint not null comment 'the ''id''', `odd ``name` string comment 'x;y'",
        "comment 'orders; it''s \\\\ ${x}' partitioned by (`odd ``name`) tblproperties "
        "('delta.columnMapping.mode'='name', 'k'='v', 'delta.enableChangeDataFeed'='true')",
        "(1, 'a'), (2, 'b;c')",
        ("--drop", "changeDataFeed"),
    ),
    "nested": (
        f"id bigint, n {NESTED}, m map<string, struct<x: double, y: binary>>",
        "cluster by (id) tblproperties ('delta.columnMapping.mode'='name')",
        "(1, named_struct('a', 1, 'o d', array(named_struct('z', 'q'), null)), "
        "map('k', named_struct('x', double('NaN'), 'y', cast('b' as binary)))), "
        "(2, named_struct('a', 2, 'o d', null), map()), "
        "(3, named_struct('a', 3, 'o d', array()), null)",
        CLUSTERED,
    ),
    "generated": (
        "id bigint, g bigint generated always as (id + 1), s string",
        "cluster by (id)",
        "(1, 2, 'a'), (7, 8, 'b')",
        CLUSTERED,
    ),
    "defaults": (
        "id bigint, s string default 'x''y', c char(3), v varchar(5)",
        "cluster by (id) tblproperties ('delta.feature.allowColumnDefaults'='supported')",
        "(1, 'a', 'b', 'c'), (2, null, null, null)",
        CLUSTERED,
    ),
    "identity": (
        "id bigint, i bigint generated by default as identity, s string",
        "",
        "(1, 5, 'a'), (2, 6, 'b')",
        ("--drop", "identityColumns"),
    ),
    "generated-dropped": (
        "id bigint, g bigint generated always as (id + 1)",
        "",
        "(1, 2), (4, 5)",
        ("--drop", "generatedColumns"),
    ),
    "timestamp": (
        "id bigint, t timestamp_ntz, u timestamp, f float, e decimal(20, 3)",
        "partitioned by (t)",
        "(1, timestamp_ntz'2026-01-01 10:00:00', timestamp'2026-01-01 10:00:00', -0.0, 1.5), "
        "(2, null, null, null, null)",
        ("--drop", "timestampNtz"),
    ),
    "variant": (
        "id bigint, v variant, b boolean",
        "",
        "(1, parse_json('{\"a\": [1, null]}'), true), (2, null, null)",
        ("--drop", "variantType"),
    ),
    "vectors": (
        "id bigint, s string",
        "cluster by (id) tblproperties ('delta.enableDeletionVectors'='true', "
        "'delta.enableRowTracking'='true')",
        "(1, 'a'), (2, 'b'), (3, 'c')",
        CLUSTERED,
    ),
    "empty": ("id bigint, s string", "cluster by (id)", "", CLUSTERED),
}
CHANGED = {"timestamp": {"t": "cast(t as timestamp)"}, "variant": {"v": "cast(v as string)"}}


@pytest.mark.parametrize("name", TABLES)
def test_the_copy_has_the_same_rows_and_definition(
    name: str, cli: Cli, catalog: Catalog, tmp_path: Path
) -> None:
    columns, clauses, rows, goal = TABLES[name]
    catalog.create(columns, clauses)
    spark = catalog.spark
    if rows:
        spark.sql(f"insert into {catalog.name} values {rows}")
    if name == "constrained":
        spark.sql(f"alter table {catalog.name} add constraint `c d` check (id > 0 and 'a)' <> 'b')")
    if name == "vectors":
        spark.sql(f"delete from {catalog.name} where id = 2")
    path = planned(cli, catalog, tmp_path, *goal)
    ran = applied(cli, path)
    assert ran.code == 0, ran.out + ran.err
    old, new = (spark.table(each) for each in (f"{catalog.name}__before", catalog.name))
    expected = old.selectExpr(
        *(CHANGED.get(name, {}).get(each, f"`{each.replace('`', '``')}`") for each in old.columns)
    )
    read = [sorted(repr(tuple(row)) for row in each.collect()) for each in (expected, new)]
    assert read[0] == read[1]
    states = [
        LogReader().read(catalog.location(n)) for n in (f"{catalog.name}__before", catalog.name)
    ]
    was, now = states
    assert now.protocol.to_action() == predicted(path)
    assert not now.protocol.supported & {*goal[1].split(",")}
    assert now.metadata.partition_columns == was.metadata.partition_columns
    assert now.metadata.description == was.metadata.description
    kept = {
        key: value
        for key, value in was.metadata.configuration.items()
        if key.startswith("delta.constraints.") or key == "k"
    }
    assert kept.items() <= now.metadata.configuration.items()
    assert old.columns == new.columns


def holding(started: str, released: str) -> Callable[[int], int]:
    """A function that returns when a file appears, and says with another one that it was called."""

    def held(value: int) -> int:
        import os
        import time

        open(started, "w").close()
        while not os.path.exists(released):
            time.sleep(0.05)
        return value

    return held


class TestWritersMeanwhile:
    @pytest.mark.parametrize("external", [True, False])
    def test_an_append_before_and_after_each_statement_is_kept_once(
        self,
        cli: Cli,
        catalog: Catalog,
        tmp_path: Path,
        between: Callable[..., list[str]],
        external: bool,
    ) -> None:
        fill(catalog, external=external)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        written, seen = [1, 2], dict[str, int]()

        def append(sql: str) -> None:
            shape = sql.partition("(")[0]
            seen[shape] = seen.get(shape, 0) + 1
            # Catching up is a statement, too: once before and once after each kind is enough.
            if seen[shape] > 2:
                return
            old = f"{catalog.name}__before"
            name = old if "orders__before" in catalog.names() else catalog.name
            written.append(100 + len(written))
            catalog.spark.sql(f"insert into {name} values ({written[-1]}, 'w')")

        between(append, append)
        ran = applied(cli, path)
        assert ran.code == 0, ran.out + ran.err
        assert len(seen) == 6
        assert catalog.ids() == sorted(written)

    @pytest.mark.parametrize("external", [True, False])
    def test_a_transaction_that_is_open_during_the_swap_fails(
        self,
        cli: Cli,
        catalog: Catalog,
        tmp_path: Path,
        between: Callable[..., list[str]],
        external: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        fill(catalog, external=external)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        started, released = tmp_path / "started", tmp_path / "released"
        monkeypatch.setattr(catalog.spark.sparkContext, "pythonExec", sys.executable)
        catalog.spark.udf.register("held", holding(str(started), str(released)), "bigint")
        errors = list[str]()

        def write() -> None:
            try:
                catalog.spark.sql(f"insert into {catalog.name} select held(7), 'late'")
            except Exception as error:
                errors.append(str(error))

        writer = threading.Thread(target=write)

        def before(sql: str) -> None:
            if sql.endswith("__before`") and not writer.is_alive():
                writer.start()
                while not started.exists():
                    writer.join(0.1)

        def after(sql: str) -> None:
            if "SET TBLPROPERTIES" in sql:
                released.touch()
                writer.join()

        between(before, after)
        try:
            ran = applied(cli, path)
        finally:
            released.touch()
        assert ran.code == 0, ran.out + ran.err
        assert len(errors) == 1
        assert catalog.ids() == [1, 2]

    @pytest.mark.parametrize("statement", ["INSERT", "RENAME TO"])
    @pytest.mark.parametrize("change", ["delete from {} where id = 1", "optimize {}"])
    def test_a_change_is_copied_anew_or_taken_back(
        self,
        cli: Cli,
        catalog: Catalog,
        tmp_path: Path,
        between: Callable[..., list[str]],
        statement: str,
        change: str,
    ) -> None:
        fill(catalog)
        catalog.spark.sql(f"insert into {catalog.name} values (9, 'z')")
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        pending = [change.format(catalog.name)]

        def disturb(sql: str) -> None:
            if statement in sql and pending:
                catalog.spark.sql(pending.pop())

        between(disturb)
        ran = applied(cli, path)
        assert not pending
        if statement != "INSERT" and change.startswith("delete"):
            assert ran.code == 5
            assert catalog.names() == {"orders", "orders__new"}
            assert catalog.ids() == [2, 9]
            ran = applied(cli, path)
        assert ran.code == 0, ran.out + ran.err
        assert catalog.ids() == ([2, 9] if change.startswith("delete") else [1, 2, 9])

    def test_a_changed_schema_is_refused(
        self, cli: Cli, catalog: Catalog, tmp_path: Path, between: Callable[..., list[str]]
    ) -> None:
        fill(catalog)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        pending = [f"alter table {catalog.name} add column c int"]

        def disturb(sql: str) -> None:
            if "INSERT" in sql and pending:
                catalog.spark.sql(pending.pop())

        between(disturb)
        ran = applied(cli, path)
        assert ran.code == 5
        assert "properties changed" in ran.out
        assert catalog.spark.table(catalog.name).columns == ["id", "p", "c"]
        assert "orders__before" not in catalog.names()

    def test_rows_of_the_new_table_are_not_undone(
        self, cli: Cli, catalog: Catalog, tmp_path: Path
    ) -> None:
        fill(catalog)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        assert applied(cli, path).code == 0
        catalog.spark.sql(f"insert into {catalog.name} values (3, 'c')")
        refused = cli("apply", path, "--yes", "--undo")
        assert refused.code == 4
        assert catalog.ids() == [1, 2, 3]


class _Killed(BaseException):
    pass


def test_a_run_killed_before_or_after_any_statement_is_resumed(
    cli: Cli, catalog: Catalog, tmp_path: Path, between: Callable[..., list[str]]
) -> None:
    fill(catalog)
    catalog.spark.sql(f"alter table {catalog.name} add constraint c check (id > 0)")
    path = planned(cli, catalog, tmp_path, *CLUSTERED)
    killed, extra = set[tuple[str, str]](), list[int]()

    def kill(phase: str, sql: str) -> None:
        event = (phase, sql.partition("(")[0])
        if event not in killed:
            killed.add(event)
            raise _Killed

    between(lambda sql: kill("before", sql), lambda sql: kill("after", sql))
    while True:
        # Nothing but the tables shows what is done.
        shutil.rmtree(tmp_path / ".deltaproto", ignore_errors=True)
        try:
            ran = applied(cli, path)
        except _Killed:
            old = f"{catalog.name}__before"
            name = old if "orders__before" in catalog.names() else catalog.name
            extra.append(10 + len(extra))
            catalog.spark.sql(f"insert into {name} values ({extra[-1]}, 'k')")
            continue
        assert ran.code == 0, ran.out + ran.err
        break
    assert len(killed) == 14
    assert catalog.ids() == sorted([1, 2, *extra])


class TestRefusals:
    def test_a_plan_by_path_is_made_manually(
        self, cli: Cli, catalog: Catalog, tmp_path: Path
    ) -> None:
        fill(catalog)
        place, path = catalog.location(catalog.name), str(tmp_path / "plan.json")
        words = (*CLUSTERED, "--rewrite", "--format", "json", "-o", path)
        assert cli("plan-downgrade", place.removeprefix("file:"), *words).code == 0
        ran = cli("apply", path, "--yes", "--accept-loss", ACCEPTED)
        assert ran.code == 2
        assert "manually" in ran.out

    def test_each_loss_is_named(self, cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
        fill(catalog)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        names = losses(path).split(",")
        for name in names:
            others = ",".join(other for other in names if other != name)
            ran = cli("apply", path, "--yes", "--accept-loss", others)
            assert ran.code == 2
            assert f"--accept-loss {name} " in ran.out
        assert catalog.names() == {"orders"}
        assert cli("apply", path, "--yes", "--accept-loss", "nosuch").code == 2

    def test_names_that_are_taken(self, cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
        fill(catalog)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        for suffix in ("__new", "__before"):
            other = f"{catalog.name}{suffix}"
            catalog.spark.sql(f"create table {other} (id int) using delta")
            ran = applied(cli, path)
            assert ran.code == 3
            assert "the names of this copy refer to other tables" in ran.out
            catalog.spark.sql(f"drop table {other}")
        assert catalog.names() == {"orders"}

    def test_an_edited_plan(self, cli: Cli, catalog: Catalog, tmp_path: Path) -> None:
        from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum

        fill(catalog)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)
        document = json.loads(Path(path).read_text())
        (fill_step,) = (s for s in document["steps"] if (s["sql"] or "").startswith("INSERT"))
        fill_step["sql"] += " WHERE id = 1"
        document[CHECKSUM_FIELD] = compute_checksum(document)
        Path(path).write_text(json.dumps(document))
        ran = applied(cli, path)
        assert ran.code == 2
        assert "contradicts itself" in ran.out
        assert catalog.names() == {"orders"}

    def test_a_copy_with_other_rows_is_not_swapped(
        self, cli: Cli, catalog: Catalog, tmp_path: Path, between: Callable[..., list[str]]
    ) -> None:
        fill(catalog)
        path = planned(cli, catalog, tmp_path, *CLUSTERED)

        def damage(sql: str) -> None:
            if sql.startswith("INSERT"):
                catalog.spark.sql(f"update {catalog.name}__new set p = 'b' where id = 1")

        between(lambda sql: None, damage)
        ran = applied(cli, path)
        assert ran.code == 5
        assert "not an exact copy" in ran.out
        assert "the values differ in rows as a whole, p" in ran.out
        assert catalog.names() == {"orders", "orders__new"}
        again = applied(cli, path)
        assert again.code == 4
        assert "is not of this plan" in again.out
