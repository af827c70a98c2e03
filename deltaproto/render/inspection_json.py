"""Inspections as JSON: the output of `inspect --format json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.errors import TableError
from deltaproto.inspection import Inspection, Unreadable
from deltaproto.inspection.facts import least_versions
from deltaproto.policy.finding import Finding
from deltaproto.policy.hazards import hazards_from_state, uninspected_hazards
from deltaproto.protocol.feature import DropBehavior
from deltaproto.protocol.isolation import Isolation, RowLevelSupport
from deltaproto.protocol.layers import FeatureState, explain_versions
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState, UnsupportedProtocol
from deltaproto.render.interface import error_fields


def table_fields(result: Inspection | Unreadable) -> dict[str, Any]:
    """Return one entry of `tables`."""
    if isinstance(result, Unreadable):
        return _unreadable(result)
    subject, state = result.subject, result.state
    fields = {
        "table": state.table,
        "location": state.location,
        "reader": str(state.reader),
        "version": state.version,
        "id": state.metadata.id,
        "name": state.metadata.name,
        "protocol": protocol_fields(state.protocol),
        "lowest_protocol": protocol_fields(subject.lowest) if subject.lowest else None,
        "reasons": list(explain_versions(state.protocol)),
        "features": [feature_fields(feature) for feature in subject.features],
        "isolation": isolation_fields(
            result.isolation, result.row_level.databricks, result.row_level.reason
        ),
        "requires_at_least": _at_least(result),
        "partition_columns": list(state.metadata.partition_columns),
        "clustering_columns": _listed(state.clustering_columns),
        "configuration": dict(sorted(state.metadata.configuration.items())),
        "hazards": sorted(set(hazards_from_state(state, result.findings))),
        "hazards_not_looked_at": sorted(uninspected_hazards(state)),
        "complete": result.complete,
        "findings": [finding_fields(finding) for finding in result.findings],
    }
    if result.requested_version is not None:
        fields["requested_version"] = result.requested_version
    if result.readers is not None:
        fields["readers"] = _readers(result.readers)
    if result.activity is not None:
        from deltaproto.render.activity import activity_fields

        fields["activity"] = activity_fields(result.activity)
    return fields


def protocol_fields(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol as stored: lists sorted, null where the log has no list."""
    return {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": _sorted(protocol.reader_features),
        "writerFeatures": _sorted(protocol.writer_features),
    }


def isolation_fields(level: Isolation, rows: RowLevelSupport, reason: str) -> dict[str, Any]:
    """Return the declared level, each engine's effective level, and row-level concurrency."""
    return {
        "declared": level.declared,
        "effective": {
            str(engine): None if effective is None else str(effective)
            for engine, effective in level.effective.items()
        },
        "row_level_concurrency": {"databricks": str(rows), "reason": reason},
    }


def _at_least(result: Inspection) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in least_versions(result):
        found.setdefault(each.client.id, {})[str(each.access)] = {
            "verdict": str(each.newest.verdict),
            "since": each.since,
            "because": list(each.newest.because),
        }
    return found


def feature_fields(state: FeatureState) -> dict[str, Any]:
    """Return one feature of one table with its layers."""
    feature = state.feature
    return {
        "name": state.name,
        "kind": str(state.kind),
        "status": str(feature.status),
        "listed": state.listed,
        "implied": state.implied,
        "enabled": state.enabled,
        "present": state.present,
        "evidence": state.evidence or None,
        "required_by": list(state.required_by),
        "min_reader_version": feature.min_reader,
        "min_writer_version": feature.min_writer,
        "min_databricks_runtime": feature.since.databricks,
        "droppable": _on_table(drop_fields(feature.drop), state.kept_by),
    }


def _on_table(fields: dict[str, Any], kept_by: tuple[str, ...]) -> dict[str, Any]:
    if kept_by:
        fields["delta_spark"] = None
    return {**fields, "kept_by": list(kept_by)}


def drop_fields(drop: DropBehavior) -> dict[str, Any]:
    """Return the behavior of DROP FEATURE; `delta_spark` null: no version can drop the feature."""
    return {
        "delta_spark": drop.delta_spark,
        "databricks": drop.databricks,
        "rewrites_data": drop.rewrites_data,
        "needs_history": drop.protects_history or drop.needs_truncate,
        "commits": {"min": drop.commits[0], "max": drop.commits[1]},
    }


def finding_fields(finding: Finding) -> dict[str, Any]:
    """Return one finding; optional members are omitted if empty."""
    fields: dict[str, Any] = {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": finding.message,
        "hint": finding.hint,
        "table": finding.table,
    }
    for key in ("feature", "client", "evidence"):
        value = getattr(finding, key)
        if value is not None:
            fields[key] = value
    return fields


def _unreadable(result: Unreadable) -> dict[str, Any]:
    error = result.error
    fields: dict[str, Any] = {"table": result.table, "error": error_fields(error)}
    if result.findings:
        fields["findings"] = [finding_fields(finding) for finding in result.findings]
    if isinstance(error, UnsupportedProtocol):
        fields["version"] = error.version
        fields["protocol"] = protocol_fields(error.protocol)
    if result.readers is not None:
        fields["readers"] = _readers(result.readers)
    return fields


def _readers(answers: Mapping[ReaderName, TableState | TableError]) -> dict[str, Any]:
    return {str(name): _reader(answer) for name, answer in answers.items()}


def _reader(answer: TableState | TableError) -> dict[str, Any]:
    if isinstance(answer, TableError):
        return {"error": error_fields(answer)}
    return {
        "version": answer.version,
        "id": answer.metadata.id,
        "name": answer.metadata.name,
        "protocol": protocol_fields(answer.protocol),
        "partition_columns": list(answer.metadata.partition_columns),
        "clustering_columns": _listed(answer.clustering_columns),
        "configuration": dict(sorted(answer.metadata.configuration.items())),
    }


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _listed(columns: tuple[str, ...] | None) -> list[str] | None:
    return None if columns is None else list(columns)
