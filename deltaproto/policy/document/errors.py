"""Errors in a policy file, with positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from deltaproto.counts import counted
from deltaproto.errors import UsageError

_MAX_FAULTS = 99
_T = TypeVar("_T")
_R = TypeVar("_R")


class Position(NamedTuple):
    """A position in a file. Lines and columns count from 1, columns in characters."""

    line: int
    column: int


class PolicyError(UsageError):
    """An invalid policy file; the message begins with the position. Exit code 2."""

    def __init__(self, source: str, position: Position | None, problem: str, hint: str) -> None:
        file = source if source.isprintable() else ascii(source)
        place = file if position is None else f"{file}:{position.line}:{position.column}"
        super().__init__(f"{place}: {problem}", hint)
        self.position = position

    @classmethod
    def of(cls, source: str, fault: Fault) -> PolicyError:
        """Create the error for a fault and all further faults in the same file."""
        faults = sorted([fault, *fault.others], key=lambda each: each.position or Position(0, 0))
        first, *others = [cls(source, each.position, each.problem, each.hint) for each in faults]
        return first.merged_with(others)

    def merged_with(self, others: Sequence[PolicyError]) -> PolicyError:
        """Combine with other errors of the same file, each with its position and hint."""
        if others:
            self.lines = tuple(
                f"{each.message} ({each.hint})" if each.hint else each.message
                for each in (self, *others)
            )
            self.message = "; ".join(self.lines)
            self.hint = f"fix all {counted(len(self.lines), 'error')}"
        return self


class PolicyErrors:
    """Collects the errors of a policy's declarations, so that one run reports all of them.

    Args:
        source: the policy file.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._found: list[PolicyError] = []

    @contextmanager
    def at(self, position: Position) -> Iterator[None]:
        """Keep a usage error for later, with the position of the declaration that causes it."""
        try:
            yield
        except UsageError as error:
            self._found.append(PolicyError(self._source, position, error.message, error.hint))

    def check(self) -> None:
        """Raise the collected errors, if any.

        Raises:
            PolicyError: all of them.
        """
        if self._found:
            raise self._found[0].merged_with(self._found[1:])


class Fault(Exception):
    """A PolicyError before the file name is known; used inside this package."""

    def __init__(self, problem: str, hint: str, position: Position | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.position = position
        self.others: list[Fault] = []
        """further errors in the same file"""


class Faults:
    """Collect errors, so that one run reports all of them."""

    def __init__(self) -> None:
        self._found: list[Fault] = []

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Keep a fault for later."""
        try:
            yield
        except Fault as fault:
            self._found.append(fault)

    def check(self) -> None:
        """Raise the collected faults, if any.

        Raises:
            Fault: the first fault, with the others attached.
        """
        if self._found:
            first, *others = self._found
            for each in others:
                first.others += [each, *each.others]
                each.others = []
            first.others = first.others[:_MAX_FAULTS]
            raise first


def parse_each(parse: Callable[[_T], _R], items: Iterable[_T]) -> tuple[_R, ...]:
    """Apply `parse` to each item and collect the errors.

    Raises:
        Fault: all errors.
    """
    faults, found = Faults(), []
    for each in items:
        with faults.catching():
            found.append(parse(each))
    faults.check()
    return tuple(found)
