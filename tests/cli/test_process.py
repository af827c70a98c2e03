"""The command line as a process: start-up, terminals, pipes, encodings."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto import __version__
from deltaproto.cli.main import main
from tests.conftest import Ran
from tests.support.logs import Log, metadata, protocol

pytestmark = pytest.mark.rotating

Process = Callable[..., "subprocess.CompletedProcess[str]"]
Cli = Callable[..., Ran]
ESCAPE = "\x1b"
BOTH = Path("/bin/bash").exists()


def environment(**changed: str) -> dict[str, str]:
    """This process's environment without what changes the look of output."""
    hushed = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM", "PYTHONIOENCODING")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in hushed and not key.startswith("DELTAPROTO_")
    }
    return kept | {"TERM": "xterm-256color"} | changed


def on_a_terminal(*words: str, **changed: str) -> str:
    """What `deltaproto` writes to a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "deltaproto", *words],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.PIPE,
        env=environment(**changed),
    ) as running:
        os.close(follower)
        chunks = []
        try:
            while chunk := os.read(leader, 65536):
                chunks.append(chunk)
        except OSError:
            # Linux ends the reading of a terminal that nobody writes to any more with EIO.
            pass
        assert running.stderr is not None
        assert running.stderr.read() == b""
    os.close(leader)
    return b"".join(chunks).decode().replace("\r\n", "\n")


@pytest.fixture
def hostile(log: Log) -> str:
    """A table whose log holds commands for terminals."""
    name = f"{ESCAPE}[31mred\x07\x9b2J"
    log.commit(
        0,
        protocol(3, 7, [name], [name, "appendOnly"]),
        metadata({"delta.isolationLevel": f"{ESCAPE}]0;title"}, partition_columns=[f"a{ESCAPE}c"]),
    )
    return log.table


@pytest.fixture
def ordinary(log: Log) -> str:
    vectors = "deletionVectors"
    log.commit(
        0,
        protocol(3, 7, [vectors], [vectors, "appendOnly", "invariants", "checkpointProtection"]),
        metadata({"delta.enableDeletionVectors": "true"}),
    )
    return log.table


@pytest.fixture(scope="module")
def usual() -> str:
    """The list of features as written to a pipe of no particular width."""
    return subprocess.run(
        [sys.executable, "-m", "deltaproto", "features"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    ).stdout


class TestStart:
    @pytest.mark.parametrize(
        ("raised", "message", "hint"),
        [
            (
                "ImportError('pyarrow requires NumPy 2.0 or newer, found 1.26.4')",
                "pyarrow requires NumPy 2.0 or newer, found 1.26.4",
                "pyarrow<26",
            ),
            (
                "ImportError('libarrow: not found\\nmore')",
                "libarrow: not found",
                "install or upgrade the library",
            ),
        ],
    )
    def test_a_library_that_cannot_be_imported_is_no_defect(
        self, raised: str, message: str, hint: str, process: Process, tmp_path: Path
    ) -> None:
        table = str(tmp_path / "t")
        write_deltalake(table, pa.table({"id": [1]}))
        DeltaTable(table).create_checkpoint()
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "pyarrow.py").write_text(f"raise {raised}\n")
        places = (str(tmp_path / "broken"), os.environ.get("PYTHONPATH", ""))
        env = environment(PYTHONPATH=os.pathsep.join(filter(None, places)))
        ran = process("plan-downgrade", table, "--lowest", env=env)
        assert ran.returncode == 3
        error, advice = ran.stderr.splitlines()
        assert error == f"error: cannot import a library: {message}"
        assert hint in advice

    def test_deltalake_logs_nothing_unless_debugged(self, process: Process) -> None:
        # Without a region, deltalake asks the metadata service, and logs that it does not answer.
        cloud = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"}
        places = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        env = environment(**cloud, **places)
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "RUST_LOG"):
            env.pop(name, None)
        ran = process("drift", "s3://bucket/inventory", env=env)
        assert [line.partition(":")[0] for line in ran.stderr.splitlines()] == ["error", "hint"]
        assert "WARN" in process("drift", "s3://bucket/inventory", "--debug", env=env).stderr

    def test_imports_no_engine(self) -> None:
        commands = (
            ["--version"],
            ["--help"],
            ["inspect", "--help"],
            ["features"],
            ["conflicts", "--exception", "ConcurrentAppend"],
            ["features", "clustering", "--format", "json"],
            ["explain"],
            ["plan-downgrade", "--help"],
            ["plan-upgrade", "--help"],
            ["explain", "DP105", "--format", "markdown"],
            ["features", "nosuch"],
        )
        code = (
            "import json, sys; from deltaproto.cli import main\n"
            "heavy = {'pyspark', 'deltalake', 'pyarrow', 'obstore', 'delta', 'pandas'}\n"
            "for words in json.loads(sys.argv[1]):\n"
            "    main(words)\n"
            "    loaded = {name.partition('.')[0] for name in sys.modules} & heavy\n"
            "    if loaded: sys.exit(f'{words} imported {loaded}')\n"
            "sys.exit(77)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, json.dumps(commands)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 77, done.stderr
        # Every command ran.
        for shown in (__version__, "Usage: deltaproto plan-upgrade", "# DP105"):
            assert shown in done.stdout
        assert "nosuch" in done.stderr

    def test_inspect_loads_little(self, ordinary: str) -> None:
        # The benchmark holds its time against deltalake; this finds what made it grow.
        code = (
            "import json, os, sys; from deltaproto.cli import main\n"
            "main(['inspect', sys.argv[1], '--format', 'json', '-o', os.devnull])\n"
            "print(json.dumps({n: getattr(m, '__file__', '') for n, m in sys.modules.items()}))"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code, ordinary],
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = json.loads(ran.stdout)
        own = {name: Path(file) for name, file in loaded.items() if name.startswith("deltaproto")}
        assert "deltaproto.protocol.feature" in own
        assert len(own) <= 128
        assert loaded.keys().isdisjoint(
            {"yaml", "rich", "dataclasses", "pyarrow", "deltaproto.clients.entry"}
        )
        # With this import, each member of a record costs a compilation.
        slow = "from __future__ import annotations"
        sources = {name: file.read_text(encoding="utf-8") for name, file in own.items()}
        assert [n for n, text in sources.items() if "(NamedTuple)" in text and slow in text] == []

    def test_a_process_that_has_more_to_do_ends_as_usual(self, ordinary: str) -> None:
        for more in (
            "atexit.register(print, 'done')",
            "wait = threading.main_thread().join\n"
            "threading.Thread(target=lambda: (wait(), print('done'))).start()",
        ):
            code = (
                "import atexit, threading; from deltaproto.cli.main import run_process\n"
                f"{more}; run_process()"
            )
            ran = subprocess.run(
                [sys.executable, "-c", code, "inspect", ordinary, "--fail-on", "info"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.stdout.endswith("done\n"), ran.stderr
            assert ran.returncode == main(["inspect", ordinary, "--fail-on", "info"])

    def test_version(self, process: Process) -> None:
        done = process("--version")
        assert (done.returncode, done.stdout) == (0, f"deltaproto {__version__}\n")

    @pytest.mark.parametrize("flag", ["--help", "-h"])
    def test_help_names_the_commands_and_the_exit_codes(self, process: Process, flag: str) -> None:
        done = process(flag)
        assert (done.returncode, done.stderr) == (0, "")
        for word in ("inspect", "features", "explain", "Exit codes: 0 done 1 findings"):
            assert word in " ".join(done.stdout.split())

    def test_without_words_comes_the_help(self, process: Process) -> None:
        done = process()
        assert done.returncode == 2
        assert "Usage: deltaproto" in done.stdout + done.stderr

    def test_the_exit_code_of_a_process(self, process: Process, ordinary: str) -> None:
        assert process("inspect", ordinary).returncode == 0
        assert process("inspect", ordinary + "-missing").returncode == 3
        done = process("explain", "DP999")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith('error: unknown rule "DP999"\nhint: did you mean DP')


class TestColour:
    WORDS = (
        ["features"],
        ["explain", "DP105"],
        pytest.param(["features", "clustering"], marks=pytest.mark.slow),
        pytest.param(["explain"], marks=pytest.mark.slow),
    )

    @pytest.mark.parametrize("words", WORDS, ids=" ".join)
    def test_on_terminals_alone(self, process: Process, words: list[str]) -> None:
        shown = on_a_terminal(*words)
        assert ESCAPE in shown
        plain = process(*words, env=environment()).stdout
        assert ESCAPE not in plain
        # The same text, in color or not.
        bare = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert [text.rstrip() for text in bare.split()] == plain.split()

    @pytest.mark.parametrize("words", WORDS, ids=" ".join)
    def test_not_when_it_is_refused(self, words: list[str]) -> None:
        assert ESCAPE not in on_a_terminal(*words, NO_COLOR="1")
        assert ESCAPE not in on_a_terminal(*words, "--no-color")
        assert ESCAPE not in on_a_terminal(*words, DELTAPROTO_NO_COLOR="1")

    def test_an_empty_no_color_refuses_nothing(self) -> None:
        # https://no-color.org: "when present and not an empty string".
        assert ESCAPE in on_a_terminal("explain", NO_COLOR="")

    def test_a_log_cannot_command_the_terminal(self, hostile: str) -> None:
        assert ESCAPE not in on_a_terminal("inspect", hostile, NO_COLOR="1")
        colored = on_a_terminal("inspect", hostile)
        assert r"\x1b[31mred" in colored
        # What is left is rich's own color and nothing else.
        assert not re.search(
            r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", re.sub(r"\x1b\[[\d;]*m", "", colored)
        )

    @pytest.mark.parametrize("format_", ["text", "markdown", "json", "jsonl", "html"])
    def test_nor_a_pipe(self, cli: Cli, hostile: str, format_: str) -> None:
        ran = cli("inspect", hostile, "--format", format_)
        assert ran.code == 1
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", ran.out)


class TestWidth:
    @pytest.mark.parametrize(
        "words",
        [
            ["features"],
            *(["features", n] for n in ("columnMapping", "icebergCompatV2")),
            ["explain"],
            ["plan-downgrade", "--help"],
            ["plan-upgrade", "--help"],
        ],
        ids=" ".join,
    )
    def test_a_pipe_is_80_columns_wide_without_trailing_blanks(
        self, process: Process, words: list[str]
    ) -> None:
        for text in process(*words, env=environment()).stdout.splitlines():
            assert len(text) <= 80, text
            assert text == text.rstrip()

    def test_an_inspection_too(self, cli: Cli, ordinary: str, tmp_path: Path) -> None:
        real = tmp_path / "real"
        write_deltalake(real, pa.table({"id": [1], "day": [1]}), partition_by=["day"])
        out = cli("inspect", ordinary, str(real)).out
        for text in out.splitlines():
            assert text == text.rstrip()
            # Paths are one word each, and findings one line each: both stay whole.
            whole = str(tmp_path) in text or re.match(r"  (info|warning|error) DP|    hint:", text)
            assert whole or len(text) <= 80, text

    def test_columns_sets_another_width(self, process: Process) -> None:
        words = ("features", "columnMapping")
        narrow = process(*words, env=environment(COLUMNS="80")).stdout
        wide = process(*words, env=environment(COLUMNS="200")).stdout
        assert narrow == process(*words, env=environment()).stdout
        assert len(wide.splitlines()) < len(narrow.splitlines())

    def test_the_catalog_fits_80_columns_in_whole_words(self, usual: str) -> None:
        assert max(map(len, usual.splitlines())) <= 80
        assert re.search(r"^ +deletionVectors +everyone +3,7 ", usual, re.MULTILINE)
        assert re.search(r"^ +columnMappingUsageTracking +writers ", usual, re.MULTILINE)

    @pytest.mark.parametrize("columns", ["", "0", "-5", "wide"])
    def test_columns_that_are_no_width_count_for_nothing(
        self, process: Process, usual: str, columns: str
    ) -> None:
        done = process("features", env=environment(COLUMNS=columns))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == usual


class TestStreams:
    @pytest.mark.skipif(not BOTH, reason="needs bash")
    @pytest.mark.parametrize(
        "words", ["features", "features --format json", "explain", "--help", "inspect --help"]
    )
    def test_a_reader_that_goes_away_is_no_failure(self, words: str) -> None:
        line = f"'{sys.executable}' -m deltaproto {words} | head -1; echo ${{PIPESTATUS[0]}} >&2"
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, env=environment()
        )
        assert done.stderr == "0\n"
        assert len(done.stdout.splitlines()) == 1

    @pytest.mark.skipif(not BOTH, reason="needs bash")
    def test_not_even_in_the_middle_of_a_long_list(self, ordinary: str) -> None:
        # More output than a pipe holds, and nobody to read it.
        line = (
            f"yes '{ordinary}' | head -200 | '{sys.executable}' -m deltaproto inspect - "
            "--format jsonl | true; echo ${PIPESTATUS[2]} >&2"
        )
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, env=environment()
        )
        assert (done.stdout, done.stderr) == ("", "0\n")

    @pytest.mark.skipif(not BOTH, reason="needs bash")
    @pytest.mark.parametrize("where", ["| true", "> /dev/full", "--output /dev/full"])
    @pytest.mark.parametrize("format_", ["text", "json", "jsonl"])
    def test_what_came_of_a_plan_is_the_code_whoever_reads_it(
        self, cli: Cli, ordinary: str, tmp_path: Path, where: str, format_: str
    ) -> None:
        plan = f"{tmp_path}/plan.json"
        made = cli("plan-downgrade", ordinary, "--protocol", "3,7", "--format", "json", "-o", plan)
        assert made.code == 0
        # Somebody else's commit: the plan is stale, which is code 4.
        log = Path(ordinary, "_delta_log")
        newest = sorted(log.glob("*.json"))[-1]
        changed = json.dumps({"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})
        (log / f"{int(newest.stem) + 1:020}.json").write_text(changed + "\n")
        line = (
            f"'{sys.executable}' -m deltaproto apply '{plan}' --yes --format {format_} {where}; "
            "echo code ${PIPESTATUS[0]}"
        )
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, env=environment()
        )
        assert done.stdout == "code 4\n"
        assert ("cannot write the output" in done.stderr) is ("full" in where)
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
    def test_any_encoding_can_show_it(self, encoding: str) -> None:
        code = (
            "import sys; from deltaproto.cli.main import main; "
            "commands = ['features'], ['features', 'clustering'], ['explain', 'DP105']; "
            "sys.exit(max([main(words) for words in commands]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=False,
            env=environment(PYTHONIOENCODING=encoding),
            encoding=encoding,
        )
        assert (done.returncode, done.stderr) == (0, "")
        for shown in ("deletionVectors ", "clustering", "DP105"):
            assert shown in done.stdout
        assert r"\u2500" not in done.stdout

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    @pytest.mark.parametrize("words", ["features", "--help", "check --help", "--version"])
    def test_a_full_disk_behind_standard_output(self, words: str, process: Process) -> None:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "deltaproto", *words.split()],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert "cannot write standard output: No space left on device" in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.skipif(not BOTH, reason="needs bash")
    def test_a_closed_standard_output(self, ordinary: str, tmp_path: Path) -> None:
        file = tmp_path / "out"
        start = f"'{sys.executable}' -m deltaproto"
        lines: dict[str, Any] = {
            f"{start} explain >&-": (2, "error: cannot write: standard output is closed"),
            f"{start} inspect '{ordinary}' -o '{file}' >&-": (0, ""),
            f"{start} inspect - <&-": (2, "error: - reads tables from standard input, which is c"),
        }
        for line, (code, said) in lines.items():
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
            assert done.returncode == code
            assert done.stderr.startswith(said)
        assert ordinary in file.read_text()

    def test_a_dash_with_a_terminal_behind_it_does_not_wait(self) -> None:
        leader, follower = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-m", "deltaproto", "inspect", "-"],
            stdin=follower,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        os.close(leader)
        os.close(follower)
        assert (done.returncode, done.stdout) == (2, "")
        assert "standard input" in done.stderr
