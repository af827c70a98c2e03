"""What a policy's patterns add, replace and weaken, and what in a policy does nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.conftest import Ran
from tests.support.logs import metadata, protocol

Cli = Callable[..., Ran]
Checked = Callable[..., dict[str, Any]]
Make = Callable[..., str]
Policy = Callable[[str], str]

MAPPED = protocol(3, 7, ["columnMapping"], ["appendOnly", "columnMapping", "invariants"])
BY_NAME = metadata({"delta.columnMapping.mode": "name"})
GOOD, OLD = "trino@476", "trino@400"
READS = f"clients: [{{client: {OLD}, access: [read]}}]\n"
OWN = f"  '**/customers': {{clients: [{{client: {GOOD}, access: [read]}}]"


def rules(document: dict[str, Any]) -> list[str]:
    return [each["rule"] for each in document["findings"] if each["rule"].startswith("DP3")]


@pytest.fixture
def vectors(make: Make) -> str:
    names = ["deletionVectors"]
    on = metadata({"delta.enableDeletionVectors": "true"})
    return make("customers", protocol(3, 7, names, [*names, "appendOnly", "invariants"]), on)


def test_the_profile_of_a_setting_is_shown(
    checked: Checked, vectors: str, policy: Policy, cli: Cli
) -> None:
    profile = "profiles:\n  gold-1: {forbid_features: [deletionVectors]}\n"
    file = policy(f"{profile}tables:\n  '**/customers': {{profile: gold-1}}\n")
    document = checked(vectors, "--policy", file, code=1)
    assert [(s["setting"], s["profile"], s["line"]) for s in document["settings"]] == [
        ("forbid_features", "gold-1", 5)
    ]
    text = " ".join(cli("check", vectors, "--policy", file).out.split())
    assert '"**/customers" (profile gold-1): forbid_features (1)' in text


def test_what_cannot_be_read_says_nothing_about_the_policy(
    checked: Checked, vectors: str, policy: Policy, tmp_path: Path
) -> None:
    """A folder that is not a table matches no pattern, and a table may need its exceptions."""
    about = f"table: '**/gone', client: {GOOD}, reason: moves, expires: 2999-01-01"
    exceptions = (
        f"waivers: [{{rule: DP201, {about}}}]\n"
        f"approvals: [{{{about}, access: [read], feature: variantType, approver: Mary}}]\n"
    )
    file = policy(f"tables:\n  '**/customers': {{max_reader_version: 3}}\n{exceptions}")
    gone, other = str(tmp_path / "gone"), str(tmp_path / "inventory")
    assert rules(checked(other, "--policy", file, code=3)) == []
    assert rules(checked(vectors, gone, "--policy", file, code=3)) == []
    found = checked(vectors, other, "--policy", file, code=3)
    assert rules(found) == ["DP301", "DP301"]
    assert all("matches nothing in 1 table" in each["message"] for each in found["findings"])


def test_one_table_needs_no_canary(
    checked: Checked, vectors: str, policy: Policy, tmp_path: Path
) -> None:
    file = policy("tables:\n  '**': {max_reader_version: 3}\nrollout:\n  canary: ['**/other']\n")
    assert rules(checked(vectors, "--policy", file)) == []
    other = str(shutil.copytree(vectors, tmp_path / "second"))
    assert rules(checked(vectors, other, "--policy", file)) == ["DP301"]


class TestClients:
    def test_those_of_a_pattern_add_to_those_of_all_tables(
        self, checked: Checked, vectors: str, policy: Policy
    ) -> None:
        file = policy(f"{READS}tables:\n{OWN}}}\n")
        document = checked(vectors, "--policy", file, code=1)
        assert [(v["version"], v["verdict"]) for v in document["verdicts"]] == [
            ("400", "wrong"),
            ("476", "ok"),
        ]
        (notice,) = (f for f in document["findings"] if f["rule"] == "DP304")
        assert "earlier versions replaced them" in notice["message"]
        assert f"{file}:4:3" in notice["message"]
        assert "clients_replace: true" in notice["hint"]

    def test_replacing_them_is_explicit_and_shown(
        self, checked: Checked, vectors: str, policy: Policy, cli: Cli
    ) -> None:
        file = policy(f"{READS}tables:\n{OWN}, clients_replace: true}}\n")
        document = checked(vectors, "--policy", file, code=0)
        assert [v["version"] for v in document["verdicts"]] == ["476"]
        (notice,) = (f for f in document["findings"] if f["rule"] == "DP304")
        assert f"{OLD} not required there" in notice["message"]
        for format_ in ("text", "markdown", "github", "gitlab", "sarif", "junit"):
            shown = cli("check", vectors, "--policy", file, "--format", format_).out
            assert "replaces the clients" in shown, format_


@pytest.mark.parametrize(
    ("narrow", "found"),
    [("[]", []), ("[{WIDE}]", []), ("[{WIDE}, {OTHER}]", ["DP304"]), ("[{OTHER}]", ["DP304"])],
)
def test_fewer_maintenance_windows_are_no_weaker(
    narrow: str, found: list[str], checked: Checked, vectors: str, policy: Policy
) -> None:
    windows = {
        "WIDE": "{days: [sat, sun], from: 01:00, to: 02:00}",
        "OTHER": "{days: [sun], from: 03:00, to: 04:00}",
    }
    file = policy(
        f"tables:\n  '**': {{maintenance_windows: [{windows['WIDE']}]}}\n"
        f"  '**/customers': {{maintenance_windows: {narrow.format(**windows)}}}\n"
    )
    assert rules(checked(vectors, "--policy", file)) == found


class TestDefinitions:
    """A definition of a client that the catalog knows decides in silence otherwise."""

    OWN = (
        "trino:\n    name: Trino\n    versions: number\n    ranges:\n"
        "      - read: {legacy: [1, 2], features: [deletionVectors]}\n"
    )
    SHOWN = "trino is defined in the policy or a client file"

    def test_a_policy_that_defines_a_client_of_the_catalog(
        self, checked: Checked, vectors: str, policy: Policy, cli: Cli
    ) -> None:
        document = checked(vectors, "--policy", policy(READS), code=1)
        assert "DP304" not in rules(document)
        file = policy(f"{READS}define:\n  {self.OWN}")
        document = checked(vectors, "--policy", file, code=0)
        (notice,) = (f for f in document["findings"] if f["rule"] == "DP304")
        assert (notice["client"], self.SHOWN in notice["message"]) == ("trino", True)
        ran = cli("plan-upgrade", vectors, "--set", "a=b", "--policy", file)
        assert self.SHOWN in ran.err

    def test_a_client_file_without_a_policy(
        self, vectors: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = tmp_path / "clients.yaml"
        own.write_text(f"clients:\n  - id: {self.OWN.replace(':', '', 1)}")
        monkeypatch.setenv("DELTAPROTO_CLIENT_FILE", str(own))
        for format_ in ("text", "json", "sarif"):
            words = ("--client", OLD, "--access", "read", "--format", format_)
            ran = cli("check", vectors, *words)
            assert (ran.code, self.SHOWN in ran.out, self.SHOWN in ran.err) == (0, True, True)


class TestDecisions:
    def test_the_output_names_the_pattern_of_each_setting(
        self, checked: Checked, make: Make, policy: Policy, cli: Cli
    ) -> None:
        table = make("lake/gold/orders", protocol(2, 5))
        root = table.removesuffix("/gold/orders")
        file = policy(
            "tables:\n"
            f"  '{root}/**': {{max_reader_version: 3, max_writer_version: 7}}\n"
            "  'gold/orders': {max_reader_version: 1}\n"
        )
        document = checked(table, "--policy", file, code=1)
        names = ("setting", "value", "pattern", "line")
        assert {tuple(each[name] for name in names) for each in document["settings"]} == {
            ("max_reader_version", "1", "gold/orders", 4),
            ("max_writer_version", "7", f"{root}/**", 3),
        }  # fmt: skip
        (line,) = documents_lines(cli("check", table, "--policy", file, "--format", "jsonl"), table)
        assert line["settings"] == document["settings"]
        for format_ in ("text", "markdown"):
            shown = cli("check", table, "--policy", file, "--format", format_).out
            assert "gold/orders" in shown
            assert "max_reader_version 1" in shown.replace("\\", "")

    def test_a_weaker_value_is_noticed(self, checked: Checked, make: Make, policy: Policy) -> None:
        table = make("t", protocol(2, 5))
        file = policy("tables:\n  '*': {max_reader_version: 1}\n  t: {max_reader_version: 3}\n")
        document = checked(table, "--policy", file, code=0)
        (notice,) = (f for f in document["findings"] if f["rule"] == "DP304")
        assert 'sets max_reader_version to 3, overriding 1 for "*"' in notice["message"]


def documents_lines(ran: Ran, table: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in ran.out.splitlines()]
    return [each for each in found if each["settings"] and each["settings"][0]["table"] == table]


class TestNothing:
    @pytest.mark.parametrize(
        "text",
        [
            "", "clients: []\n", "tables: {}\n", "tables: {'*': {}}\n",
            "tables: {'*': {clients: [], forbid_features: [], require_properties: {}}}\n",
            "severities: {DP110: off}\n",
        ],
    )  # fmt: skip
    def test_a_policy_that_requires_nothing_is_a_warning(
        self, cli: Cli, checked: Checked, make: Make, policy: Policy, text: str
    ) -> None:
        table, file = make("t", protocol(1, 2)), policy(text)
        document = checked(table, "--policy", file, code=0)
        (found,) = (f for f in document["findings"] if f["rule"] == "DP302")
        assert (found["severity"], found["table"]) == ("warning", file)
        assert "requires nothing" in found["message"]
        assert cli("check", table, "--policy", file, "--fail-on", "warning").code == 1

    @pytest.mark.parametrize(
        "format_", ["text", "markdown", "json", "sarif", "junit", "github", "gitlab"]
    )
    def test_a_pattern_that_matches_nothing_is_named(
        self, cli: Cli, make: Make, policy: Policy, format_: str
    ) -> None:
        table = make("orders", protocol(1, 2))
        file = policy(f"clients: [{GOOD}]\ntables: {{'glod/**': {{max_reader_version: 1}}}}\n")
        ran = cli("check", table, "--policy", file, "--format", format_, "--fail-on", "warning")
        assert ran.code == 1
        assert "glod/" in ran.out

    def test_ci_systems_show_the_position_in_the_policy(
        self, cli: Cli, make: Make, policy: Policy
    ) -> None:
        table = make("orders", protocol(1, 2))
        file = policy(f"clients: [{GOOD}]\ntables: {{'glod/**': {{max_reader_version: 1}}}}\n")
        ran = {
            format_: cli("check", table, "--policy", file, "--format", format_).out
            for format_ in ("github", "gitlab", "sarif")
        }
        assert f"::warning file={file},line=3,col=10,title=DP301 {file}::" in ran["github"]
        (entry,) = (e for e in json.loads(ran["gitlab"]) if e["check_name"] == "DP301")
        assert entry["location"] == {"path": file, "lines": {"begin": 3}}
        (run,) = json.loads(ran["sarif"])["runs"]
        (found,) = (each for each in run["results"] if each["ruleId"] == "DP301")
        region = found["locations"][0]["physicalLocation"]["region"]
        assert (region["startLine"], region["startColumn"]) == (3, 10)

    def test_a_slash_at_the_end_is_the_cause(
        self, checked: Checked, make: Make, policy: Policy
    ) -> None:
        table = make("gold/orders", protocol(1, 2))
        file = policy(f"clients: [{GOOD}]\ntables: {{'gold/': {{max_reader_version: 1}}}}\n")
        (found,) = (f for f in checked(table, "--policy", file)["findings"] if f["rule"] == "DP301")
        assert (
            'the pattern "gold/" matches nothing in 1 table: it ends with a slash'
            in found["message"]
        )
        assert '"gold/**"' in found["hint"]

    def test_a_waiver_that_excuses_nothing_is_named(
        self, checked: Checked, vectors: str, policy: Policy
    ) -> None:
        text = READS + (
            "waivers:\n"
            "- {rule: DP202, reason: x, expires: 2999-01-01, client: trino@400}\n"
            "- {rule: DP202, reason: x, expires: 2999-01-01, client: trino@401}\n"
            "- {rule: DP202, reason: x, expires: 2999-01-01, table: other}\n"
        )
        found = [
            f["message"]
            for f in checked(vectors, "--policy", policy(text), code=0)["findings"]
            if f["rule"] == "DP301"
        ]
        assert len(found) == 2
        assert "trino@401" in found[0]
        assert '"other"' in found[1]

    def test_what_matches_a_table_that_cannot_be_read_is_not_unmatched(
        self, checked: Checked, tmp_path: Path, policy: Policy
    ) -> None:
        file = policy("tables: {'gone': {max_reader_version: 1}}\n")
        assert rules(checked(str(tmp_path / "gone"), "--policy", file, code=3)) == []

    def test_a_waiver_for_a_client_keeps_other_findings(
        self, checked: Checked, make: Make, policy: Policy
    ) -> None:
        waiver = "{rule: DP204, client: trino, reason: r, expires: 2999-01-01}"
        text = f"tables: {{'*': {{max_writer_version: 4}}}}\nwaivers: [{waiver}]\n"
        document = checked(make("t", protocol(1, 5)), "--policy", policy(text), code=1)
        assert [each["rule"] for each in document["findings"]] == ["DP204", "DP111", "DP301"]

    def test_a_severity_turns_it_off(self, checked: Checked, make: Make, policy: Policy) -> None:
        file = policy("severities: {DP302: off}\n")
        assert rules(checked(make("t", protocol(1, 2)), "--policy", file, code=0)) == []


class TestTotals:
    """Findings that a policy hides are counted in every format."""

    def test_waived_and_off(self, cli: Cli, checked: Checked, vectors: str, policy: Policy) -> None:
        text = (
            f"clients: [{{client: {OLD}, access: [read]}}, "
            "{client: bigquery, access: [append]}]\n"
            "severities: {DP201: off}\n"
            "waivers: [{rule: DP202, reason: x, expires: 2999-01-01}]\n"
        )  # fmt: skip
        words = ("check", vectors, "--policy", policy(text), "--format")
        document = checked(vectors, "--policy", policy(text), code=0)
        assert document["summary"]["tables"] == 1
        assert (document["summary"]["waived"], document["summary"]["off"]) == (1, 1)
        (line,) = map(json.loads, cli(*words, "jsonl").out.splitlines())
        assert line["summary"] == document["summary"]
        sarif = json.loads(cli(*words, "sarif").out)
        assert sarif["runs"][0]["properties"]["summary"] == document["summary"]
        for format_ in ("text", "markdown", "github", "gitlab"):
            assert "1 waived, 1 turned off by severities" in cli(*words, format_).out, format_
        assert "1 turned off by severities" in cli(*words, "junit").out
        root = ElementTree.fromstring(cli(*words, "junit").out)
        assert len(root) == 2

    def test_the_policy_is_not_a_table(self, checked: Checked, make: Make, policy: Policy) -> None:
        document = checked(make("t", protocol(1, 2)), "--policy", policy(""), code=0)
        assert document["summary"]["tables"] == 1
        assert document["summary"]["findings"] == {"error": 0, "warning": 1, "info": 0}


class TestNames:
    """A table's other names do not lead around a pattern."""

    @pytest.mark.parametrize("pattern", ["orders", "gold/orders", "ord*"])
    def test_a_dot_is_the_folder(
        self, cli: Cli, make: Make, policy: Policy, monkeypatch: pytest.MonkeyPatch, pattern: str
    ) -> None:
        table = Path(make("gold/orders", protocol(2, 5)))
        (table / "below").mkdir()
        file = policy(f"tables: {{'{pattern}': {{max_reader_version: 1}}}}\n")
        for folder, name in ((table, "."), (table / "below", ".."), (table, "../orders")):
            monkeypatch.chdir(folder)
            assert cli("check", name, "--policy", file).code == 1, (folder, name)

    @pytest.mark.parametrize("pattern", ["gold/**", "orders"])
    def test_a_link_has_the_patterns_of_its_target(
        self, cli: Cli, make: Make, policy: Policy, tmp_path: Path, pattern: str
    ) -> None:
        table = make("gold/orders", protocol(2, 5))
        (tmp_path / "free").symlink_to(table)
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared" / "_delta_log").symlink_to(Path(table) / "_delta_log")
        file = policy(f"tables: {{'{pattern}': {{max_reader_version: 1}}}}\n")
        for name in ("free", "shared"):
            assert cli("check", str(tmp_path / name), "--policy", file).code == 1

    def test_unicode_in_either_form(self, cli: Cli, make: Make, policy: Policy) -> None:
        composed, decomposed = "b\u00fccher", "bu\u0308cher"
        for name, pattern in ((composed, decomposed), (decomposed, composed)):
            table = make(f"{len(name)}/{name}", protocol(2, 5))
            for each in (pattern, f"*/{pattern}"):
                file = policy(f"tables: {{'{each}': {{max_reader_version: 1}}}}\n")
                assert cli("check", table, "--policy", file).code == 1, (name, each)


class TestMistakes:
    """What is not understood is an error, never a pattern or a client that does nothing."""

    @pytest.mark.parametrize("pattern", ["{a,t}", "[t]", "~/t", "a//t", "%74", "a\\t", "/x/%74"])
    def test_syntax_that_is_not_supported(
        self, cli: Cli, make: Make, policy: Policy, pattern: str
    ) -> None:
        file = policy(f"tables: {{'{pattern}': {{max_reader_version: 1}}}}\n")
        ran = cli("check", make("t", protocol(1, 2)), "--policy", file)
        assert (ran.code, ran.out) == (2, "")
        assert f"{file}:2:10:" in ran.err

    @pytest.mark.parametrize(
        "modes", ["{columnMapping: [nmae]}", "[nmae]", "{columnMaping: [name]}", "false", "[]"]
    )
    def test_a_typo_in_a_definition(self, cli: Cli, make: Make, policy: Policy, modes: str) -> None:
        file = policy(
            "clients: [mine@1]\ndefine:\n  mine:\n    name: Mine\n    versions: number\n"
            "    ranges:\n"
            f"    - read: {{features: [columnMapping], modes: {modes}}}\n"
        )
        ran = cli("check", make("t", protocol(1, 2)), "--policy", file)
        assert (ran.code, ran.out) == (2, "")
        assert "modes" in ran.err

    def test_a_beta_of_a_runtime_is_unknown(self, checked: Checked, make: Make) -> None:
        table = make("t", protocol(1, 2))
        for version in ("18.0-beta", "17.3-beta", "16.4.x-beta-scala2.12"):
            words = ("--client", f"databricks-runtime@{version}", "--access", "read")
            (verdict,) = checked(table, *words, code=1)["verdicts"]
            assert verdict["verdict"] == "unknown", version

    def test_all_mistakes_of_a_file_in_one_run(self, cli: Cli, make: Make, policy: Policy) -> None:
        file = policy(
            "clients: [476, {client: trino@476, acces: [read]}]\n"
            "tabels: {}\n"
            "tables:\n"
            "  '{a,b}': {max_reader_version: 9, forbid_features: [deletionVector, xyzzy]}\n"
            "  b: {isolation: Snapshot}\n"
            "severities: {DP999: off, DP101: fatal}\n"
            "waivers: [{rule: DP201}]\n"
        )
        ran = cli("check", make("t", protocol(1, 2)), "--policy", file, "--format", "json")
        assert ran.code == 2
        message = ran.json["error"]["message"]
        places = ("2:11", "2:36", "3:1", "5:3", "5:33", "5:54", "5:70", "6:18", "7:14", "7:33")
        for place in (*places, "8:11"):
            assert f"{file}:{place}: " in message, place
        assert message.count(file) == 12
        assert 'did you mean "deletionVectors"?' in message
        assert ran.json["error"]["hint"] == "fix all 12 errors"

    def test_all_unknown_clients_in_one_run(self, cli: Cli, make: Make, policy: Policy) -> None:
        file = policy(
            "clients: [trinoo@476, trino]\n"
            "tables: {t: {clients: [nobody@1]}}\n"
            "waivers: [{rule: DP201, client: noone, reason: x, expires: 2999-01-01}]\n"
        )
        table = make("t", protocol(1, 2))
        for words in (("check", table), ("plan-upgrade", table, "--enable", "deletionVectors")):
            ran = cli(*words, "--policy", file)
            assert ran.code == 2
            for place in ("2:11", "2:23", "3:24"):
                assert f"{file}:{place}: " in ran.err, (words[0], place)

    def test_all_invalid_definitions_in_one_run(self, cli: Cli, make: Make, policy: Policy) -> None:
        file = policy("define:\n  x: {name: X, ranges: []}\n  y: {name: Y, ranges: [{read: 7}]}\n")
        ran = cli("check", make("t", protocol(1, 2)), "--policy", file, "--client", "trino@476")
        assert ran.code == 2
        for place in ("3:3", "4:3"):
            assert f"{file}:{place}: " in ran.err, ran.err
        assert "fix all 2 errors" in ran.err

    def test_a_misspelled_property_gets_a_suggestion(
        self, checked: Checked, make: Make, policy: Policy
    ) -> None:
        file = policy(
            "tables: {t: {require_properties: {delta.appendOny: true, delta.xyzzy: 1, own: x,"
            " delta.APPENDONLY: true, delta.constraints.x: id > 0, delta.targetFileSize: 1}}}\n"
        )
        found = checked(make("t", protocol(1, 2)), "--policy", file)["findings"]
        hints = [each["hint"] for each in found if each["rule"] == "DP305"]
        assert hints == ['did you mean "delta.appendOnly"?', "check the spelling"]
        missing = [each["hint"] for each in found if each["rule"] == "DP209"]
        assert "ALTER TABLE … ADD CONSTRAINT x CHECK (id > 0)" in missing

    @pytest.mark.parametrize(
        ("written", "hint"),
        [
            ("delta.feature.deletionvectors", "write require_features: [deletionVectors] instead"),
            ("delta.feature.odd", "write require_features: [FEATURE] instead"),
            ("delta.minReaderVersion", "write min_reader_version instead"),
            ("delta.ignoreProtocolDefaults", "remove it"),
        ],
    )
    def test_a_property_that_delta_does_not_store(
        self, written: str, hint: str, checked: Checked, make: Make, policy: Policy
    ) -> None:
        file = policy(f"tables: {{t: {{require_properties: {{{written}: 1}}}}}}\n")
        found = checked(make("t", protocol(1, 2)), "--policy", file)["findings"]
        (finding,) = (each for each in found if each["rule"] == "DP305")
        assert f"the property {written}, which Delta does not store" in finding["message"]
        assert finding["hint"] == hint


def test_a_scan_reports_findings_on_the_policy_and_does_not_end_with_them(
    cli: Cli, make: Make, policy: Policy, tmp_path: Path
) -> None:
    make("lake/orders", protocol(1, 2))
    expired = "{rule: DP202, reason: x, expires: 2026-01-01}"
    file = policy(f"clients: [{GOOD}]\ntables: {{'glod/**': {{}}}}\nwaivers: [{expired}]\n")
    words = (
        "scan",
        str(tmp_path / "lake"),
        "--inventory",
        str(tmp_path / "inventory"),
        "--policy",
        file,
    )
    ran = cli(*words, "--format", "json")
    assert ran.code == 0, ran.err
    told = ran.json["policy"]
    assert {each["rule"] for each in told["first_errors"]} == {"DP301", "DP303"}
    assert "glod/**" in str(told["first_errors"])
    assert ran.json["tables"] == 1
    assert cli(*words, "--fail-on", "warning").code == 1


WAIVING = """
clients: [{client: trino@400, access: [read]}]
severities: {DP103: off, DP303: off}
waivers:
  - {rule: DP201, table: '**/vectors', reason: moving, expires: '2999-01-01'}
  - {rule: DP202, table: '**/vectors', reason: moving, expires: '2999-01-01'}
  - {rule: DP201, table: '**/gone', reason: moved, expires: '2001-01-01'}
tables:
  '**/missing': {max_reader_version: 1}
"""


class TestFleets:
    """What every command that applies a policy shows of its use."""

    @pytest.fixture
    def inventory(self, make: Make, cli: Cli, tmp_path: Path) -> tuple[str, str]:
        names = ["deletionVectors"]
        on = metadata({"delta.enableDeletionVectors": "true"})
        make("lake/vectors", protocol(3, 7, names, [*names, "appendOnly", "invariants"]), on)
        make("lake/plain", protocol(1, 2))
        where = str(tmp_path / "inventory")
        assert cli("scan", str(tmp_path / "lake"), "--inventory", where).code == 0
        return str(tmp_path / "lake"), where

    def test_scan_and_report_count_what_the_policy_hides(
        self, inventory: tuple[str, str], checked: Checked, policy: Policy, cli: Cli
    ) -> None:
        lake, where = inventory
        file = policy(WAIVING)
        summary = checked(where, "--policy", file, code=0)["summary"]
        assert summary["waived"] == 1
        assert summary["off"] > 0
        words = ("scan", lake, "--inventory", where, "--policy", file)
        told = cli(*words, "--format", "json").json["policy"]
        assert (told["waived"], told["off"]) == (1, summary["off"])
        shown = f"1 waived, {summary['off']} turned off by severities"
        assert shown in cli(*words).out
        report = cli("report", where, "--policy", file, "--format", "json").json
        assert (report["waived"], report["off"]) == (1, summary["off"])
        for format_ in ("html", "markdown"):
            assert shown in cli("report", where, "--policy", file, "--format", format_).out

    def test_report_shows_the_findings_on_the_policy(
        self, inventory: tuple[str, str], checked: Checked, policy: Policy, cli: Cli
    ) -> None:
        where = inventory[1]
        file = policy(WAIVING.replace("DP303: off", "DP304: off"))
        found = rules(checked(where, "--policy", file, code=None))
        assert {"DP301", "DP303"} <= set(found)
        report = cli("report", where, "--policy", file, "--format", "json").json
        assert [each["rule"] for each in report["policy_findings"]] == found
        for format_ in ("html", "markdown"):
            shown = cli("report", where, "--policy", file, "--format", format_).out
            assert "matches nothing in 2 tables" in shown
        assert not cli("report", where, "--format", "json").json["policy_findings"]

    def test_the_function_returns_the_findings_on_the_policy(
        self, inventory: tuple[str, str], checked: Checked, policy: Policy
    ) -> None:
        import deltaproto

        lake = inventory[0]
        tables, file = [f"{lake}/plain", f"{lake}/vectors"], policy(WAIVING)
        plain, vectors, last = deltaproto.check(tables, file)
        assert (plain.of_policy, vectors.of_policy, last.of_policy) == (False, False, True)
        assert [each.rule for each in last.findings] == rules(
            checked(*tables, "--policy", file, code=0)
        )
        assert len(deltaproto.check(tables, clients=["trino@476"])) == 2
