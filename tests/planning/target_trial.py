"""One random table, one random policy: what Spark makes of the plan, against what it said."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import yaml

from deltaproto.plan_inputs.client_scope import ClientScope, PolicyCheckedPlan
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.request import PlanInput
from deltaproto.policy.finding import Finding
from deltaproto.policy.local_catalog import load_local_policy
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.random_tables import draft, make
from tests.planning.trial import Trial, carry_out, other_verdicts
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING

_CLIENTS = (
    ("delta-spark@4.0.1", ("read", "append")),
    ("delta-spark@3.2.0", ("read", "append")),
    ("delta-spark@2.4.0", ("read",)),
    ("trino@476", ("read",)),
    ("deltalake/engine@1.6.6", ("read", "append", "dml")),
    ("duckdb@1.5.5", ("read",)),
)
_REQUIRED = (
    *("appendOnly", "changeDataFeed", "columnMapping", "deletionVectors", "inCommitTimestamp"),
    *("rowTracking", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck"),
)
_PROPERTIES = {
    "delta.appendOnly": ("true", "false"),
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.dataSkippingNumIndexedCols": ("4",),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.enableDeletionVectors": ("true", "false"),
    "delta.logRetentionDuration": ("interval 40 days",),
}


def random_policy(random: Random, given: PlanInput) -> str:
    """A policy as YAML. It may contradict itself, and what the table is."""
    supported = sorted(given.table.protocol.supported)
    required = random.sample(_REQUIRED, random.randint(0, 2))
    listed = [name for name in supported if name not in required]
    settings: dict[str, object] = {
        "require_features": required,
        "forbid_features": random.sample(listed, random.randint(0, min(2, len(listed)))),
        "require_properties": {
            key: random.choice(_PROPERTIES[key])
            for key in random.sample(sorted(_PROPERTIES), random.randint(0, 2))
        },
    }
    if random.random() < 0.3:
        settings["isolation"] = "Serializable"
    if random.random() < 0.3:
        settings["max_writer_version"] = random.choice((4, 5, 6))
    if random.random() < 0.2:
        settings["min_writer_version"] = random.choice((2, 3, 4))
    if random.random() < 0.2:
        settings["cluster_by"] = random.choice((["id"], []))
    if random.random() < 0.4:
        settings["history"] = random.choice(("keep", "truncate"))
    clients = [
        {"client": client, "access": list(access)}
        for client, access in random.sample(_CLIENTS, random.randint(0, 2))
    ]
    if random.random() < 0.25:
        settings["protocol"] = "lowest"
    # Within one pattern, a contradiction would be refused.
    limits = ("forbid_features", "max_writer_version", "protocol")
    limited = {key: settings.pop(key) for key in limits if key in settings}
    tables = {"**": settings, "targeted-*": limited}
    return yaml.safe_dump({"policy_version": 1, "clients": clients, "tables": tables})


def tried(
    delta_spark: DeltaSpark, seed: int, folder: Path, *, managed: bool = False, stored: bool = False
) -> Trial:
    """Make the table of a seed in `folder`, plan for a policy, and let Spark do it."""
    started = time.monotonic()
    random = Random(f"target {seed}")
    place = make(
        delta_spark, draft(seed, managed=managed, stored=stored), folder / f"targeted-{seed}"
    )
    given = load_plan_input(place.name, {}, SparkSettings(), 0.0)._replace(engine=RUNNING)
    policy = folder / f"policy-{seed}" / "policy.yaml"
    policy.parent.mkdir()
    policy.write_text(random_policy(random, given))
    users = ClientScope(load_local_policy(str(policy)), (), ())
    used = users.with_clients(given)
    plan = users.plan_for_policy(used).plan
    found = [*carry_out(delta_spark, place, plan.steps, given)]
    after = load_plan_input(place.name, {}, SparkSettings(), 0.0)._replace(engine=RUNNING)
    if after.table.protocol != plan.protocol_after:
        found.append(f"{after.table.protocol} instead of {plan.protocol_after}")
    if plan.steps and (again := _planned(users, after).plan).steps:
        found.append(f"planned again, there is more to do: {[step.sql for step in again.steps]}")
    if plan.steps:
        found += other_verdicts(plan, used, after.needs)
    left = {f"{finding.rule}: {finding.message}" for finding in _findings(users, after)}
    found += [f"not fixed: {text}" for text in plan.fixes if text in left]
    if found:
        found.insert(0, policy.read_text())
    return Trial(seed, (plan,), tuple(found), len(plan.steps), time.monotonic() - started)


def _planned(users: ClientScope, given: PlanInput) -> PolicyCheckedPlan:
    return users.plan_for_policy(users.with_clients(given))


def _findings(users: ClientScope, table: PlanInput) -> tuple[Finding, ...]:
    assert users.checker is not None
    assert table.facts is not None
    return users.checker.check(table.facts).findings
