"""The command line in this process: exit codes, batches, output, mistakes."""

from __future__ import annotations

import importlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.cli.main import main
from deltaproto.errors import EngineError, ExitCode, TableError, UsageError
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
WORST_FIRST = [5, 4, 2, 3, 1, 10, 0]
ERROR = metadata({"delta.isolationLevel": "Snapshot"})
inspect_command = importlib.import_module("deltaproto.cli.inspect")


@pytest.fixture
def logs(tmp_path: Path) -> Callable[..., str]:
    """Makes one more table with these actions, and gives its path."""

    def make(name: str, *actions: dict[str, Any]) -> str:
        return Log(tmp_path / name).commit(0, *actions).table

    return make


@pytest.fixture
def good(logs: Callable[..., str]) -> str:
    return logs("good", protocol(1, 2), metadata())


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Puts these bytes on standard input."""

    def put(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))

    return put


class TestExitCodes:
    def test_the_codes_of_the_contract(self) -> None:
        assert {int(code) for code in ExitCode} == set(WORST_FIRST)

    @given(st.lists(st.sampled_from(ExitCode)))
    def test_the_worst_of_a_batch_wins(self, codes: list[ExitCode]) -> None:
        worst = ExitCode.worst(codes)
        ranks = [WORST_FIRST.index(int(code)) for code in codes]
        assert worst in (codes or [ExitCode.OK])
        assert WORST_FIRST.index(int(worst)) == min(ranks, default=len(WORST_FIRST) - 1)

    def test_each_kind_of_failure_has_its_code(self) -> None:
        assert UsageError("m").exit_code == 2
        assert TableError.exit_code == EngineError("m").exit_code == 3

    def test_0_nothing_to_report(self, cli: Cli, good: str) -> None:
        assert cli("inspect", good).code == 0

    def test_1_findings(self, cli: Cli, logs: Callable[..., str]) -> None:
        assert cli("inspect", logs("bad", protocol(1, 2), ERROR)).code == 1

    def test_2_usage(self, cli: Cli, good: str) -> None:
        assert cli("inspect", good, "--version", "-1").code == 2

    def test_3_unreadable(self, cli: Cli, good: str) -> None:
        assert cli("inspect", good + "-missing").code == 3

    def test_3_a_defect_is_one_line_and_no_traceback(
        self, cli: Cli, good: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def defective(*_: Any) -> None:
            raise RuntimeError("this cannot happen")

        monkeypatch.setattr(inspect_command, "inspect_ahead", defective)
        ran = cli("inspect", good)
        assert ran.code == 3
        assert ran.err.startswith("error: internal error, RuntimeError: this cannot happen\n")
        assert "Traceback" not in ran.err
        with pytest.raises(RuntimeError):
            main(["inspect", good, "--debug"])
        monkeypatch.setenv("DELTAPROTO_DEBUG", "1")
        with pytest.raises(RuntimeError):
            main(["inspect", good])

    def test_130_interrupted(self, cli: Cli, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(inspect_command, "inspect_ahead", interrupted)
        ran = cli("inspect", good)
        assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


class TestFailOn:
    @pytest.mark.parametrize(
        ("actions", "codes"),
        [
            ([protocol(1, 2), ERROR], (1, 1, 0)),
            ([protocol(1, 7, None, ["neverHeardOf"]), metadata()], (0, 1, 0)),
            ([protocol(1, 5), metadata()], (0, 0, 0)),
            ([protocol(1, 2), metadata()], (0, 0, 0)),
        ],
        ids=["error", "warning", "info", "none"],
    )
    def test_from_which_severity_on_the_code_is_1(
        self, cli: Cli, logs: Callable[..., str], actions: list[Any], codes: tuple[int, ...]
    ) -> None:
        table = logs("t", *actions)
        levels = ("error", "warning", "never")
        found = [cli("inspect", table, "--fail-on", level) for level in levels]
        assert tuple(ran.code for ran in found) == codes
        # The findings are shown all the same.
        assert len({ran.out for ran in found}) == 1
        assert cli("inspect", table).code == codes[0]

    def test_never_does_not_hide_that_a_table_cannot_be_read(self, cli: Cli, good: str) -> None:
        assert cli("inspect", good + "-missing", "--fail-on", "never").code == 3


class TestBatches:
    def test_one_bad_table_does_not_stop_the_others(
        self, cli: Cli, logs: Callable[..., str], good: str, tmp_path: Path
    ) -> None:
        finding = logs("finding", protocol(1, 2), ERROR)
        broken = Log(tmp_path / "broken").raw(0, b"{").table
        missing = good + "-missing"
        names = [broken, good, missing, finding]
        ran = cli("inspect", *names, "--format", "json")
        assert [table["table"] for table in ran.json["tables"]] == names
        assert ["error" in table for table in ran.json["tables"]] == [True, False, True, False]
        # 3 is worse than 1.
        assert ran.code == 3
        text = cli("inspect", *names).out
        assert all(name in text for name in names)
        assert text.endswith("4 tables, 2 unreadable; findings: 1 error, 0 warning, 0 info\n")

    def test_the_summary_is_for_several_tables_and_not_for_quiet(self, cli: Cli, good: str) -> None:
        assert "unreadable" not in cli("inspect", good).out
        assert "2 tables" in cli("inspect", good, good).out
        assert "2 tables" not in cli("inspect", good, good, "--quiet").out

    def test_a_name_that_makes_no_sense_does_not_stop_the_others(self, cli: Cli, good: str) -> None:
        ran = cli("inspect", "file://elsewhere/table", good, "--format", "json")
        assert [table["table"] for table in ran.json["tables"]][-1] == good

    def test_a_list_on_standard_input(
        self, cli: Cli, good: str, stdin: Callable[[bytes], None]
    ) -> None:
        missing = good + "-missing"
        stdin(f"{good}\n\n  \n# no table\n\t{missing} \r\n  #{good}\n{good}".encode())
        ran = cli("inspect", "-", "--format", "json")
        assert [table["table"] for table in ran.json["tables"]] == [good, missing, good]
        assert ran.code == 3

    def test_the_list_stands_where_its_dash_stands(
        self, cli: Cli, good: str, logs: Callable[..., str], stdin: Callable[[bytes], None]
    ) -> None:
        spaced = logs(" two words ", protocol(1, 2), metadata())
        stdin(os.fsencode(spaced) + b"\n")
        ran = cli("inspect", good, "-", good, "--format", "json")
        assert [table["table"] for table in ran.json["tables"]] == [good, spaced, good]
        assert ran.code == 0

    def test_an_empty_list_is_an_empty_answer_where_that_is_allowed(
        self, cli: Cli, stdin: Callable[[bytes], None]
    ) -> None:
        stdin(b"")
        ran = cli("inspect", "-", "--format", "json", "--allow-empty")
        assert (ran.code, ran.json["tables"]) == (0, [])

    def test_a_path_that_is_no_text_is_only_one_more_path(
        self, cli: Cli, good: str, tmp_path: Path, stdin: Callable[[bytes], None]
    ) -> None:
        latin = Log(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
        latin.commit(0, protocol(1, 2), metadata())
        for format_ in ("text", "json", "jsonl", "markdown", "html"):
            stdin(os.fsencode(latin.table) + b"\n" + good.encode() + b"\n")
            ran = cli("inspect", "-", "--format", format_)
            assert (ran.code, ran.err) == (0, "")
            assert r"caf\udce9" in ran.out


class TestOutput:
    @pytest.mark.parametrize("format_", ["text", "json", "jsonl", "markdown", "html"])
    @pytest.mark.parametrize("flag", ["--output", "-o"])
    def test_to_a_file_goes_what_else_goes_to_standard_output(
        self, cli: Cli, good: str, tmp_path: Path, format_: str, flag: str
    ) -> None:
        file = tmp_path / "out"
        file.write_text("old and long " * 1000)
        ran = cli("inspect", good, "--format", format_, flag, str(file))
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        shown = cli("inspect", good, "--format", format_).out
        stamp = {"generated_at": "same"}
        if format_.startswith("json"):
            assert json.loads(file.read_text()) | stamp == json.loads(shown) | stamp
        else:
            assert file.read_text() == shown

    @pytest.mark.parametrize(
        "words", [["features"], ["features", "clustering"], ["explain"], ["explain", "DP101"]]
    )
    def test_the_catalogs_too(self, cli: Cli, tmp_path: Path, words: list[str]) -> None:
        file = tmp_path / "out"
        assert cli(*words, "--output", str(file)).out == ""
        assert file.read_text() == cli(*words).out
        assert cli(*words, "--output", "-").out == cli(*words).out

    def test_a_file_that_cannot_be_made_is_a_usage_error(self, cli: Cli, tmp_path: Path) -> None:
        ran = cli("features", "--output", str(tmp_path / "no" / "such" / "folder"))
        assert (ran.code, ran.out) == (2, "")
        assert "cannot write" in ran.err
        assert "No such file or directory" in ran.err

    @pytest.mark.parametrize(
        "words", ["certify duckdb@1.3.2 --timeout 0", "scan . --timeout 0", "scan . --parallel 513"]
    )
    def test_a_number_that_makes_no_sense(self, cli: Cli, words: str) -> None:
        ran = cli(*words.split())
        assert (ran.code, "is out of range" in ran.err) == (2, True)

    def test_what_a_command_reads_is_not_written_over(
        self, cli: Cli, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        plans = tmp_path / "plans"
        plans.mkdir()
        plan = str(plans / "plan.json")
        words = ("plan-upgrade", good, "--enable", "changeDataFeed", "--format", "json")
        assert cli(*words, "--output", plan).code == 0
        texts = {
            "list.txt": good,
            "deltaproto.yaml": f"scan:\n  roots: [{good}]\n",
            "change.sql": "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly'='true')",
            "phrases.yaml": "language: xx\n",
            "own.yaml": "id: mine\n",
            "audit.jsonl": "{}\n",
            plan: Path(plan).read_text(),
        }
        for name, text in texts.items():
            Path(name).write_text(text)
        for words in (
            ("scan", "--list", "list.txt", "--output", "list.txt"),
            ("scan", "--output", "deltaproto.yaml"),
            ("plan-upgrade", good, "--sql", "change.sql", "--output", "change.sql"),
            ("runbook", plan, "--language", "phrases.yaml", "--output", "phrases.yaml"),
            ("runbook", str(plans), "--no-activity", "--output", plan),
            ("rehearse", str(plans), "--output", plan),
            ("apply", str(plans), "--dry-run", "--output", plan),
            ("apply", plan, "--audit", "audit.jsonl", "--output", "audit.jsonl"),
            ("clients", "--client-file", "own.yaml", "--output", "own.yaml"),
        ):
            ran = cli(*words)
            assert (ran.code, "would overwrite" in ran.err) == (2, True), words
        assert {name: Path(name).read_text() for name in texts} == texts

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    @pytest.mark.parametrize("format_", ["text", "json"])
    def test_a_full_disk_is_named_as_such(self, cli: Cli, good: str, format_: str) -> None:
        ran = cli("inspect", good, "--format", format_, "--output", "/dev/full")
        assert ran.code == 2
        assert "cannot write /dev/full: No space left on device" in ran.err

    def test_what_cannot_be_written_is_named_by_its_option(
        self, cli: Cli, good: str, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        inside = str(tmp_path / "file" / "x")
        for words, hint in (
            (("inspect", good, "--output", inside), "choose another --output"),
            (
                ("check", good, "--client", "duckdb@1.4", "--write-baseline", inside),
                "choose another --write-baseline",
            ),
            (("discover", good, "--write-policy", inside), "choose another --write-policy"),
            (("scan", good, "--inventory", inside), "check its permissions, or pass another --inv"),
        ):
            ran = cli(*words)
            assert (ran.code, hint in ran.err) == (2, True), (words, ran.err)

    def test_a_path_that_is_no_text_can_be_written_about(self, cli: Cli, tmp_path: Path) -> None:
        file = tmp_path / "out"
        ran = cli("inspect", "/no/caf\udce9", "--output", str(file))
        assert (ran.code, ran.err) == (3, "")
        assert r"caf\udce9" in file.read_text()


class TestMistakes:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "Usage"),
            (["nosuch"], "nosuch"),
            (["--nosuch"], "--nosuch"),
            (["inspect"], "TABLE"),
            (["inspect", "t", "--nosuch"], "--nosuch"),
            (["inspect", "t", "--reader"], "--reader"),
            (["inspect", "t", "--reader", "kernel"], "kernel"),
            (["inspect", "t", "--version", "newest"], "newest"),
            (["inspect", "t", "--version=-1"], "-1"),
            (["inspect", "t", "--fail-on", "info"], "info"),
            (["inspect", "t", "--format", "yaml"], "yaml"),
            (["inspect", "t", "--storage-option", "key"], "K=V"),
            (["inspect", "t", "--spark-conf", "=value"], "K=V"),
            (["inspect", "t", "--quiet=yes"], "--quiet"),
            (["features", "nosuch"], "nosuch"),
            (["features", "clustering", "rowTracking"], "rowTracking"),
            (["explain", "DP999"], "DP999"),
            (["explain", "--reader", "log"], "--reader"),
        ],
        ids=" ".join,
    )
    def test_a_message_on_standard_error_and_nothing_on_standard_output(
        self, cli: Cli, words: list[str], said: str
    ) -> None:
        ran = cli(*words)
        assert ran.code == 2
        assert said in ran.err
        assert "Traceback" not in ran.err
        assert "internal error" not in ran.err
        if words:
            assert ran.out == ""

    def test_an_empty_name_is_one_table_that_does_not_exist(self, cli: Cli) -> None:
        ran = cli("inspect", "", "--format", "json")
        assert ran.code == 3
        assert ran.table["error"]["code"] == "not-found"

    @pytest.mark.parametrize("words", [["--reader", "kernel"], ["--nosuch"], ["--version", "x"]])
    def test_in_json_modes_mistakes_are_json_too(self, cli: Cli, words: list[str]) -> None:
        ran = cli("inspect", "t", "--format", "json", *words)
        assert ran.code == 2
        validate("error", ran.json)
        assert ran.json["error"]["code"] == "usage"
        assert ran.json["complete"] is False
        assert words[-1] in ran.json["error"]["message"]

    def test_a_secret_is_not_repeated(self, cli: Cli) -> None:
        ran = cli("inspect", "t", "--storage-option", "hunter2")
        assert ran.code == 2
        assert "hunter2" not in ran.out + ran.err

    def test_the_nearest_name_is_suggested(self, cli: Cli) -> None:
        assert "did you mean deletionVectors" in cli("features", "deletionvector").err
        assert cli("features", "DELETIONVECTORS").code == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
VERSION = st.integers(-1, 9) | JSON
NAMES = (
    st.none()
    | JSON
    | st.lists(
        st.sampled_from(["deletionVectors", "appendOnly", "rowTracking", "x", ""]) | JSON,
        max_size=4,
    )
)
PROTOCOL = JSON | st.fixed_dictionaries(
    {"minReaderVersion": VERSION, "minWriterVersion": VERSION},
    optional={"readerFeatures": NAMES, "writerFeatures": NAMES},
)
COLUMN = JSON | st.fixed_dictionaries({"name": JSON, "type": JSON, "metadata": JSON})
SCHEMA = JSON | st.fixed_dictionaries({"type": JSON, "fields": st.lists(COLUMN, max_size=2)})
METADATA = JSON | st.fixed_dictionaries(
    {"id": JSON, "schemaString": st.none() | JSON | SCHEMA.map(json.dumps)},
    optional={"name": JSON, "partitionColumns": JSON, "configuration": JSON},
)
ANY_LOG = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "protocol": PROTOCOL,
            "metaData": METADATA,
            "commitInfo": JSON,
            "domainMetadata": JSON,
            "add": JSON,
        },
    ),
    min_size=1,
    max_size=4,
)


class TestHostileLogs:
    """Whatever a log holds: an answer or a named error, never a defect."""

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\n\n",
            b"null",
            b"[]",
            b"{",
            b"{}",
            b"\xff\xfe\x00",
            b'{"protocol": 1}',
            b'{"protocol": {"minReaderVersion": 1e999, "minWriterVersion": 2}}',
            b"[" * 100_000,
            b'{"commitInfo": {}}' * 2,
        ],
        ids=lambda content: repr(content[:20]),
    )
    def test_bytes_that_are_no_log(self, cli: Cli, log: Log, content: bytes) -> None:
        log.raw(0, content)
        ran = cli("inspect", log.table)
        assert (ran.code, ran.err) == (3, "")
        assert "corrupt-log" in ran.out

    @given(actions=ANY_LOG, format_=st.sampled_from(["text", "json", "markdown", "html"]))
    @settings(max_examples=150)
    def test_any_json(
        self, cli: Cli, tmp_path: Path, actions: list[dict[str, Any]], format_: str
    ) -> None:
        folder = tmp_path / "any" / "_delta_log"
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(json.dumps(action) for action in actions)
        (folder / f"{0:020d}.json").write_text(text)
        ran = cli("inspect", str(tmp_path / "any"), "--format", format_, "--look-in-files")
        assert ran.code in (0, 1, 3), ran.err
        assert ran.err == ""

    @given(
        action=PROTOCOL.filter(lambda value: isinstance(value, dict)),
        about=st.dictionaries(st.text(max_size=30), st.text(max_size=9), max_size=2),
    )
    @settings(max_examples=150)
    def test_any_protocol(
        self, cli: Cli, tmp_path: Path, action: dict[str, Any], about: dict[str, str]
    ) -> None:
        folder = tmp_path / "any" / "_delta_log"
        folder.mkdir(parents=True, exist_ok=True)
        actions = [{"protocol": action}, metadata(about), commit_info()]
        (folder / f"{0:020d}.json").write_text("\n".join(json.dumps(a) for a in actions))
        ran = cli("inspect", str(tmp_path / "any"))
        assert ran.code in (0, 1, 3), ran.err
        assert ran.err == ""
        assert "\x1b" not in ran.out
