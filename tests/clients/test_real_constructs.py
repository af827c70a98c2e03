"""Each construct of `constructs.sql` in a CHECK constraint, against the installed deltalake.

An expression is true of one row and false of another. Who plans it as Spark does takes the first
and refuses the second.
"""

from __future__ import annotations

import datetime
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.policy.constructs import find_constructs
from tests.support.failures import collect_failures
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

EXPRESSIONS = (Path(__file__).parent / "constructs.sql").read_text().splitlines()[1:]
NESTED: dict[str, Any] = {
    "tags": {"type": "array", "elementType": "string", "containsNull": True},
    "attrs": {
        "type": "map",
        "keyType": "string",
        "valueType": "string",
        "valueContainsNull": True,
    },
    "s": json.loads(schema_string(column("x"), column("y", "string"))),
}
TYPES = {"id": "long", "word": "string", "price": "double", "day": "date", "at": "timestamp"}
COLUMNS = {**TYPES, "flag": "boolean", **NESTED}
ARROW = pa.schema(
    {
        "id": pa.int64(),
        "word": pa.string(),
        "price": pa.float64(),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "flag": pa.bool_(),
        "tags": pa.list_(pa.string()),
        "attrs": pa.map_(pa.string(), pa.string()),
        "s": pa.struct({"x": pa.int64(), "y": pa.string()}),
    }
)
UTC = datetime.UTC
KEPT = {
    "id": 6,
    "word": "Abc",
    "price": 2.5,
    "day": datetime.date(2024, 5, 6),
    "at": datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
    "flag": True,
    "tags": ["a", "b"],
    "attrs": [("k", "v")],
    "s": {"x": 1, "y": "q"},
}
FORBIDDEN = {
    "id": -7,
    "word": "zz top long",
    "price": -1.0,
    "day": datetime.date(1990, 1, 1),
    "at": datetime.datetime(1990, 1, 1, tzinfo=UTC),
    "flag": False,
    "tags": ["z"],
    "attrs": [("z", "z")],
    "s": {"x": -1, "y": "z"},
}


def takes(table: str, row: dict[str, Any]) -> bool:
    try:
        deltalake.write_deltalake(table, pa.Table.from_pylist([row], schema=ARROW), mode="append")
    except BaseException as error:
        # A panic of Rust is no Exception.
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return False
    return True


def outcome(expression: str, folder: Path) -> Verdict:
    """What deltalake makes of a table with this constraint."""
    columns = (column(name, kind) for name, kind in COLUMNS.items())
    described = metadata({"delta.constraints.made": expression}, schema_string(*columns))
    table = Log(folder).commit(0, commit_info(), protocol(1, 3), described).table
    if not takes(table, KEPT):
        return Verdict.REFUSED
    return Verdict.WRONG if takes(table, FORBIDDEN) else Verdict.OK


@pytest.mark.slow
def test_the_catalog_says_what_deltalake_makes_of_each_construct(tmp_path: Path) -> None:
    candidate = ClientCatalog().resolve(f"deltalake/engine@{version('deltalake')}")
    (path,) = candidate.paths
    with collect_failures() as failures:
        for number, expression in enumerate(EXPRESSIONS):
            with failures.of(expression):
                found = outcome(expression, tmp_path / str(number))
                words = [f"expression {each}" for each in find_constructs(expression, COLUMNS)]
                handled = [path.handling(word, Access.APPEND) for word in words]
                said = [Verdict.UNKNOWN if h is None else h.verdict for h in handled]
                if all(each is Verdict.OK for each in said):
                    assert found is Verdict.OK, words
                if found is Verdict.OK:
                    assert Verdict.REFUSED not in said, words
