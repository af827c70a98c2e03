"""CHECK constraints whose property is not in lower case, as deltalake 1.6.6 writes them.

Delta enforces every property `delta.constraints.…` in any case (`Constraints.getCheckConstraints`).
DROP CONSTRAINT and ADD CONSTRAINT only find the lower case (`checkConstraintPropertyName`), and
UNSET TBLPROPERTIES finds the property as it is written (`DeltaConfigs.normalizeConfigKeys`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import Action
from deltaproto.protocol.layers import feature_states
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.support.logs import Log, metadata, protocol

Cli = Callable[..., Any]

KEYS = ["delta.constraints.Id_Positive", "Delta.Constraints.id", "delta.constraints.id"]


def table_with(*keys: str) -> Table:
    return bare_table(Protocol(1, 3), dict.fromkeys(keys, "id > 0"))


def outcome_of(sql: str, table: Table) -> Outcome:
    (parsed,) = parse_script(sql)
    return parsed.statement.outcome(table, Engine())


@pytest.mark.parametrize("key", KEYS)
def test_a_constraint_counts_in_any_case(key: str) -> None:
    states = feature_states(Protocol(1, 3), Metadata(None, configuration={key: "id > 0"}), {}, {})
    (state,) = (state for state in states if state.name == "checkConstraints")
    assert (state.enabled, state.present, state.evidence) == (True, True, key)


@pytest.mark.parametrize("key", KEYS)
def test_a_plan_drops_a_constraint_with_the_statement_that_finds_it(
    log: Log, cli: Cli, key: str
) -> None:
    log.commit(0, protocol(1, 3), metadata({key: "id > 0"}))
    goal = ["--drop", "checkConstraints", "--format", "json"]
    plan = cli("plan-downgrade", log.table, *goal).json
    name, table = key.split(".")[2], plan["sql_name"]
    found = key.islower()
    drop = f"DROP CONSTRAINT `{name}`" if found else f"UNSET TBLPROPERTIES ('{key}')"
    first, second = plan["steps"]
    assert first["action"] == Action.DROP_CONSTRAINT
    assert first["sql"] == f"ALTER TABLE {table} {drop}"
    assert first["operations"] == ["DROP CONSTRAINT" if found else "UNSET TBLPROPERTIES"]
    assert first["undo"] == f"ALTER TABLE {table} ADD CONSTRAINT `{name}` CHECK (id > 0)"
    assert second["sql"] == f"ALTER TABLE {table} DROP FEATURE `checkConstraints`"
    assert plan["protocol_after"]["minWriterVersion"] == 2


def test_runbook_accepts_the_statement(log: Log, cli: Cli) -> None:
    # The gates parse each statement again, and compare it with the step's action.
    log.commit(0, protocol(1, 3), metadata({KEYS[0]: "id > 0"}))
    plan = str(log.root.parent / "plan.json")
    goal = ["--drop", "checkConstraints", "--format", "json", "--output", plan]
    assert cli("plan-downgrade", log.table, *goal).code == 0
    ran = cli("runbook", plan)
    assert (ran.code, "would refuse" in ran.out) == (0, False)


def test_drop_constraint_does_not_find_capital_letters() -> None:
    table = table_with(KEYS[0])
    refusal = outcome_of("ALTER TABLE t DROP CONSTRAINT Id_Positive", table).refusal
    assert refusal is not None
    assert refusal.error == "DELTA_CONSTRAINT_DOES_NOT_EXIST"
    assert refusal.remedy == f"UNSET TBLPROPERTIES ('{KEYS[0]}')"
    after = outcome_of(f"ALTER TABLE t {refusal.remedy}", table)
    assert (after.refusal, after.table.constraints) == (None, {})
    kept = outcome_of("ALTER TABLE t DROP CONSTRAINT IF EXISTS Id_Positive", table)
    assert (kept.refusal, kept.table) == (None, table)


def test_add_constraint_does_not_find_capital_letters() -> None:
    added = outcome_of(
        "ALTER TABLE t ADD CONSTRAINT Id_Positive CHECK (id > 1)", table_with(KEYS[0])
    )
    assert added.refusal is None
    assert [*added.table.configuration] == [KEYS[0], KEYS[0].lower()]
    again = outcome_of("ALTER TABLE t ADD CONSTRAINT ID CHECK (id > 1)", table_with(KEYS[2]))
    assert again.refusal is not None
    assert again.refusal.error == "DELTA_CONSTRAINT_ALREADY_EXISTS"
