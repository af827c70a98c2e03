"""One table, read and judged: what `inspect` answers and everything later starts from."""

from deltaproto.inspection.inspect import inspect_table, uses_spark
from deltaproto.inspection.interface import Inspection, ReadRequest, Unreadable

__all__ = ["Inspection", "ReadRequest", "Unreadable", "inspect_table", "uses_spark"]
