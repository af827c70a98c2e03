"""One table, read and judged: what `inspect` answers and everything later starts from."""

from deltaproto.inspection.inspect import inspect_table, uses_spark
from deltaproto.inspection.interface import Inspection, Request, Unreadable

__all__ = ["Inspection", "Request", "Unreadable", "inspect_table", "uses_spark"]
