"""What Spark does to a table, commit by commit, and whether it is what was predicted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.from_state import table_from_state
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.reader import LogReader
from tests.planning.log_files import commit_files, commits
from tests.recording.delta_spark import DeltaSpark, StatementError
from tests.support.engines import RUNNING


class Happened(NamedTuple):
    """What Spark did: operation and protocol of each commit, and its refusal's error class."""

    operations: list[str]
    protocols: list[Protocol]
    error: str | None


def look(path: str) -> Table:
    return table_from_state(LogReader(look_in_files=True).read(path))


def planned(path: str) -> PlanInput:
    """What plans for the running engine know of the table."""
    return load_plan_input(path, {}, SparkSettings(), time.time())._replace(engine=RUNNING)


def predict(path: str, statement: str) -> tuple[Table, Outcome]:
    """The table before one statement, and what the statement does to it."""
    (parsed,) = parse_script(statement)
    before = planned(path).table._replace(version=newest(path))
    return before, predict_statement(parsed.statement, before, RUNNING)


def execute(delta_spark: DeltaSpark, path: str, statement: str) -> Happened:
    before = newest(path)
    state = LogReader().read(path)
    protocol, error = state.protocol, None
    try:
        delta_spark.sql(statement)
    except StatementError as raised:
        error = raised.error_class
    operations, protocols = [], []
    # Without a catalog, the log shows all commits.
    for made in commits(path, state.version + 1):
        for stored in made.kind("protocol"):
            protocol = Protocol.parse(stored)
        if made.version > before:
            operations.append(made.operation)
            protocols.append(protocol)
    return Happened(operations, protocols, error)


def commit(path: str, version: int) -> Path:
    return commit_files(path)[version]


def newest(path: str) -> int:
    return max(commit_files(path))


def agree(said: Outcome, happened: Happened) -> None:
    assert happened.error == (said.refusal.error if said.refusal else None), (said, happened)
    assert said.fewest <= len(happened.operations) <= said.most, (said.commits, happened)
    expected = [c for c in said.commits if c.sure or c.operation in happened.operations]
    assert [c.operation for c in expected] == happened.operations
    assert [c.protocol for c in expected] == happened.protocols


def came_true(said: Outcome, after: Table, statement: str) -> None:
    """The table is what was said; what was left open may be anything."""
    assert after.protocol == said.table.protocol, statement
    if said.table.schema is not None:
        assert after.schema == said.table.schema, statement
        assert after.widened == said.table.widened
    if said.table.clustering is not None:
        assert after.clustering == said.table.clustering, statement
    assert after.partition_columns == said.table.partition_columns, statement
    if said.table.vectors is not None:
        assert after.vectors == said.table.vectors, statement
