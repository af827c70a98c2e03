"""What a policy says of a plan: new and worsened violations, and those that were there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.policy_impact import assess_policy_impact
from deltaproto.policy.context import TableFacts
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.protocol.protocol import Protocol

PAIR, PROPERTY, LEVEL = "DP204", "DP209", "DP208"


def facts(pair: tuple[int, int], configuration: dict[str, Any], level: str) -> TableFacts:
    protocol = Protocol(*pair)
    return TableFacts(
        table="t",
        location="file:///t",
        version=0,
        needs=table_requirements(protocol, {}, configuration),
        configuration=configuration,
        isolation={"delta-spark": level},
        findings=(),
        complete=True,
    )


OFF = {"delta.appendOnly": "false"}
RAISED = "max_reader_version: 1, max_writer_version: 2"
APPENDS, STRICT = "require_properties: {delta.appendOnly: true}", "isolation: Serializable"


@pytest.mark.parametrize(
    ("settings", "before", "after", "new", "existing"),
    [
        (RAISED, ((1, 2), {}, "S"), ((1, 2), {}, "S"), [], 0),
        (RAISED, ((1, 2), {}, "S"), ((1, 4), {}, "S"), [PAIR], 0),
        # The violations are there already, and stay as they are.
        (RAISED, ((2, 5), {}, "S"), ((2, 5), {}, "S"), [], 2),
        (RAISED, ((2, 5), {}, "S"), ((2, 6), {}, "S"), [PAIR], 1),
        (RAISED, ((1, 4), {}, "S"), ((2, 5), {}, "S"), [PAIR, PAIR], 0),
        (RAISED, ((2, 6), {}, "S"), ((2, 5), {}, "S"), [], 2),
        (APPENDS, ((1, 2), {}, "S"), ((1, 3), {}, "S"), [], 1),
        (APPENDS, ((1, 2), {}, "S"), ((1, 2), OFF, "S"), [PROPERTY], 0),
        (APPENDS, ((1, 2), OFF, "S"), ((1, 2), OFF, "S"), [], 1),
        (APPENDS, ((1, 2), OFF, "S"), ((1, 2), {"delta.appendOnly": "true"}, "S"), [], 0),
        (STRICT, ((1, 2), {}, "W"), ((1, 2), {}, "W"), [], 1),
        (STRICT, ((1, 2), {}, "S"), ((1, 2), {}, "W"), [LEVEL], 0),
        (STRICT, ((1, 2), {}, "N"), ((1, 2), {}, "W"), [LEVEL], 0),
    ],
)
def test_new_and_worsened_violations_are_the_plans(
    settings: str, before: Any, after: Any, new: list[str], existing: int, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"policy_version: 1\ntables: {{'*': {{{settings}}}}}\n", encoding="utf-8")
    policy = load_local_policy(str(file))
    checker = Checker(policy, load_local_catalog((), policy))
    levels = {"S": "Serializable", "W": "WriteSerializable", "N": "SnapshotIsolation"}
    one, two = (
        facts(pair, configuration, levels[level]) for pair, configuration, level in (before, after)
    )
    impact = assess_policy_impact(checker, one, two, "a goal")
    assert [each.rule for each in impact.violations] == new
    assert impact.remaining == existing
