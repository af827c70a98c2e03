"""The documents say what is true: commands, options, codes, members, targets, links, samples."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deltaproto.cli.variables import COMMAND_VARIABLES, environment_variable
from deltaproto.clients.catalog import DELTA_RELEASES
from deltaproto.errors import ErrorCode, ExitCode
from deltaproto.policy.rules import all_rules
from tests.conftest import Ran
from tests.support.failures import each_row
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.parsed import parsed

Cli = Callable[..., Ran]
entry = importlib.import_module("deltaproto.cli.main")
COMMANDS = {name: entry.load_command(name) for name in entry.COMMANDS}
ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
README, ARCHITECTURE, CONTRIBUTING = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
)

MANUAL = {
    path.stem: path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/manual/*.md"))
}
WHOLE = "\n".join((README, *MANUAL.values()))


def section(document: str, heading: str) -> str:
    """The text below `## heading`, to the next heading of that level."""
    _, found, rest = document.partition(f"\n## {heading}\n")
    assert found, f"no section {heading}"
    return rest.partition("\n## ")[0]


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)


def rows(text: str) -> list[list[str]]:
    """The cells of every row of the tables in `text`."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def commands_of_readme() -> list[list[str]]:
    lines = [line for block in blocks(README, "bash") for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("deltaproto ")]


def each_document() -> Callable[[Callable[..., None]], Callable[..., None]]:
    return each_row("path", DOCUMENTS, ids=lambda path: path.name)


def test_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 250


class TestCommandLine:
    @each_row("name", COMMANDS)
    def test_readme_and_manual_name_the_command(self, name: str) -> None:
        assert f"| `deltaproto {name}` |" in section(README, "Commands")
        assert re.search(rf"^## `deltaproto {name}\b", WHOLE, re.MULTILINE)

    @each_row(
        ("name", "flag"),
        [
            (name, flag)
            for name, command in COMMANDS.items()
            for option in command.options
            for flag in option.flags
        ],
    )
    def test_the_manual_names_the_option(self, name: str, flag: str) -> None:
        assert re.search(rf"`{flag}[` ]", WHOLE), name

    def test_every_example_is_a_command_line_that_works(self) -> None:
        lines = [line for block in blocks(WHOLE, "bash") for line in block.splitlines()]
        called = [match for line in lines if (match := re.search(r"\bdeltaproto ((?!\.).*)", line))]
        assert len(called) > len(COMMANDS)
        for match in called:
            name, *words = shlex.split(match[1], comments=True)
            assert parsed(COMMANDS[name], words), match[0]

    def test_the_manual_maps_spark_to_delta(self) -> None:
        listed = dict(row for row in rows(MANUAL["check"]) if len(row) == 2)
        assert {spark: listed.get(spark) for spark in DELTA_RELEASES} == DELTA_RELEASES

    def test_every_environment_variable_is_one(self) -> None:
        real = {
            environment_variable(c.name, o.flags[0]) for c in COMMANDS.values() for o in c.options
        }
        named = {v for path in DOCUMENTS for v in re.findall(r"DELTAPROTO_\w+", path.read_text())}
        assert named
        assert named <= real
        own = {name for names in COMMAND_VARIABLES.values() for name in names.values()}
        assert own <= set(re.findall(r"DELTAPROTO_\w+", MANUAL["environment"]))

    @each_row("rule", all_rules(), ids=lambda rule: rule.id)
    def test_explain_has_the_page_that_readme_promises(self, cli: Cli, rule: Any) -> None:
        assert "`deltaproto explain" in WHOLE
        assert rule.id in cli("explain").out
        page = cli("explain", rule.id)
        assert page.code == 0
        assert rule.id in page.out

    def test_rules_that_documents_name_exist(self) -> None:
        known = {rule.id for rule in all_rules()}
        for path in DOCUMENTS:
            assert set(re.findall(r"\bDP\d+\b", path.read_text())) <= known


class TestCodes:
    def test_the_exit_codes_are_exactly_those_of_the_table(self) -> None:
        named = [row[0] for row in rows(MANUAL["exit-codes"]) if row[0].isdecimal()]
        assert named == [str(int(code)) for code in ExitCode]

    def test_the_error_codes_are_exactly_those_of_the_table(self) -> None:
        table = MANUAL["json"].partition("\n| code | meaning |\n")[2]
        named = [row[0].strip("`") for row in rows(table) if row[0].startswith("`")]
        assert named == [str(code) for code in ErrorCode]


def members(value: Any) -> Iterator[str]:
    """Every member's name at any depth, but not those that the table or a writer chose."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield key
            if key not in ("configuration", "parameters"):
                yield from members(below)
    elif isinstance(value, list):
        for below in value:
            yield from members(below)


class TestJson:
    @pytest.fixture
    def no_spark(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyspark", None)

    def documented(self, found: Any) -> None:
        missing = {m for m in members(found) if f"`{m}`" not in MANUAL["json"]}
        assert not missing

    @pytest.mark.usefixtures("no_spark")
    def test_every_member_of_a_table_is_documented(self, cli: Cli, log: Log) -> None:
        features = ["domainMetadata", "rowTracking", "nobodyKnowsIt"]
        log.commit(0, protocol(1, 7, None, features), metadata({"a": "b"}, partition_columns=["p"]))
        ran = cli("inspect", log.table, "--reader", "all", "--format", "json")
        assert {"readers", "findings", "features"} <= ran.table.keys()
        assert ran.table["findings"]
        self.documented(ran.json)

    def test_every_member_of_an_error_is_documented(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(4, 8), metadata())
        ran = cli("inspect", log.table, "--format", "json")
        assert {"error", "version", "protocol"} <= ran.table.keys()
        self.documented(ran.json)
        self.documented(cli("inspect", "--nonsense", "--format", "json").json)

    def test_every_member_of_a_history_is_documented(self, cli: Cli, log: Log) -> None:
        log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
        log.commit(1, commit_info("SET TBLPROPERTIES"), metadata())
        log.raw(2, b"{", ".json").checkpoint(2, protocol(1, 2), metadata())
        document = cli("history", log.table, "--format", "json").json
        assert all(document[member] for member in ("events", "idle_commits", "problems"))
        self.documented(document)

    def test_every_member_of_a_discovery_is_documented(self, cli: Cli, log: Log) -> None:
        log.commit(0, commit_info(engineInfo="DuckDB", userName="a"), protocol(1, 2), metadata())
        log.commit(1, commit_info(engineInfo="x")).raw(2, b"{")
        document = cli("discover", log.table, "--format", "json").json
        assert all(document[member] for member in ("clients", "unidentified", "errors"))
        self.documented(document)

    def test_every_member_of_the_conflicts_is_documented(self, cli: Cli, log: Log) -> None:
        document = cli("conflicts", "--exception", "ProtocolChanged", "--format", "json").json
        assert document["cells"]
        self.documented(document)
        log.commit(0, commit_info(), protocol(1, 2), metadata())
        named = ("--exception", "ProtocolChanged", "--at", "1970-01-01", "--sql", "OPTIMIZE t")
        document = cli("conflicts", log.table, *named, "--format", "json").json
        assert document["suspects"]
        self.documented(document)

    def test_every_member_of_a_plan_is_documented(self, cli: Cli, log: Log) -> None:
        vectors(log)
        words = ("--protocol", "1,2", "--client", "trino@400", "--format", "json")
        self.documented(cli("plan-downgrade", log.table, *words).json)
        self.documented(cli("plan-downgrade", log.table, "nosuch", *words).json)
        words = ("--enable", "rowTracking", "--set", "a=b", "--protocol", "1,2", "--format", "json")
        self.documented(
            {k: v for k, v in cli("plan-upgrade", log.table, *words).json.items() if k != "goal"}
        )


def vectors(log: Log) -> None:
    name, info = "deletionVectors", commit_info("DELETE", txnId="t")
    stored = protocol(3, 7, [name], ["appendOnly", name, "invariants"])
    described = metadata({"delta.enableDeletionVectors": "true"})
    log.commit(0, stored, described).commit(1, commit_info()).commit(2, info)
    log.checksum(2, stored, described, txnId="t", numDeletionVectorsOpt=2, domainMetadata=[])


def legacy(log: Log) -> None:
    log.commit(0, protocol(2, 5), metadata()).commit(1, commit_info())


class TestSamples:
    @pytest.mark.parametrize(
        ("name", "build"),
        [("deletion_vectors", vectors), ("legacy", legacy)],
        ids=lambda value: getattr(value, "__name__", value),
    )
    def test_the_output_is_what_the_tool_prints(
        self,
        cli: Cli,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        build: Callable[[Log], None],
    ) -> None:
        build(Log(tmp_path / ".demo" / name))
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "80")
        title = f"$ deltaproto inspect .demo/{name}\n"
        (shown,) = [block for block in blocks(WHOLE, "text") if block.startswith(title)]
        ran = cli("inspect", f".demo/{name}")
        assert ran.code == 0
        assert self.elsewhere(shown.removeprefix(title)) == self.elsewhere(ran.out)

    def test_the_plan_is_what_the_tool_prints(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = Log(tmp_path / ".demo" / "deletion_vectors")
        vectors(log)
        marked = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
        log.commit(
            3, add("a.parquet", size=1840), add("b.parquet", size=1811, deletionVector=marked)
        )
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "80")
        title = next(
            t for t in re.findall(r"^\$ deltaproto plan-downgrade .*\n", WHOLE, re.MULTILINE)
        )
        (shown,) = [block for block in blocks(WHOLE, "text") if block.startswith(title)]
        ran = cli(*shlex.split(title)[2:])
        assert ran.code == 0
        said = ran.out.replace(str(tmp_path), "/home/you/deltaproto")
        assert shown.removeprefix(title).rstrip() == said.rstrip()

    def test_the_first_answer_of_readme_is_what_the_tool_prints(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "80")
        assert cli("demo", "lake").out.split() == ["lake/orders", "lake/customers", "lake/events"]
        again = cli("demo", "lake")
        assert (again.code, "lake/orders already exists" in again.err) == (2, True)
        (shown,) = blocks(README, "text")
        title, _, answer = shown.partition("\n")
        ran = cli(*shlex.split(title)[2:])
        assert (ran.code, ran.out) == (1, answer)

    def test_every_command_of_readme_runs_as_printed(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        called = commands_of_readme()
        assert len(called) > 10
        for words in called:
            if words[0] != "apply":
                assert cli(*words).code in (0, 1), words

    @pytest.mark.spark
    def test_the_dry_run_of_readme_runs_as_printed(
        self, cli: Cli, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        called = commands_of_readme()
        (dry_run,) = (words for words in called if words[0] == "apply")
        for words in called:
            if words[0] == "demo" or dry_run[1] in words:
                assert cli(*words).code == 0, words

    def test_the_python_of_readme_runs_as_printed(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert cli("demo", "lake").code == 0
        (block,) = blocks(README, "python")
        names: dict[str, Any] = {}
        exec(block, names)
        assert names["plan"].steps

    def elsewhere(self, text: str) -> str:
        """The output without the table's location, which may fill several lines."""
        return re.sub(r"\n  location .*?(?=\n  version )", "", text, flags=re.DOTALL).rstrip()

    def test_the_demo_removes_nothing_of_anybody_else(self, tmp_path: Path) -> None:
        (tmp_path / "plain").mkdir()
        (tmp_path / "thesis.txt").write_text("x")
        words = [sys.executable, str(ROOT / "examples" / "demo.py"), "--into", str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "contains thesis.txt" in done.stderr
        assert sorted(each.name for each in tmp_path.iterdir()) == ["plain", "thesis.txt"]

    def test_the_demo_makes_the_tables_that_readme_shows(self) -> None:
        demo = (ROOT / "examples" / "demo.py").read_text()
        for name in re.findall(r"\.demo/(\w+)", WHOLE):
            assert f'"{name}": (' in demo


class TestMake:
    @each_document()
    def test_every_target_exists(self, path: Path) -> None:
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        text = path.read_text()
        inline = re.findall(r"`make ([^`]+)`", text)
        in_blocks = re.findall(r"^make (.+)$", "".join(blocks(text, "bash")), re.MULTILINE)
        for words in (*inline, *in_blocks):
            named = [w for w in shlex.split(words, comments=True) if "=" not in w]
            assert set(named) <= set(targets), words

    def test_the_tests_of_make_and_mutmut_exist(self) -> None:
        makefile = (ROOT / "Makefile").read_text()
        (covering,) = re.findall(
            r"^COVERING := \$\(addprefix (\S+?),(.+)\)$", makefile, re.MULTILINE
        )
        named = {f"{covering[0]}{name}" for name in covering[1].split()}
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        named.update(project["tool"]["mutmut"]["pytest_add_cli_args_test_selection"])
        assert [name for name in sorted(named) if not (ROOT / name).exists()] == []

    def test_the_versions_are_those_of_the_project(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        python = project["requires-python"].removeprefix(">=")
        assert f"Python {python} or later" in README
        assert f"Python {python} or later" in CONTRIBUTING
        for extra in project["optional-dependencies"]:
            assert f"pip install '.[{extra}]'" in README
        (excluded,) = set(re.findall(r"!=([\d.]+)", json.dumps(project["optional-dependencies"])))
        assert f"delta-spark {excluded} is excluded" in README


class TestArchitecture:
    def test_the_files_it_names_exist(self) -> None:
        ours = ("deltaproto", "tests", "tools", "benchmarks", "examples", "docker")
        there = [f"/{path}" for folder in ours for path in (ROOT / folder).rglob("*.py")]
        for name in set(re.findall(r"`([a-z_/]+\.py)`", ARCHITECTURE + CONTRIBUTING)):
            assert any(path.endswith(f"/{name}") for path in there), name


class TestDocuments:
    @each_document()
    def test_relative_links_resolve(self, path: Path) -> None:
        for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            file = path.parent / name if name else path
            assert file.exists(), target
            if anchor:
                headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
                assert anchor in {
                    re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings
                }

    @each_document()
    def test_no_path_of_somebodys_machine(self, path: Path) -> None:
        text = path.read_text()
        assert not re.findall(r"(?<![\w.~])/(?:work|root|tmp|Users|home/(?!you/))\b", text)

    def test_the_changelog_has_room_for_the_next_change(self) -> None:
        changelog = (ROOT / "CHANGELOG.md").read_text()
        headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
        assert headings[0] == "[Unreleased]"
        kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
        assert set(re.findall(r"^### (.+)$", changelog, re.MULTILINE)) <= kinds


def test_no_item_of_a_list_is_inside_another() -> None:
    """Wrapping a paragraph again can join the items of a list."""
    joined = [
        f"{page.relative_to(ROOT)}: {line}"
        for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.search(r"[a-z`)][.;:] - [A-Z`\[*]", line) and not line.startswith("|")
    ]
    assert joined == []
