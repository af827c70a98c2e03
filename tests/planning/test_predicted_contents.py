"""Plans predict what new columns and constraints mean for clients, and `check` finds the same."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import (
    EXPRESSION_PREFIX,
    MAPPED_COLLECTIONS,
    MAPPING_MODE_CASE,
    SWITCHES_CASE,
    TYPE_PREFIX,
    TableRequirements,
)
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.search.goals import TableClient, cached_verdicts
from tests.planning.predicted_needs import load, needs_after
from tests.support.logs import Log, commit_info, metadata, protocol

TYPES: Mapping[str, Any] = {
    "bigint": "long",
    "boolean": "boolean",
    "void": "void",
    "timestamp": "timestamp",
    "varchar(3)": "string",
    "decimal(9, 2)": "decimal(9,2)",
    "array<bigint>": {"type": "array", "elementType": "long", "containsNull": True},
    "map<string, void>": {
        "type": "map",
        "keyType": "string",
        "valueType": "void",
        "valueContainsNull": True,
    },
    "struct<a: array<int>>": {
        "type": "struct",
        "fields": [
            {
                "name": "a",
                "type": {"type": "array", "elementType": "integer", "containsNull": True},
                "nullable": True,
                "metadata": {},
            }
        ],
    },
}
"""in SQL, and in a log"""
EXPRESSIONS = (
    "id > 0",
    "abs(id) < 9",
    "ID > 0",
    "year(moment) > 2000",
    "cast(id as int) > 0",
    "cast(moment as date) > '2000-01-01'",
    "id % 3 = 1 or id is null",
    "case when id > 1 then true else false end",
)
MAPPED = {"delta.columnMapping.mode": "name"}
SHOWN = (TYPE_PREFIX, EXPRESSION_PREFIX, MAPPED_COLLECTIONS)


def field(number: int, name: str, kind: Any, mapped: bool) -> Mapping[str, Any]:
    of_mapping = {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": f"col-{number}",
    }
    if mapped and isinstance(kind, Mapping) and kind["type"] == "struct":
        # Each has one member at most: its id follows those of all columns.
        kind = {**kind, "fields": [field(number + 100, "a", kind["fields"][0]["type"], mapped)]}
    return {"name": name, "type": kind, "nullable": True, "metadata": of_mapping if mapped else {}}


def write(log: Log, version: int, columns: Mapping[str, Any], properties: dict[str, str]) -> None:
    mapped = MAPPED.items() <= properties.items()
    fields = [field(n, name, kind, mapped) for n, (name, kind) in enumerate(columns.items(), 1)]
    if mapped:
        properties = {**properties, "delta.columnMapping.maxColumnId": str(len(fields) + 100)}
    schema = json.dumps({"type": "struct", "fields": fields})
    made = metadata(properties, schema)
    log.commit(version, commit_info(), *[protocol(2, 5)] * (version == 0), made)


def shown(needs: TableRequirements) -> set[str]:
    return {word for word in needs.hazards if word.startswith(SHOWN)}


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from([*TYPES]), max_size=3),
    st.lists(st.sampled_from([*TYPES]), max_size=2),
    st.lists(st.sampled_from(EXPRESSIONS), max_size=3, unique=True),
    st.lists(st.sampled_from(EXPRESSIONS), max_size=3, unique=True),
    st.booleans(),
)
def test_check_finds_what_a_plan_says_of_columns_and_constraints(
    before: list[str], added: list[str], had: list[str], new: list[str], mapped: bool
) -> None:
    columns: dict[str, Any] = {"id": "long", "moment": "timestamp"}
    columns |= {f"c{number}": TYPES[kind] for number, kind in enumerate(before)}
    properties = {f"delta.constraints.had{n}": text for n, text in enumerate(had)}
    properties |= MAPPED if mapped else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = Log(folder)
        write(log, 0, columns, properties)
        inputs = load(folder)
        table = f"alter table delta.`{folder}`"
        statements = [
            *(f"{table} add column d{n} {kind}" for n, kind in enumerate(added)),
            *(f"{table} add constraint new{n} check ({text})" for n, text in enumerate(new)),
            *[f"{table} drop constraint had0"][: len(had)],
        ]
        said = needs_after(inputs, statements)
        columns |= {f"d{number}": TYPES[kind] for number, kind in enumerate(added)}
        properties.pop("delta.constraints.had0", None)
        properties |= {f"delta.constraints.new{n}": text for n, text in enumerate(new)}
        write(log, 1, columns, properties)
        assert shown(said) == shown(load(folder).needs)


def test_columns_of_an_unknown_schema_count_once_they_are_added(tmp_path: Path) -> None:
    """A saved inspection has no columns."""
    write(Log(tmp_path), 0, {"id": "long"}, MAPPED)
    inputs = load(tmp_path)
    saved = inputs._replace(table=inputs.table._replace(schema=None))
    table = f"alter table delta.`{tmp_path}`"
    said = needs_after(saved, [f"{table} add columns (nothing void, list array<int>)"])
    assert shown(said) == {"type void", MAPPED_COLLECTIONS}
    said = needs_after(saved, [f"{table} add constraint c check (cast(id as int) > 0)"])
    assert shown(said) == {"expression cast", "expression cast with a timestamp column"}


def test_values_of_properties_are_compared_with_their_case(tmp_path: Path) -> None:
    def hazards(*assignments: str) -> frozenset[str]:
        statements = [
            f"alter table delta.`{tmp_path}` set tblproperties ({a})" for a in assignments
        ]
        return needs_after(load(tmp_path), statements).hazards

    columns = {"id": {**field(1, "id", "long", mapped=True)}}
    write(Log(tmp_path), 0, columns, {"delta.columnMapping.mode": "Name"})
    mode = "'delta.columnMapping.mode' = 'name'"
    assert MAPPING_MODE_CASE in load(tmp_path).needs.hazards
    assert MAPPING_MODE_CASE not in hazards(mode)
    assert SWITCHES_CASE in hazards("'delta.enableChangeDataFeed' = 'TRUE'")
    assert SWITCHES_CASE not in hazards("'delta.enableChangeDataFeed' = 'true'", mode)


def verdict(client: str, needs: TableRequirements) -> Verdict:
    found = cached_verdicts(ClientCatalog().resolve(client), Access.APPEND, needs)
    (only,) = {each.verdict for _, each in found}
    return only


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("id > 0", Verdict.OK), ("year(current_date()) > 2000", Verdict.REFUSED)],
)
def test_a_plan_says_whether_clients_can_check_a_new_constraint(
    expression: str, expected: Verdict, tmp_path: Path
) -> None:
    write(Log(tmp_path), 0, {"id": "long"}, {})
    inputs = load(tmp_path)
    client = "deltalake/engine@1.6.6"
    assert verdict(client, inputs.needs) is Verdict.OK
    statement = f"alter table delta.`{tmp_path}` add constraint c check ({expression})"
    assert verdict(client, needs_after(inputs, [statement])) is expected


def test_a_client_gets_its_access_back_by_dropping_a_constraint(tmp_path: Path) -> None:
    """The constraint's expression is what it cannot evaluate."""
    constraint = {"delta.constraints.c": "year(current_date()) > 2000"}
    write(Log(tmp_path), 0, {"id": "long"}, constraint)
    inputs = load(tmp_path)
    client = ClientCatalog().resolve("deltalake/engine@1.6.6")
    request = DowngradeRequest(clients=(TableClient(client, (Access.APPEND,)),))
    plan = plan_downgrade(inputs, request)
    assert not plan.blocked
    assert [step.operations for step in plan.steps][:1] == [("DROP CONSTRAINT",)]
    assert all(change.after is Verdict.OK for change in plan.clients)


@pytest.mark.parametrize(
    "statement",
    [
        "restore table delta.`{}` to version as of 0",
        "restore table delta.`{}` to timestamp as of '2026-01-31'",
        "merge with schema evolution into delta.`{}` t using s on t.id = s.id "
        "when not matched then insert *",
        "replace table delta.`{}` using delta as select * from s",
    ],
)
def test_a_plan_says_unknown_where_columns_come_from_elsewhere(
    statement: str, tmp_path: Path
) -> None:
    """The older version had a column of type void, which the query may have as well."""
    log = Log(tmp_path)
    write(log, 0, {"id": "long", "nothing": "void"}, {})
    write(log, 1, {"id": "long"}, {})
    inputs = load(tmp_path)
    client = "deltalake/engine@1.6.6"
    assert verdict(client, inputs.needs) is Verdict.OK
    needs = needs_after(inputs, [statement.format(tmp_path)])
    assert verdict(client, needs) is Verdict.UNKNOWN


def test_columns_are_known_again_once_all_of_them_are_replaced(tmp_path: Path) -> None:
    log = Log(tmp_path)
    write(log, 0, {"id": "long", "nothing": "void"}, {})
    write(log, 1, {"id": "long"}, {})
    restored = f"restore table delta.`{tmp_path}` to version as of 0"
    replaced = f"replace table delta.`{tmp_path}` (id bigint) using delta"
    needs = needs_after(load(tmp_path), [restored, replaced])
    assert verdict("deltalake/engine@1.6.6", needs) is Verdict.OK
