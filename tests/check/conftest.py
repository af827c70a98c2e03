"""Fixtures for the tests of `check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., str]:
    """A table with this name and these actions in its only commit."""

    def run(name: str, *actions: dict[str, Any]) -> str:
        given = [*actions]
        if not any("metaData" in action for action in given):
            given.append(metadata())
        return Log(tmp_path / name).commit(0, commit_info("CREATE TABLE"), *given).table

    return run


@pytest.fixture
def save(cli: Callable[..., Ran], tmp_path: Path) -> Callable[..., str]:
    """A file that `inspect` wrote of these tables."""

    def run(*tables: str, format_: str = "json", name: str = "saved.json") -> str:
        file = tmp_path / name
        ran = cli("inspect", *tables, "--format", format_, "--output", str(file))
        assert (ran.out, ran.err) == ("", "")
        return str(file)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """A file with this text, such as a policy."""

    def run(text: str, name: str = "policy.yaml") -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return str(file)

    return run


@pytest.fixture
def policy(write: Callable[..., str]) -> Callable[[str], str]:
    """A policy with this text after its version."""
    return lambda text: write("policy_version: 1\n" + text)


@pytest.fixture
def checked(cli: Callable[..., Ran]) -> Callable[..., dict[str, Any]]:
    """The JSON document of a check, valid against the schema."""

    def run(*words: str, code: int | None = None) -> dict[str, Any]:
        ran = cli("check", *words, "--format", "json")
        assert code in (None, ran.code), ran.err
        (document,) = documents(ran, "check")
        return document

    return run
