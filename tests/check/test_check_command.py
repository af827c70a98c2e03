"""`deltaproto check`: exit codes, options, formats, and names that want to break out of them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from jsonschema import Draft7Validator

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import parse_reference
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import Policy, Position
from deltaproto.policy.document.model import Declared
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.table_check import TableCheck as CheckedTable
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.check import CheckFormat, Style, write_check
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, column, metadata, protocol, schema_string

Cli = Callable[..., Ran]
Checked = Callable[..., dict[str, Any]]
SCHEMAS = Path(__file__).parents[1] / "render" / "schemas"
SARIF = Draft7Validator(json.loads((SCHEMAS / "sarif-2.1.0.schema.json").read_text()))
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
VECTORS = protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])
DV_ON = metadata({"delta.enableDeletionVectors": "true"})
GOOD, OLD = "trino@476", "trino@400"
HOSTILE = (
    "it's",
    'a "quoted" one',
    "two\nlines",
    "a\r\n::error::b",
    "tab\tand\x1b[31mred\x07",
    "\x9b2J",
    "{table}",
    "{0} %s ${HOME} `id` $(id)",
    "deltaproto table",
    "\\u0000deltaproto table\\u0000",
    "a|b](c) <b> *d* _e_ # f",
    "]]>&amp;<!--",
    "\u2028\u2029\ufeff\uffff",
    os.fsdecode(b"latin-\xe9\xff"),
    "--version",
    "日本 😀",
)


@pytest.fixture
def plain(make: Callable[..., str]) -> str:
    return make("plain", protocol(1, 2))


@pytest.fixture
def vectors(make: Callable[..., str]) -> str:
    return make("vectors", VECTORS, DV_ON)


def declared(text: str, *access: Access) -> Declared:
    return Declared(text, *parse_reference(text), access, None, None, Position(0, 0))


class TestExitCodes:
    def test_0_when_every_client_can(self, cli: Cli, plain: str) -> None:
        assert cli("check", plain, "--client", GOOD).code == 0

    def test_1_from_the_severity_on(
        self, cli: Cli, plain: str, vectors: str, policy: Callable[[str], str]
    ) -> None:
        refused = ("check", plain, vectors, "--client", OLD)
        for given, code in (("error", 1), ("warning", 1), ("never", 0)):
            assert cli(*refused, "--fail-on", given).code == code
        warned = policy("tables:\n  '*': {require_properties: {a: b}}\n")
        for given, code in (("error", 0), ("warning", 1), ("never", 0)):
            assert cli("check", plain, "--policy", warned, "--fail-on", given).code == code

    def test_3_before_1_and_whatever_fails(self, cli: Cli, vectors: str, tmp_path: Path) -> None:
        missing = str(tmp_path / "missing")
        for given in ([vectors, missing], [missing, vectors], [missing]):
            for fail_on in ("error", "never"):
                assert cli("check", *given, "--client", OLD, "--fail-on", fail_on).code == 3

    def test_2_before_3(self, cli: Cli, write: Callable[..., str], tmp_path: Path) -> None:
        wrong = write("no inspection", "wrong.json")
        ran = cli("check", str(tmp_path / "missing"), wrong, "--client", OLD)
        assert ran.code == 2

    @pytest.mark.parametrize(
        "words",
        [
            ["--client", ""],
            ["--client", "nobody@1"],
            ["--client", "trino", "--client", GOOD, "--format", "junit"],
            ["--client", "deltalake/pyarrow", "--client", GOOD],
            ["--client", "@476"],
            ["--client", GOOD, "--access", "write"],
            ["--client", GOOD, "--access", "read,"],
            ["--client", GOOD, "--access", ""],
            ["--client", GOOD, "--format", "xml"],
            ["--client", GOOD, "--fail-on", "info"],
            ["--client", GOOD, "--version", "1"],
            ["--client", GOOD, "--client-file", "/nowhere.yaml"],
            ["--client", GOOD, "--storage-option", "novalue"],
            ["--policy", "/nowhere.yaml"],
            ["--baseline", "/nowhere.json"],
            ["--client-file", "/nowhere.yaml"],
            ["--access", "delete"],
        ],
        ids=" ".join,
    )
    def test_2_for_mistakes(self, cli: Cli, plain: str, words: list[str]) -> None:
        ran = cli("check", plain, *words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: ")
        assert "internal" not in ran.err

    def test_nothing_to_check_against(self, cli: Cli, plain: str) -> None:
        ran = cli("check", plain, "--format", "github")
        assert ran.code == 2
        assert "nothing to check against" in ran.err
        assert cli("check", "--client", GOOD).code == 2


class TestClients:
    def test_read_and_append_unless_told(self, checked: Checked, plain: str) -> None:
        document = checked(plain, "--client", GOOD, "--client", "bigquery", code=1)
        assert [(v["client"], v["access"]) for v in document["verdicts"]] == [
            ("trino", "read"),
            ("trino", "append"),
            ("bigquery", "read"),
            ("bigquery", "append"),
        ]

    @pytest.mark.parametrize(
        "words",
        [
            ["--access", "dml", "--access", "read"],
            ["--access", "dml,read"],
            ["--access", " dml , read", "--access=dml"],
        ],
        ids=" ".join,
    )
    def test_accesses_repeated_or_in_a_list(
        self, checked: Checked, plain: str, words: list[str]
    ) -> None:
        document = checked(plain, "--client", GOOD, *words)
        assert [v["access"] for v in document["verdicts"]] == ["dml", "read"]

    def test_they_replace_what_a_policy_declares(
        self, checked: Checked, plain: str, policy: Callable[[str], str]
    ) -> None:
        file = policy(f"clients: [{{client: {GOOD}, access: [dml, maintain], as: loads}}]\n")
        document = checked(plain, "--policy", file, "--access", "read")
        (verdict,) = document["verdicts"]
        assert (verdict["access"], verdict["declared_as"]) == ("read", "loads")

    def test_a_client_without_path_is_each_path_that_offers_it(
        self, checked: Checked, plain: str
    ) -> None:
        document = checked(plain, "--client", "deltalake@1.6.6", "--access", "read,append")
        judged = [(v["path"], v["access"]) for v in document["verdicts"]]
        assert judged == [("engine", "read"), ("pyarrow", "read"), ("engine", "append")]

    def test_named_twice_it_is_judged_once(
        self, checked: Checked, plain: str, policy: Callable[[str], str]
    ) -> None:
        file = policy(f"clients: [{GOOD}, {{client: {GOOD}, access: [read], as: dashboards}}]\n")
        words = ("--client", GOOD, "--client", GOOD, "--policy", file)
        judged = [(v["access"], v["declared_as"]) for v in checked(plain, *words)["verdicts"]]
        assert judged == [("read", None), ("append", None), ("read", "dashboards")]

    def test_everybody_who_uses_it_is_named(
        self, checked: Checked, vectors: str, policy: Callable[[str], str]
    ) -> None:
        both = f"{{client: {OLD}, access: [read], as: a}}, {{client: {OLD}, access: [read], as: b}}"
        (finding,) = checked(vectors, "--policy", policy(f"clients: [{both}]\n"))["findings"]
        assert finding["message"].startswith(f"{OLD} (a, b) ")


class TestTables:
    def test_names_from_standard_input(
        self, cli: Cli, plain: str, vectors: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"\ufeff{plain}\n\n{vectors}\r\n"))
        ran = cli("check", "-", "--client", OLD, "--format", "json")
        (document,) = documents(ran, "check")
        assert list(dict.fromkeys(v["table"] for v in document["verdicts"])) == [plain, vectors]

    def test_a_saved_file_beside_a_table(
        self, checked: Checked, plain: str, vectors: str, save: Callable[..., str]
    ) -> None:
        document = checked(save(plain), vectors, "--client", OLD, code=1)
        assert {v["table"] for v in document["verdicts"]} == {plain, vectors}
        assert {f["table"] for f in document["findings"]} >= {vectors}

    def test_a_baseline_alone(self, checked: Checked, plain: str, save: Callable[..., str]) -> None:
        document = checked(plain, "--baseline", save(plain), code=0)
        assert (document["verdicts"], document["notes"]) == ([], [])

    def test_what_is_read_is_not_written_over(
        self, cli: Cli, plain: str, save: Callable[..., str], policy: Callable[[str], str]
    ) -> None:
        file, rules = save(plain), policy("clients: [bigquery]\n")
        before = Path(file).read_text(), Path(rules).read_text()
        for words in ([file, "--client", GOOD], [plain, "--baseline", file]):
            ran = cli("check", *words, "--output", file)
            assert (ran.code, "would overwrite" in ran.err) == (2, True)
        assert cli("check", plain, "--policy", rules, "-o", rules).code == 2
        assert (Path(file).read_text(), Path(rules).read_text()) == before


class TestOutput:
    @pytest.mark.parametrize("format_", list(CheckFormat))
    def test_to_a_file(self, cli: Cli, vectors: str, tmp_path: Path, format_: str) -> None:
        words = ("check", vectors, "--client", OLD, "--format", format_)
        shown = cli(*words)
        ran = cli(*words, "--output", str(tmp_path / "out"))
        assert (ran.code, ran.out, ran.err) == (1, "", "")
        written = (tmp_path / "out").read_text()
        times = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
        assert times.sub("", written) == times.sub("", shown.out)

    def test_quiet_leaves_out_summary_and_notes(self, cli: Cli, plain: str) -> None:
        words = ("check", plain, "--client", GOOD)
        loud, quiet = cli(*words).out, cli(*words, "--quiet").out
        assert loud.startswith(quiet)
        assert "1 table; verdicts: 2 ok; findings: 0 error" in loud
        assert "1 table; " not in quiet
        notes = cli(*words, "--format", "json").json["notes"]
        assert notes
        assert [note for note in notes if note not in loud or note in quiet] == []
        assert "1 table" not in quiet

    def test_no_colour_where_nobody_looks_or_wants_it(
        self, vectors: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        def shown(file: io.StringIO, *, color: bool) -> str:
            write_check(_checked([vectors]), file, Style(color=color), ["a note"])
            return file.getvalue()

        assert "\x1b[" in shown(Terminal(), color=True)
        plain = shown(io.StringIO(), color=True)
        assert "\x1b" not in plain
        assert re.sub(r"\x1b\[[\d;]*m", "", shown(Terminal(), color=True)) == plain
        assert shown(Terminal(), color=False) == plain
        monkeypatch.setenv("NO_COLOR", "1")
        assert shown(Terminal(), color=True) == plain

    def test_json_tells_first_whether_it_is_complete(
        self, cli: Cli, plain: str, tmp_path: Path
    ) -> None:
        missing = str(tmp_path / "missing")
        ran = cli("check", plain, missing, "--client", GOOD, "--format", "json")
        (document,) = documents(ran, "check")
        members = [*document]
        assert members[4:6] == ["complete", "verdicts"]
        assert document["complete"] is False

    def test_json_lines_are_a_document_for_each_table(
        self, cli: Cli, checked: Checked, plain: str, vectors: str, tmp_path: Path
    ) -> None:
        given = (plain, vectors, str(tmp_path / "missing"), "--client", OLD)
        whole = checked(*given)
        lines = documents(cli("check", *given, "--format", "jsonl"), "check")
        assert [line["complete"] for line in lines] == [True, True, False]
        for member in ("verdicts", "findings", "suppressed", "errors"):
            assert [each for line in lines for each in line[member]] == whole[member]

    def test_what_stops_it_leaves_one_json_document(
        self, cli: Cli, plain: str, write: Callable[..., str]
    ) -> None:
        wrong = write('{"command": "inspect", "tables": [', "wrong.json")
        ran = cli("check", plain, wrong, "--client", GOOD, "--format", "json")
        assert (ran.code, ran.json["error"]["code"]) == (2, "usage")


def _checked(tables: Iterable[str]) -> list[CheckedTable]:
    """Checks of tables that exist in name only."""
    protocol_ = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
    needs = TableRequirements(protocol_, frozenset({"deletionVectors"}), frozenset())
    asked = [
        declared(OLD, Access.READ, Access.APPEND),
        declared("deltalake@1.6.6", Access.READ)._replace(label="a|b\x1b`"),
    ]
    checker = Checker(Policy(""), ClientCatalog(), named=asked)
    return [
        checker.check(TableFacts(table, f"file:///{n}", 0, needs, {}, {}, (), complete=True))
        for n, table in enumerate(tables)
    ]


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        # As the `spark` reader sees a table: it does not show whether invariants are used.
        ((), "check the table by its location: deltaproto check 'file:///a b'"),
        (("appendOnly", "invariants"), "drop deletionVectors, which rewrites data files"),
    ],
)
def test_a_name_of_spark_is_not_said_to_have_no_remedy(known: tuple[str, ...], hint: str) -> None:
    names = frozenset({"appendOnly", "deletionVectors", "invariants"})
    needs = TableRequirements(
        Protocol(3, 7, frozenset({"deletionVectors"}), names),
        frozenset({"deletionVectors"}),
        frozenset(known),
        by_name=True,
    )
    facts = TableFacts("sales.orders", "file:///a b", 0, needs, {}, {}, (), complete=True)
    checker = Checker(Policy(""), ClientCatalog(), named=[declared(OLD, Access.APPEND)])
    (finding,) = (each for each in checker.check(facts).findings if each.rule == "DP201")
    assert hint in finding.hint


def rendered(format_: CheckFormat, tables: Iterable[str] = HOSTILE) -> str:
    file = io.StringIO()
    write_check(_checked(tables), file, Style(format_, details=True), ["a note"])
    return file.getvalue()


@pytest.mark.parametrize("table", ["orders", "gold/orders", "gold/2026/sales/orders"])
def test_a_folder_of_tables_leads_to_a_scan(table: str, cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "my lake"
    Log(folder / table).commit(0, VECTORS, DV_ON)
    (folder / "loop").symlink_to(folder)
    ran = cli("check", str(folder), "--client", GOOD)
    assert ran.code == 3
    assert f"or find them with deltaproto scan '{folder}'" in " ".join(ran.out.split())


class TestHostileNames:
    def test_json(self) -> None:
        (document,) = documents(Ran(0, rendered(CheckFormat.JSON), ""), "check")
        lines = documents(Ran(0, rendered(CheckFormat.JSONL), ""), "check")
        assert [v for line in lines for v in line["verdicts"]] == document["verdicts"]
        assert [*dict.fromkeys(v["table"] for v in document["verdicts"])] == [*HOSTILE]
        assert rendered(CheckFormat.JSON).isascii()

    def test_commands_are_for_that_table(self) -> None:
        (document,) = documents(Ran(0, rendered(CheckFormat.JSON), ""), "check")
        commands = {
            v["table"]: r["command"]
            for v in document["verdicts"]
            for r in v["remedies"]
            if r["command"]
        }
        assert commands.keys() == {*HOSTILE}
        for table, command in commands.items():
            printed = subprocess.run(
                ["bash", "-c", command.replace("deltaproto", "printf '%s\\0'", 1)],
                capture_output=True,
                check=True,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            ).stdout.split(b"\0")
            assert printed[1] == os.fsencode(table)

    @pytest.mark.parametrize("format_", [CheckFormat.TEXT, CheckFormat.MARKDOWN])
    def test_people_get_no_control_characters(self, format_: CheckFormat) -> None:
        shown = rendered(format_)
        assert not CONTROL.search(shown)
        assert "x1b[31mred" in shown.replace("\\", "")

    def test_a_table_is_one_line_of_text(self) -> None:
        shown = rendered(CheckFormat.TEXT).split("\n")
        assert len([line for line in shown if line and not line.startswith(" ")]) == (
            len(HOSTILE) + len(["note", "summary"])
        )

    def test_markdown_cells_stay_cells(self) -> None:
        shown = rendered(CheckFormat.MARKDOWN)
        rows = [line for line in shown.split("\n") if line.startswith("|")]
        widths = Counter(len(re.findall(r"(?<!\\)\|", row)) for row in rows)
        assert set(widths) == {4, 5}
        assert len(re.findall(r"^## ", shown, re.MULTILINE)) == len(HOSTILE)
        assert "<b>" not in shown.replace(r"\<b\>", "")

    def test_sarif(self) -> None:
        document = json.loads(rendered(CheckFormat.SARIF))
        SARIF.validate(document)
        results = document["runs"][0]["results"]
        (names,) = zip(
            *(each["logicalLocations"] for r in results for each in r["locations"]), strict=True
        )
        assert len({each["fullyQualifiedName"] for each in names}) == len(HOSTILE)
        assert {r["ruleId"] for r in results} == {"DP201", "DP202"}

    def test_junit(self) -> None:
        root = ElementTree.fromstring(rendered(CheckFormat.JUNIT))
        xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(root)
        assert len(root) == len(HOSTILE)
        assert {suite.attrib["failures"] for suite in root} == {"3"}

    def test_github(self) -> None:
        *lines, last = rendered(CheckFormat.GITHUB).split("\n")
        assert last == ""
        assert len(lines) == 3 * len(HOSTILE)
        assert all(re.match(r"::error title=DP20[12] [^:,]*::", line) for line in lines)

    @pytest.mark.parametrize("name", HOSTILE)
    def test_live_and_saved(
        self, make: Callable[..., str], checked: Checked, save: Callable[..., str], name: str
    ) -> None:
        table = make(name.replace("/", "-"), VECTORS, DV_ON)
        live = checked(table, "--client", OLD, code=1)
        saved = checked(save(table), "--client", OLD, code=1)
        assert {v["table"] for v in live["verdicts"]} == {table}
        assert saved["verdicts"] == live["verdicts"]
        assert saved["findings"] == live["findings"]

    @pytest.mark.parametrize("name", ["a\0b", "x" * 5000, ".", "/dev/null", "..", "~"])
    def test_names_of_no_table(self, cli: Cli, name: str) -> None:
        ran = cli("check", name, "--client", GOOD, "--format", "json")
        assert ran.code in (2, 3)
        assert (ran.json["complete"], "internal" in ran.out) == (False, False)


HEAVY = (
    "import sys; from deltaproto.cli.main import main; code = main(sys.argv[1:]); "
    "loaded = {name.partition('.')[0] for name in sys.modules}; "
    "heavy = {'pyspark', 'deltalake', 'pyarrow', 'obstore', 'delta', 'pandas'}; "
    "sys.exit(f'imported {loaded & heavy}' if loaded & heavy else 70 + code)"
)


class TestSaved:
    @pytest.mark.parametrize("format_", ["json", "text", "sarif"])
    def test_imports_no_engine_and_starts_nothing(
        self, make: Callable[..., str], save: Callable[..., str], format_: str, tmp_path: Path
    ) -> None:
        file = save(make("t", VECTORS, DV_ON))
        path = tmp_path / "bin"
        path.mkdir()
        (path / "java").write_text("#!/bin/sh\ntouch started\n")
        (path / "java").chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", HEAVY, "check", file, "--client", OLD, "--format", format_],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PATH": str(path), "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert done.returncode == 71, done.stderr
        assert not (tmp_path / "started").exists()


class TestNobodyAsks:
    """A slip in a pattern must not look like a table that does what is asked."""

    SLIP = "tables: {'plian': {clients: [trino@400], max_reader_version: 1}}"

    @pytest.mark.parametrize("format_", ["text", "markdown", "json"])
    def test_it_is_told(
        self, cli: Cli, plain: str, policy: Callable[[str], str], format_: str
    ) -> None:
        words = ("check", plain, "--policy", policy(self.SLIP), "--format", format_)
        ran = cli(*words)
        assert ran.code == 0
        assert "The policy requires nothing of" in ran.out
        assert "2 tables, such as" in cli("check", plain, *words[1:]).out

    @pytest.mark.parametrize(
        "text",
        [
            SLIP.replace("plian", "plain"),
            "tables: {'*': {}}",
            "clients: [trino@476]\n" + SLIP,
            "severities: {DP110: off}",
        ],
    )
    def test_a_policy_that_means_the_table_is_not_slipped(
        self, cli: Cli, plain: str, policy: Callable[[str], str], text: str
    ) -> None:
        assert "asks nothing of" not in cli("check", plain, "--policy", policy(text)).out

    def test_who_asks_otherwise_has_made_no_slip(
        self, cli: Cli, plain: str, policy: Callable[[str], str]
    ) -> None:
        words = ("check", plain, "--policy", policy(self.SLIP), "--client", GOOD)
        assert "asks nothing of" not in cli(*words).out


class TestChecklist:
    """What the platform's documentation says that a check must tell."""

    def notes(self, cli: Cli, table: str, *clients: str) -> str:
        words = [word for client in clients for word in ("--client", client)]
        ran = cli("check", table, *words, "--format", "json")
        (document,) = documents(ran, "check")
        for format_ in ("text", "markdown"):
            shown = cli("check", table, *words, "--format", format_).out
            assert all(note[:12] in shown for note in document["notes"])
        return " ".join(document["notes"])

    def test_item_11_reading_and_writing_apart(
        self, checked: Checked, make: Callable[..., str]
    ) -> None:
        table = make("t", protocol(1, 7, None, ["appendOnly", "rowTracking", "domainMetadata"]))
        document = checked(table, "--client", "databricks-runtime@10.4 LTS")
        verdicts = {v["access"]: v for v in document["verdicts"]}
        assert (verdicts["read"]["verdict"], verdicts["append"]["verdict"]) == ("ok", "refused")
        assert verdicts["read"]["because"] == []

    def test_item_16_every_listed_feature_counts(
        self, checked: Checked, make: Callable[..., str]
    ) -> None:
        known = ["deletionVectors", "timestampNtz"]
        for extra, verdict in (([], "ok"), (["zzzReaderThing"], "refused")):
            names = [*known, *extra]
            table = make(f"t{len(names)}", protocol(3, 7, names, names), DV_ON)
            document = checked(table, "--client", "deltalake/engine@1.6.6", "--access", "read")
            (judged,) = document["verdicts"]
            assert (judged["verdict"], judged["because"]) == (verdict, extra)

    def test_item_18_a_legacy_number_asks_for_all_that_it_implies(
        self, checked: Checked, make: Callable[..., str]
    ) -> None:
        identity = column("id", delta__identity__start=1, delta__identity__step=1)
        table = make("t", protocol(1, 6), metadata(schema=schema_string(identity)))
        document = checked(table, "--client", "deltalake/engine@1.6.6", "--access", "append")
        (judged,) = document["verdicts"]
        assert judged["verdict"] != "ok"
        assert "identityColumns" in judged["because"]

    def test_items_49_and_50_for_everybody(self, cli: Cli, plain: str) -> None:
        notes = self.notes(cli, plain, "bigquery")
        assert "Clients and tools that you add later must support the table's features" in notes
        assert "blocks readers and writers that do not support it; a writer feature" in notes

    @pytest.mark.parametrize("client", ["databricks-runtime@14.3 LTS", "dbr@14.3 LTS"])
    def test_items_63_to_65_where_a_runtime_is_declared(
        self, cli: Cli, plain: str, client: str
    ) -> None:
        notes = self.notes(cli, plain, client)
        assert (
            "Older Databricks runtimes may be unable to use tables that newer runtimes write"
            in notes
        )
        assert "skip optimizations" in notes
        assert "may fail on the Delta release of the same version" in notes
        assert "Databricks SQL and Lakeflow Declarative Pipelines upgrade their runtime" in notes
        assert "Open-source clients" not in notes
        assert "Lakeflow" not in self.notes(cli, plain, GOOD)

    def test_item_66_where_other_clients_are_declared(self, cli: Cli, plain: str) -> None:
        notes = self.notes(cli, plain, GOOD)
        assert "Open-source clients may implement only part of a feature" in notes
        assert "legacy features included" in notes


def test_the_folder_of_the_log_is_the_table(log: Log, cli: Cli) -> None:
    log.commit(0, VECTORS, DV_ON)
    ran = cli("check", f"{log.table}/_delta_log", "--client", OLD)
    assert ran.code == 1
    assert "REFUSED" in ran.out


def test_the_hint_for_a_feature_that_cannot_be_dropped_names_a_plan(
    cli: Cli, tmp_path: Path
) -> None:
    table = Log(tmp_path / "t")
    features = ["appendOnly", "invariants", "variantType"]
    table.commit(0, protocol(3, 7, ["variantType"], features), metadata())
    ran = cli("check", str(table.root), "--client", OLD, "--access", "append", "--format", "json")
    hint = next(each["hint"] for each in ran.json["findings"] if each["rule"] == "DP201")
    planned = cli(*hint.partition("deltaproto ")[2].split())
    assert planned.code == 1
    assert "copy the rows into a new table" in planned.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("name", ["ta\nble", "it's 5 o\\clock\t", "plain name", "orders"])
def test_the_command_of_a_hint_names_the_table_in_bash(
    cli: Callable[..., Ran], make: Callable[..., str], name: str
) -> None:
    """A hint is one line; the command of a remedy is for any POSIX shell."""
    table = make(name, VECTORS, DV_ON)
    ran = cli("check", table, "--client", OLD, "--format", "json")
    remedies = [each for verdict in ran.json["verdicts"] for each in verdict["remedies"]]
    texts = [each["hint"] for each in ran.json["findings"]]
    texts += [each["command"] or "" for each in remedies]
    start = "deltaproto plan-downgrade "
    commands = [text.partition(start)[2] for text in texts if start in text]
    assert commands
    assert not any("\n" in each["hint"] for each in ran.json["findings"])
    for words in commands:
        shown = subprocess.run(
            ["bash", "-c", f'set -- {words}; printf %s "$1"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert shown.stdout == table
