"""Every command that README and the manual print runs as printed, or is named here with the test
that runs it instead.

Blocks behind `<!-- run: … -->` are executed by `tools/docs.py`. The others run here, one document
after the other, each in a folder of its own with example tables. Places of the examples stand for
others: the bucket `s3://lake` is moto's, `/data` a folder of the test, and the hosts of catalogs
are servers on this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest

from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from deltaproto.cli.main import main
from tests.conftest import Ran
from tests.support.lakes import Lake, s3_lake, trust
from tests.support.unity_server import unity_server
from tests.tables.test_glue import add as add_to_glue

Cli = Callable[..., Ran]
ROOT = Path(__file__).parents[1]
UNITY_HOST = "dbc-1234.cloud.databricks.com"

ELSEWHERE = {
    r"python3 -m venv venv && \. venv/bin/activate": "packaging: test_pip_installs_it",
    r"pip install \.$": "packaging: test_pip_installs_it",
    r"pip install '\.\[\w+\]'": "packaging: test_an_extra_installs_what_it_promises",
    r"make demo|make test": "make targets, which exist (TestMake)",
    r"spark-submit ": "tests/fleet/test_scan_job.py",
    r"deltaproto forecast /data/": "its tables are in no catalog: tests/fleet/test_forecast.py",
    r"deltaproto certify ": "installs clients: tests/certification, make certify",
    r"deltaproto check .*--client-file deltalake\.yaml": "certify writes the file",
    r"git checkout|sha256sum|make audit|python -m (pip install )?sigstore": "releases",
    r"export DELTAPROTO_SPARK_": "a setting",
}
"""lines that do not run here, and the reason"""
ENGINES = (
    r" hms://|catalogImplementation=hive",
    r"deltaproto (apply|rehearse) ",
    r"--reader (all|spark) ",
    r"--spark-remote |--engine spark |--catalog ",
    r" (main\.|spark_catalog\.)?sales\.orders\b",
)
"""lines that need Spark or a metastore: tests/test_printed_on_spark.py"""


class Printed(NamedTuple):
    """A command line of a document."""

    page: str
    line: str

    @property
    def elsewhere(self) -> bool:
        return any(re.match(pattern, self.line) for pattern in ELSEWHERE)

    @property
    def spark(self) -> bool:
        return any(re.search(pattern, self.line) for pattern in ENGINES)


def printed() -> Iterator[Printed]:
    """Yield every line of every block with commands that `tools/docs.py` does not run."""
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))):
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(
            r"(<!-- run.*? -->\n)?^ *```bash\n(.*?)\n *```", text, re.M | re.S
        ):
            if block[1] is None:
                for line in re.sub(r"\\\n\s*", "", block[2]).splitlines():
                    yield Printed(str(page.relative_to(ROOT)), line.strip())


LINES = tuple(printed())
HERE = tuple(each for each in LINES if not (each.elsewhere or each.spark))
SPARK_LINES = tuple(each for each in LINES if each.spark and not each.elsewhere)
PAGES = tuple(dict.fromkeys(each.page for each in HERE))


def test_every_other_line_is_known() -> None:
    assert len(HERE) > 100
    for pattern in ELSEWHERE:
        assert any(re.match(pattern, each.line) for each in LINES), pattern
    for pattern in ENGINES:
        assert any(re.search(pattern, each.line) for each in SPARK_LINES), pattern
    assert [each for each in HERE if not each.line.startswith(("deltaproto ", "find "))] == []


@pytest.fixture(scope="module")
def store() -> Iterator[Lake]:
    with s3_lake() as running:
        yield running


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example tables, to be copied."""
    folder = tmp_path_factory.mktemp("examples") / "lake"
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](folder / name)
    return folder


@pytest.fixture(scope="module")
def bucket(store: Lake, examples: Path) -> Lake:
    """`s3://lake` and `s3://logs`, and a Glue catalog with one of the tables."""
    trust(store)
    client = _s3(store)
    for zone, names in {
        "": ["orders"],
        "gold": ["orders", "customers"],
        "silver": ["orders"],
    }.items():
        for file in (file for name in names for file in (examples / name).rglob("*.json")):
            key = f"{zone}/{file.relative_to(examples)}".lstrip("/")
            client.put_object(Bucket="lake", Key=key, Body=file.read_bytes())
    client.create_bucket(Bucket="logs")
    line = (
        "79a5 lake [24/Sep/2026:02:13:20 +0000] 192.0.2.3 arn:aws:iam::1:user/ann 3E57 "
        'REST.GET.OBJECT orders/_delta_log/00000000000000000000.json "GET /x HTTP/1.1" 200 - '
        '10 10 5 4 "-" "trino-native-fs/476" -\n'
    )
    client.put_object(Bucket="logs", Key="lake/2026-09-24", Body=line.encode())
    url, root = store.options["AWS_ENDPOINT_URL"], "root"
    keys = {"aws_access_key_id": root, "aws_secret_access_key": root}
    glue = boto3.client("glue", endpoint_url=url, region_name="eu-west-1", **keys)
    add_to_glue(glue, "sales", "orders", "s3://lake/orders")
    return store


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, bucket: Lake, examples: Path) -> Path:
    """The folder `work` with everything that the documents presume, and `data` beside it."""
    home = tmp_path_factory.mktemp("world")
    shutil.copytree(examples, home / "data" / "gold")
    work = home / "work"
    shutil.copytree(examples, work)
    shutil.copytree(examples, work / "lake")
    (work / "policies").symlink_to(ROOT / "policies")
    for name in ("policy.yaml", "platform.yaml"):
        (work / name).write_text("policy_version: 1\nclients:\n  - client: trino@476\n")
    (work / "tables.txt").write_text("orders\ncustomers\n")
    ranges = "versions: dotted\nranges: [{read: {legacy: [1, 2]}, access: [read]}]\n"
    (work / "my-reader.yaml").write_text(f"id: my-reader\nname: Mine\n{ranges}")
    (work / "plans").mkdir()
    target = "tables: {'*': {isolation: Serializable}}"
    (work / "waves.yaml").write_text(f"policy_version: 1\n{target}\nrollout: {{waves: [1]}}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        for name, value in {**_environment(bucket), "XDG_CACHE_HOME": f"{home}/cache"}.items():
            patch.setenv(name, value)
        for words in (
            ("scan", f"{home}/data", "--inventory", f"{home}/data/_inventory"),
            ("scan", "s3://lake", "--inventory", "s3://lake/_inventory"),
            ("scan", "orders", "--inventory", "inventory"),
            ("inspect", "orders", "--format", "json", "--output", "saved.json"),
            ("plan", "orders", "customers", "--policy", "waves.yaml", "--out", "waves"),
            *(
                ("plan-downgrade", "orders", *_DROP, "--output", name)
                for name in (
                    "plan.json",
                    "orders.plan.json",
                    "plans/orders.json",
                    "customers.plan.json",
                )
            ),
        ):
            assert main(list(words)) == 0, words
    s3 = _s3(bucket)
    for each in s3.list_objects_v2(Bucket="lake", Prefix="_inventory/")["Contents"]:
        s3.copy_object(Bucket="logs", Key=each["Key"], CopySource=f"lake/{each['Key']}")
    return home


def _environment(bucket: Lake) -> dict[str, str]:
    return {**bucket.environment, "AWS_EC2_METADATA_DISABLED": "true"}


def _s3(bucket: Lake) -> Any:
    url = bucket.options["AWS_ENDPOINT_URL"]
    keys = {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)


def _reset_inventory(bucket: Lake) -> None:
    """Restore the inventory in the bucket to its first scan."""
    s3 = _s3(bucket)
    kept = {e["Key"] for e in s3.list_objects_v2(Bucket="logs", Prefix="_inventory/")["Contents"]}
    for each in s3.list_objects_v2(Bucket="lake", Prefix="_inventory/")["Contents"]:
        if each["Key"] not in kept:
            s3.delete_object(Bucket="lake", Key=each["Key"])
    for key in kept:
        s3.copy_object(Bucket="lake", Key=key, CopySource=f"logs/{key}")


_DROP = ("--drop", "deletionVectors", "--format", "json")


def run_line(cli: Cli, line: str, places: dict[str, str]) -> Ran:
    """Run one line, with other places."""
    for name, place in places.items():
        line = line.replace(name, place)
    if line.startswith("find "):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        shell = subprocess.run(
            ["bash", "-c", line],
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(shell.returncode, shell.stdout, shell.stderr)
    line, _, output = line.partition(" > ")
    ran = cli(*shlex.split(line, comments=True)[1:])
    if output:
        Path(output).write_text(ran.out)
    return ran


@pytest.mark.slow
@pytest.mark.storage
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_as_printed(
    page: str,
    cli: Cli,
    world: Path,
    bucket: Lake,
    examples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(world / "work", tmp_path / "work", symlinks=True)
    monkeypatch.chdir(tmp_path / "work")
    if any(each.page == page and each.line.endswith("deltaproto demo lake") for each in HERE):
        shutil.rmtree("lake")
    if any(each.page == page and "--out plans" in each.line for each in HERE):
        shutil.rmtree("plans")
    for name, value in {**_environment(bucket), "XDG_CACHE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UC_TOKEN", "token")
    _reset_inventory(bucket)
    found = []
    with unity_server() as unity:
        unity.add("main.sales.orders", (examples / "orders").as_uri())
        places = {f"uc://{UNITY_HOST}": f"uc://{unity.authority}", "/data": f"{world}/data"}
        # A time by which the first scan had ended.
        places["--since 2026-11-01"] = f"--since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        for each in HERE:
            if each.page == page:
                ran = run_line(cli, each.line, places)
                if ran.code not in (0, 1, 10):
                    found.append((each.line, ran.code, ran.err[-300:] or ran.out[-300:]))
    assert found == []
