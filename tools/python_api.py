"""The reference of the Python API, from signatures and docstrings.

A class lists its attributes with the text after them in the source, and its public methods.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import deltaproto
from deltaproto.app.arguments import NONE
from deltaproto.app.result import Result

GROUPS = {
    "Functions": (
        *("inspect_table", "check", "history", "find_conflicts", "plan_upgrade", "plan_downgrade"),
        *("plan_policy",),
        *("apply", "rehearse", "scan", "discover", "to_dict"),
    ),
    "Objects": ("Table", "Plan", "Rollout", "Inventory"),
    "Results": (
        *("Result", "Inspection", "CheckResult", "CheckResults", "History", "ConflictReport"),
        *("ApplyResult", "RolloutProgress", "ScanResult", "Drift", "Forecast", "Report"),
        *("Discovery", "Rows"),
    ),
    "Records": (
        *("Protocol", "FeatureState", "Finding", "Verdict", "Event", "Step", "Blocked"),
        *("ClientChange", "Alternative", "StepRecord", "ApplyEvent", "PastScan", "Difference"),
        *("ClientUse", "WaveProgress", "TableProgress", "RolloutTable"),
    ),
    "Choices": (
        *("Access", "Outcome", "Severity", "ApplyStatus", "StepStatus", "EventKind"),
        *("RolloutStatus", "ExitCode"),
    ),
    "Errors": ("DeltaprotoError", "UsageError", "TableError", "EngineError", "ResultError"),
}
"""every name of the API, in the order of the page"""
_OLD_NAME = "catalogue"
"""an argument that still works and is not shown"""
_INTERNAL = {
    "Inspection": {"subject", "row_level", "state"},
    "Verdict": {"declared", "verdict"},
    "ConflictReport": {"question"},
    "ApplyResult": {"planned"},
    "ScanResult": {"scan"},
    "RolloutProgress": {"rollout", "plans"},
    "Drift": {"pair"},
    "Forecast": {"found"},
    "Discovery": {"found"},
}
"""attributes that lead to records of other packages, which are no part of the API"""


class Attribute(NamedTuple):
    """One attribute of a class."""

    name: str
    kind: str
    """its type as written"""
    text: str
    """its description; empty if it has none"""


def page() -> str:
    """Return the whole page."""
    parts = ["# Python API", _intro()]
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        for name in names:
            value = getattr(deltaproto, name)
            parts += [f"### {name}", *(_class(name, value) if isinstance(value, type) else [])]
            if not isinstance(value, type):
                parts += [_signature(name, value), _described(value)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _intro() -> str:
    text = inspect.getdoc(deltaproto) or ""
    return re.sub(
        r"\n((?:    .*\n|\n)+)",
        lambda block: f"\n\n```python\n{textwrap.dedent(block[1]).strip()}\n```\n\n",
        text,
        count=1,
    ).strip()


def _class(name: str, kind: type) -> Iterator[str]:
    if name in ("Table", "Inventory"):
        yield _signature(name, kind)
    yield _described(kind)
    found = [each for each in attributes(kind) if each.name not in _INTERNAL.get(name, ())]
    if issubclass(kind, enum.Enum):
        rows = [f"| `{name}.{each.name}` | `{each.kind}` | {each.text} |" for each in found]
        yield "\n".join(["| member | value | meaning |", "|---|---|---|", *rows])
    elif found:
        rows = [f"| `{e.name}` | `{_cell(e.kind)}` | {_cell(e.text)} |" for e in found]
        yield "\n".join(["| attribute | type | what it is |", "|---|---|---|", *rows])
    for method, function in methods(kind):
        yield f"#### {name}.{method}"
        yield _signature(method, function)
        yield _described(function)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def attributes(kind: type) -> list[Attribute]:
    """Return the public attributes and properties, those of the class itself first."""
    found: dict[str, Attribute] = {}
    for each in kind.__mro__:
        if not each.__module__.startswith("deltaproto") or (each is Result and kind is not Result):
            continue
        for attribute in _own_attributes(each):
            if not attribute.name.startswith("_"):
                found.setdefault(attribute.name, attribute)
    return list(found.values())


def _own_attributes(kind: type) -> Iterator[Attribute]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    own = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    for name, line, text in _with_texts(tree.body):
        if isinstance(line, ast.AnnAssign):
            yield Attribute(name, _annotation(line.annotation), text)
        elif isinstance(line, ast.Assign) and issubclass(kind, enum.Enum):
            yield Attribute(name, str(kind[name].value), text)
    if "__init__" in own:
        for name, line, text in _with_texts(own["__init__"].body):
            if text:
                yield Attribute(name, _inferred(kind, name, line), text)
    for name, function in own.items():
        if any(isinstance(d, ast.Name) and "property" in d.id for d in function.decorator_list):
            returned = _annotation(function.returns) if function.returns else ""
            yield Attribute(name, returned, _one_line(ast.get_docstring(function) or ""))


def _with_texts(lines: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt, str]]:
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else None
        text = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = _one_line(str(after.value.value))
        target = line.target if isinstance(line, ast.AnnAssign) else None
        if isinstance(line, ast.Assign):
            target = line.targets[0]
        if isinstance(target, ast.Name):
            yield target.id, line, text
        elif isinstance(target, ast.Attribute):
            yield target.attr, line, text


def _inferred(kind: type, name: str, line: ast.stmt) -> str:
    if isinstance(line, ast.AnnAssign):
        return _annotation(line.annotation)
    signature = inspect.signature(kind.__init__)  # type: ignore[misc]
    given = signature.parameters.get(name)
    return str(given.annotation) if given is not None and "Source" not in str(given) else "str"


def _annotation(written: ast.expr) -> str:
    """Return a type without the quotes of one that is not imported."""
    if isinstance(written, ast.Constant) and isinstance(written.value, str):
        return written.value
    return ast.unparse(written)


def _one_line(text: str) -> str:
    first = " ".join(text.partition("\n\n")[0].split())
    if first[1:2].islower() or first[1:2] == " ":
        first = first[0].lower() + first[1:]
    return first.removesuffix(".")


def methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods of the API's own classes."""
    if not kind.__module__.startswith("deltaproto.app"):
        return
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod) else value
        if inspect.isfunction(function) and not name.startswith("_"):
            inherited = kind is not Result and hasattr(Result, name)
            if not inherited:
                yield name, function


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    lines = [f"    {each}," for each in _arguments(signature)]
    result = signature.return_annotation
    arrow = "" if result in (inspect.Signature.empty, None) else f" -> {result}"
    if not lines:
        return f"```python\n{name}(){arrow}\n```"
    return "```python\n" + "\n".join((f"{name}(", *lines, f"){arrow}")) + "\n```"


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    keyword = False
    for each in signature.parameters.values():
        if each.name in ("self", "cls", _OLD_NAME):
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword:
            keyword = True
            yield "*"
        default = "{}" if each.default is NONE else repr(each.default)
        yield f"{each.name}: {each.annotation}" + (
            "" if each.default is each.empty else f" = {default}"
        )


def _described(value: Any) -> str:
    """Return a docstring's sections as Markdown."""
    lines = []
    for line in (inspect.getdoc(value) or "").splitlines():
        if re.fullmatch(r"(Args|Raises|Returns):", line):
            lines.append(f"**{line[:-1]}**\n")
        elif item := re.fullmatch(r"    (\w+): (.*)", line):
            if item[1] != _OLD_NAME:
                lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            lines.append(f"  {line.strip()}" if line.startswith("     ") else line.strip())
    return "\n".join(lines)
