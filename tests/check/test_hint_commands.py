"""The commands in the hints of `check` do what the hints say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CLIENTS = ("trino@400", "delta-spark@3.2.0", "deltalake@1.6.1", "databricks-runtime@15.4")
COLLATED = (3, 7, ["deletionVectors"], ["deletionVectors", "collations", "domainMetadata"])
SHREDDED = (3, 7, ["variantShredding", "variantType"], ["variantShredding", "variantType"])
INCOMPLETE = (1, 7, None, ["rowTracking", "checkConstraints"])
INVALID = (3, 7, ["deletionVectors"], None)


def table(folder: Path, stored: tuple[object, ...]) -> str:
    log = Log(folder / "a b")
    log.commit(0, commit_info(), protocol(*stored), metadata())
    return str(log.table)


def hints(cli: Cli, name: str) -> list[str]:
    clients = [word for each in CLIENTS for word in ("--client", each)]
    ran = cli("check", name, *clients, "--format", "json")
    return [each["hint"] for each in json.loads(ran.out)["findings"]]


@pytest.mark.parametrize("stored", [COLLATED, SHREDDED, INCOMPLETE, INVALID])
def test_no_engine_refuses_the_drops_of_a_hint(
    cli: Cli, tmp_path: Path, stored: tuple[object, ...]
) -> None:
    """Without `--engine databricks`, these plans are blocked."""
    found = hints(cli, table(tmp_path, stored))
    assert found
    for hint in found:
        for command in re.findall(r"deltaproto (plan-\S+ .*? --drop [^;]*)", hint):
            ran = cli(*shlex.split(command), "--format", "json")
            assert ran.code == 0, (command, json.loads(ran.out).get("blocked"))


def test_drops_of_databricks_name_its_runtime(cli: Cli, tmp_path: Path) -> None:
    name = table(tmp_path, COLLATED)
    assert "--drop collations --engine databricks" in "\n".join(hints(cli, name))
    shown = cli("inspect", name).out
    assert re.search(r"collations .* DBR 16.4\+\n", shown)
    assert "DROP FEATURE removes it (Databricks Runtime 16.4 LTS or later)" in shown


def test_a_protocol_that_violates_the_spec_is_repaired_first(cli: Cli, tmp_path: Path) -> None:
    """Every plan for such a table fails."""
    name = table(tmp_path, INVALID)
    found = "\n".join(hints(cli, name))
    assert "plan-downgrade" not in found
    (command,) = set(re.findall(r"deltaproto (inspect .*?) shows what is wrong", found))
    assert "DP101" in cli(*shlex.split(command)).out
