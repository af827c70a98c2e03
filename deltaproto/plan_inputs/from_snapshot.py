"""Build planner input from saved inspections and inventories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from deltaproto.clients.requirements import UNTRACKED_FILES
from deltaproto.errors import SavedError
from deltaproto.inspection.age import SavedAges, format_time
from deltaproto.inspection.saved import MALFORMED_ENTRY_ERRORS, malformed_error, read_entry
from deltaproto.location import locate
from deltaproto.plan_inputs.from_log import refuse_invalid_protocol
from deltaproto.planning.from_state import commits_until_checkpoint, may_have_stray_columns
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.collations import COLLATION_FEATURES
from deltaproto.planning.predict.table import GEOSPATIAL_FEATURES, Table
from deltaproto.planning.request import PlanInput
from deltaproto.policy.context import TableFacts
from deltaproto.policy.hazards import INCONSISTENCY_RULES
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.layers import FeatureState
from deltaproto.sql.quoting import address_in_statements, sql_table_name

_SAVED_WARNING = (
    "Planned from a saved inspection of {made}, which has no schema and no files: plan again "
    "from the table itself before you apply it."
)
_INVENTORY_WARNING = (
    "Planned from an inventory (scan {scan}, ended {made}), which has no schema and no files: "
    "plan again with --fresh, or from the table itself, before you apply it."
)

_SOME_COLUMN = ("whose names are not saved",)
"""A column that must be there, because its feature is present."""


def input_from_saved(entry: Any, path: str, ages: SavedAges) -> PlanInput:
    """Convert an entry of a saved inspection to planner input.

    Args:
        ages: age of the part that contains the entry.

    Raises:
        TableError: if the table was unreadable then, or its protocol violates the spec.
        UsageError: if the entry is not in the format of `inspect`.
    """
    facts = read_entry(entry, path)
    if isinstance(facts, SavedError):
        raise facts
    try:
        return _build_input(
            facts,
            entry["features"],
            entry["partition_columns"],
            entry.get("clustering_columns"),
            entry.get("id"),
            _drop_missing(_SAVED_WARNING.format(made=format_time(ages.made)), ages.notice),
        )
    except MALFORMED_ENTRY_ERRORS as error:
        raise malformed_error(path, error) from None


def input_from_row(
    row: Mapping[str, Any], facts: TableFacts, scan: str, ended: datetime, notice: str | None
) -> PlanInput:
    """Convert an inventory row to planner input.

    Args:
        scan: the id of its scan, which ended at `ended`.
        notice: warning about the age of that scan.

    Raises:
        TableError: if the table's protocol violates the spec.
    """
    features = [{**feature, "name": feature["feature"]} for feature in row["features"] or ()]
    return _build_input(
        facts,
        features,
        row["partition_columns"] or (),
        row["clustering_columns"],
        row["id"],
        _drop_missing(_INVENTORY_WARNING.format(scan=scan, made=format_time(ended)), notice),
    )


def input_for_equal_row(row: Mapping[str, Any], known: PlanInput) -> PlanInput:
    """Return the planner input of a row, which shares its records with an equal table's input.

    Args:
        known: from `input_from_row`, for a row that differs at most in name, location, id and
            version, and whose name and location imply the same requirements.
    """
    name, version = row["table"], row["version"]
    before, table = known.facts, known.table
    assert before is not None
    facts = before._replace(
        table=name,
        location=row["location"],
        version=version,
        id=row["id"],
        findings=tuple(finding._replace(table=name) for finding in before.findings),
    )
    if table.to_checkpoint is not None:
        left = commits_until_checkpoint(facts.configuration, version)
        table = table._replace(to_checkpoint=left)
    return known._replace(
        name=name,
        location=facts.location,
        sql=_sql_name(facts),
        table=table,
        fingerprint=known.fingerprint._replace(table_id=facts.id, version=version),
        facts=facts,
    )


def _drop_missing(*texts: str | None) -> tuple[str, ...]:
    return tuple(text for text in texts if text is not None)


def _build_input(
    facts: TableFacts,
    features: Iterable[Mapping[str, Any]],
    partition_columns: Sequence[Any],
    clustering: Sequence[Any] | None,
    table_id: str | None,
    warnings: tuple[str, ...],
) -> PlanInput:
    refuse_invalid_protocol(facts.protocol)
    states = tuple(_feature_state(feature, facts) for feature in features)
    table = Table(
        protocol=facts.protocol,
        configuration={k: v for k, v in facts.configuration.items() if v is not None},
        vectors=_has_traces(states, "deletionVectors"),
        widened=_has_traces(states, "typeWidening", "typeWidening-preview"),
        v2_checkpoint=_has_traces(states, "v2Checkpoint"),
        row_ids=_has_traces(states, "rowTracking"),
        untracked=UNTRACKED_FILES in facts.needs.hazards,
        domains=() if _has_traces(states, "domainMetadata") is False else None,
        clustering=None if clustering is None else tuple(map(str, clustering)),
        partition_columns=tuple(map(str, partition_columns)),
        geospatial=_SOME_COLUMN if _has_traces(states, *GEOSPATIAL_FEATURES) else (),
        collated=_SOME_COLUMN if _has_traces(states, *COLLATION_FEATURES) else (),
        stray_columns=may_have_stray_columns(facts.protocol, facts.configuration, None),
        # The version has no other effect; without it, otherwise identical tables are planned once.
        to_checkpoint=commits_until_checkpoint(facts.configuration, facts.version)
        if "v2Checkpoint" in facts.protocol.supported
        else None,
    )
    return PlanInput(
        name=facts.table,
        location=facts.location,
        sql=_sql_name(facts),
        table=table,
        needs=facts.needs,
        states=states,
        fingerprint=Fingerprint(table_id, facts.version, facts.protocol, None),
        facts=facts,
        complete=facts.complete,
        warnings=(
            *warnings,
            *(
                f"{each.rule}: {each.message}"
                for each in facts.findings
                if each.rule in INCONSISTENCY_RULES
            ),
        ),
    )


def _sql_name(facts: TableFacts) -> str:
    """Return the table name for statements: a saved path, not relative to this folder."""
    named = address_in_statements(facts.table, facts.location)
    return sql_table_name(named if named.by_name else locate(facts.location))


def _feature_state(feature: Mapping[str, Any], facts: TableFacts) -> FeatureState:
    name = str(feature["name"])
    kind = FeatureKind(feature["kind"])
    record = feature_catalog.feature_record(name, in_reader_list=kind is FeatureKind.READER_WRITER)
    return FeatureState(
        feature=record,
        kind=kind,
        listed=name in facts.protocol.listed,
        implied=name in facts.protocol.implied,
        enabled=feature["enabled"],
        present=feature["present"],
        required_by=tuple(feature.get("required_by") or ()),
        evidence="",
    )


def _has_traces(states: tuple[FeatureState, ...], *names: str) -> bool | None:
    """Return whether any of the features has traces; False if none is supported."""
    found = [state.present for state in states if state.name in names]
    if not found or all(present is False for present in found):
        return False
    return True if any(found) else None
