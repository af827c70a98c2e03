"""What a plan's statements leave a table require of clients, as the planner predicts it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deltaproto.clients.requirements import TableRequirements
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import requirements_after
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.table_state import SparkSettings


def load(table: str | Path) -> PlanInput:
    """Return a table as a plan reads it, from its log."""
    return load_plan_input(str(table), {}, SparkSettings(), 0.0)


def needs_in(given: PlanInput, after: Table) -> TableRequirements:
    """Return the requirements of a predicted table."""
    return requirements_after(given.needs, end_state_of(after, given.table))


def needs_after(
    given: PlanInput, scripts: Iterable[str], engine: Engine = Engine()
) -> TableRequirements:
    """Return the requirements after SQL statements, none of which the engine may refuse."""
    table = given.table
    for parsed in (each for sql in scripts for each in parse_script(sql)):
        outcome = predict_statement(parsed.statement, table, engine)
        assert outcome.refusal is None
        table = outcome.table
    return needs_in(given, table)
