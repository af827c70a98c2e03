"""Which concurrent operations conflict: two engines' rules as data, and who has to avoid what."""

from deltaproto.conflicts.matrix import MatrixEngine, cells
from deltaproto.conflicts.operation import Cell, Conflict, ExceptionName, Operation

__all__ = ["Cell", "Conflict", "ExceptionName", "MatrixEngine", "Operation", "cells"]
