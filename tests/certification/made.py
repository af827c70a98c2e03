"""Reference tables by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.certification.fixtures.case import Filter, PastVersion, ReferenceTable
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.certification.observe import ObservedVersion

SCHEMA = (("id", "long"), ("word", "string"), ("price", "double"))


def rows(*ids: int) -> tuple[Mapping[str, Any], ...]:
    return tuple({"id": i, "word": f"w{i}", "price": i / 2} for i in ids)


def case(
    name: str = "plain",
    *,
    feature: str | None = None,
    state: FeatureEvidence = FeatureEvidence.PROTOCOL,
    ids: tuple[int, ...] = tuple(range(20)),
    schema: tuple[tuple[str, str], ...] = SCHEMA,
    values: tuple[Mapping[str, Any], ...] | None = None,
    **more: Any,
) -> ReferenceTable:
    """A table with the rows `ids`."""
    found = rows(*ids) if values is None else values
    fields: dict[str, Any] = {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "filters": (Filter("id", ">=", 10, tuple(r for r in found if r["id"] >= 10)),),
        "past": PastVersion(1, found[:10]),
        "fill": {},
        "violating": {},
        "omitted": {},
        "must_refuse": (),
        "append_only": False,
        **more,
    }
    return ReferenceTable(
        name=name, feature=feature, state=state, about="made", schema=schema, rows=found, **fields
    )


def seen(**more: Any) -> ObservedVersion:
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
    return ObservedVersion(**{**fields, **more})
