"""`check` without declared clients: who can use a table, and since which version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.catalog import Catalogue
from deltaproto.clients.matching import Verdict
from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.clients.usability import Usability, find_usability, known_versions
from deltaproto.clients.verdicts import evaluate_clients
from tests.conftest import Ran
from tests.protocol.strategies import NAMES, UNKNOWN, protocols
from tests.support.contract import validate
from tests.support.examples import examples
from tests.support.logs import protocol

Cli = Callable[..., Ran]
Make = Callable[..., str]
BOTH = (Access.READ, Access.APPEND)
CLIENTS = Catalogue().clients()
VECTORS = protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])


@pytest.fixture
def table(make: Make) -> str:
    return make("t", VECTORS)


@st.composite
def any_needs(draw: st.DrawFn) -> TableRequirements:
    stored = draw(protocols([*NAMES, *UNKNOWN]))
    usage = {name: draw(st.sampled_from([True, False, None])) for name in sorted(stored.supported)}
    return table_requirements(stored, usage, {}, by_name=draw(st.booleans()))


def verdicts(text: str, access: Access, table: TableRequirements) -> dict[str | None, Verdict]:
    found = evaluate_clients(Catalogue().resolve(text), (access,), table)
    return {each.path: each.verdict for each in found}


def assert_agrees(each: Usability, table: TableRequirements) -> None:
    """Every span says of its versions what a declared client of that version gets."""
    spans = {}
    position = 0
    for candidate in known_versions(each.client):
        version = candidate.reference.version
        if version is None and each.client.versions != "none":
            continue
        reference = candidate.reference._replace(path=None)
        expected = verdicts(str(reference), each.access, table)
        if each.path not in expected and None not in expected:
            continue
        while position + 1 < len(each.spans) and each.spans[position + 1].first == version:
            position += 1
        spans[version] = each.spans[position].verdict
        assert spans[version] is expected.get(each.path, expected.get(None)), reference
    ok = [verdict is Verdict.OK for verdict in spans.values()]
    if each.since is not None:
        assert ok[-1]
        assert not all(ok) or each.spans[0].first is None


@given(table=any_needs(), client=st.sampled_from(CLIENTS))
@settings(max_examples=examples(150))
def test_it_agrees_with_each_version_by_itself(table: TableRequirements, client: Any) -> None:
    for each in find_usability(client, BOTH, table):
        assert_agrees(each, table)


@pytest.mark.slow
@given(table=any_needs())
@settings(max_examples=examples(200))
def test_every_client_and_version_agrees_on_200_tables(table: TableRequirements) -> None:
    for client in CLIENTS:
        for each in find_usability(client, BOTH, table):
            assert_agrees(each, table)


def test_one_line_for_each_client(cli: Cli, table: str) -> None:
    ran = cli("check", table)
    assert ran.code == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.startswith("  ")}
    assert {client.id for client in CLIENTS} <= {name.partition("/")[0] for name in lines}
    assert "ok >= 1.4 " in lines["deltalake/engine"] + " "
    assert "WRONG" in lines["dremio"]
    assert lines["dremio"].endswith("deletionVectors")
    assert "No client is declared" in ran.out


def test_a_verdict_that_no_feature_decides_says_why(cli: Cli, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"id": [1]}))
    lines = [line for line in cli("check", table).out.splitlines() if "UNKNOWN" in line]
    assert lines
    for line in lines:
        assert len(line.split("UNKNOWN")[-1].split()) > 3, line


def test_one_client_shows_its_versions(cli: Cli, table: str) -> None:
    ran = cli("check", table, "--client", "trino")
    assert ran.code == 0
    shown = " ".join(ran.out.split())
    assert "trino read >= 373, < 414 WRONG deletionVectors" in shown
    assert "deltalake" not in ran.out
    assert cli("check", table, "--client", "trino@476", "--access", "read").code == 0


def test_all_shows_every_version_of_every_client(cli: Cli, table: str) -> None:
    short, whole = cli("check", table), cli("check", table, "--client", "all")
    assert whole.code == 0
    assert len(whole.out.splitlines()) > 2 * len(short.out.splitlines())


@pytest.mark.parametrize("words", [(), ("--client", "all"), ("--client", "trino")])
def test_in_json(cli: Cli, table: str, words: tuple[str, ...]) -> None:
    ran = cli("check", table, *words, "--format", "json")
    validate("check", ran.json)
    assert ran.code == 0
    assert ran.json["verdicts"] == []
    found = {(u["client"], u["path"], u["access"]): u for u in ran.json["usability"]}
    assert all(each["table"] == table for each in found.values())
    read = found["trino", None, "read"]
    assert read["verdict"] == "ok"
    assert read["since"] == read["ranges"][-1]["first"]
    assert read["ranges"][0]["verdict"] == "wrong"
    (line,) = cli("check", table, *words, "--format", "jsonl").out.splitlines()
    assert json.loads(line)["usability"] == ran.json["usability"]


def test_in_markdown(cli: Cli, table: str) -> None:
    ran = cli("check", table, "--format", "markdown")
    assert ran.code == 0
    assert "| trino |" in ran.out


def test_saved_inspections_and_inventories_too(
    cli: Cli, table: str, save: Callable[..., str], tmp_path: Path
) -> None:
    live = cli("check", table, "--format", "json").json["usability"]
    saved = cli("check", save(table), "--format", "json").json["usability"]
    inventory = str(tmp_path / "inventory")
    assert cli("scan", str(Path(table).parent), "--inventory", inventory).code == 0
    kept = cli("check", inventory, "--format", "json").json["usability"]
    assert [{**each, "table": ""} for each in live] == [{**each, "table": ""} for each in saved]
    assert [{**each, "table": ""} for each in live] == [{**each, "table": ""} for each in kept]


def test_a_table_that_cannot_be_read_is_no_answer(cli: Cli, table: str, tmp_path: Path) -> None:
    assert cli("check", table, str(tmp_path / "nowhere")).code == 3


def test_declared_clients_fail_as_before(cli: Cli, table: str) -> None:
    assert cli("check", table, "--client", "daft@0.7.26").code == 1
    assert cli("check", table, "--client", "bigquery", "--access", "append").code == 1


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--client", "trino", "--client", "duckdb@1.5.5"), "trino requires a version"),
        (("--client", "all", "--client", "trino"), "excludes other clients"),
        (("--client", "nosuch"), "nosuch"),
        (("--format", "sarif"), "nothing to check against"),
        (("--format", "github"), "nothing to check against"),
    ],
)
def test_mistakes(cli: Cli, table: str, words: tuple[str, ...], cause: str) -> None:
    ran = cli("check", table, *words)
    assert ran.code == 2
    assert cause in ran.err
    assert "hint: " in ran.err
