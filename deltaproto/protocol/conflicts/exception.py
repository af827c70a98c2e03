"""What an explained exception looks like, and words that records and cells share."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

PAGE = 'Databricks, "Isolation levels and write conflicts", '
SQLSTATE = "2D521"
RETRY = "run the loser again, as nothing of it was committed"


class ExceptionName(StrEnum):
    """The seven, as io.delta.exceptions and delta.exceptions name them."""

    APPEND = "ConcurrentAppendException"
    DELETE_READ = "ConcurrentDeleteReadException"
    DELETE_DELETE = "ConcurrentDeleteDeleteException"
    METADATA = "MetadataChangedException"
    PROTOCOL = "ProtocolChangedException"
    TRANSACTION = "ConcurrentTransactionException"
    WRITE = "ConcurrentWriteException"


class Cause(NamedTuple):
    """One way to be hit, and how to avoid it."""

    name: str
    when: str
    avoid: str
    source: str


class ExceptionRecord(NamedTuple):
    """What is known about one exception. The likeliest cause comes first."""

    name: ExceptionName
    error_class: str
    engines: tuple[str, ...]
    summary: str
    causes: tuple[Cause, ...]


LITERALS = (
    "give both operations explicit, disjoint predicates on the partition columns, with literal "
    "values; in a MERGE, equality of source and target columns is not explicit enough, so add "
    "the literals to its condition"
)
