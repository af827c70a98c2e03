"""`check` without declared clients: who can use a table, and since which version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.matching import NOT_OFFERED
from deltaproto.clients.model import Access, Client, Verdict
from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.clients.usability import find_usability, known_versions
from deltaproto.clients.verdicts import evaluate_clients
from tests.conftest import Ran
from tests.protocol.strategies import NAMES, UNKNOWN, protocols
from tests.support.contract import validate
from tests.support.examples import examples
from tests.support.logs import protocol

Cli = Callable[..., Ran]
Make = Callable[..., str]
CLIENTS = ClientCatalog().clients()
VECTORS = protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])


@pytest.fixture
def table(make: Make) -> str:
    return make("t", VECTORS)


@st.composite
def any_needs(draw: st.DrawFn) -> TableRequirements:
    stored = draw(protocols([*NAMES, *UNKNOWN]))
    usage = {name: draw(st.sampled_from([True, False, None])) for name in sorted(stored.supported)}
    return table_requirements(stored, usage, {}, by_name=draw(st.booleans()))


@cache
def resolved(reference: str) -> ClientAtVersion:
    return ClientCatalog().resolve(reference)


def verdicts(
    candidate: ClientAtVersion, access: Access, table: TableRequirements
) -> dict[str | None, Verdict]:
    """What a declared client of that version gets on each path that offers the access."""
    reference = str(candidate.reference._replace(path=None))
    found = evaluate_clients(resolved(reference), (access,), table)
    return {each.path: each.verdict for each in found if not each.reason.startswith(NOT_OFFERED)}


def assert_agrees(client: Client, table: TableRequirements, accesses: Iterable[Access]) -> None:
    """The spans of each version say what a declared client of that version gets, and no more."""
    for access in accesses:
        every = list(find_usability(client, (access,), table))
        position = dict.fromkeys((each.path for each in every), 0)
        for candidate in known_versions(client):
            version = candidate.reference.version
            for each in every:
                following = each.spans[position[each.path] + 1 :]
                position[each.path] += bool(following) and following[0].first == version
            if version is None and client.versions != "none":
                continue
            spans = {each.path: each.spans[position[each.path]] for each in every}
            shown = {path: span.verdict for path, span in spans.items() if span.offered}
            expected = verdicts(candidate, access, table)
            if None in expected:
                # The only path of this version stands for each one that other versions have.
                expected = dict.fromkeys(spans, expected[None])
            assert shown == expected, (candidate.reference, access)
        for each in every:
            ok = [span.verdict is Verdict.OK for span in each.spans]
            assert (each.since is None) == (not ok[-1] or len(ok) == 1)


@given(table=any_needs(), client=st.sampled_from(CLIENTS), access=st.sampled_from(Access))
@settings(max_examples=examples(150))
def test_it_agrees_with_each_version_by_itself(
    table: TableRequirements, client: Client, access: Access
) -> None:
    assert_agrees(client, table, (access,))


@pytest.mark.slow
@pytest.mark.timeout(1500)
@given(table=any_needs())
@settings(max_examples=examples(200))
def test_every_client_and_version_agrees_on_200_tables(table: TableRequirements) -> None:
    for client in CLIENTS:
        assert_agrees(client, table, (Access.READ, Access.APPEND))


def test_a_path_that_only_old_versions_offer(cli: Cli, make: Make) -> None:
    table = make("t", protocol(1, 2))
    lines = {line.split()[0]: line for line in cli("check", table).out.splitlines() if line}
    assert "ok < 1.0" in lines["deltalake/pyarrow"]
    shown = " ".join(cli("check", table, "--client", "deltalake").out.split())
    assert "deltalake/pyarrow append >= 0.6.4, < 1.0 ok >= 1.0 - this version has no" in shown
    found = cli("check", table, "--client", "deltalake", "--format", "json").json["usability"]
    (pyarrow,) = [u for u in found if (u["path"], u["access"]) == ("pyarrow", "append")]
    assert (pyarrow["offered"], pyarrow["since"]) == (False, None)
    assert [(r["offered"], r["verdict"]) for r in pyarrow["ranges"]] == [
        (True, "ok"),
        (False, "refused"),
    ]
    old, new = (
        cli("check", table, "--client", f"deltalake/pyarrow@{version}", "--access", "append").code
        for version in ("0.25.5", "1.6.6")
    )
    assert (old, new) == (0, 1)


def test_names_with_and_without_a_version(cli: Cli, table: str, tmp_path: Path) -> None:
    words = ("check", table, "--client", "trino", "--client", "duckdb@1.1.0")
    found = cli(*words, "--format", "json")
    assert {v["client"] for v in found.json["verdicts"]} == {"duckdb"}
    assert {u["client"] for u in found.json["usability"]} == {"trino"}
    text = cli(*words)
    assert "duckdb@1.1.0" in text.out
    assert ">= 373, < 414" in text.out
    # Only the declared client decides.
    assert found.code == text.code == cli("check", table, "--client", "duckdb@1.1.0").code == 1
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nclients: [trino@476]\n")
    both = cli("check", table, "--policy", str(policy), "--client", "deltalake", "--format", "json")
    assert {v["client"] for v in both.json["verdicts"]} == {"trino"}
    assert {u["client"] for u in both.json["usability"]} == {"deltalake"}
    assert both.code == cli("check", table, "--policy", str(policy)).code


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
        (
            ("--client", "trino", "--client", "duckdb@1.5.5", "--format", "sarif"),
            "trino has no version",
        ),
        (("--client", "all", "--client", "trino"), "excludes other clients"),
        (("--client", "ALL", "--client", "trino"), "excludes other clients"),
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
