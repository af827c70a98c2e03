"""Plans for a policy do no more than their goal asks for, and `apply` accepts them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.execution.goal_limits import TableUse, find_unrequested_change
from deltaproto.execution.rebuild import find_mismatch, find_misprediction
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.plan import Plan
from deltaproto.planning.request import PlanInput
from deltaproto.planning.statement import Action
from deltaproto.policy.local_catalog import load_local_policy
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.random_requests import STORE, random_requests
from tests.planning.target_trial import random_policy
from tests.support.engines import RUNNING
from tests.support.examples import examples
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

Actions = dict[str, Any]
_LEGACY = ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (1, 5), (1, 6), (2, 6))
_WRITER_FEATURES = (
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    *("identityColumns", "rowTracking", "domainMetadata", "inCommitTimestamp", "clustering"),
    *("checkpointProtection", "allowColumnDefaults"),
)
_READER_FEATURES = (
    *("columnMapping", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"),
    *("timestampNtz", "typeWidening"),
)
_PROPERTIES = {
    "delta.appendOnly": ("true", "false"),
    "delta.checkpointPolicy": ("v2", "classic"),
    "delta.constraints.positive": ("id > 0",),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.enableDeletionVectors": ("true",),
    "delta.enableTypeWidening": ("true", "false"),
}


def random_protocol(random: Random) -> Actions:
    if random.random() < 0.5:
        return protocol(*random.choice(_LEGACY))
    both = random.sample(_READER_FEATURES, random.randint(0, 3))
    listed = {*both, *random.sample(_WRITER_FEATURES, random.randint(0, 4))}
    if listed & {"rowTracking", "clustering"}:
        listed.add("domainMetadata")
    reader = (3, sorted(both)) if both else (1, None)
    return protocol(reader[0], 7, reader[1], sorted(listed))


def read(log: Log, before: Actions, properties: dict[str, str], *files: Actions) -> PlanInput:
    """Read a table that one commit created."""
    created = metadata(properties, schema_string(column("id"), column("v")))
    log.commit(0, commit_info("CREATE TABLE"), before, created, *files)
    return load_plan_input(log.table, {}, SparkSettings(), 0.0)._replace(engine=RUNNING)


def plan_for(given: PlanInput, policy: str, folder: Path) -> Plan:
    """Plan for a policy, and require that the gates of `apply` accept every rest of the plan."""
    file = folder / "policy.yaml"
    file.write_text(policy)
    scope = ClientScope(load_local_policy(str(file)), (), ())
    used = scope.with_clients(given)
    plan = scope.plan_for_policy(used).plan
    use = TableUse(used.states, used.needs, ClientCatalog(), used.table.domains)
    assert find_mismatch(plan) is None
    assert find_misprediction(plan, used.table) is None
    for number in range(len(plan.steps)):
        for known in (use if number == 0 else None, None):
            assert find_unrequested_change(plan, known, plan.steps[number:]) is None, plan.steps
    return plan


@pytest.mark.parametrize("stored", [False, True])
def test_random_plans_for_a_policy_stay_within_their_goals(stored: bool, tmp_path: Path) -> None:
    planned = 0
    for seed in range(examples(60)):
        random, folder = Random(f"policy goals {seed}"), tmp_path / str(seed)
        before = random_protocol(random)
        names = random.sample(sorted(_PROPERTIES), random.choice((0, 0, 1, 2)))
        properties = {name: random.choice(_PROPERTIES[name]) for name in names}
        if stored:
            properties |= json.loads(random_requests(seed).removeprefix(STORE))
        files = [add()] if random.random() < 0.5 else []
        given = read(Log(folder / "targeted-table"), before, properties, *files)
        plan = plan_for(given, random_policy(random, given), folder)
        dropped = {step.feature for step in plan.steps if step.action is Action.DROP}
        assert not plan.steps or not dropped & plan.protocol_after.supported
        planned += bool(plan.steps)
    assert planned > examples(60) / 3


def policy_for(settings: str, clients: str = "[]") -> str:
    return f"policy_version: 1\nclients: {clients}\ntables:\n  '**': {{{settings}}}\n"


def test_a_required_feature_is_only_supported_where_a_client_could_not_use_it_enabled(
    log: Log, tmp_path: Path
) -> None:
    """A table with delta.appendOnly refuses DELETE. A legacy pair would add invariants as well."""
    clients = "[{client: deltalake/engine@1.6.6, access: [read, append, dml]}]"
    policy = policy_for("require_features: [appendOnly]", clients)
    given = read(log, protocol(3, 7, ["timestampNtz"], ["timestampNtz"]), {})
    plan = plan_for(given, policy, tmp_path)
    (step,) = plan.steps
    assert (step.sql or "").endswith("('delta.feature.appendOnly' = 'supported')")
    added = plan.protocol_after.supported - plan.protocol_before.supported
    assert added == {"appendOnly"}
    assert "Only added to the protocol, and not enabled: appendOnly." in plan.warnings


def test_a_required_feature_is_enabled_where_that_is_possible(log: Log, tmp_path: Path) -> None:
    given = read(log, protocol(3, 7, ["timestampNtz"], ["timestampNtz"]), {})
    plan = plan_for(given, policy_for("require_features: [appendOnly]"), tmp_path)
    (step,) = plan.steps
    assert (step.sql or "").endswith("('delta.appendOnly' = 'true')")


def test_what_the_metadata_asks_for_is_removed_before_a_property_is_set(
    log: Log, tmp_path: Path
) -> None:
    stored = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "6"}
    given = read(log, protocol(3, 7, ["timestampNtz"], ["timestampNtz"]), stored)
    policy = policy_for("require_properties: {delta.enableChangeDataFeed: true}")
    plan = plan_for(given, policy, tmp_path)
    assert [step.action for step in plan.steps] == [Action.UNSET, Action.SET]
    added = plan.protocol_after.supported - plan.protocol_before.supported
    assert added == {"changeDataFeed"}


def test_a_plan_that_lowers_the_versions_too_far_names_them_in_its_goal(
    log: Log, tmp_path: Path
) -> None:
    names = ["vacuumProtocolCheck"]
    given = read(log, protocol(3, 7, names, names), {})
    settings = (
        "min_writer_version: 2, max_writer_version: 5, forbid_features: [vacuumProtocolCheck]"
    )
    plan = plan_for(given, policy_for(settings), tmp_path)
    assert plan.goal["to"] == {"reader": 1, "writer": 2}
    assert str(plan.protocol_after) == "(1,2)"
