"""The code in docstrings runs as printed, or what takes hours is read by the program that it names.

`EXECUTED` names the test for each file; a block in another docstring fails here.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest

from deltaproto.certification.adapter_server import OPERATIONS
from deltaproto.fleet.settings_file import parse_settings
from tests.fuzz.targets import TARGETS
from tools import docs

ROOT = Path(__file__).parents[1]
EXECUTED = {
    "deltaproto/__init__.py": "tests/app/test_manual.py",
    "deltaproto/certification/adapter_server.py": "test_an_adapter_has_these_functions",
    "deltaproto/fleet/settings_file.py": "test_the_settings_are_settings",
    "examples/scan_job.py": "tests/fleet/test_scan_job.py",
    "tools/docs.py": "test_the_steps_of_a_guide_are_steps",
    **dict.fromkeys(
        (
            "benchmarks/discover_logs.py",
            "benchmarks/measure_conflicts.py",
            "benchmarks/measure_delta_rs_conflicts.py",
            "benchmarks/measure_engines.py",
            "tools/certify.py",
            "tools/fuzz.py",
            "tools/mutation.py",
            "tools/trying.py",
        ),
        "test_a_program_accepts_its_command_lines",
    ),
}
FOLDERS = ("deltaproto", "examples", "tools", "tests", "benchmarks")


def blocks(path: Path) -> list[str]:
    """The indented or fenced blocks of all docstrings in a file."""
    source = path.read_text(encoding="utf-8")
    if not re.search(r"\n\n +\S|```|>>>", source):
        return []
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (each for each in ast.walk(ast.parse(source)) if isinstance(each, described))
    texts = [ast.get_docstring(each) or "" for each in nodes]
    fenced = r"^(?:```|>>> ).*(?:\n.*)*|(?<=\n\n)(?:(?: {4}.*)?(?:\n|\Z))+"
    return [
        textwrap.dedent(found).strip("\n")
        for text in texts
        for found in re.findall(fenced, text, re.M)
        if found.strip()
    ]


def block(name: str) -> str:
    """The only block of a file."""
    (only,) = blocks(ROOT / name)
    return only


def test_every_file_with_a_block_is_executed() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if blocks(path)
    }
    assert found == set(EXECUTED)
    for where in EXECUTED.values():
        assert where in globals() or (ROOT / where).exists(), where


def test_an_adapter_has_these_functions() -> None:
    lines = block("deltaproto/certification/adapter_server.py").splitlines()
    signatures = [re.split(r" {2,}", line)[0].removeprefix("def ") for line in lines]
    named = [name for line in signatures for name in re.findall(r"(\w+)\([^)]*\)", line)]
    for line in signatures:
        for each in re.findall(r"\w+\([^)]*\)(?: -> \w+)?", line):
            ast.parse(f"def {each}: ...")
    assert set(OPERATIONS) <= set(named)


def test_the_settings_are_settings() -> None:
    text = block("deltaproto/fleet/settings_file.py")
    found = parse_settings(text, "deltaproto.yaml", {"LAKE_SECRET": "from-the-environment"})
    assert found["storage_options"]["AWS_SECRET_ACCESS_KEY"] == "from-the-environment"
    assert [*found["catalogs"]] == ["main"]


def test_the_steps_of_a_guide_are_steps() -> None:
    steps = re.findall(r"^<!-- .*? -->", block("tools/docs.py"), re.M)
    assert len(steps) == 5
    assert all(docs._STEP.fullmatch(step) for step in steps)


class Parsed(Exception):
    """The program has read its command line, and would begin."""


@pytest.mark.parametrize("name", [name for name in EXECUTED if "test_a_program" in EXECUTED[name]])
def test_a_program_accepts_its_command_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs measure for minutes or hours, so that only their arguments are read here."""
    read: Any = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser) -> None:
        raise Parsed(read(self))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    module = name.removesuffix(".py").replace("/", ".")
    program = importlib.import_module(module)
    for line in block(name).splitlines():
        python, *words = shlex.split(re.split(r" {2,}", line)[0])
        assert python == "python"
        given = words[1:] if words[0] == name else words[2:]
        assert words[: len(words) - len(given)] in ([name], ["-m", module])
        if name == "tools/fuzz.py":
            assert given[0] in TARGETS
        elif name == "tools/trying.py":
            assert len(given) == 3
        elif inspect.signature(program.main).parameters:
            inspect.signature(program.main).bind(*given)
        elif given or "argparse" in vars(program):
            monkeypatch.setattr("sys.argv", [name, *given])
            with pytest.raises(Parsed) as parsed:
                program.main()
            if name == "tools/certify.py":
                for client in parsed.value.args[0].names:
                    assert [*program._wanted([client], None, missing=False)], client
