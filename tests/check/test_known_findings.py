"""Item 9 of issue 27: a saved check grandfathers its findings, and only new ones fail."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
DV = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
UNUSED = ["deletionVectors", "v2Checkpoint"]
WITH_UNUSED = protocol(3, 7, UNUSED, UNUSED)
MORE = protocol(3, 7, [*UNUSED, "columnMapping"], [*UNUSED, "columnMapping"])
CLIENT = ("--client", "trino@400")
FORMATS = ["text", "json", "jsonl", "markdown", "sarif", "junit", "github", "gitlab"]


def table(path: Path, *actions: Any) -> str:
    return Log(path).commit(0, commit_info(), *actions, metadata(id=path.name), add()).table


def change(path: str, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in (commit_info(), *actions))
    (Path(path) / "_delta_log" / f"{1:020}.json").write_text(text)


@pytest.fixture
def saved(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """A file that `check` wrote of these words."""

    def run(*words: str, format_: str = "json") -> str:
        file = tmp_path / "known.json"
        cli("check", *words, "--format", format_, "--output", str(file))
        return str(file)

    return run


def findings(ran: Ran) -> list[tuple[str, bool]]:
    return [(each["rule"], each.get("known", False)) for each in ran.json["findings"]]


@pytest.mark.parametrize("format_", ["json", "jsonl"])
def test_item_9_known_findings_do_not_fail(
    cli: Cli, saved: Callable[..., str], tmp_path: Path, format_: str
) -> None:
    names = [table(tmp_path / name, DV) for name in ("a", "b")]
    known = saved(*names, *CLIENT, format_=format_)
    assert cli("check", *names, *CLIENT).code == 1
    ran = cli("check", *names, *CLIENT, "--baseline", known, "--format", "json")
    assert ran.code == 0
    assert [each for each in findings(ran) if each[0] == "DP201"] == [("DP201", True)] * 2
    assert all(is_known for _, is_known in findings(ran))
    assert ran.json["summary"]["known"] == len(findings(ran))
    assert ran.json["summary"]["fixed"] == ran.json["summary"]["findings"]["error"] == 0


@pytest.mark.parametrize("format_", FORMATS)
def test_item_9_every_format_marks_known_and_new(
    cli: Cli, saved: Callable[..., str], tmp_path: Path, format_: str
) -> None:
    name = table(tmp_path / "t", DV)
    known = saved(name, *CLIENT)
    words = ("check", name, *CLIENT, "--baseline", known, "--format", format_)
    ran = cli(*words)
    assert ran.code == 0
    mark = {"sarif": '"unchanged"', "markdown": "(known)"}.get(format_, "known")
    assert mark in ran.out
    assert not re.search(r'<failure|::error|"new"|"critical"', ran.out)
    more = cli(*words, "--client", "deltalake@0.10.0")
    assert more.code == 1
    new = {"sarif": '"new"', "junit": "<failure", "github": "::error", "gitlab": '"critical"'}
    assert new.get(format_, "error") in more.out


def _raised(name: str, tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "p.yaml").write_text("policy_version: 1\nseverities: {DP110: error}\n")
    return (*CLIENT, "--policy", str(tmp_path / "p.yaml"))


def _more_features(name: str, tmp_path: Path) -> tuple[str, ...]:
    change(name, MORE)
    return CLIENT


WORSE: dict[str, Callable[[str, Path], tuple[str, ...]]] = {
    "another client": lambda name, path: (*CLIENT, "--client", "deltalake@0.10.0"),
    "another version of the client": lambda name, path: ("--client", "trino@401"),
    "another access": lambda name, path: (*CLIENT, "--access", "append", "--access", "dml"),
    "a higher severity": _raised,
    "one more feature that decides": _more_features,
}


@pytest.mark.parametrize("how", WORSE)
def test_item_9_what_got_worse_is_new(
    cli: Cli, saved: Callable[..., str], tmp_path: Path, how: str
) -> None:
    name = table(tmp_path / "t", WITH_UNUSED)
    known = saved(name, *CLIENT, "--access", "append")
    words = WORSE[how](name, tmp_path)
    access = () if "--access" in words else ("--access", "append")
    ran = cli("check", name, *words, *access, "--baseline", known, "--format", "json")
    assert ran.code == 1
    assert any(
        not each.get("known") and each["severity"] == "error" for each in ran.json["findings"]
    )


def _edited(file: str, change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads(Path(file).read_text())
    change(document)
    Path(file).write_text(json.dumps(document))
    return file


def test_item_9_wording_does_not_make_a_finding_new(
    cli: Cli, saved: Callable[..., str], tmp_path: Path
) -> None:
    def reword(document: dict[str, Any]) -> None:
        for each in document["findings"]:
            each["message"] = each["hint"] = "in other words"

    name = table(tmp_path / "t", DV)
    known = _edited(saved(name, *CLIENT), reword)
    assert cli("check", name, *CLIENT, "--baseline", known).code == 0


@pytest.mark.parametrize("verdict", ["unknown", "wrong"])
def test_item_9_another_verdict_is_new(
    cli: Cli, saved: Callable[..., str], tmp_path: Path, verdict: str
) -> None:
    def change_verdict(document: dict[str, Any]) -> None:
        for each in document["verdicts"]:
            each["verdict"] = verdict

    name = table(tmp_path / "t", DV)
    known = _edited(saved(name, *CLIENT), change_verdict)
    assert cli("check", name, *CLIENT, "--baseline", known).code == 1


def test_item_9_a_waiver_that_ended_is_new(
    cli: Cli, saved: Callable[..., str], tmp_path: Path
) -> None:
    waivers = "waivers:\n  - {rule: DP201, table: '**', reason: r, expires: 2099-01-01}\n"
    policy = tmp_path / "p.yaml"
    policy.write_text(f"policy_version: 1\nclients: [trino@400]\n{waivers}")
    name = table(tmp_path / "t", DV)
    known = saved(name, "--policy", str(policy))
    words = ("check", name, "--policy", str(policy), "--baseline", known)
    assert cli(*words).code == 0
    policy.write_text("policy_version: 1\nclients: [trino@400]\n")
    assert cli(*words).code == 1


def test_item_9_fixed_findings_are_counted(
    cli: Cli, saved: Callable[..., str], tmp_path: Path
) -> None:
    name = table(tmp_path / "t", DV)
    known = saved(name, *CLIENT)
    change(name, protocol(1, 2))
    ran = cli("check", name, *CLIENT, "--baseline", known, "--format", "json")
    assert (ran.code, findings(ran)) == (0, [])
    assert ran.json["summary"]["fixed"] == 2
    assert "2 fixed since" in cli("check", name, *CLIENT, "--baseline", known).out
    # Nobody judged the client, so its finding is not fixed.
    ran = cli("check", name, "--baseline", known, "--format", "json")
    assert ran.json["summary"]["fixed"] == 0


def test_item_9_no_false_pass(cli: Cli, saved: Callable[..., str], tmp_path: Path) -> None:
    listed, other = (table(tmp_path / name, protocol(1, 2)) for name in ("a", "b"))
    known = saved(listed, *CLIENT)
    words = ("--baseline", known, *CLIENT, "--format", "json")
    # A table that the baseline does not list fails, although nothing else is wrong with it.
    ran = cli("check", listed, other, *words)
    assert (ran.code, findings(ran)) == (1, [("DP222", False)])
    # Alone, it was compared with nothing.
    assert cli("check", other, *words).code == 3
    # A table that cannot be read now, and one that could not be read then.
    (Path(other) / "_delta_log" / f"{0:020}.json").write_text("{")
    assert cli("check", listed, other, *words).code == 3
    saved(listed, other, *CLIENT)
    assert cli("check", listed, other, *words).code == 3
    shutil.rmtree(other)
    table(tmp_path / "b", DV)
    ran = cli("check", listed, other, *words)
    assert (ran.code, ("DP222", False) in findings(ran)) == (1, True)
    # A table of the baseline that was not checked is named.
    saved(listed, other, *CLIENT)
    ran = cli("check", listed, *words, "--fail-on", "warning")
    assert ran.code == 1
    assert f"1 table of the baseline was not checked: {other}" in ran.json["notices"]


def test_item_9_a_policy_grades_tables_that_are_missing(
    cli: Cli, saved: Callable[..., str], tmp_path: Path
) -> None:
    listed, other = (table(tmp_path / name, protocol(1, 2)) for name in ("a", "b"))
    known = saved(listed)
    policy = tmp_path / "p.yaml"
    policy.write_text("policy_version: 1\nclients: [trino@400]\nseverities: {DP222: info}\n")
    assert cli("check", listed, other, "--baseline", known, "--policy", str(policy)).code == 0


def test_item_9_of_an_inventory(cli: Cli, saved: Callable[..., str], tmp_path: Path) -> None:
    name = table(tmp_path / "lake" / "a", DV)
    where = str(tmp_path / "inventory")
    words = ("scan", str(tmp_path / "lake"), "--inventory", where)
    assert cli(*words).code == 0
    known = saved(where, *CLIENT)
    assert cli("check", where, *CLIENT).code == 1
    assert cli("check", where, *CLIENT, "--baseline", known).code == 0
    # The saved check of an inventory holds for the tables themselves.
    assert cli("check", name, *CLIENT, "--baseline", known).code == 0
    change(name, MORE)
    assert cli(*words).code == 0
    assert cli("check", where, *CLIENT, "--baseline", known).code == 1


def _not_listing(document: dict[str, Any]) -> None:
    del document["tables"]


def _of_another_shape(document: dict[str, Any]) -> None:
    document["schema_version"] = "2.0"


def _damaged(document: dict[str, Any]) -> None:
    document["findings"][0]["rule"] = 5


def _plan(document: dict[str, Any]) -> None:
    document["command"] = "plan-downgrade"


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (_not_listing, "does not list the checked tables"),
        (_of_another_shape, "has the schema_version"),
        (_damaged, "is not the output of `check --format json`"),
        (_plan, "is the output of plan-downgrade, not of check or inspect"),
    ],
)
def test_item_9_a_file_of_another_kind(
    cli: Cli,
    saved: Callable[..., str],
    tmp_path: Path,
    damage: Callable[[dict[str, Any]], None],
    cause: str,
) -> None:
    name = table(tmp_path / "t", DV)
    known = _edited(saved(name, *CLIENT), damage)
    ran = cli("check", name, *CLIENT, "--baseline", known)
    assert (ran.code, ran.out) == (2, "")
    error, hint = ran.err.strip().splitlines()
    assert cause in error
    assert hint.strip().startswith("hint: ")


def test_item_9_the_drift_of_a_saved_inspection_is_as_before(
    cli: Cli, save: Callable[..., str], tmp_path: Path
) -> None:
    name = table(tmp_path / "t", DV)
    before = save(name)
    change(name, MORE)
    ran = cli("check", name, "--baseline", before, "--format", "json")
    assert (ran.code, ("DP220", False) in findings(ran)) == (1, True)


class TestWriteBaseline:
    @pytest.fixture
    def names(self, tmp_path: Path) -> list[str]:
        return [table(tmp_path / name, DV) for name in ("a", "b")]

    @pytest.mark.parametrize("format_", FORMATS)
    def test_it_saves_the_findings_that_then_do_not_fail(
        self, cli: Cli, names: list[str], tmp_path: Path, format_: str
    ) -> None:
        file = str(tmp_path / "debt.json")
        plain = cli("check", *names, *CLIENT, "--format", format_)
        ran = cli("check", *names, *CLIENT, "--format", format_, "--write-baseline", file)
        assert (plain.code, ran.code) == (1, 0)
        assert format_ in ("sarif", "json", "jsonl", "junit") or ran.out == plain.out
        saved = json.loads(Path(file).read_text())
        validate("check", saved)
        assert cli("check", *names, *CLIENT, "--baseline", file).code == 0
        change(names[0], WITH_UNUSED)
        assert cli("check", *names, "--client", "trino@380", "--baseline", file).code == 1

    def test_a_table_that_cannot_be_read_still_fails_now_and_is_new_later(
        self, cli: Cli, names: list[str], tmp_path: Path
    ) -> None:
        file, late = str(tmp_path / "debt.json"), str(tmp_path / "late")
        assert cli("check", *names, late, *CLIENT, "--write-baseline", file).code == 3
        table(tmp_path / "late", DV)
        ran = cli("check", *names, late, *CLIENT, "--baseline", file, "--format", "json")
        assert ran.code == 1
        assert ("DP222", False) in findings(ran)

    def test_a_baseline_is_renewed_in_place(
        self, cli: Cli, names: list[str], tmp_path: Path
    ) -> None:
        file = str(tmp_path / "debt.json")
        cli("check", *names, *CLIENT, "--write-baseline", file)
        change(names[0], WITH_UNUSED)
        both = ("--baseline", file, "--write-baseline", file)
        assert cli("check", *names, *CLIENT, *both).code == 0
        assert cli("check", *names, *CLIENT, "--baseline", file, "--fail-on", "warning").code == 0

    def test_no_variable_adopts_findings(
        self, cli: Cli, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DELTAPROTO_WRITE_BASELINE", str(tmp_path / "debt.json"))
        ran = cli("check", *names, *CLIENT)
        assert (ran.code, "because it lowers safety" in ran.err) == (2, True)
        assert not (tmp_path / "debt.json").exists()

    def test_what_makes_no_sense(self, cli: Cli, names: list[str], tmp_path: Path) -> None:
        file = tmp_path / "debt.json"
        ran = cli("check", *names, "--write-baseline", str(file))
        assert (ran.code, "on declared clients" in ran.err) == (2, True)
        policy = tmp_path / "policy.yaml"
        policy.write_text("policy_version: 1\nclients:\n- client: trino@480\n")
        words = ("--policy", str(policy), "--write-baseline", str(policy))
        ran = cli("check", *names, *words)
        assert (ran.code, "--write-baseline would overwrite" in ran.err) == (2, True)
        assert not file.exists()
