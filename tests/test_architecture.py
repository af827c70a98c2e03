"""ARCHITECTURE.md's picture is what the imports say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "deltaproto"
HEAVY = {"deltalake", "pyspark", "pyarrow", "delta", "obstore", "jinja2", "msgspec", "sqlglot"}


def picture() -> list[str]:
    """The packages, from above to below."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    drawn = re.search(r"## The picture\n\n```text\n(.*?)```", text, re.DOTALL)
    assert drawn is not None
    return re.findall(r"^([a-z_]+) ", drawn[1], re.MULTILINE)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of a package, and adapters apart: they run elsewhere."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if place.parts[:2] != ("certification", "adapters"):
            yield place.as_posix(), ast.parse(file.read_text())


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of everything that is imported, wherever it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what they reach"
            module = node.module or ""
            yield module
            if module == "deltaproto":
                yield from (f"deltaproto.{alias.name}" for alias in node.names)


def test_every_package_is_in_the_picture() -> None:
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    assert folders == set(picture())


def test_arrows_point_down() -> None:
    levels = {name: level for level, name in enumerate(picture())}
    wrong = []
    for module, tree in modules():
        here = module.partition("/")[0]
        for name in imported(tree):
            parts = name.split(".")
            if parts[0] != "deltaproto" or len(parts) < 2 or parts[1] not in levels:
                continue
            if here in levels and levels[parts[1]] < levels[here]:
                wrong.append(f"{module} imports {name}")
            if here in ("errors.py", "whoami.py"):
                wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_protocol_and_planning_know_no_engine() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, tree in modules()
        if module.partition("/")[0] in ("protocol", "planning", "policy", "clients")
        for name in imported(tree)
        if name.partition(".")[0] in HEAVY - {"msgspec"}
    ]
    assert wrong == []


def test_heavy_modules_are_imported_where_they_are_used() -> None:
    """What a start imports is decided at the top of modules, outside of functions."""
    light = ("cli", "api", "checking", "inspection", "policy", "clients", "protocol", "planning")
    wrong = []
    for module, tree in modules():
        if module.partition("/")[0] not in light:
            continue
        for node in tree.body:
            names = imported(node) if isinstance(node, ast.Import | ast.ImportFrom) else ()
            wrong += [f"{module} imports {n}" for n in names if n.partition(".")[0] in HEAVY]
    assert wrong == []
