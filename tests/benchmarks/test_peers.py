"""A peer that a machine lacks is told, and leaves the others alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.peers import Peers

KERNEL = Path(__file__).parents[2] / "benchmarks" / "kernel_inspect"


def test_without_cargo_the_native_peer_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Peers(spark=False) as peers:
        assert peers.kernel is None
        assert peers.spark is None
        assert peers.missing == {
            "delta-kernel-rs": "no cargo on this machine",
            "Spark": "left out with `--no-spark`",
        }


def test_the_native_peer_is_pinned_and_locked_to_the_same_version() -> None:
    asked = tomllib.loads((KERNEL / "Cargo.toml").read_text())["dependencies"]
    locked = (KERNEL / "Cargo.lock").read_text()
    for name, wanted in asked.items():
        text = wanted if isinstance(wanted, str) else wanted["version"]
        found = re.search(rf'name = "{name}"\nversion = "([^"]+)"', locked)
        assert found is not None
        assert text == f"={found[1]}"
