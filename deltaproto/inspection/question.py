"""What is asked of the conflict matrix."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.protocol.conflicts.by_row import Compute
from deltaproto.protocol.conflicts.exception import ExceptionRecord
from deltaproto.protocol.conflicts.matrix import MatrixEngine
from deltaproto.protocol.conflicts.operation import Operation
from deltaproto.protocol.conflicts.statement import Classification
from deltaproto.protocol.isolation import IsolationLevel


class RowLevel(StrEnum):
    """What `--row-level-concurrency` takes; `auto` is the table's, and off without a table."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Statement(NamedTuple):
    """A pending statement, and what it counts as."""

    sql: str
    classification: Classification


class Question(NamedTuple):
    """What is asked of the matrix. An operation of None stands for all."""

    engine: MatrixEngine = MatrixEngine.DATABRICKS
    release: str | None = None
    """of deltalake; None: the newest that is known, or another engine"""
    isolation: IsolationLevel | None = None
    """None: the table's, or else the engine's default"""
    row_level: RowLevel = RowLevel.AUTO
    compute: Compute = Compute()
    """the Databricks compute that writes, as far as it is known"""
    operation: Operation | None = None
    against: Operation | None = None
    exception: ExceptionRecord | None = None
    """only cells that may raise it"""
    statement: Statement | None = None
    """only cells of this statement's operation, which `operation` must not contradict"""
