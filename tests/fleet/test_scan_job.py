"""The scan job is submitted as its docstring and the guide print it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
import yaml
from deltalake import DeltaTable

from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from deltaproto.cli.main import load_command
from deltaproto.tables.java import file_system_packages
from tests.support.connect_server import delta_package, outside
from tests.support.engines import RUNNING
from tests.support.lakes import Lake, s3_lake
from tests.support.parsed import parsed
from tests.support.spark_settings import SHORT_LIVED

pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parents[2]
JOB, GUIDE = "examples/scan_job.py", "docs/guides/nightly-scan.md"
PINNED = RUNNING.at_least("4.4")
POLICY = "policy_version: 1\nclients: [{client: trino@400, access: [read]}]\n"


def printed(page: str) -> list[str]:
    """The words of the only `spark-submit` of a page."""
    (command,) = re.findall(r"^ *(spark-submit (?:.*\\+\n)*.*)$", (ROOT / page).read_text(), re.M)
    return shlex.split(re.sub(r"\\+\n\s*", "", command))


@pytest.mark.skipif(not PINNED, reason="the printed versions are the newest")
@pytest.mark.parametrize("page", [JOB, GUIDE])
def test_the_printed_versions_are_the_pinned_ones(page: str) -> None:
    hadoop = file_system_packages({}, {"s3a"}) if page == GUIDE else []
    words = printed(page)
    assert words[words.index("--packages") + 1].split(",") == [delta_package(), *hadoop]


def test_the_job_of_the_bundle_is_a_scan() -> None:
    bundle = yaml.safe_load((ROOT / "examples/databricks_scan_job.yml").read_text())
    (job,) = bundle["resources"]["jobs"].values()
    (task,) = job["tasks"]
    program = task["spark_python_task"]
    assert (ROOT / "examples" / program["python_file"]).resolve() == ROOT / JOB
    assert parsed(load_command("scan"), ["--engine", "spark", *program["parameters"]])
    # Nobody may register the name of a package that is not published, and be installed.
    assert task["libraries"] == [{"whl": "../dist/*.whl"}]


def submit(words: list[str], folder: Path, **environment: str) -> int:
    """Submit the job in `folder`, with the installed Spark; its exit code."""
    at = words.index("--packages") + 1
    _, *others = words[at].split(",")
    spark_submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    ran = subprocess.run(
        [str(spark_submit), *words[1:at], ",".join((delta_package(), *others)), *words[at + 1 :]],
        cwd=folder,
        env={
            **outside(),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "JAVA_TOOL_OPTIONS": SHORT_LIVED,
            "XDG_CACHE_HOME": str(folder / "cache"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    print(ran.stdout[-3000:], ran.stderr[-6000:])
    return ran.returncode


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder of a clone, with a policy, and example tables in `data` beside it."""
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "data" / name)
    work = tmp_path / "work"
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    (work / "policy.yaml").write_text(POLICY)
    return work


@pytest.fixture
def bucket(work: Path) -> Iterator[Lake]:
    with s3_lake() as store:
        for name in DEMO_TABLES:
            store.upload(work.parent / "data" / name, name)
        yield store


@pytest.mark.spark
@pytest.mark.slow
def test_the_job_scans_a_folder_for_a_policy(work: Path) -> None:
    data = work.parent / "data"
    words = [word.replace("/data", str(data)) for word in printed(JOB)]
    # Trino 400 reads the table with deletion vectors wrongly: the job fails, and alerts someone.
    assert submit(words, work) == 1
    tables = DeltaTable(data / "_inventory" / "tables").to_pyarrow_table().to_pylist()
    assert {Path(each["location"]).name for each in tables} == set(DEMO_TABLES)


@pytest.mark.spark
@pytest.mark.storage
@pytest.mark.slow
def test_the_job_scans_a_bucket(work: Path, bucket: Lake) -> None:
    quiet = {"AWS_EC2_METADATA_DISABLED": "true"}
    assert submit(printed(GUIDE), work, **bucket.environment, **quiet) == 0
    where = "s3://lake/_inventory/tables"
    rows = DeltaTable(where, storage_options=bucket.options).to_pyarrow_table()
    assert rows.num_rows == len(DEMO_TABLES)
