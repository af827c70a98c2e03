"""Inspection: reads one table and evaluates the rules. Other commands build on its result."""

from deltaproto.inspection.inspect import inspect_ahead, inspect_table, uses_spark
from deltaproto.inspection.interface import Inspection, ReadRequest, Unreadable

__all__ = [
    "Inspection",
    "ReadRequest",
    "Unreadable",
    "inspect_ahead",
    "inspect_table",
    "uses_spark",
]
