"""Who may import whom: the explicit graph of ARCHITECTURE.md, without a circle of files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "deltaproto"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
HEAVY = {"deltalake", "pyspark", "pyarrow", "delta", "obstore", "jinja2", "msgspec", "sqlglot"}

EVERYBODY = {
    *("arrow_imports", "caches", "counts", "errors", "identity"),
    *("input_file", "interrupts", "location", "redaction"),
}
"""single modules that every package may import"""

ALLOWED = {
    "protocol": set(),
    "sql": set(),
    "tables": {"protocol", "sql"},
    "clients": {"protocol"},
    "policy": {"clients", "protocol", "sql"},
    "inspection": {"clients", "policy", "protocol", "tables"},
    "conflicts": {"inspection", "protocol", "sql", "tables"},
    "planning": {"clients", "conflicts", "policy", "protocol", "sql"},
    "plan_inputs": {"clients", "inspection", "planning", "policy", "protocol", "sql", "tables"},
    "execution": {
        "clients",
        "inspection",
        "plan_inputs",
        "planning",
        "policy",
        "protocol",
        "sql",
        "tables",
    },
    "fleet": {
        "clients",
        "inspection",
        "plan_inputs",
        "planning",
        "policy",
        "protocol",
        "sql",
        "tables",
    },
    "certification": {"clients", "inspection", "protocol", "tables"},
    "render": {
        "certification",
        "clients",
        "conflicts",
        "execution",
        "fleet",
        "inspection",
        "planning",
        "policy",
        "protocol",
        "sql",
    },
    "app": {
        "conflicts",
        "execution",
        "fleet",
        "inspection",
        "plan_inputs",
        "planning",
        "policy",
        "protocol",
        "render",
        "tables",
    },
    "cli": {
        "certification",
        "clients",
        "conflicts",
        "execution",
        "fleet",
        "inspection",
        "plan_inputs",
        "planning",
        "policy",
        "protocol",
        "render",
        "tables",
    },
}
PURE = ("protocol", "sql", "clients", "policy", "planning")
"""packages that know no engine"""
LIGHT = (*PURE, "inspection", "conflicts", "app", "cli")
"""packages of which every start imports something"""


def module_name(file: Path) -> str:
    name = file.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".")
    return name.removesuffix(".__init__")


@cache
def syntax_trees() -> dict[str, ast.Module]:
    """The parsed files of the package, by module name."""
    return {
        module_name(file): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(PACKAGE.rglob("*.py"))
        # Adapters run in the clients' own Pythons, one file at a time.
        if file.relative_to(PACKAGE).parts[:2] != ("certification", "adapters")
    }


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of everything that is imported, wherever it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what they reach"
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in syntax_trees() else base


def package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@cache
def edges() -> frozenset[tuple[str, str]]:
    """Pairs of modules, of which the first imports the second."""
    trees = syntax_trees()
    return frozenset(
        (module, name)
        for module, tree in trees.items()
        for name in imported(tree)
        if name in trees and name != module
    )


def test_the_graph_holds_every_package_and_no_circle() -> None:
    folders = {each.parent.name for each in PACKAGE.glob("*/__init__.py")}
    assert folders == set(ALLOWED)
    below: set[str] = set()
    for name, allowed in ALLOWED.items():
        assert allowed <= below, f"{name} may import what stands after it"
        below.add(name)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_package_imports_what_the_graph_allows(name: str) -> None:
    found = {
        package(target)
        for module, target in edges()
        if package(module) == name and package(target) not in {name, ""} | EVERYBODY
    }
    assert found == ALLOWED[name]


def test_what_everybody_imports_imports_no_package() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, target in edges()
        if package(module) in EVERYBODY and package(target) not in EVERYBODY
    ]
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    follows: dict[str, set[str]] = {}
    for module, target in edges():
        # A package's own file imports what it hands out.
        if not target.startswith(f"{module}.") and not module.startswith(f"{target}."):
            follows.setdefault(module, set()).add(target)
    while leaves := [m for m, targets in follows.items() if not targets & set(follows)]:
        for leaf in leaves:
            del follows[leaf]
    circle = {m: sorted(t & set(follows)) for m, t in follows.items()}
    assert circle == {}


def test_the_picture_shows_the_packages_and_their_imports() -> None:
    drawn = re.search(r"```text\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert drawn is not None
    lines = re.findall(r"^([a-z_]+) *(?:→ (.*))?$", drawn[1], re.MULTILINE)
    assert {name: set(below.split()) for name, below in lines} == ALLOWED


def test_each_package_has_its_paragraph() -> None:
    for name in ALLOWED:
        assert re.search(rf"^\*\*`{name}`\*\* ", ARCHITECTURE, re.MULTILINE), name


def test_it_stays_short() -> None:
    assert len(ARCHITECTURE.splitlines()) <= 200


def test_pure_packages_know_no_engine() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, tree in syntax_trees().items()
        if package(module) in PURE
        for name in imported(tree)
        if name.partition(".")[0] in HEAVY - {"msgspec"}
    ]
    assert wrong == []


def test_heavy_modules_are_imported_where_they_are_used() -> None:
    """What a start imports is decided at the top of modules, outside of functions."""
    wrong = []
    for module, tree in syntax_trees().items():
        if package(module) not in LIGHT:
            continue
        for node in tree.body:
            names = imported(node) if isinstance(node, ast.Import | ast.ImportFrom) else ()
            wrong += [f"{module} imports {n}" for n in names if n.partition(".")[0] in HEAVY]
    assert wrong == []


def test_functions_fit_on_a_page() -> None:
    long = [
        f"{module}.{node.name} has {lines} lines"
        for module, tree in syntax_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > 75
    ]
    assert long == []
