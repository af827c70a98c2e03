"""Which adapter and which environment a name stands for."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from deltaproto.certification.adapter_server import OPERATIONS
from deltaproto.certification.client import (
    create_environment,
    load_roster,
    read_requirements,
    select_client,
)
from deltaproto.cli.certify import COMMAND
from deltaproto.clients import version_scheme
from deltaproto.clients.catalog import load_shipped_client, shipped_client_ids
from deltaproto.errors import EngineError, UsageError
from tests.conftest import Ran

FAILING_PIP = """#!/bin/sh
case "$2" in
  venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  pip) printf 'ERROR: Invalid requirement\n  ^\nHint: quote it\n' >&2; exit 1 ;;
esac
"""
"""a Python whose virtual environments have a pip that installs nothing"""
NAMES = [f"{each}@{version}" for each in load_roster() for version in each.versions]


@pytest.fixture(autouse=True)
def a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRINO_SERVER", "/a/folder")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_the_roster_stands_for_something_installable(name: str) -> None:
    found = select_client(name)
    assert found.file.is_file()
    parsed = [Requirement(each) for each in found.requires]
    assert parsed
    assert len({each.name.lower() for each in parsed}) == len(parsed), "asked for twice"
    assert "{" not in "".join(found.requires)


def test_examples_in_help_name_one_client() -> None:
    shipped = [each.split()[1] for each in COMMAND.examples if "--adapter" not in each]
    assert [str(select_client(each).reference) for each in shipped] == shipped


@pytest.mark.parametrize("each", load_roster(), ids=str)
def test_adapters_define_operations_and_the_client_is_in_the_catalog(each: object) -> None:
    entry = next(known for known in load_roster() if known is each)
    tree = ast.parse(entry.file.read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert "release" in names
    assert names & set(OPERATIONS)
    assert ast.get_docstring(tree)
    assert entry.client in shipped_client_ids()
    parsed = [
        version_scheme.parse_version(load_shipped_client(entry.client).versions, v)
        for v in entry.versions
    ]
    assert None not in parsed
    assert parsed == sorted(parsed)


def test_the_oldest_and_the_newest_deltalake_are_measured() -> None:
    versions = next(each.versions for each in load_roster() if str(each) == "deltalake/engine")
    assert len(versions) >= 12
    assert versions[0].startswith("0.10")


def test_a_pin_replaces_what_the_adapter_asks_for() -> None:
    assert "numpy<2" in select_client("deltalake/engine@0.12.0").requires
    assert "numpy<2" not in select_client("deltalake/engine@1.6.6").requires
    found = select_client("polars/scan@1.20.0").requires
    assert [each for each in found if each.startswith("deltalake")] == ["deltalake<1"]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("nobody@1", "no adapter for nobody", "--adapter"),
        ("polars@2.1.0", "polars has several paths", "polars/scan@2.1.0"),
        ("polars/none@2.1.0", "polars has no path none", "polars/eager"),
        ("daft", "daft needs a version", "daft@"),
        ("@1", "is not a client", "ID@VERSION"),
    ],
)
def test_names_that_stand_for_nothing(name: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        select_client(name)
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_a_server_that_nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRINO_SERVER")
    with pytest.raises(UsageError, match="TRINO_SERVER"):
        select_client("trino@476")


def test_an_adapter_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text('# /// script\n# dependencies = ["one=={version}", "two"]\n# ///\n')
    assert select_client("mine@3.1", own).requires == ("one==3.1", "two")
    with pytest.raises(UsageError, match="needs a version"):
        select_client("mine", own)
    own.write_text("def rows(table): ...\n")
    assert select_client("mine", own).requires == ()
    own.write_text("# /// script\n# dependencies = [\n# ///\n")
    with pytest.raises(UsageError, match="not TOML"):
        read_requirements(own)
    with pytest.raises(UsageError, match="no adapter at"):
        select_client("mine", tmp_path / "none.py")


def check_failed_install(folder: Path) -> None:
    with pytest.raises(EngineError) as raised:
        create_environment(("no such requirement !",), folder)
    assert raised.value.message == "cannot install no such requirement !"
    assert "\n" not in raised.value.hint
    assert not list(folder.glob("*/.ready"))


def test_what_cannot_be_installed_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(FAILING_PIP)
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    check_failed_install(tmp_path / "clients")
    assert len(list(tmp_path.glob("clients/*/bin/python"))) == 1


NO_SUCH_VERSION = """#!/bin/sh
case "$2" in
  venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  pip) echo "ERROR: Could not find a version that satisfies the requirement deltalake==99 \
(from versions: $FOUND)
ERROR: No matching distribution found for deltalake==99" >&2; exit 1 ;;
esac
"""


@pytest.mark.parametrize(
    ("found", "message", "hint"),
    [
        (
            "0.9.0, 1.5.0, 1.6.0, 1.6.6",
            "cannot install deltalake==99: there is no such version for this Python",
            "the newest versions are 1.5.0, 1.6.0, 1.6.6",
        ),
        (
            "none",
            "cannot install deltalake==99, pyarrow",
            "ERROR: Could not find a version that satisfies the requirement deltalake==99 "
            "(from versions: none)",
        ),
    ],
)
def test_a_version_that_does_not_exist(
    found: str, message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(NO_SUCH_VERSION)
    python.chmod(0o755)
    monkeypatch.setenv("FOUND", found)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(EngineError) as raised:
        create_environment(("deltalake==99", "pyarrow"), tmp_path / "clients")
    assert (raised.value.message, raised.value.hint) == (message, hint)


def test_a_version_that_does_not_exist_fails_before_the_kit_is_made(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_kit(*_: Any, **__: Any) -> Any:
        raise AssertionError("the kit was made")

    python = tmp_path / "python"
    python.write_text(NO_SUCH_VERSION)
    python.chmod(0o755)
    monkeypatch.setenv("FOUND", "1.6.6")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr("deltaproto.cli.certify._create_kit", no_kit)
    ran = cli("certify", "deltalake/engine@99")
    assert (ran.code, ran.out) == (3, "")
    assert "there is no such version for this Python" in ran.err
    assert "hint: the newest versions are 1.6.6\n" in ran.err


@pytest.mark.slow
def test_what_pip_cannot_install_is_said_in_one_line(tmp_path: Path) -> None:
    check_failed_install(tmp_path)


def test_no_requirements_need_no_environment(tmp_path: Path) -> None:
    assert create_environment((), tmp_path).exists()
    assert list(tmp_path.iterdir()) == []
