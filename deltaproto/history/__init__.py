"""How a table's protocol came to be: which commit changed it, who, and why."""

from deltaproto.history.event import Event
from deltaproto.history.read import History, Idle
from deltaproto.history.table import table_history

__all__ = ["Event", "History", "Idle", "table_history"]
