"""What is wrong in a policy file, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from deltaproto.errors import UsageError

_MOST = 99
_T = TypeVar("_T")
_R = TypeVar("_R")

SHOWN = 60
"""characters of a text that messages show"""


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

    @classmethod
    def of(cls, source: str, fault: Fault) -> PolicyError:
        """The error for a fault, with all others that were found in the same file."""
        error = cls(source, fault.position, fault.problem, fault.hint)
        others = [cls(source, each.position, each.problem, each.hint) for each in fault.others]
        return error.joined(others)

    def joined(self, others: Sequence[PolicyError]) -> PolicyError:
        """The same error with others of the same file, each with its place and its hint."""
        if others:
            every = [self, *others]
            self.message = "; ".join(
                f"{each.message} ({each.hint})" if each.hint else each.message for each in every
            )
            self.hint = f"correct all {len(every)} mistakes"
        return self


class Fault(Exception):
    """The same inside this package, where nothing knows which file it reads."""

    def __init__(self, problem: str, hint: str, position: Position | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint
        self.position = position
        self.others: list[Fault] = []
        """further mistakes in the same file"""


class Faults:
    """Collects mistakes, so that one run reports all of them."""

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
        """Raise the faults that were kept, if there are any.

        Raises:
            Fault: the first, with the others.
        """
        if self._found:
            first, *others = self._found
            for each in others:
                first.others += [each, *each.others]
                each.others = []
            first.others = first.others[:_MOST]
            raise first


def collected(parse: Callable[[_T], _R], given: Iterable[_T]) -> tuple[_R, ...]:
    """What `parse` makes of each.

    Raises:
        Fault: all mistakes in them.
    """
    faults, found = Faults(), []
    for each in given:
        with faults.catching():
            found.append(parse(each))
    faults.check()
    return tuple(found)


def shown(text: str) -> str:
    """`text` in quotes for a message: one line, and not too long."""
    import json

    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return f'"{short}"' if short.isprintable() else json.dumps(short)
