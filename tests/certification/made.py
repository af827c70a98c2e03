"""Reference tables by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.certification.kit.case import Case, Filter, Past
from deltaproto.certification.kit.recipe import State
from deltaproto.certification.observe import Seen

SCHEMA = (("id", "long"), ("word", "string"), ("price", "double"))


def rows(*ids: int) -> tuple[Mapping[str, Any], ...]:
    return tuple({"id": i, "word": f"w{i}", "price": i / 2} for i in ids)


def case(
    name: str = "plain",
    *,
    feature: str | None = None,
    state: State = State.PROTOCOL,
    ids: tuple[int, ...] = tuple(range(20)),
    schema: tuple[tuple[str, str], ...] = SCHEMA,
    values: tuple[Mapping[str, Any], ...] | None = None,
    **more: Any,
) -> Case:
    """A table with the rows `ids`."""
    found = rows(*ids) if values is None else values
    fields: dict[str, Any] = {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "filters": (Filter("id", ">=", 10, tuple(r for r in found if r["id"] >= 10)),),
        "past": Past(1, found[:10]),
        "fill": {},
        "violating": {},
        "omitted": {},
        "must_refuse": (),
        "append_only": False,
        **more,
    }
    return Case(
        name=name, feature=feature, state=state, about="made", schema=schema, rows=found, **fields
    )


def seen(**more: Any) -> Seen:
    """A table of the plainest protocol."""
    fields: dict[str, Any] = {
        "version": 2,
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "table_id": "1",
        "configuration": {},
        "schema": {"fields": []},
        "partition_columns": (),
        "domains": {},
        "checkpoints": frozenset(),
        "files": frozenset(),
        "vectors": False,
    }
    return Seen(**{**fields, **more})
