"""Tables whose files and history hold nothing."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.planning.predict.table import Table
from deltaproto.protocol.protocol import Protocol


def bare_table(protocol: Protocol, configuration: Mapping[str, str]) -> Table:
    """Return a table without any trace of a feature in its files and its history."""
    return Table(
        protocol=protocol,
        configuration=configuration,
        vectors=False,
        widened=False,
        v2_checkpoint=False,
        row_ids=False,
        traced=frozenset(),
        aged=frozenset(),
    )
