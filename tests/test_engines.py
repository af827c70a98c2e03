"""What `tests/support/engines.py` leaves out, and what it must not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from deltaproto.planning.engine import NEWEST_DELTA_SPARK, Engine, parse_engine
from tests.support import engines

ROOT = Path(__file__).parents[1]
RELEASES = ("3.1", "3.2", "3.3", "4.0", "4.1", "4.2", "4.3", "4.4")


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return {key.replace("_", "-").lower(): value for key, value in (x.split("==") for x in lines)}


def test_nothing_is_left_out_on_the_pinned_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Engine(version=NEWEST_DELTA_SPARK) == engines.PINNED
    monkeypatch.setattr(engines, "RUNNING", engines.PINNED)
    for release in RELEASES:
        assert engines.missing(release, "something") is None
    with pytest.raises(ValueError, match="newer than the pinned"):
        engines.missing("99.0", "something")


def test_what_a_release_lacks_is_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "RUNNING", parse_engine("delta-spark@3.3.3"))
    assert engines.missing("3.3", "something") is None
    assert engines.missing("4.0", "a drop") == "delta-spark@3.3.3: a drop came with 4.0"
    mark = engines.needs_feature("variantType").mark
    assert mark.args == (True,)
    assert "variantType came with 4.0.0" in mark.kwargs["reason"]


def test_plans_are_for_the_engine_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "RUNNING", parse_engine("delta-spark@3.3.3"))
    asked = ("plan-upgrade", "t", "--protocol", "2,5")
    assert engines.for_running(asked) == (*asked, "--engine", "delta-spark@3.3.3")
    for words in (("inspect", "t"), (*asked, "--engine", "delta-spark@4.0"), ()):
        assert engines.for_running(words) == words
    monkeypatch.setattr(engines, "RUNNING", engines.PINNED)
    assert engines.for_running(asked) == asked


def test_the_oldest_pair_is_one_that_users_may_bring() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = pins("constraints-oldest.txt")
    for line in project["optional-dependencies"]["spark"]:
        asked = Requirement(line)
        assert asked.specifier.contains(oldest[asked.name.replace("_", "-")])
        lowest = re.search(r">=(\d+\.\d+)", line)
        assert lowest is not None
        if asked.name == "pyspark":
            assert oldest["pyspark"].startswith(f"{lowest[1]}.")
    assert {*oldest} <= {*pins("constraints.txt")}
