"""Comparison of the readers' results, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.policy.finding import Finding
from deltaproto.policy.rules.reader_refused import RULE as REFUSED
from deltaproto.policy.rules.readers_disagree import RULE as DISAGREE
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.table_state import ReaderName, TableState

_REDACTED = "(redacted)"


def compare_readers(
    table: str,
    answers: Mapping[ReaderName, TableState | TableError],
    trusted: TableState | None = None,
) -> Iterator[Finding]:
    """Find refusals and disagreements among the readers' results.

    They are compared with the trusted result: by default the log's, else the first. A reader whose
    engine is missing has no result, so it is not a finding. Fields that a reader cannot see are not
    compared.
    """
    states = {name: answer for name, answer in answers.items() if isinstance(answer, TableState)}
    for name, answer in answers.items():
        if isinstance(answer, TableError) and answer.code is not ErrorCode.ENGINE and states:
            yield REFUSED.finding(
                table,
                f"{name} gives no result: {answer.message}",
                answer.hint or "see the other readers' results for the table's requirements",
                evidence=f"{name}: {answer.code}",
            )
    if not states:
        return
    yardstick = trusted or states.get(ReaderName.LOG) or next(iter(states.values()))
    expected = comparable_fields(yardstick)
    for name, state in states.items():
        if state.reader is yardstick.reader:
            continue
        for field, value in comparable_fields(state).items():
            if field in expected and value != expected[field]:
                yield DISAGREE.finding(
                    table,
                    f"{field}: {yardstick.reader} has {_shorten(expected[field])}, "
                    f"{name} has {_shorten(value)}",
                    _disagreement_hint(yardstick, state),
                    evidence=field,
                )


def comparable_fields(state: TableState) -> dict[str, Any]:
    """Return the fields of a state that its reader can determine, in comparable form."""
    protocol, metadata = state.protocol, state.metadata
    fields: dict[str, Any] = {
        "version": state.version,
        "id": metadata.id,
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        # delta-rs and Spark do not distinguish an empty list from a missing one.
        "readerFeatures": sorted(protocol.reader_features or ()),
        "writerFeatures": sorted(protocol.writer_features or ()),
        "partition_columns": list(metadata.partition_columns),
        "configuration": dict(sorted(metadata.configuration.items())),
    }
    if state.clustering_columns is not None:
        fields["clustering_columns"] = list(state.clustering_columns)
    if any(_REDACTED in str(value) for value in metadata.configuration.values()):
        del fields["configuration"]
    return fields


def _disagreement_hint(yardstick: TableState, state: TableState) -> str:
    if CATALOG_MANAGED & yardstick.protocol.supported and yardstick.version > state.version:
        return "the catalog has newer commits than the log: trust the result of spark"
    if yardstick.version != state.version:
        return "the table changed meanwhile, or a reader sees another version; run again"
    return "the log reader follows the spec; check the log before trusting the other result"


def _shorten(value: Any, limit: int = 60) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"
