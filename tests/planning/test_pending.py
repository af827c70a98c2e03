"""What a table's metadata still asks of its protocol."""

from __future__ import annotations

import itertools

import pytest

from deltaproto.planning.engine import DEFAULT_ENGINE
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.pending import settle
from deltaproto.planning.predict.table import Table
from deltaproto.policy.context import RuleContext
from deltaproto.policy.rules import stored_protocol_request
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState

FEATURES = ({}, {"appendOnly": "enabled"}, {"deletionVectors": "supported"}, {"nope": "supported"})


@pytest.mark.parametrize("stored", [*FEATURES, {"domainMetadata": "off"}])
def test_the_finding_says_what_plans_predict(stored: dict[str, str]) -> None:
    """DP145 is derived from the same properties, without the planner."""
    protocols = [
        *(Protocol(*pair) for pair in ((1, 1), (1, 2), (1, 4), (2, 5), (2, 6))),
        Protocol.carrying({"appendOnly", "deletionVectors"}),
        Protocol.carrying({"rowTracking", "domainMetadata"}),
    ]
    versions = itertools.product((None, "1", "2", "3", "x"), (None, "2", "4", "6", "7", "9"))
    for (reader, writer), before in itertools.product(versions, protocols):
        pairs = {"delta.minReaderVersion": reader, "delta.minWriterVersion": writer}
        properties = {key: value for key, value in pairs.items() if value is not None}
        properties |= {f"delta.feature.{name}": status for name, status in stored.items()}
        state = TableState(
            "t", "file:///t", ReaderName.LOG, 1, before, Metadata("i", None, None, (), properties)
        )
        found = list(stored_protocol_request.check(RuleContext(state)))
        after = settle(Table(before, properties), DEFAULT_ENGINE)
        if isinstance(after, Refusal):
            assert [" Spark fails, as " in each.message for each in found] == [True], properties
        else:
            added = sorted(after.protocol.supported - before.supported)
            assert [each.evidence for each in found] == ([", ".join(added)] if added else [])
