"""What a table's state means, worked out once for all tables on which it means the same.

A fleet has far fewer kinds of tables than tables: same protocol, same properties that matter, same
features in the schema. Layers, findings and isolation follow from those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from deltaproto.inspection.inspect import judged
from deltaproto.policy.contents import contents
from deltaproto.policy.finding import Finding
from deltaproto.protocol.catalogue import CATALOG_MANAGED
from deltaproto.protocol.concurrency import RowLevelConcurrency
from deltaproto.protocol.isolation import Isolation
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.properties import wanted
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.interface import ReaderName, TableState

_REMEMBERED = 10_000
# Each table has its own values of these, and nothing is told from them.
_OF_ONE_TABLE = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.rowTracking.materializedRowIdColumnName",
    }
)
# It counts the rows of one table.
_COUNTING_DOMAIN = "delta.rowTracking"


class Judgement(NamedTuple):
    """What holds for every table of a kind."""

    reader: ReaderName
    protocol: Protocol
    partition_columns: tuple[str, ...]
    features: tuple[FeatureState, ...]
    isolation: Isolation
    row_level: RowLevelConcurrency
    findings: tuple[Finding, ...]
    """of one of the tables: their `table` is that one's"""
    lowest: Protocol | None
    complete: bool


class Judge:
    """Judges tables; equal kinds once. History is not looked at, so that no log is read for it."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Judgement] = {}

    def judge(self, state: TableState) -> Judgement:
        """The judgement on one table."""
        key = _kind(state)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[key] = _judgement(state)
        return found


def _kind(state: TableState) -> tuple[object, ...]:
    metadata = state.metadata
    configuration = metadata.configuration
    traits = metadata.traits
    managed = CATALOG_MANAGED & state.protocol.supported
    return (
        state.protocol,
        tuple(sorted(_telling(configuration).items())) if configuration else (),
        metadata.partition_columns,
        None if traits is None else tuple(sorted(traits.items())),
        None if state.domains is None else tuple(sorted(_of_domains(state.domains))),
        state.clustering_columns and len(state.clustering_columns),
        tuple(sorted(state.traces.items())),
        tuple(contents(metadata).items()),
        state.notes,
        state.reader,
        state.version if managed else None,
    )


def _telling(configuration: Mapping[str, str | None]) -> dict[str, str]:
    # A property without a value is one of its own kind, which no value looks like.
    return {
        key: "" if _is_of_one_table(key, value) else f"={value}" if value is not None else "-"
        for key, value in configuration.items()
    }


def _is_of_one_table(key: str, value: str | None) -> bool:
    """Whether nothing is told from a value, because it is a good one of a property of one table."""
    return key in _OF_ONE_TABLE and value is not None and wanted(key, value) is None


def _of_domains(domains: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in domains.items():
        yield name, "" if name == _COUNTING_DOMAIN else text


def _judgement(state: TableState) -> Judgement:
    inspection = judged(state._replace(changes=None))
    return Judgement(
        state.reader,
        state.protocol,
        state.metadata.partition_columns,
        inspection.subject.features,
        inspection.isolation,
        inspection.row_level,
        inspection.findings,
        inspection.subject.lowest,
        inspection.complete,
    )
