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

PAGE = Path(__file__).parents[2] / "docs" / "manual" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
NEEDS_SPARK = ".apply("


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "lake" / name)


def test_the_blocks_of_the_manual_run_one_after_the_other() -> None:
    names: dict[str, Any] = {}
    blocks = [block for block in BLOCKS if NEEDS_SPARK not in block]
    assert len(blocks) == len(BLOCKS) - 1
    for block in blocks:
        exec(block, names)
    assert names["found"].tables == 3
    assert Path("report.html").exists()


@pytest.mark.spark
def test_the_blocks_with_spark_run_as_printed(spark: Any) -> None:
    names: dict[str, Any] = {}
    first, *_ = BLOCKS
    (planned,) = (block for block in BLOCKS if "plan = " in block)
    (applied,) = (block for block in BLOCKS if NEEDS_SPARK in block)
    for block in (first, planned, applied):
        exec(block, names)
    assert names["tried"].status == "ready"


def test_the_code_of_docstrings_runs_as_printed() -> None:
    text = inspect.getdoc(deltaproto) or ""
    (block,) = re.findall(r"\n\n((?:    .*\n|\n)+)", text)
    names: dict[str, Any] = {}
    exec(textwrap.dedent(block), names)
    assert names["plan"].steps
