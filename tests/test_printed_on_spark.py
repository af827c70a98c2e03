"""The lines of README and the manual that need Spark or a metastore run as printed, on real tables.

`tests/test_printed_commands.py` runs the others. Guides are executed as a whole, because their
last commands use what the first ones wrote: real tables stand for those of `deltaproto demo`, which
have no data files. Other places stand for buckets, volumes, servers and the catalog `main`.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from deltaproto.cli.demo import DEMO_TABLES
from deltaproto.cli.main import main
from tests.conftest import Ran
from tests.support.connect_server import child
from tests.support.engines import needs_delta
from tests.support.hive_metastore import Writer, metastore
from tests.support.spark_settings import SMALL_TABLES
from tests.test_printed_commands import ROOT, SPARK_LINES, Printed, run_line
from tests.test_printed_schedule import LINES as CRONTAB
from tests.test_printed_schedule import POLICY as ROLLOUT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.connect_server import ConnectServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    needs_delta("4.4", "what the printed plans show"),
]
Cli = Callable[..., Ran]
PAGES = tuple(dict.fromkeys(each.page for each in SPARK_LINES))
OK = (0, 1, 10)
"""done, findings, and a plan that waits for a day"""
CONF = " ".join(
    f"--spark-conf {shlex.quote(f'{key}={value}')}"
    for key, value in SMALL_TABLES.items()
    if key != "spark.master"
)
"""what makes a Spark of its own start and end quickly"""
LAKE = {
    "orders": (
        "create table {t} (id bigint, customer string, amount double) using delta",
        "insert into {t} select id, 'c', 1 from range(100)",
        "alter table {t} set tblproperties ('delta.enableDeletionVectors'='true')",
        "delete from {t} where id % 10 = 3",
    ),
    "customers": (
        "create table {t} (id bigint, name string) using delta "
        "tblproperties ('delta.columnMapping.mode'='name')",
        "insert into {t} select id, 'n' from range(10)",
    ),
    "events": (
        "create table {t} (id bigint) using delta",
        "insert into {t} select id from range(10)",
    ),
}
BY_NAME = (
    "create schema if not exists sales",
    "create table sales.orders (id bigint, s string) using delta cluster by (id) "
    "tblproperties ('delta.enableDeletionVectors'='true')",
    "insert into sales.orders select id, 'x' from range(20)",
    "delete from sales.orders where id = 3",
)
NAME = "spark_catalog.sales.orders"
LINEAGE = (
    "create schema if not exists access",
    "create table if not exists access.table_lineage (event_time timestamp, created_by string, "
    "entity_type string, entity_id string, source_table_full_name string, source_path string, "
    "target_table_full_name string, target_path string) using delta",
    # The rows of the last hours are left to the next run, since others may arrive late.
    "insert into access.table_lineage select current_timestamp() - make_interval(0, 0, 0, id), "
    f"'ann', 'JOB', '7', '{NAME}', null, null, null from range(3)",
)


def steps(page: str) -> list[str]:
    """The commands of a page in order; `file: NAME` and a text for the files that it prints."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if "<!-- run" not in text:
        return [each.line for each in SPARK_LINES if each.page == page]
    found = []
    for file, content, block in re.findall(
        r"<!-- file: (\S+) -->\n```\w*\n(.*?)```|^```bash\n(.*?)\n```", text, re.M | re.S
    ):
        lines = re.sub(r"\\\n\s*", "", block).splitlines()
        found += [f"file: {file}\n{content}"] if file else lines
    return found


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real tables with the names and protocols of the example tables, to be copied."""
    assert set(LAKE) == set(DEMO_TABLES)
    folder = tmp_path_factory.mktemp("lake")
    for name, statements in LAKE.items():
        place = folder / name
        for statement in statements:
            spark.sql(statement.format(t=f"delta.`{place}`"))
    return folder


class World(NamedTuple):
    """A folder with what the documents presume, and the places that stand for others."""

    folder: Path
    places: dict[str, str]


@pytest.fixture
def world(
    spark: SparkSession, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    work, bucket, volume = (tmp_path / name for name in ("work", "bucket", "volume"))
    for folder in (work, work / "lake", bucket):
        shutil.copytree(lake, folder, dirs_exist_ok=True)
    (tmp_path / "logs").mkdir()
    (work / "plans").mkdir()
    for name in ("policy.yaml", "platform.yaml"):
        (work / name).write_text("policy_version: 1\nclients:\n  - client: trino@476\n")
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for statement in BY_NAME:
        spark.sql(statement)
    drop = ("--drop", "deletionVectors", "--format", "json", "--output")
    for table, plan in (
        ("orders", "plan.json"),
        ("lake/orders", "orders.plan.json"),
        (str(bucket / "orders"), "plans/orders.json"),
    ):
        assert main(["plan-downgrade", table, *drop, plan]) == 0
    scan = ("scan", str(bucket), "--catalog", "spark_catalog.sales", "--quiet")
    for _ in range(2):
        assert main([*scan, "--inventory", f"{bucket}/_inventory"]) == 0
    yield World(
        tmp_path,
        {
            "s3://lake": str(bucket),
            "s3://logs/lake/": str(tmp_path / "logs"),
            "/Volumes/ops": str(volume),
            "main.sales.orders": "spark_catalog.sales.orders",
            "--catalog main ": "--catalog spark_catalog ",
            "system.access.table_lineage": "spark_catalog.access.table_lineage",
        },
    )
    spark.sql("drop schema sales cascade")


def _log(folder: Path) -> None:
    """An exported row of lineage: no access log of a store has paths of this machine."""
    row = {
        "event_time": datetime.now(UTC).isoformat(),
        "created_by": "ann",
        "entity_type": "JOB",
        "source_table_full_name": NAME,
        "target_table_full_name": None,
    }
    (folder / "logs" / "lineage.json").write_text(json.dumps(row) + "\n")


class Terminal(io.StringIO):
    """A person at the keyboard, who confirms a plan with the table's name."""

    def isatty(self) -> bool:
        return True


def elsewhere(line: str) -> bool:
    """Whether a line of a page runs in a process of its own, or not at all."""
    return Printed("", line).elsewhere or bool(
        re.search(r"hms://|catalogImplementation|--spark-remote (sc:|'local)|^export ", line)
    )


def typed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have somebody type the name of the table of an `apply`, where the line needs it."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["deltaproto", "apply"] and Path(words[2]).is_file():
        document = json.loads(Path(words[2]).read_text())
        (plan,) = document.get("plans", [document])
        table = plan["table"]
        monkeypatch.setattr("sys.stdin", Terminal(f"{Path(table).name}\n" * 2))


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_run_as_printed(
    page: str, cli: Cli, world: World, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _log(world.folder)
    found = []
    for line in steps(page):
        if line.startswith("file: "):
            name, _, content = line.removeprefix("file: ").partition("\n")
            Path(name).write_text(content)
        elif line == "deltaproto demo lake":
            # The example tables, with data files.
            shutil.rmtree("lake")
            shutil.copytree(lake, world.folder / "work" / "lake")
        elif not elsewhere(line):
            typed(line, monkeypatch)
            ran = run_line(cli, line, world.places)
            changes = re.match(r"deltaproto (apply|rehearse) ", line) and "--policy" not in line
            if ran.code not in ((0, 10) if changes else OK):
                print(line, ran.code, ran.out, ran.err)
                found.append(line)
    assert found == []


def test_the_line_of_a_crontab_applies_a_rollout(cli: Cli, world: World) -> None:
    """`tests/test_printed_schedule.py` runs the others."""
    (line,) = (each for each in CRONTAB if " apply " in each)
    command, _, alert = line.partition(" || ")
    assert alert.startswith("/opt/alert ")
    policy = world.folder / "policy.yaml"
    policy.write_text(ROLLOUT)
    waves = str(world.folder / "waves")
    assert cli("plan", "lake/events", "--policy", str(policy), "--out", waves).code == 0
    ran = run_line(cli, command, {"/data/waves": waves, "/etc/policy.yaml": str(policy)})
    assert ran.code == 0, ran
    assert cli("status", waves, "--detailed-exitcode").code == 0


def test_the_code_for_a_session_runs(world: World) -> None:
    page = (ROOT / "docs/guides/tables-by-name.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["orders"].inspect().features["deletionVectors"].enabled


def test_the_lines_with_a_server_run_as_printed(
    connect: ConnectServer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [each.line for each in SPARK_LINES if "--spark-remote sc" in each.line]
    assert len(lines) == 2
    connect.sql("drop schema if exists sales cascade", *BY_NAME, *LINEAGE)
    servers = {"sc://spark.example.com:15002": connect.remote, "sc://HOST": connect.remote}
    _run_apart(lines, {**world.places, **servers}, world.folder / "work")
    # The page exports the server's address, and then names a table.
    page = (ROOT / "docs/guides/tables-by-name.md").read_text()
    assert "export DELTAPROTO_SPARK_REMOTE='sc://spark.example.com:15002/;" in page
    monkeypatch.setenv("DELTAPROTO_SPARK_REMOTE", connect.remote)
    _run_apart(["deltaproto inspect sales.orders"], world.places, world.folder / "work")


def test_the_line_with_a_local_server_runs_as_printed(world: World) -> None:
    lines = [each.line for each in SPARK_LINES if "'local[2]'" in each.line]
    assert len(lines) == 1
    _run_apart([f"{lines[0]} {CONF}"], world.places, world.folder / "work")


@pytest.fixture(scope="module")
def hive(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A metastore with `sales.orders`."""
    folder = tmp_path_factory.mktemp("metastore")
    with metastore(folder) as port:
        writer, place = Writer(port), f"file:{lake}/orders"
        writer.database("sales", folder)
        provider = {"spark.sql.sources.provider": "delta"}
        writer.table("sales", "orders", place, provider, {"path": place})
        yield port


def test_the_lines_with_a_metastore_run_as_printed(cli: Cli, hive: int, world: World) -> None:
    at = {"metastore.example.com:9083": f"127.0.0.1:{hive}"}
    bare = {"hms://metastore.example.com ": f"hms://127.0.0.1:{hive} "}
    lines = [each.line for each in SPARK_LINES if "hms://" in each.line]
    assert len(lines) == 2
    for line in lines:
        ran = run_line(cli, line, {**world.places, **at, **bare})
        assert ran.code in OK, (line, ran)
    (through_spark,) = (each.line for each in SPARK_LINES if "thrift://" in each.line)
    _run_apart([f"{through_spark} {CONF}"], {**world.places, **at}, world.folder / "work")


def _run_apart(lines: list[str], places: dict[str, str], folder: Path) -> None:
    """Run lines one after the other in a process of its own, which may start a Spark."""
    words = []
    for line in lines:
        for name, place in places.items():
            line = line.replace(name, place)
        words.append(shlex.split(line, comments=True)[1:])
    answers = child("tests.support.command_lines", words, folder)
    for line, (code, out, err) in zip(lines, answers, strict=True):
        assert code in OK, (line, out[-1500:], err[-500:])
