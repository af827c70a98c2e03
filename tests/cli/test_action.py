"""The GitHub action does what it says, whatever its inputs hold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore import UNSIGNED
from botocore.config import Config

from tests.conftest import Ran
from tests.support.lakes import s3_lake, trust
from tests.support.logs import Log, add, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "deltaproto"


@pytest.fixture
def table(log: Log) -> str:
    log.commit(0, commit_info(), protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    return log.commit(1, metadata(), add("a")).table


def _action(inputs: dict[str, str], tmp_path: Path, **more: str) -> Any:
    """What the action's check does with these inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = (each for each in action["runs"]["steps"] if each.get("id") == "check")
    given = {name: each.get("default", "") for name, each in action["inputs"].items()}
    given.update(inputs)
    env = {
        key: given[text.removeprefix("${{ inputs.").removesuffix(" }}")]
        for key, text in step["env"].items()
    }
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    ours = {"PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        env={**env, **more, **ours},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_does_what_it_says(table: str, tmp_path: Path) -> None:
    ran = _action({"tables": f"{table}\n", "clients": "trino@422\nchdb@4.4.0\n"}, tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "::error" in ran.stdout
    never = _action({"tables": table, "clients": "trino@422", "fail-on": "never"}, tmp_path)
    assert never.returncode == 0
    policy = tmp_path / "p.yaml"
    policy.write_text("policy_version: 1\nclients:\n- client: delta-spark@4.0.1\n")
    assert _action({"tables": table, "policy": str(policy)}, tmp_path).returncode == 0
    wrong = _action({"tables": table}, tmp_path)
    assert (wrong.returncode, "nothing to check against" in wrong.stderr) == (2, True)


def test_the_action_takes_a_baseline_storage_options_and_writes_sarif(
    cli: Callable[..., Ran], table: str, tmp_path: Path
) -> None:
    sarif, known = tmp_path / "out.sarif", tmp_path / "known.json"
    inputs = {"tables": table, "clients": "trino@422", "sarif": str(sarif)}
    output = tmp_path / "output"
    ran = _action(inputs, tmp_path, GITHUB_OUTPUT=str(output))
    assert (ran.returncode, output.read_text()) == (1, "exit-code=1\n")
    assert json.loads(sarif.read_text())["runs"][0]["results"]
    assert cli("check", table, "--client", "trino@422", "--write-baseline", str(known)).code == 0
    more = {"baseline": str(known), "storage-options": "timeout=5s\n\naws_region=eu-west-1\n"}
    assert _action({**inputs, **more}, tmp_path).returncode == 0
    wrong = _action({**inputs, "storage-options": "timeout"}, tmp_path)
    assert (wrong.returncode, "--storage-option takes K=V" in wrong.stderr) == (2, True)


def test_the_sample_of_the_action_uses_its_inputs() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    guide = (ROOT / "docs" / "guides" / "guard-in-ci.md").read_text()
    samples = [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", guide, re.S)]
    used = [
        step
        for sample in samples
        if isinstance(sample, dict) and "jobs" in sample
        for step in sample["jobs"]["check"]["steps"]
        if step.get("uses") == "./deltaproto"
    ]
    assert len(used) == 1
    assert set(used[0]["with"]) <= set(action["inputs"])
    assert all(f"`{name}`" in guide for name in (*action["inputs"], *action["outputs"]))


def test_the_action_is_not_fooled_by_its_inputs(table: str, tmp_path: Path) -> None:
    hostile = f'"; touch {tmp_path}/hit; "$(touch {tmp_path}/hit)`touch {tmp_path}/hit`'
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    for name in action["inputs"]:
        _action({"tables": table, "clients": "trino@422", name: hostile}, tmp_path)
        assert not (tmp_path / "hit").exists(), name
    for each in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        assert "${{" not in each.get("run", "")


_INPUTS = {
    "aws-actions/configure-aws-credentials": {"role-to-assume", "aws-region"},
    "azure/login": {"client-id", "tenant-id", "allow-no-subscriptions"},
    "github/codeql-action/upload-sarif": {"sarif_file", "category"},
}
"""inputs of the actions that ours calls, as their own action.yml declares them"""


def test_the_steps_with_other_actions_use_their_inputs() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = [each for each in action["runs"]["steps"] if "uses" in each]
    named = {each["uses"].partition("@")[0]: set(each["with"]) for each in steps}
    assert named == _INPUTS
    for each in steps:
        assert re.search(r"@v\d+$", each["uses"])
        (used,) = set(re.findall(r"inputs\.([\w-]+) != ''", each["if"]))
        assert action["inputs"][used]["default"] == ""


@pytest.mark.storage
def test_the_check_reads_with_the_credentials_of_an_assumed_role(
    table: str, tmp_path: Path
) -> None:
    """The role is assumed with a web identity at moto's STS, as the step before does with OIDC."""
    with s3_lake() as store:
        uri = store.upload(Path(table), "orders")
        trust(store)
        url = store.options["AWS_ENDPOINT_URL"]
        unsigned = Config(signature_version=UNSIGNED)
        sts = boto3.client("sts", endpoint_url=url, region_name="eu-central-1", config=unsigned)
        role = "arn:aws:iam::123456789012:role/deltaproto"
        keys = sts.assume_role_with_web_identity(
            RoleArn=role, RoleSessionName="GitHubActions", WebIdentityToken="a.token.of-the-job"
        )["Credentials"]
        exported = {
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
        }
        inputs = {"tables": f"{uri}\n", "clients": "trino@422", "aws-role": role}
        ran = _action(inputs, tmp_path, **exported)
    assert (ran.returncode, "::error" in ran.stdout) == (1, True), ran.stderr
    assert keys["SessionToken"] not in ran.stdout + ran.stderr
