"""The files that README and the manual print (YAML, JSON, Python, jinja) are used as printed.

`EXECUTED` names the test for each page; a new block on another page fails here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
import yaml

from deltaproto.certification.adapter_server import Comparison, RowsToWrite
from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from deltaproto.fleet.settings_file import parse_settings
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from tests.conftest import Ran
from tests.support.lakes import distrust, s3_lake, trust

Cli = Callable[..., Ran]
ROOT = Path(__file__).parents[1]
EXECUTED = {
    "README.md": "tests/test_documents.py: test_the_python_of_readme_runs_as_printed",
    "docs/guides/bring-tables-to-a-policy.md": "tools/docs.py",
    "docs/guides/guard-in-ci.md": "TestCi, tests/cli/test_action.py, tools/docs.py",
    "docs/guides/upgrade-a-fleet.md": "tools/docs.py",
    "docs/guides/tables-by-name.md": "test_printed_on_spark.py: test_the_code_for_a_session_runs",
    "docs/how-to/adopt-a-fleet.md": "tools/docs.py",
    "docs/how-to/permissions.md": "test_the_permissions_suffice_for_a_scan",
    "docs/how-to/schedule.md": "test_the_alerts_use_gauges_that_exist, packaging/test_airflow.py, "
    "tests/test_printed_schedule.py",
    "docs/manual/check.md": "test_the_policies_are_policies",
    "docs/manual/conflicts-and-clients.md": "test_the_adapter_is_an_adapter",
    "docs/manual/fleets.md": "test_the_settings_are_settings",
    "docs/manual/plan-and-apply.md": "test_the_template_is_a_template",
    "docs/manual/python.md": "tests/app/test_manual.py",
    "docs/reference/python.md": "generated; its example: tests/app/test_manual.py",
}


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.M | re.S)


def test_every_page_with_files_is_executed() -> None:
    found = {
        str(page.relative_to(ROOT))
        for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
        if re.search(r"^ *```(?!bash|text)\w+\n", page.read_text(), re.M)
    }
    assert found == set(EXECUTED)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "lake" / name)
    return tmp_path / "lake"


class TestCi:
    """The workflows of the guide, with the guide's own policy."""

    PAGE = "docs/guides/guard-in-ci.md"

    @pytest.fixture
    def files(self, lake: Path) -> list[Any]:
        policy, *others = blocks(self.PAGE, "yaml")
        Path("policy.yaml").write_text(policy)
        Path("tables.txt").write_text("lake/orders\n\n# a comment\nlake/events\n")
        return [yaml.safe_load(each) for each in others]

    def shell(self, line: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    def test_github(self, files: list[Any]) -> None:
        plain, action = (each for each in files if "jobs" in each)
        for workflow in (plain, action):
            # YAML 1.1 reads the key as true.
            assert workflow[True] == ["pull_request", "workflow_dispatch"]
            used = [step["uses"] for step in workflow["jobs"]["check"]["steps"] if "uses" in step]
            assert all(re.fullmatch(r"actions/[\w-]+@v\d+|\./deltaproto", each) for each in used)
        *_, install, check = (step["run"] for step in plain["jobs"]["check"]["steps"][2:])
        assert install == "pip install ./deltaproto"
        ran = self.shell(check)
        assert (ran.returncode, "::error" in ran.stdout) == (1, True), ran.stderr

    def test_gitlab(self, files: list[Any]) -> None:
        (job,) = (each["protocols"] for each in files if "protocols" in each)
        install, check = job["script"]
        assert install == "pip install ./deltaproto"
        assert self.shell(check).returncode == 1
        report = json.loads(Path(job["artifacts"]["reports"]["codequality"]).read_text())
        wanted = {"description", "check_name", "fingerprint", "severity", "location"}
        assert report
        assert all(wanted <= each.keys() for each in report)

    def test_pre_commit(self, cli: Cli, files: list[Any]) -> None:
        (hook,) = (each["repos"][0]["hooks"][0] for each in files if "repos" in each)
        words = ("--format", "json", "--output", "baseline.json")
        assert cli("inspect", "lake/events", *words).code == 0
        assert self.shell(hook["entry"]).returncode == 0
        text = Path("policy.yaml").read_text()
        Path("policy.yaml").write_text(text.replace("trino@476", "trinoo@476"))
        assert self.shell(hook["entry"]).returncode == 2
        assert re.match(hook["files"], "policy.yaml")


def test_the_alerts_use_gauges_that_exist(cli: Cli, lake: Path) -> None:
    alerts, _ = blocks("docs/how-to/schedule.md", "yaml")
    policy = lake.parent / "policy.yaml"
    policy.write_text("policy_version: 1\nclients: [{client: trino@400, access: [read]}]\n")
    assert cli("scan", "lake", "--inventory", "inventory", "--quiet").code == 0
    ran = cli("report", "inventory", "--policy", str(policy), "--format", "openmetrics")
    gauges = set(re.findall(r"^# TYPE (\w+) gauge$", ran.out, re.M))
    (group,) = yaml.safe_load(alerts)["groups"]
    for rule in group["rules"]:
        named = set(re.findall(r"deltaproto_\w+", rule["expr"]))
        assert named
        assert named <= gauges
    labels = re.search(r"deltaproto_verdicts\{(.*?)\} [1-9]", ran.out)
    assert labels is not None
    assert {"client", "verdict"} <= set(re.findall(r'(\w+)="', labels[1]))


def test_the_policies_are_policies(tmp_path: Path) -> None:
    whole, define = blocks("docs/manual/check.md", "yaml")
    file = tmp_path / "policy.yaml"
    file.write_text(whole)
    assert load_local_policy(str(file)).approvals
    use = "clients:\n  - {client: nightly-loader@2.1, access: [read]}\n"
    file.write_text(f"policy_version: 1\n{use}{define}")
    policy = load_local_policy(str(file))
    found = load_local_catalog((), policy).resolve("nightly-loader@2.1")
    assert found.client.name == "Nightly loader of the finance team"
    entry = yaml.safe_load(define)["define"]["nightly-loader"]
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"id": "nightly-loader", **entry}))
    assert load_local_catalog((str(own),)).get("nightly-loader").name == found.client.name


def test_the_settings_are_settings() -> None:
    (text,) = blocks("docs/manual/fleets.md", "yaml")
    found = parse_settings(text, "deltaproto.yaml", {"LAKE_SECRET": "from-the-environment"})
    assert found["storage_options"]["AWS_SECRET_ACCESS_KEY"] == "from-the-environment"
    assert (found["keep"], found["roots"][0]) == (90, "s3://lake/gold")


def test_the_template_is_a_template(cli: Cli, lake: Path) -> None:
    (text,) = blocks("docs/manual/plan-and-apply.md", "jinja")
    Path("ours.md").write_text(text)
    drop = ("--drop", "deletionVectors", "--format", "json", "--output", "plan.json")
    assert cli("plan-downgrade", "lake/orders", *drop).code == 0
    out = cli("runbook", "plan.json", "--template", "ours.md").out
    plan_id = json.loads(Path("plan.json").read_text())["plan_id"]
    assert out.startswith(f"# Change {plan_id}: ")
    assert "## Commands" in out


def test_the_adapter_is_an_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = blocks("docs/manual/conflicts-and-clients.md", "python")
    seen: list[Any] = []
    rows = [{"id": 1}]
    reader = SimpleNamespace(
        scan=lambda table, sql: seen.append((table, sql)) or SimpleNamespace(to_dicts=lambda: rows),
        write=lambda table, data: seen.append((table, data)),
    )
    monkeypatch.setitem(sys.modules, "my_reader", reader)  # type: ignore[arg-type]
    names: dict[str, Any] = {}
    exec(text, names)
    assert names["rows"]("t", where=Comparison("id", "=", 1)) == rows
    names["append"]("t", RowsToWrite([{"id": 1}], [("id", "long")]))
    assert seen[0] == ("t", "id = 1")
    assert seen[1][1].to_pylist() == [{"id": 1}]


@pytest.mark.storage
@pytest.mark.slow
def test_the_permissions_suffice_for_a_scan(
    cli: Cli, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user with the policy of the page, in a store that checks signatures and permissions."""
    (policy,) = blocks("docs/how-to/permissions.md", "json")
    with s3_lake() as store:
        for name in ("orders", "customers"):
            store.upload(lake / name, f"gold/{name}")
        url = store.options["AWS_ENDPOINT_URL"]
        keys = {
            "aws_access_key_id": store.options["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": store.options["AWS_SECRET_ACCESS_KEY"],
        }
        trust(store)
        iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", **keys)
        iam.create_user(UserName="scanner")
        iam.put_user_policy(UserName="scanner", PolicyName="page", PolicyDocument=policy)
        key = iam.create_access_key(UserName="scanner")["AccessKey"]
        distrust(store)
        monkeypatch.setenv("XDG_CACHE_HOME", str(lake.parent / "cache"))
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        for _ in range(2):
            ran = cli("scan", "s3://lake", "--inventory", "s3://lake/_inventory", "--quiet")
            assert ran.code == 0, ran.out + ran.err
        for words in (("inspect", "s3://lake/gold/orders"), ("drift", "s3://lake/_inventory")):
            assert cli(*words).code == 0, words
        lost = cli("scan", "s3://lake", "--inventory", "s3://lake/other", "--quiet")
        assert (lost.code, "access denied" in lost.err) == (2, True)
