"""Plans with --policy: a client that loses access, and a result that the policy forbids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.verdicts import ClientVerdict
from deltaproto.planning.impact import describe_change, find_losses
from tests.conftest import Ran
from tests.fleet.fleets import two_folders
from tests.support.contract import plan
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
PYARROW, ENGINE = "deltalake/pyarrow@1.6.6", "deltalake/engine@1.6.6"


@pytest.fixture
def table(log: Log) -> Log:
    return log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())


def policy(folder: Path, text: str) -> str:
    file = folder / "policy.yaml"
    file.write_text(f"policy_version: 1\n{text}\n")
    return str(file)


def planned(cli: Cli, table: Log, rules: str, *words: str) -> tuple[int, dict[str, Any]]:
    ran = cli("plan-upgrade", table.table, *words, "--policy", rules, "--format", "json")
    return ran.code, plan(ran, "plan-upgrade")


@pytest.mark.parametrize(
    ("client", "words", "change"),
    [
        (
            PYARROW,
            ("--set", "delta.columnMapping.mode=name"),
            "ok -> wrong because of columnMapping",
        ),
        (
            PYARROW,
            ("--sql", "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
            "ok -> wrong because of columnMapping",
        ),
        (ENGINE, ("--enable", "typeWidening"), "ok -> refused because of typeWidening"),
        ("trino@400", ("--enable", "deletionVectors"), "ok -> wrong because of deletionVectors"),
        # No property switches it on: supporting it is using it.
        (
            "delta-kernel-rs@0.4.1",
            ("--enable", "vacuumProtocolCheck"),
            "ok -> wrong because of vacuumProtocolCheck",
        ),
        # Clustering and row tracking write metadata domains.
        (
            "deltalake/pyarrow@0.9.0",
            ("--cluster-by", "id"),
            "ok -> refused because of domainMetadata",
        ),
        (
            "deltalake/pyarrow@0.9.0",
            ("--set", "delta.enableRowTracking=true"),
            "ok -> refused because of domainMetadata",
        ),
    ],
)
def test_a_loss_exits_1_and_is_named(
    cli: Cli, table: Log, tmp_path: Path, client: str, words: tuple[str, ...], change: str
) -> None:
    rules = policy(tmp_path, f"clients: [{{client: {client}, access: [read]}}]")
    code, found = planned(cli, table, rules, *words)
    assert code == 1
    (warning,) = [each for each in found["warnings"] if "loses access" in each]
    assert f"{client} read: {change}" in warning
    assert found["steps"]


@pytest.mark.parametrize("after", [Verdict.REFUSED, Verdict.WRONG, Verdict.UNKNOWN])
def test_every_verdict_after_ok_is_a_loss(after: Verdict) -> None:
    one = ClientVerdict("c", "1", None, Access.READ, Verdict.OK, (), "", (), None)
    then = one._replace(verdict=after, because=("typeWidening",))
    (loss,) = find_losses([("etl", one)], [("etl", then)])
    assert describe_change(loss) == f"c@1 (etl) read: ok -> {after} because of typeWidening"
    assert find_losses([("etl", then)], [("etl", one)]) == ()


def test_a_client_that_only_the_command_line_names_does_not_block(
    cli: Cli, table: Log, tmp_path: Path
) -> None:
    rules = policy(tmp_path, "clients: [{client: delta-spark@4.0.0, access: [read]}]")
    words = ("--enable", "typeWidening", "--client", ENGINE)
    assert planned(cli, table, rules, *words)[0] == 0


def test_a_loss_outranks_pending_changes(cli: Cli, table: Log, tmp_path: Path) -> None:
    rules = policy(tmp_path, f"clients: [{{client: {PYARROW}, access: [read]}}]")
    words = ("--set", "delta.columnMapping.mode=name", "--detailed-exitcode")
    assert planned(cli, table, rules, *words)[0] == 1


@pytest.mark.parametrize(
    ("rule", "words", "said"),
    [
        ("forbid_features: [deletionVectors]", ("--enable", "deletionVectors"), "is forbidden"),
        ("max_reader_version: 2", ("--enable", "deletionVectors"), "above the policy's 2"),
        ("max_writer_version: 6", ("--enable", "rowTracking"), "above the policy's 6"),
        (
            "require_properties: {delta.appendOnly: 'true'}",
            ("--set", "delta.appendOnly=false"),
            "delta.appendOnly = true; it is false",
        ),
        ("isolation: WriteSerializable", ("--isolation", "Serializable"), "WriteSerializable"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_result_that_violates_the_policy_is_blocked(
    cli: Cli, table: Log, tmp_path: Path, rule: str, words: tuple[str, ...], said: str
) -> None:
    rules = policy(tmp_path, f"tables: {{'**': {{{rule}}}}}")
    code, found = planned(cli, table, rules, *words)
    assert code == 1
    assert any(said in each["reason"] for each in found["blocked"])
    assert found["steps"] == []
    assert found["protocol_after"] == found["protocol_before"]


def test_a_version_further_above_its_ceiling_is_blocked(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, commit_info(), protocol(2, 5), metadata())
    rules = policy(tmp_path, "tables: {'**': {max_writer_version: 4}}")
    code, found = planned(cli, log, rules, "--enable", "deletionVectors")
    assert code == 1
    assert "writer version 7" in found["blocked"][0]["reason"]


def test_what_the_policy_forbids_today_does_not_block_another_change(
    cli: Cli, log: Log, tmp_path: Path
) -> None:
    listed = protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly", "invariants"])
    log.commit(0, commit_info(), listed, metadata())
    rules = policy(tmp_path, "tables: {'**': {forbid_features: [deletionVectors]}}")
    assert planned(cli, log, rules, "--set", "delta.appendOnly=true")[0] == 0


class TestApply:
    """The gate of `apply`, which needs no Spark to fail."""

    @pytest.fixture(autouse=True)
    def no_spark(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "pyspark", None)

    def gate(self, cli: Cli, table: Log, rules: str, *words: str) -> dict[str, Any]:
        file = str(Path(table.table).parent / "plan.json")
        cli("plan-upgrade", table.table, *words, "--format", "json", "-o", file)
        ran = cli("apply", file, "--policy", rules, "--yes", "--format", "json")
        gates = {gate["name"]: gate for gate in ran.json["results"][0]["gates"]}
        return dict(gates["policy"])

    def test_a_client_that_turns_wrong(self, cli: Cli, table: Log, tmp_path: Path) -> None:
        rules = policy(
            tmp_path,
            f"clients: [{{client: {PYARROW}, access: [read]}}]\nseverities: {{DP202: warning}}",
        )
        gate = self.gate(cli, table, rules, "--set", "delta.columnMapping.mode=name")
        assert not gate["passed"]
        assert f"{PYARROW} read: ok -> wrong because of columnMapping" in gate["message"]

    def test_properties_that_the_policy_requires(
        self, cli: Cli, table: Log, tmp_path: Path
    ) -> None:
        rules = policy(tmp_path, "tables: {'**': {require_properties: {delta.appendOnly: 'true'}}}")
        assert not self.gate(cli, table, rules, "--set", "delta.appendOnly=false")["passed"]
        assert self.gate(cli, table, rules, "--set", "delta.appendOnly=true")["passed"]

    def test_a_pattern_that_means_the_table_by_the_name_of_its_owner(
        self, cli: Cli, table: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(Path(table.table).parent)
        rules = policy(tmp_path, "tables: {'table': {forbid_features: [deletionVectors]}}")
        file = str(tmp_path / "plan.json")
        cli("plan-upgrade", "table", "--enable", "deletionVectors", "--format", "json", "-o", file)
        ran = cli("apply", file, "--policy", rules, "--yes", "--format", "json")
        gates = {gate["name"]: gate for gate in ran.json["results"][0]["gates"]}
        assert not gates["policy"]["passed"]


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("forbid_features: [identityColumns]", 0),
        ("require_properties: {k: v}", 0),
        ("require_features: [identityColumns]", 1),
        # Nothing enables the feature in the copy.
        ("require_features: [checkConstraints]", 1),
    ],
)
def test_a_copy_is_checked_by_its_new_table(
    cli: Cli, log: Log, tmp_path: Path, setting: str, code: int
) -> None:
    names = ["appendOnly", "checkConstraints", "identityColumns", "invariants"]
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 7, None, names), metadata({"k": "v"}))
    rules = policy(
        tmp_path,
        f"clients: [{{client: {ENGINE}, access: [read, append]}}]\ntables: {{'*': {{{setting}}}}}",
    )
    ran = cli("plan-downgrade", log.table, "--policy", rules, "--rewrite", "--format", "json")
    found = plan(ran, "plan-downgrade")
    assert ran.code == code
    if code:
        (blocked,) = found["blocked"]
        assert blocked["reason"].startswith("the result would violate the policy: ")
        assert found["steps"] == []
        return
    (change,) = (each for each in found["clients"] if each["access"] == "append")
    assert (change["before"], change["after"]) == ("refused", "ok")
    assert found["protocol_after"]["minWriterVersion"] == 2


def test_the_summary_names_clients_that_would_be_wrong(cli: Cli, tmp_path: Path) -> None:
    """They are refused today: the result is worse for them, although they lose no access."""
    tables = two_folders(tmp_path / "lake", 0, 2)
    rules = policy(
        tmp_path,
        "clients: [{client: deltalake@1.0.0, access: [append]}, {client: trino@400}]\n"
        "tables: {'**': {forbid_features: [deletionVectors]}}",
    )
    ran = cli("plan", *tables, "--policy", rules, "--format", "json")
    summary = ran.json["summary"]
    use = {"client": "deltalake/engine@1.0.0", "access": "append", "tables": 2}
    assert summary["clients_wrong"] == [use]
    assert use not in summary["clients_gained"]
    assert summary["clients_lost"] == []
    assert (summary["with_steps"], summary["leave_violations"]) == (2, 2)
    text = " ".join(cli("plan", *tables, "--policy", rules, "--no-color").out.split())
    assert "2 with steps will still violate the policy afterwards" in text
    assert (
        "After these plans, clients may silently read or write wrong rows: "
        "deltalake/engine@1.0.0 append (2 tables)." in text
    )


def test_groups_name_what_stays_violated_and_who_would_be_wrong(cli: Cli, tmp_path: Path) -> None:
    """The reasons of the rules differ from table to table: the groups show the rules only."""
    tables = two_folders(tmp_path / "lake", 1, 6)
    rules = policy(
        tmp_path,
        "clients: [{client: deltalake@1.0.0, access: [append]}]\n"
        "tables: {'**': {forbid_features: [deletionVectors], history: truncate}}",
    )
    text = " ".join(cli("plan", *tables, "--policy", rules, "--no-color").out.split())
    assert "stays violated DP202" in text
    assert "lose access deltalake/engine@1.0.0 append WRONG" in text
    with_steps, without = text.index("remove deletionVectors"), text.index("stays violated: DP202")
    assert with_steps < without
