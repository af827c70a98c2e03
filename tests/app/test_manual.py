"""The Python of the manual and of docstrings runs as printed, on the example tables."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from deltaproto.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "manual" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
NEEDS_SPARK = ".apply("
WAVES = """
policy_version: 1
tables:
  "*": {require_properties: {team: sales}}
rollout: {canary: [lake/orders], soak: 1h}
"""


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "lake" / name)


def test_the_blocks_of_the_manual_run_one_after_the_other() -> None:
    names: dict[str, Any] = {}
    blocks = [block for block in BLOCKS if NEEDS_SPARK not in block]
    assert len(blocks) == len(BLOCKS) - 2
    for block in blocks:
        exec(block, names)
    assert names["found"].tables == 3
    assert Path("report.html").exists()


@pytest.mark.spark
@pytest.mark.rotating
def test_the_blocks_with_spark_run_as_printed(spark: Any) -> None:
    names: dict[str, Any] = {}
    first, *_ = BLOCKS
    (planned,) = (block for block in BLOCKS if "plan = " in block)
    applied, waves = (block for block in BLOCKS if NEEDS_SPARK in block)
    for block in (first, planned, applied):
        exec(block, names)
    assert names["tried"].status == "ready"
    Path("waves.yaml").write_text(WAVES)
    words = ("--policy", "waves.yaml", "--out", "waves", "--quiet")
    assert main(["plan", "lake/orders", "lake/customers", *words]) == 0
    exec(waves, names)
    assert names["applied"].ok
    assert (names["progress"].status, names["rollout"].status().status) == ("waiting", "paused")


def test_the_code_of_docstrings_runs_as_printed() -> None:
    text = inspect.getdoc(deltaproto) or ""
    (block,) = re.findall(r"\n\n((?:    .*\n|\n)+)", text)
    names: dict[str, Any] = {}
    exec(textwrap.dedent(block), names)
    assert names["plan"].steps
