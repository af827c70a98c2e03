"""`report`: its figures are those of `inspect`, `check` and `drift`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.render.overview.numbers import grouped, plain_location
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet
from tests.support.contract import documents
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
POLICY = """
policy_version: 1
clients:
- {client: trino@400, access: [read], as: dashboards}
- {client: "delta-spark@4.0", access: [read, append]}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_fleet(tmp_path_factory.mktemp("report"), seed=31, count=90)


@pytest.fixture(scope="module")
def inventory(fleet: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two scans; between them a feature appeared on one table."""
    from deltaproto.cli.main import main

    to = str(tmp_path_factory.mktemp("inventory") / "i")
    root = str(fleet[0].parent.parent)
    quiet = ("--inventory", to, "-q", "-o", str(tmp_path_factory.mktemp("out") / "out"))
    changing = Log(Path(root) / "group" / "changing")
    changing.commit(0, commit_info(), protocol(1, 2), metadata())
    assert main(["scan", root, *quiet]) == 3
    vectors = ["deletionVectors"]
    changing.commit(1, commit_info("SET TBLPROPERTIES"), protocol(3, 7, vectors, vectors))
    assert main(["scan", root, *quiet]) == 3
    return to


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


@pytest.fixture(scope="module")
def results() -> dict[tuple[str, ...], Ran]:
    """The results of earlier command lines: nothing in this module changes what they read."""
    return {}


@pytest.fixture
def once(cli: Cli, results: dict[tuple[str, ...], Ran]) -> Cli:
    """Run a command line, or return the result of the same command line in another test."""

    def run(*arguments: str) -> Ran:
        if arguments not in results:
            results[arguments] = cli(*arguments)
        return results[arguments]

    return run


def report(once: Cli, *words: str) -> dict[str, Any]:
    ran = once("report", *words, "--format", "json")
    assert ran.code == 3, ran.err
    (found,) = documents(ran, "report")
    return found


class TestFigures:
    def test_protocols_features_and_isolation_are_those_of_inspect(
        self, once: Cli, fleet: list[Path], inventory: str
    ) -> None:
        found = report(once, inventory)
        names = [*map(str, fleet), str(fleet[0].parent.parent / "group" / "changing")]
        told = once("inspect", *names, "--format", "json").json["tables"]
        read = [entry for entry in told if "error" not in entry]
        assert (found["tables"], found["errors"]) == (len(read), len(told) - len(read))
        assert found["complete"] is False
        protocols = Counter(
            (e["protocol"]["minReaderVersion"], e["protocol"]["minWriterVersion"]) for e in read
        )
        assert {
            (each["minReaderVersion"], each["minWriterVersion"]): each["tables"]
            for each in found["protocols"]
        } == protocols
        supported = Counter(f["name"] for e in read for f in e["features"])
        enabled = Counter(f["name"] for e in read for f in e["features"] if f["enabled"])
        assert {each["feature"]: each["supported"] for each in found["features"]} == supported
        for each in found["features"]:
            assert each["enabled"] == enabled[each["feature"]]
        isolation = Counter(e["isolation"]["declared"] or "not set" for e in read)
        assert found["isolation"] == isolation

    def test_clients_and_findings_are_those_of_check(
        self, once: Cli, inventory: str, policy: str
    ) -> None:
        found = report(once, inventory, "--policy", policy)
        checked = once("check", inventory, "--policy", policy, "--format", "json").json
        verdicts = Counter(
            (v["client"], v["version"], v["access"], v["verdict"]) for v in checked["verdicts"]
        )
        for each in found["clients"]:
            client, _, version = each["client"].partition("@")
            for verdict in ("ok", "refused", "wrong", "unknown"):
                assert each[verdict] == verdicts.pop((client, version, each["access"], verdict), 0)
        assert not verdicts
        rules = Counter((f["rule"], f["severity"]) for f in checked["findings"] if f.get("table"))
        told = {(each["rule"], each["severity"]): each["count"] for each in found["findings"]}
        assert {key: count for key, count in rules.items() if key in told} == told

    def test_what_blocks_is_what_the_verdicts_say(
        self, once: Cli, inventory: str, policy: str
    ) -> None:
        found = report(once, inventory, "--policy", policy)
        checked = once("check", inventory, "--policy", policy, "--format", "json").json
        blocked = {
            (f"{v['client']}@{v['version']}", feature, v["table"])
            for v in checked["verdicts"]
            if v["verdict"] != "ok"
            for feature in v["because"]
        }
        expected = Counter((client, feature) for client, feature, _ in blocked)
        told = {(each["client"], each["feature"]): each["tables"] for each in found["blocking"]}
        assert told == expected

    def test_the_first_to_fix_cover_who_is_hindered(
        self, once: Cli, inventory: str, policy: str
    ) -> None:
        found = report(once, inventory, "--policy", policy)
        first = found["fix_first"]
        assert first
        assert sum(each["tables"] for each in first) <= found["tables"] - found["compliant"]
        for each in first:
            assert each["clients"] or each["errors"] or not each["because"]
            if each["command"] is not None:
                unknown = each["rules"] == ["DP203"]
                assert each["command"].split()[1] == ("check" if unknown else "plan")
                assert f"--policy {policy}" in each["command"]

    def test_scans_and_changes(self, once: Cli, inventory: str) -> None:
        found = report(once, inventory)
        drift = once("drift", inventory, "--format", "json", "--no-commits").json
        assert found["changes"] == len(drift["changes"]) > 0
        assert len(found["scans"]) == 2
        assert [sum(p["tables"] for p in each["protocols"]) for each in found["scans"]] == [
            each["tables"] for each in found["scans"]
        ]
        older = report(once, inventory, "--scan", found["scans"][0]["scan_id"])
        assert older["changes"] == 0
        assert len(older["scans"]) == 1


def test_tables_of_which_too_little_is_known_are_checked_again(cli: Cli, tmp_path: Path) -> None:
    """No plan helps, and a check of the table by its path reads more than a scan."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nclients: [deltalake@1.6.6]\n")
    described = metadata(schema=schema_string(column("id"), column("flag", "boolean")))
    stats = '{"numRecords":1,"minValues":{"id":1,"flag":true},"maxValues":{"id":1,"flag":true}}'
    files = [add(f"f{number}", stats=stats) for number in range(101)]
    Log(tmp_path / "lake" / "t").commit(0, commit_info(), protocol(1, 2), described, *files)
    assert cli("scan", str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"), "-q").code == 0
    words = ("report", str(tmp_path / "i"), "--policy", str(policy), "--format", "json")
    (fix,) = cli(*words).json["fix_first"]
    name, *check = shlex.split(fix["command"])
    assert (name, check[0], check[-1]) == ("deltaproto", "check", "--look-in-files")
    assert cli(*check[:-1]).code == 1
    assert cli(*check).code == 0


class TestPage:
    def test_every_table_is_in_the_page_with_what_holds_for_it(
        self, once: Cli, inventory: str, fleet: list[Path]
    ) -> None:
        ran = once("report", inventory)
        assert ran.code == 3
        data = page_data(ran.out)
        told = {
            entry["table"]: entry
            for entry in once("inspect", *map(str, fleet), "--format", "json").json["tables"]
            if "error" not in entry
        }
        seen = 0
        for name, _, kind, version, _, _, _, findings in data["tables"]:
            if name not in told:
                continue
            seen += 1
            entry = told[name]
            kind = data["kinds"][kind]
            versions = entry["protocol"]
            assert kind["p"] == f"({versions['minReaderVersion']},{versions['minWriterVersion']})"
            assert version == entry["version"]
            states = {
                data["features"][number]: (bool(bits & 1), bool(bits & 2))
                for number, bits in kind["f"]
            }
            assert states == {
                f["name"]: (bool(f["enabled"]), bool(f["present"])) for f in entry["features"]
            }
            assert len(findings) >= len(entry["findings"])
        assert seen == len(told)

    def test_a_bound_on_the_list_does_not_bound_the_figures(
        self, once: Cli, inventory: str
    ) -> None:
        ran = once("report", inventory, "--most", "10")
        data = page_data(ran.out)
        whole = report(once, inventory)
        assert len(data["tables"]) == 10
        assert data["left"] == whole["tables"] - 10
        assert f">{whole['tables']:,}<" in ran.out

    def test_markdown_has_the_same_chapters(self, once: Cli, inventory: str) -> None:
        out = once("report", inventory, "--format", "markdown").out
        chapters = re.findall(r"^## (.*)$", out, re.MULTILINE)
        assert chapters[0] == "The fleet at a glance"
        assert "Tables to fix first" in chapters
        html = once("report", inventory).out
        assert re.findall(r"<h2>(.*?)</h2>", html) == [*chapters, "All tables"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--most", "-1"), "--most -1 is less than 0"),
        (("--scan", "nosuch"), "no scan has the id nosuch"),
        (("--policy", "nosuch.yaml"), "nosuch.yaml"),
    ],
)
def test_mistakes_are_code_2(cli: Cli, inventory: str, words: tuple[str, ...], said: str) -> None:
    ran = cli("report", inventory, *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_what_is_no_inventory_is_code_2(cli: Cli, tmp_path: Path) -> None:
    assert cli("report", str(tmp_path)).code == 2


@pytest.mark.parametrize("count", [1, 23, 24, 25, 400])
def test_groups_are_few_and_hold_their_tables(count: int) -> None:
    locations = [f"s3://lake/area{n % 5}/db{n:03}/table{m}" for n in range(count) for m in (1, 2)]
    groups = grouped(locations)
    assert len(set(groups)) <= 24
    assert all(
        location.startswith(group) for location, group in zip(locations, groups, strict=True)
    )
    if count >= 5:
        assert len(set(groups)) >= 5


def page_data(html: str) -> dict[str, Any]:
    (text,) = re.findall(r"<script type='application/json' id='data'>(.*?)</script>", html, re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def on_terminal(*words: str) -> str:
    """What a terminal shows of a command."""
    import pty

    screen, terminal = pty.openpty()
    command = [sys.executable, "-m", "deltaproto", *words]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal):
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(screen, 65_536):
                shown += part
        except OSError:
            # Linux reports the end of a terminal as an error.
            pass
    os.close(screen)
    return shown.decode()


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_shows_text_and_a_file_gets_the_page(
    inventory: str, once: Cli, tmp_path: Path
) -> None:
    quiet = ("--no-progress", "--no-color")
    shown = on_terminal("report", inventory, *quiet)
    assert "The fleet at a glance" in shown
    assert "<" not in shown
    assert "hint: --output report.html" in shown
    assert "<!doctype html>" in on_terminal("report", inventory, *quiet, "--format", "html").lower()
    page = tmp_path / "report.html"
    assert "hint" not in on_terminal("report", inventory, *quiet, "-o", str(page))
    for written in (page.read_text(), once("report", inventory).out):
        assert written.lower().startswith("<!doctype html>")
    text = once("report", inventory, "--format", "text").out
    assert "The fleet at a glance" in text
    assert "<" not in text


def test_folders_are_named_as_they_are_on_the_disk_and_notices_once(
    cli: Cli, tmp_path: Path
) -> None:
    for folder in ("süd", "nord"):
        vectors = ["deletionVectors"]
        log = Log(tmp_path / "lake" / folder / "t")
        log.commit(0, commit_info(), protocol(3, 7, vectors, vectors), metadata())
    (tmp_path / "lake" / "broken").symlink_to(tmp_path / "nowhere")
    cli("scan", str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nclients: [{client: trino@400, access: [append]}]\n")
    for format_ in ("text", "markdown", "html"):
        out = cli("report", str(tmp_path / "i"), "--policy", str(policy), "--format", format_).out
        assert "süd" in out
        assert "Warning: " not in out
        assert "1 link is broken" in out
    assert re.search(
        r"Unusable tables in +nord +süd\n",
        cli(*("report", str(tmp_path / "i"), "--policy", str(policy), "--format", "text")).out,
    )


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("file:///lake/area%200/t%C3%A9", "/lake/area 0/té"),
        ("file:///lake/100%25", "/lake/100%"),
        ("file:///lake/a%0Ab", "file:///lake/a%0Ab"),
        ("file:///lake/a%1B%5B1m", "file:///lake/a%1B%5B1m"),
        ("file:///lake/%FF", "file:///lake/%FF"),
        ("s3://bucket/a%20b", "s3://bucket/a%20b"),
    ],
)
def test_local_tables_are_shown_by_path_if_it_can_be_copied(location: str, shown: str) -> None:
    assert plain_location(location) == shown


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "csv"])
def test_a_warning_is_shown_once(cli: Cli, tmp_path: Path, format_: str) -> None:
    Log(tmp_path / "lake" / "t").commit(0, protocol(1, 2), metadata())
    Log(tmp_path / "lake" / "_hidden" / "t").commit(0, protocol(1, 2), metadata())
    cli("scan", str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    ran = cli("report", str(tmp_path / "i"), "--format", format_)
    assert ran.code == 0
    inside = "was not searched" in " ".join(ran.out.split())
    assert (inside, "was not searched" in ran.err) == (format_ != "csv", format_ in ("json", "csv"))
    ran = cli("report", str(tmp_path / "i"), "--format", format_, "-o", str(tmp_path / "out"))
    assert "was not searched" in ran.err


def test_nothing_changed_only_if_every_table_was_read(cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", str(tmp_path / "inventory")
    Log(lake / "good").commit(0, protocol(1, 2), metadata())
    Log(lake / "broken").raw(0, b"{")
    report = ("report", inventory, "--format", "markdown")
    for code, said in (
        (3, "1 table or place could not be read in the later scan: what changed there is not"),
        (0, "Nothing changed."),
    ):
        for _ in range(2):
            assert cli("scan", str(lake), "--inventory", inventory).code == code
        out = cli(*report).out
        assert said in out
        assert ("Nothing changed." in out) is (code == 0)
        shutil.rmtree(lake / "broken", ignore_errors=True)
