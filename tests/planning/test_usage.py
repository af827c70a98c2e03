"""What is predicted of a table's use, for the clients' sake."""

from __future__ import annotations

from deltaproto.planning.table import Table
from deltaproto.planning.usage import ending_of
from deltaproto.protocol.protocol import Protocol


def test_shredding_that_is_off_may_have_left_shredded_files() -> None:
    protocol = Protocol.carrying({"variantShredding", "variantShredding-preview", "appendOnly"})
    ending = ending_of(Table(protocol))
    assert ending.off == {"appendOnly"}
    assert not ending.on
