"""Scripts that benchmarks run as processes of their own, which no type checker reads."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def scripts(source: str) -> Iterator[ast.Module]:
    """Each text in a module that is a program with imports."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "import" in node.value
        ):
            try:
                yield ast.parse(node.value)
            except SyntaxError:
                continue


def missing_names(source: str) -> list[str]:
    found = []
    for script in scripts(source):
        for node in ast.walk(script):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            if node.module.partition(".")[0] not in ("deltaproto", "benchmarks"):
                continue
            module = importlib.import_module(node.module)
            found += [
                f"{node.module}.{each.name}"
                for each in node.names
                if not hasattr(module, each.name)
            ]
    return found


def test_scripts_import_what_exists() -> None:
    sources = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
    assert {
        name: missing for name, text in sources.items() if (missing := missing_names(text))
    } == {}
    assert sum(1 for text in sources.values() for _ in scripts(text)) > 5


def test_a_missing_name_is_found() -> None:
    script = "import json\nfrom deltaproto.clients.verdicts import evaluate_clients, gone\n"
    assert missing_names(f"PEER = {script!r}") == ["deltaproto.clients.verdicts.gone"]
