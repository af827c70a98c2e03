"""One cell of a conflict matrix."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.protocol.conflicts.exception import ExceptionName
from deltaproto.protocol.conflicts.operation import Operation


class Conflict(StrEnum):
    """Whether two concurrent operations conflict; `maybe` depends on what `Cell.when` names.

    `wrong`: they do, nobody is told, and the table's rows are wrong afterwards.
    """

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"
    WRONG = "wrong"


class Cell(NamedTuple):
    """What becomes of `operation` when `against` was committed while it ran."""

    operation: Operation
    """the transaction that commits last, and so may lose"""
    against: Operation
    """the transaction that was committed meanwhile"""
    conflict: Conflict
    exceptions: tuple[ExceptionName, ...]
    """what the loser may be told; empty when there is no conflict"""
    when: str
    avoid: str
    source: str


class Answer(NamedTuple):
    """A cell without its place, as the engines' rules work it out."""

    conflict: Conflict
    exceptions: tuple[ExceptionName, ...]
    when: str
    avoid: str
    source: str
