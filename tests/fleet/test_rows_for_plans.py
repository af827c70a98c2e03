"""Rows that share their records get the planner input and the plans that each gets alone."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import TableError
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.inventory_queries import LocalInventoryQueries
from deltaproto.fleet.read_inventory import facts_from_row
from deltaproto.fleet.rows_for_plans import RowGroups, read_plan_inputs
from deltaproto.fleet.scan_history import PastScan
from deltaproto.fleet.schemas import Inventory
from deltaproto.plan_inputs.cache import CachingPlanner
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.plan_inputs.from_snapshot import input_from_row
from deltaproto.planning.request import PlanInput
from deltaproto.policy.local_catalog import load_local_policy
from tests.conftest import Ran
from tests.support.logs import Log, metadata, protocol

NOW = datetime(2026, 11, 24, tzinfo=UTC)
SCAN = PastScan("1", NOW, NOW, 1, 0, ("/lake",), (), ())
Row = dict[str, Any]
Chance = random.Random


def feature(name: str, kind: str = "writer", **members: Any) -> Row:
    use = {"enabled": True, "present": True, "required_by": []}
    return {"feature": name, "kind": kind, **use, **members}


def row(number: int) -> Row:
    """Return a row as `tables_query` does; rows differ only in what is of their table alone."""
    vectors, interval = "delta.enableDeletionVectors", "delta.checkpointInterval"
    return {
        "table": f"/lake/region/table_{number}",
        "location": f"file:///lake/region/table_{number}",
        "version": number,
        "id": f"id-{number}",
        "partition_columns": [],
        "clustering_columns": None,
        "min_reader_version": 3,
        "min_writer_version": 7,
        "reader_features": ["deletionVectors"],
        "writer_features": ["deletionVectors", "rowTracking", "domainMetadata"],
        "isolation_delta_spark": "Serializable",
        "isolation_databricks": "WriteSerializable",
        "isolation_delta_rs": None,
        "configuration": [(vectors, "true"), (interval, "10")],
        "complete": True,
        "reader": "log",
        "catalog": None,
        "table_type": None,
        "features": [
            feature("deletionVectors", "reader-writer"),
            feature("domainMetadata", required_by=["rowTracking"]),
            feature("rowTracking", present=None),
        ],
        "findings": [finding("DP110", "nothing uses rowTracking", 0)],
    }


def finding(rule: str, message: str, number: int, evidence: str | None = None) -> Row:
    texts = {"message": message, "hint": "", "feature": None, "client": None, "evidence": evidence}
    return {"rule": rule, "severity": "info", "number": number, **texts}


def named(changed: Row, name: str) -> None:
    changed.update(table=name, location=f"file://{name}")


def with_checkpoints(changed: Row) -> None:
    changed["reader_features"].append("v2Checkpoint")
    changed["writer_features"].append("v2Checkpoint")
    changed["features"].append(feature("v2Checkpoint", "reader-writer"))


CHANGES: tuple[Callable[[Row], None], ...] = (
    lambda changed: changed["configuration"].append(("a", "b")),
    lambda changed: changed["configuration"].append(("delta.appendOnly", "true")),
    lambda changed: changed["configuration"].pop(),
    lambda changed: changed["features"][0].update(present=False),
    lambda changed: changed["features"][0].update(present=1),
    lambda changed: changed["features"][1].update(required_by=[]),
    lambda changed: changed["features"][2].update(enabled=False),
    lambda changed: changed["features"].reverse(),
    lambda changed: changed["findings"].clear(),
    lambda changed: changed["findings"].append(finding("DP142", "x", 1, "unmapped-columns")),
    lambda changed: changed["findings"][0].update(hint=f"see {changed['table']}"),
    lambda changed: changed["partition_columns"].append("day"),
    lambda changed: changed.update(clustering_columns=["id"]),
    lambda changed: changed.update(complete=False),
    lambda changed: changed.update(reader="spark"),
    lambda changed: changed.update(isolation_delta_spark="WriteSerializable"),
    lambda changed: named(changed, f"/lake/day=1/table_{changed['version']}"),
    lambda changed: named(changed, "/lake/a b/it's"),
    lambda changed: changed.update(table="main.sales.orders"),
    lambda changed: changed.update(table="glue://eu-west-1/sales.orders"),
    lambda changed: changed.update(catalog="uc", table_type="MANAGED"),
    with_checkpoints,
)
OTHER_CHANGES: tuple[Callable[[Row], None], ...] = (
    lambda changed: changed["writer_features"].append("odd-feature"),
    lambda changed: changed.update(min_reader_version=2),
    lambda changed: changed.update(version=None),
    lambda changed: changed.update(table=""),
    lambda changed: named(changed, f"/lake/other/table_{changed['version']}"),
)
"""changes to damaged rows, and to a name that implies nothing"""


def rows(seed: int, count: int, most: int) -> Iterator[Row]:
    """Yield random rows, each with up to `most` changes."""
    chance = Chance(seed)
    for number in range(count):
        made = row(number)
        for change in chance.sample(CHANGES + OTHER_CHANGES, chance.randint(0, most)):
            if made["version"] is not None:
                change(made)
        yield made


def alone(made: Row) -> PlanInput:
    return input_from_row(made, facts_from_row(made), SCAN.scan_id, SCAN.ended_at, "old")


def found_or_error(build: Callable[[Row], PlanInput], made: Row) -> PlanInput | str:
    try:
        return build(made)
    except TableError as error:
        return str(error)


def without_own(found: PlanInput) -> dict[str, Any]:
    """Return the members without the table's own: equal tables have equal ones."""
    assert found.facts is not None
    facts = found.facts._replace(table="", location="", id=None, version=0, findings=())
    print_ = found.fingerprint._replace(table_id=None, version=0)
    return found._replace(name="", location="", sql="", facts=facts, fingerprint=print_)._asdict()


@pytest.mark.parametrize("most", [0, 1, 3])
def test_shared_records_are_those_of_each_row_alone(most: int) -> None:
    groups = RowGroups(SCAN, "old")
    found: defaultdict[Any, list[PlanInput]] = defaultdict(list)
    for made in rows(most, 500, most):
        expected, shared = found_or_error(alone, made), found_or_error(groups.input_of, made)
        if isinstance(shared, str):
            assert shared == expected
            continue
        assert shared._replace(row_group=None) == expected, made
        found[shared.row_group].append(shared)
    assert any(len(same) > 9 for same in found.values())
    for first, *others in found.values():
        for other in others:
            assert other.needs is first.needs
            assert without_own(other) == without_own(first)


def test_a_row_that_differs_in_one_thing_is_in_another_group() -> None:
    groups = RowGroups(SCAN)
    first = groups.input_of(row(1))
    assert groups.input_of(row(2)).row_group == first.row_group
    for number, change in enumerate(CHANGES):
        changed = row(1)
        change(changed)
        assert groups.input_of(changed).row_group != first.row_group, number


def test_tables_are_in_one_group_if_as_many_commits_precede_the_next_checkpoint() -> None:
    groups, found = RowGroups(SCAN), {}
    for version in (1, 2, 11):
        made = row(version)
        with_checkpoints(made)
        found[version] = groups.input_of(made)
        assert found[version].table == alone(made).table
    assert found[1].row_group == found[11].row_group != found[2].row_group


class Reversing(LocalInventoryQueries):
    """Queries in which every other row has its lists in reverse, as an engine may return them."""

    def rows(
        self, sql: str, tables: Iterable[Inventory], condition: str | None = None
    ) -> Iterator[Mapping[str, Any]]:
        for number, found in enumerate(super().rows(sql, tables, condition)):
            if number % 2:
                for nested in ("features", "findings"):
                    found[nested].reverse()
            yield found


def test_equal_tables_are_in_one_group_in_whatever_order_the_engine_collects_their_rows(
    tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    for number in range(4):
        log = Log(tmp_path / "lake" / f"t{number}")
        log.commit(0, protocol(1, 6), metadata({"delta.isolationLevel": "odd", "a": "b"}))
    inventory = str(tmp_path / "inventory")
    cli("scan", str(tmp_path / "lake"), "--inventory", inventory)
    questions = Reversing(open_inventory_tables(inventory, {}))
    (scan,) = questions.scans()
    found = [each for _, _, each in read_plan_inputs(questions, scan, None)]
    assert len(found) == 4
    assert len({each.row_group for each in found if isinstance(each, PlanInput)}) == 1


POLICY = """
policy_version: 1
clients: [trino@400, "databricks-runtime@12.2 LTS"]
tables:
  "**": {forbid_features: [rowTracking], require_properties: {delta.appendOnly: "false"}}
  "**/other/*": {require_features: [columnMapping]}
  "**/day=1/*": {clients: [athena@2], protocol: lowest}
"""


def test_plans_of_alike_tables_are_those_of_each_alone(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    users = ClientScope(load_local_policy(str(file)), (), ())
    calls: list[str] = []

    def plan(ready: PlanInput) -> Any:
        calls.append(ready.name)
        return users.plan_for_policy(ready)

    cached, groups = CachingPlanner(plan, users, users.with_clients), RowGroups(SCAN, "old")
    named_hints = 0
    changes = [row(n) for n in range(3)] + [*rows(7, 60, 1)]
    for made in changes:
        single = found_or_error(alone, made)
        if isinstance(single, str):
            continue
        expected = users.plan_for_policy(users.with_clients(single))
        found = cached(groups.input_of(made))
        assert found.plan == expected.plan, made
        assert found.losses == expected.losses
        named_hints += any(made["table"] in each.remedy for each in found.plan.unmet)
    assert len(calls) < 40
    assert named_hints > 1
