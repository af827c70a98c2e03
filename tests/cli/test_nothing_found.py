"""A source in which no table is found is never a pass, in every command that takes several."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from deltaproto.certification.fixtures.recipes import KIT_VERSION
from deltaproto.cli.certify import has_measurements
from deltaproto.clients.measurement import MeasuredOutcome
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CLIENT = ("--client", "trino@476")
PLAN = ("plan-downgrade", "--lowest")


@pytest.fixture
def table(log: Log) -> str:
    return log.commit(0, commit_info(), protocol(1, 2), metadata()).table


@pytest.fixture
def saved(tmp_path: Path, cli: Cli, table: str) -> str:
    """A saved inspection that holds no table."""
    file = tmp_path / "saved.json"
    assert cli("inspect", table, "--format", "json", "-o", str(file)).code == 0
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "tables": []}))
    return str(file)


@pytest.fixture
def barren(tmp_path: Path) -> Path:
    """A folder without tables."""
    (tmp_path / "barren" / "below").mkdir(parents=True)
    return tmp_path / "barren"


@pytest.fixture
def inventory(tmp_path: Path, cli: Cli, barren: Path) -> str:
    """An inventory whose scan found no table."""
    where = str(tmp_path / "inventory")
    assert cli("scan", str(barren), "--inventory", where, "--allow-empty").code == 0
    return where


@pytest.mark.parametrize("words", [("inspect", "-"), ("check", "-", *CLIENT), (*PLAN, "-")])
def test_empty_standard_input(
    words: tuple[str, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, code in (("", 3), ("\n \r\n", 3)):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        ran = cli(*words)
        assert ran.code == code
        assert ran.err.startswith("error: no tables found in standard input\nhint: ")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert cli(*words, "--format", "json").json["error"]["code"] == "no-tables"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert cli(*words, "--allow-empty").code == 0


FORMATS = ("text", "json", "jsonl", "markdown", "sarif", "junit", "github")


class TestSavedInspection:
    @pytest.mark.parametrize("format_", FORMATS)
    def test_check_fails_in_every_format(self, cli: Cli, saved: str, format_: str) -> None:
        ran = cli("check", saved, *CLIENT, "--format", format_)
        assert ran.code == 3
        assert "no tables found" in ran.out

    def test_one_of_two_is_enough(self, cli: Cli, saved: str, table: str) -> None:
        ran = cli("check", table, saved, *CLIENT, "--format", "json")
        assert ran.code == 3
        (document,) = documents(ran, "check")
        assert [e["error"]["code"] for e in document["errors"]] == ["no-tables"]
        assert {verdict["table"] for verdict in document["verdicts"]} == {table}

    def test_a_plan_fails_too(self, cli: Cli, saved: str) -> None:
        ran = cli(*PLAN, saved, "--format", "json")
        assert ran.code == 3
        assert documents(ran, "plan")[0]["plans"][0]["error"]["code"] == "no-tables"

    def test_unless_that_is_allowed(self, cli: Cli, saved: str) -> None:
        assert cli("check", saved, *CLIENT, "--allow-empty").code == 0
        assert cli(*PLAN, saved, "--allow-empty").code == 0


class TestScan:
    @pytest.mark.parametrize("more", [(), ("--format", "json"), ("--fail-on", "never")])
    def test_an_empty_root(self, cli: Cli, barren: Path, more: tuple[str, ...]) -> None:
        ran = cli("scan", str(barren), *more)
        assert ran.code == 3
        assert cli("scan", str(barren), *more, "--allow-empty").code == 0

    def test_an_empty_root_beside_another(self, cli: Cli, barren: Path, table: str) -> None:
        ran = cli("scan", str(Path(table)), str(barren))
        assert ran.code == 3
        assert f"no tables found in {barren}" in " ".join(ran.out.split())

    @pytest.mark.parametrize("pattern", [("--include", "tabel"), ("--exclude", "table")])
    def test_a_pattern_that_leaves_nothing(
        self, cli: Cli, tmp_path: Path, table: str, pattern: tuple[str, str]
    ) -> None:
        assert cli("scan", str(tmp_path)).code == 0
        assert cli("scan", str(tmp_path), *pattern).code == 3

    def test_an_empty_list(self, cli: Cli, tmp_path: Path, table: str) -> None:
        names = tmp_path / "names"
        names.write_text("# all of them\n\n")
        assert cli("scan", "--list", str(names)).code == 3
        assert cli("scan", "--list", str(names), "--allow-empty").code == 0
        names.write_text(f"{table}\n")
        assert cli("scan", "--list", str(names)).code == 0

    def test_a_root_that_holds_the_inventory_alone(self, cli: Cli, tmp_path: Path) -> None:
        where = tmp_path / "own" / "inventory"
        where.parent.mkdir()
        for _ in range(2):
            assert cli("scan", str(where.parent), "--inventory", str(where)).code == 3
        assert cli("scan", str(where / "tables"), "--inventory", str(where)).code == 3

    def test_a_root_whose_tables_are_all_below_another_root_or_a_link(
        self, cli: Cli, tmp_path: Path, table: str
    ) -> None:
        (tmp_path / "links").mkdir()
        (tmp_path / "links" / "there").symlink_to(table)
        (tmp_path / "outer" / "inner").mkdir(parents=True)
        (tmp_path / "outer" / "inner" / "there").symlink_to(table)
        assert cli("scan", str(tmp_path / "links")).code == 0
        assert cli("scan", str(tmp_path / "outer"), str(tmp_path / "outer" / "inner")).code == 0
        assert cli("scan", str(tmp_path / "links"), table).code == 0

    def test_an_unmounted_root_is_not_a_fleet_without_tables(
        self, cli: Cli, tmp_path: Path, table: str
    ) -> None:
        where, root = str(tmp_path / "inventory"), tmp_path / "root"
        root.mkdir()
        Path(table).rename(root / "t")
        assert cli("scan", str(root), "--inventory", where).code == 0
        (root / "t").rename(tmp_path / "elsewhere")
        assert cli("scan", str(root), "--inventory", where).code == 3
        changes = cli("drift", where, "--format", "json").json["changes"]
        assert {change["change"] for change in changes} == {"unreadable"}


class TestInventory:
    @pytest.mark.parametrize(
        "words", [("check", *CLIENT), PLAN, ("report",), ("report", "--format", "json")]
    )
    def test_without_tables(self, cli: Cli, inventory: str, words: tuple[str, ...]) -> None:
        assert cli(*words, inventory).code == 3
        assert cli(*words, inventory, "--allow-empty").code == 0

    def test_compared_with_another(self, cli: Cli, inventory: str, barren: Path) -> None:
        assert cli("scan", str(barren), "--inventory", inventory, "--allow-empty").code == 0
        assert cli("drift", inventory).code == 3
        assert cli("drift", inventory, "--allow-empty").code == 0

    def test_a_condition_that_no_table_meets(self, cli: Cli, tmp_path: Path, table: str) -> None:
        where = str(tmp_path / "inventory")
        assert cli("scan", table, "--inventory", where).code == 0
        words = (*PLAN, "--from", where, "--where")
        assert cli(*words, "min_reader_version = 1").code == 0
        assert cli(*words, "min_reader_version = 9").code == 3
        assert cli(*words, "min_reader_version = 9", "--allow-empty").code == 0

    def test_reported_by_a_policy_that_asks_nothing(
        self, cli: Cli, tmp_path: Path, table: str
    ) -> None:
        where, policy = str(tmp_path / "inventory"), tmp_path / "policy.yaml"
        assert cli("scan", table, "--inventory", where).code == 0
        for text in ("policy_version: 1\n", "policy_version: 1\nclients: []\ntables: {}\n"):
            policy.write_text(text)
            words = ("report", where, "--policy", str(policy), "--format", "json")
            ran = cli(*words)
            assert ran.code == 3
            assert "declares no clients and no settings" in ran.json["error"]["message"]
            assert cli(*words, "--allow-empty").code == 0


EXECUTING = ("runbook", "rehearse", "apply")


class TestPlans:
    @pytest.mark.parametrize("command", EXECUTING)
    @pytest.mark.parametrize("content", ["", "\n \n", "plans"])
    def test_a_file_without_plans(
        self, cli: Cli, tmp_path: Path, saved: str, command: str, content: str
    ) -> None:
        file = tmp_path / "plans.json"
        file.write_text(content)
        if content == "plans":
            words = (*PLAN, saved, "--allow-empty", "--format", "json", "-o", str(file))
            assert cli(*words).code == 0
        ran = cli(command, str(file))
        assert ran.code == 3
        assert ran.err.startswith(f"error: {file} is not a plan: it is empty\nhint: ")
        assert "--allow-empty" in ran.err
        assert cli(command, str(file), "--allow-empty").code == 0
        if command != "runbook":
            error = cli(command, str(file), "--format", "json").json["error"]
            assert error["code"] == "no-tables"
            (document,) = documents(
                cli(command, str(file), "--allow-empty", "--format", "json"), "apply"
            )
            assert document["results"] == []

    @pytest.mark.parametrize("command", EXECUTING)
    def test_a_folder_without_plans(self, cli: Cli, barren: Path, command: str) -> None:
        ran = cli(command, str(barren))
        assert ran.code == 3
        assert ran.err.startswith(f"error: {barren} contains no plan\n")
        assert cli(command, str(barren), "--allow-empty").code == 0

    @pytest.mark.parametrize("command", EXECUTING)
    def test_one_of_two_is_enough_and_nothing_is_begun(
        self, cli: Cli, tmp_path: Path, table: str, command: str
    ) -> None:
        full, empty = tmp_path / "full.json", tmp_path / "empty.json"
        empty.touch()
        words = ("--enable", "deletionVectors", "--format", "json", "-o", str(full))
        assert cli("plan-upgrade", table, *words).code == 0
        ran = cli(command, str(full), str(empty))
        assert (ran.code, ran.out) == (3, "")

    def test_a_plan_with_nothing_to_do_is_one(self, cli: Cli, tmp_path: Path, table: str) -> None:
        file = str(tmp_path / "plan.json")
        assert cli(*PLAN, table, "--format", "json", "-o", file).code == 0
        assert cli("apply", file).code == 0
        assert cli("runbook", file).code == 0


class TestCertify:
    @pytest.fixture
    def kit(self, tmp_path: Path) -> str:
        """A kit without tables."""
        index = {"kit_version": KIT_VERSION, "digest": "0", "made_with": {}, "cases": []}
        (tmp_path / "kit").mkdir()
        (tmp_path / "kit" / "kit.json").write_text(json.dumps(index))
        return str(tmp_path / "kit")

    def test_nothing_to_measure(self, cli: Cli, kit: str) -> None:
        words = ("certify", "x", "--command", "true", "--kit", kit, "--operation", "rows")
        ran = cli(*words)
        assert ran.code == 3
        assert ran.err.startswith("error: nothing to measure: no reference table of the kit has")
        assert cli(*words, "--allow-empty").code == 0

    @pytest.mark.parametrize(
        ("outcomes", "found"),
        [((), False), (("not offered",) * 2, False), (("not offered", "refused"), True)],
    )
    def test_what_a_client_does_not_offer_is_not_measured(
        self, outcomes: tuple[str, ...], found: bool
    ) -> None:
        cells = [SimpleNamespace(outcome=MeasuredOutcome(each)) for each in outcomes]
        assert has_measurements(SimpleNamespace(cells=cells)) is found  # type: ignore[arg-type]
