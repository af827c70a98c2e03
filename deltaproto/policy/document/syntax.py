"""Convert YAML scanner errors to messages for policy authors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaproto.policy.document.errors import Fault, Position

if TYPE_CHECKING:
    import yaml


def to_fault(error: yaml.MarkedYAMLError, text: str) -> Fault:
    """Convert the scanner error to a message with position and hint."""
    problem, context = error.problem or "", error.context or ""
    here = error.problem_mark or error.context_mark
    line, column = (here.line, here.column) if here else (0, 0)
    begin = error.context_mark or here
    where = Position(line + 1, column + 1)
    opened = Position(begin.line + 1, begin.column + 1) if begin else where
    found = _character(text, line, column)
    if "tab character" in problem or found == "\t":
        return Fault("a tab where YAML requires spaces", "indent with spaces", where)
    if "alias" in context:
        return Fault(
            "a text that begins with * must be in quotes", 'write "*" with its quotes', opened
        )
    if "cannot start any token" in problem:
        return Fault(
            f"a text that begins with {found} must be in quotes", "put the text in quotes", where
        )
    if "quoted scalar" in context and "end of stream" in problem:
        return Fault("a quote that is never closed", "add the closing quote", opened)
    if "mapping values are not allowed" in problem:
        return Fault(
            "a colon where no value can follow",
            "check the indentation; quote a text that contains a colon and a space",
            where,
        )
    said = ", ".join(part for part in (context, problem) if part)
    return Fault(
        f"not valid YAML: {' '.join(said.split())}", "check indentation, brackets and quotes", where
    )


def _character(text: str, line: int, column: int) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[line][column : column + 1] if line < len(lines) else ""
