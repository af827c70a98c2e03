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

import pytest
import yaml

from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

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
