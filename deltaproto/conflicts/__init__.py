"""Conflicts between concurrent operations: the engines' rules as data, and how to avoid them."""

from deltaproto.conflicts.matrix import MatrixEngine, build_cells
from deltaproto.conflicts.operation import Cell, Conflict, ExceptionName, Operation

__all__ = ["Cell", "Conflict", "ExceptionName", "MatrixEngine", "Operation", "build_cells"]
