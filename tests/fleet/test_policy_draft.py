"""`deltaproto discover --write-policy`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.policy.document import Policy
from deltaproto.policy.local_catalog import load_local_policy
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
SPARK = {"engineInfo": "Apache-Spark/3.5.1 Delta-Lake/3.2.0", "userName": "ada"}
RUST = {"engineInfo": "delta-rs:py-1.6.6"}


def table(folder: Path, name: str, *infos: dict[str, Any]) -> None:
    log = Log(folder / name)
    for version, info in enumerate(infos):
        more = [protocol(1, 2), metadata()] if version == 0 else []
        log.commit(version, commit_info(**{"timestamp": 1_764_000_000_000, **info}), *more)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    table(root, "gold/a", SPARK, {**RUST, "operation": "DELETE"})
    table(root, "gold/b", SPARK, RUST)
    table(root, "raw/c", {**SPARK, "operation": "MERGE"}, {"clusterId": "trino-455-n"})
    table(root, "raw/d", SPARK, {"engineInfo": "DuckDB"}, {"engineInfo": "loader\n- evil: 1"})
    return root


def written(cli: Cli, lake: Path, policy: Path, code: int = 0) -> Policy:
    ran = cli("discover", str(lake), "--write-policy", str(policy), "--format", "json")
    assert ran.code == code, ran.err
    return load_local_policy(str(policy))


def declared(policy: Policy) -> dict[str | None, set[tuple[str, tuple[str, ...]]]]:
    by_pattern = {each.pattern: each.settings.clients for each in policy.tables}
    lists = {None: policy.clients, **by_pattern}
    return {
        pattern: {(each.text, tuple(map(str, each.access))) for each in clients or ()}
        for pattern, clients in lists.items()
    }


def test_a_new_policy_has_the_clients_of_each_pattern(cli: Cli, lake: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    found = declared(written(cli, lake, path))
    assert found == {
        None: {("delta-spark@3.2.0", ("append", "dml"))},
        f"{lake}/gold/*": {("deltalake@1.6.6", ("append", "dml"))},
        f"{lake}/raw/c": {("trino@455", ("append",))},
    }
    text = path.read_text()
    # The evidence and its date.
    assert "seen 2025-11-24 to 2025-11-24, 4 commits, 4 tables" in text
    assert 'user "ada"' in text
    assert "# - duckdb@VERSION  # seen 2025-11-24" in text
    assert '# unidentified: "loader\\n- evil: 1"' in text
    assert "add the readers" in text
    # The policy is one that check accepts, and that fits the tables.
    checked = cli("check", str(lake / "gold" / "a"), "--policy", str(path), "--format", "json")
    assert {each["client"] for each in checked.json["verdicts"]} == {"delta-spark", "deltalake"}


def test_the_difference_is_shown_and_a_second_run_adds_nothing(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    first = cli("discover", str(lake), "--write-policy", str(path))
    assert "+  - client: delta-spark@3.2.0" in first.err
    assert f"{path}: added 3 clients" in first.err
    before = path.read_bytes()
    second = cli("discover", str(lake), "--write-policy", str(path))
    assert second.err.splitlines() == [f"{path} declares all clients that were seen"]
    assert path.read_bytes() == before


EXISTING = """\
# Ours.
policy_version: 1

define:
  my-loader:
    name: Loader
    versions: dotted
    ranges:
      - from: "1.0"
        read: {legacy: [1]}

clients:
  # The nightly jobs.
  - client: delta-spark@3.2
    access: [read, append]
    as: nightly
  - my-loader@1.0  # ours

tables:
  "raw/*":
    max_reader_version: 3
    clients:
    - client: trino@455
      access: [read, append]
  '*/gold/*':
    isolation: Serializable   # strict

waivers:
  - {rule: DP103, reason: known, expires: 2999-01-01}
approvals:
  - client: trino@455
    access: [read]
    table: raw/c
    feature: deletionVectors
    approver: ada
    reason: moved
    expires: 2999-01-01
severities: {DP108: error}
"""


def test_an_existing_policy_is_extended_and_nothing_else_in_it_changes(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(EXISTING)
    before = load_local_policy(str(path))
    after = written(cli, lake, path)
    found = declared(after)
    # Seen with MERGE, which the entry for Spark does not allow; other entries were enough.
    assert found[f"{lake}/raw/c"] == {("delta-spark@3.2.0", ("dml",))}
    assert found[f"{lake}/gold/*"] == {("deltalake@1.6.6", ("append", "dml"))}
    assert found[None] == declared(before)[None]
    assert found["raw/*"] == declared(before)["raw/*"]
    for member in ("waivers", "approvals", "definitions"):
        kept = [each._replace(position=None) for each in getattr(before, member)]
        assert [each._replace(position=None) for each in getattr(after, member)] == kept
    assert after.severities == before.severities
    # Every line is still there, in its order.
    lines = iter(path.read_text().splitlines())
    assert all(line in lines for line in EXISTING.splitlines())


PLACES = {
    "policy_version: 1\n": "policy_version: 1\nclients:\n",
    "policy_version: 1\nclients: []\n": "policy_version: 1\nclients:\n",
    "policy_version: 1\nclients: [] # none yet\ntables: {}\n": "policy_version: 1\nclients:\n",
    "clients:\n- trino@455\npolicy_version: 1\n": "clients:\n- trino@455\n#",
    'policy_version: 1\ntables:\n  "**":\n    clients:\n      - trino@455\n': (
        "policy_version: 1\ntables:"
    ),
    "policy_version: 1\r\nclients:\r\n  - trino@455\r\n": "policy_version: 1\r\nclients:\r\n",
}


def test_where_clients_are_added(cli: Cli, lake: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    for text, start in PLACES.items():
        path.write_bytes(text.encode())
        policy = written(cli, lake, path)
        assert "delta-spark@3.2.0" in {each.text for each in policy.declared()}, text
        content = path.read_bytes().decode()
        assert content.startswith(start), content
        assert content.count("\r\n") in (0, content.count("\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy_version: 1\nclients: [trino@455]\n", "on one line"),
        ("{policy_version: 1, clients: [trino@455]}\n", "policy.yaml"),
        ("policy_version: 1\ntables: {a: {max_reader_version: 1}}\n", "on one line"),
        ("policy_version: 2\n", "policy_version 2"),
    ],
)
def test_a_policy_that_cannot_be_extended_stays_as_it_is(
    cli: Cli, lake: Path, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    ran = cli("discover", str(lake), "--write-policy", str(path))
    assert ran.code == 2
    assert message in ran.err
    assert path.read_text() == text


def test_names_that_no_pattern_can_match_are_reported(cli: Cli, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    for name in ("odd[1]", "line\nbreak", "\udcff", "\x7f\u200b"):
        table(root, name, RUST)
    table(root, "plain", SPARK)
    path = tmp_path / "policy.yaml"
    ran = cli("discover", str(root), "--write-policy", str(path))
    assert ran.code == 0
    assert ran.err.count("no pattern can match this name") == 4
    assert {each.text for each in load_local_policy(str(path)).declared()} == {"delta-spark@3.2.0"}


def test_an_incomplete_answer_is_marked_in_the_policy(cli: Cli, lake: Path, tmp_path: Path) -> None:
    Log(lake / "broken").raw(0, b"{")
    path = tmp_path / "policy.yaml"
    written(cli, lake, path, code=3)
    assert "# Incomplete: 1 table or log could not be read." in path.read_text()


def test_counts_of_earlier_runs_and_data_files_are_not_access_logs(
    cli: Cli, lake: Path, tmp_path: Path
) -> None:
    inventory, path = str(tmp_path / "inventory"), tmp_path / "policy.yaml"
    assert cli("scan", str(lake), "--inventory", inventory).code == 0
    cli("discover", inventory)
    cli("discover", inventory, "--data-files", "--write-policy", str(path))
    text = path.read_text()
    assert "access log" not in text
    assert "never clients that only read: add the readers" in text


def test_many_tables_of_a_folder_get_one_pattern(cli: Cli, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    for number in range(23):
        table(root, f"t{number}", *([RUST] if number else [SPARK]))
    policy = written(cli, root, tmp_path / "policy.yaml")
    assert declared(policy) == {
        None: set(),
        f"{root}/*": {("deltalake@1.6.6", ("append",))},
        f"{root}/t0": {("delta-spark@3.2.0", ("append",))},
    }
