"""A baseline that compares nothing is an error, and nothing that drifted passes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
P12 = protocol(1, 2)


def table(path: Path, id: str, **properties: str) -> str:
    described = metadata({f"delta.{key}": value for key, value in properties.items()}, id=id)
    return Log(path).commit(0, commit_info("CREATE TABLE"), P12, described, add()).table


def change(path: Path, *actions: dict[str, object], version: int = 1) -> None:
    """Add a version to a table."""
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020}.json").write_text(text)


def rules(ran: Ran) -> set[tuple[str, str, str]]:
    return {(f["rule"], f["severity"], f["table"]) for f in ran.json["findings"]}


@pytest.mark.parametrize(
    "format_", ["text", "json", "jsonl", "markdown", "sarif", "junit", "github", "gitlab"]
)
def test_none_of_the_tables(
    cli: Cli, save: Callable[..., str], tmp_path: Path, format_: str
) -> None:
    before = save(table(tmp_path / "a", "id-a"))
    other = table(tmp_path / "b", "id-b")
    words = ("check", other, "--baseline", before, "--format", format_)
    for fail_on in ("error", "warning", "never"):
        ran = cli(*words, "--fail-on", fail_on)
        assert ran.code == 3
        assert "the baseline contains none of the checked tables" in ran.out


def test_another_mount_matches_by_id(cli: Cli, save: Callable[..., str], tmp_path: Path) -> None:
    before = save(table(tmp_path / "one" / "t", "same"))
    moved = table(tmp_path / "two" / "t", "same", appendOnly="true")
    (tmp_path / "one").rename(tmp_path / "gone")
    ran = cli("check", moved, "--baseline", before, "--format", "json")
    assert (ran.code, rules(ran)) == (1, {("DP224", "error", moved)})


def test_another_checkout_matches_by_relative_path(
    cli: Cli, save: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in "12":
        table(tmp_path / f"checkout{number}" / "lake" / "t", f"id-{number}")
    monkeypatch.chdir(tmp_path / "checkout1")
    before = save("lake/t")
    monkeypatch.chdir(tmp_path / "checkout2")
    ran = cli("check", "./lake/t", "--baseline", before, "--format", "json")
    # The other checkout is still there, and its table is not gone.
    assert (ran.code, rules(ran)) == (0, {("DP223", "warning", "./lake/t")})


def test_a_feature_that_is_no_longer_in_use(
    cli: Cli, save: Callable[..., str], tmp_path: Path
) -> None:
    there = tmp_path / "t"
    name = table(there, "id-1")
    change(
        there, commit_info("SET TBLPROPERTIES"), metadata({"delta.appendOnly": "true"}, id="id-1")
    )
    before = save(name)
    change(there, commit_info("UNSET TBLPROPERTIES"), metadata(id="id-1"), version=2)
    ran = cli("check", name, "--baseline", before, "--format", "json", "--fail-on", "warning")
    assert (ran.code, rules(ran)) == (1, {("DP221", "warning", name)})
    (finding,) = ran.json["findings"]
    assert "appendOnly is no longer in use" in finding["message"]


def test_a_property_that_is_switched(cli: Cli, save: Callable[..., str], tmp_path: Path) -> None:
    """Whether older files have deletion vectors is unknown, but the property is known."""
    path = tmp_path / "t"
    vectors = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
    off, on = (
        metadata({"delta.enableDeletionVectors": each}, id="id-1") for each in ("false", "true")
    )
    name = Log(path).commit(0, commit_info("CREATE TABLE"), vectors, off, add()).table
    before = save(name)
    change(path, commit_info("SET TBLPROPERTIES"), on)
    ran = cli("check", name, "--baseline", before, "--format", "json")
    assert (ran.code, rules(ran)) == (1, {("DP224", "error", name)})
    assert ran.json["findings"][0]["message"] == "deletionVectors was enabled since version 0"
    before = save(name)
    change(path, commit_info("SET TBLPROPERTIES"), off, version=2)
    ran = cli("check", name, "--baseline", before, "--format", "json")
    assert (ran.code, rules(ran)) == (0, {("DP221", "warning", name)})
    assert ran.json["findings"][0]["message"] == "deletionVectors was disabled since version 1"


def test_what_changed(cli: Cli, save: Callable[..., str], tmp_path: Path) -> None:
    there = tmp_path / "t"
    name = table(there, "id-1")
    before = save(name)
    assert rules(cli("check", name, "--baseline", before, "--format", "json")) == set()
    changed = metadata({"delta.isolationLevel": "WriteSerializable"}, id="id-2")
    change(there, commit_info("REPLACE TABLE"), changed)
    ran = cli("check", name, "--baseline", before, "--format", "json", "--fail-on", "warning")
    assert ran.code == 1
    messages = [f["message"] for f in ran.json["findings"] if f["rule"] == "DP223"]
    assert "the table was replaced: its id differs from the baseline" in messages
    assert "the isolation level changed since version 0" in messages


def test_a_table_that_was_unreadable_has_no_baseline(cli: Cli, tmp_path: Path) -> None:
    name, broken, before = (str(tmp_path / each) for each in ("t", "broken", "saved.json"))
    table(tmp_path / "t", "id-1")
    table(tmp_path / "broken", "id-2")
    first = tmp_path / "broken" / "_delta_log" / f"{0:020}.json"
    content = first.read_bytes()
    first.write_bytes(b"{")
    assert cli("inspect", name, broken, "--format", "json", "--output", before).code == 3
    first.write_bytes(content)
    ran = cli("check", name, broken, "--baseline", before, "--format", "json")
    assert (ran.code, ran.json["complete"]) == (3, False)
    assert "could not be read when the baseline was saved" in ran.out
    assert cli("check", name, "--baseline", before, "--format", "json").code == 0


def test_gone_and_not_checked(cli: Cli, save: Callable[..., str], tmp_path: Path) -> None:
    kept, gone, other, more = (
        table(tmp_path / name, name) for name in ("kept", "gone", "other", "more")
    )
    before = save(kept, gone, other, more)
    Path(gone).rename(tmp_path / "elsewhere")
    words = ("check", kept, "--baseline", before)
    ran = cli(*words, "--format", "json", "--fail-on", "warning")
    assert (ran.code, rules(ran)) == (1, {("DP225", "warning", gone)})
    (notice,) = ran.json["notices"]
    assert notice.endswith(f"not checked: {other}, {more}")
    assert notice in cli(*words).out
    # Moved, it is itself.
    moved = str(tmp_path / "elsewhere")
    ran = cli("check", kept, moved, other, more, "--baseline", before, "--format", "json")
    assert (ran.code, rules(ran), "notices" in ran.json) == (0, set(), False)


def test_from_an_inventory(cli: Cli, save: Callable[..., str], tmp_path: Path) -> None:
    name = table(tmp_path / "lake" / "t", "id-1")
    before = save(name)
    changed = metadata({"delta.appendOnly": "true"}, id="id-1")
    change(Path(name), commit_info("SET TBLPROPERTIES"), changed)
    where = str(tmp_path / "inventory")
    assert cli("scan", str(tmp_path / "lake"), "--inventory", where).code == 0
    ran = cli("check", where, "--baseline", before, "--format", "json")
    assert (ran.code, {each[0] for each in rules(ran)}) == (1, {"DP224"})
