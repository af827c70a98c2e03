"""Which concurrent operations conflict: two engines' rules as data, and who has to avoid what."""

from deltaproto.protocol.conflicts.cell import Cell, Conflict
from deltaproto.protocol.conflicts.exception import ExceptionName
from deltaproto.protocol.conflicts.matrix import MatrixEngine, cells
from deltaproto.protocol.conflicts.operation import Operation

__all__ = ["Cell", "Conflict", "ExceptionName", "MatrixEngine", "Operation", "cells"]
