"""Fixtures for the tests of the outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.contract import documents


@pytest.fixture
def inspected(cli: Callable[..., Ran]) -> Callable[..., dict[str, Any]]:
    """`inspect --format json` of one table, validated: its entry in `tables`."""

    def run(table: str, *words: str) -> dict[str, Any]:
        (document,) = documents(cli("inspect", table, "--format", "json", *words), "inspect")
        (entry,) = document["tables"]
        return dict(entry)

    return run


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which pyspark is not installed."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
