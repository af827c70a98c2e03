"""What is wrong in a policy file, and where."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.errors import UsageError


class Position(NamedTuple):
    """A place in a file. Lines and columns count from 1, columns in characters."""

    line: int
    column: int


class PolicyError(UsageError):
    """A policy file that cannot be used; the message begins with the place. Exit code 2."""

    def __init__(self, source: str, position: Position | None, problem: str, hint: str) -> None:
        file = source if source.isprintable() else ascii(source)
        place = file if position is None else f"{file}:{position.line}:{position.column}"
        super().__init__(f"{place}: {problem}", hint)
        self.position = position


class Fault(Exception):
    """The same inside this package, where nothing knows which file it reads."""

    def __init__(self, problem: str, hint: str, position: Position | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.position = position
