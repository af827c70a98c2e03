"""What Spark was seen to do (`recorded.py`), against what planning says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.ddl.parse import parse
from deltaproto.planning.engine import Engine
from deltaproto.protocol.protocol import Protocol
from tests.planning import recorded
from tests.planning.oracle import Happened, agree, came_true, look

TABLES = recorded.tables()


@pytest.mark.parametrize("table", TABLES, ids=[str(table["test"]) for table in TABLES])
def test_each_statement_does_what_was_predicted(table: dict[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path)
    for each in map(recorded.Did._make, table["did"]):
        recorded.lay(table, tmp_path, each.before)
        before = look(path)
        (parsed,) = parse(each.statement.format(path=path))
        said = parsed.statement.outcome(before, Engine())
        happened = _happened(table, each, before.protocol)
        if said.refusal is not None and said.refusal.retry and happened.error is None:
            # What history holds is not looked at here, and there was none.
            continue
        agree(said, happened)
        recorded.lay(table, tmp_path, each.after)
        after = look(path)
        if said.warnings:
            # Some tables are broken from then on: their clustering names no column any longer.
            assert after.protocol == said.table.protocol
        else:
            came_true(said, after, each.statement)


def _happened(table: dict[str, Any], each: recorded.Did, protocol: Protocol) -> Happened:
    operations, protocols = [], []
    for actions in table["commits"][each.before + 1 : each.after + 1]:
        for action in actions:
            if "protocol" in action:
                protocol = Protocol.parse(action["protocol"])
            if "commitInfo" in action:
                operations.append(action["commitInfo"]["operation"])
        protocols.append(protocol)
    return Happened(operations, protocols, each.error)


def test_every_kind_of_statement_was_recorded() -> None:
    statements = [did[0] for table in TABLES for did in table["did"]]
    assert len(statements) > 350
    assert sum(did[3] is not None for table in TABLES for did in table["did"]) > 100
