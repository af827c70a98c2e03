"""The table requirements that clients face after a plan."""

from __future__ import annotations

from deltaproto.planning.predict.auto_enable import features_of_columns
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.search.goals import EndState
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, PropertyIs


def end_state_of(after: Table) -> EndState:
    """Return the end state of a predicted table."""
    on, off = set(), set()
    for name in after.protocol.supported:
        rule = feature_catalog.feature_record(name).enablement
        used = None
        if isinstance(rule, PropertyIs):
            used = rule.holds(after.configuration.get(rule.key_in(after.configuration)))
        elif name == "checkConstraints":
            used = bool(after.constraints)
        elif name == "clustering":
            used = None if after.clustering is None else bool(after.clustering)
        if used is None:
            continue
        if used:
            on.add(name)
        elif not _leaves_traces(name, after):
            off.add(name)
    if after.schema is not None:
        on |= features_of_columns(after.schema, after.protocol) & after.protocol.supported
    mode = after.configuration.get(MAPPING_MODE)
    return EndState(after.protocol, frozenset(off), frozenset(on), mode)


def _leaves_traces(name: str, after: Table) -> bool:
    """Return True if files or schema may still have traces of a disabled feature."""
    match name:
        case "deletionVectors":
            return after.vectors is not False
        case "typeWidening" | "typeWidening-preview":
            return after.widened is not False
        case "rowTracking":
            return after.row_ids is not False
        case "v2Checkpoint":
            return after.v2_checkpoint is not False
        case "columnMapping":
            return False
    # As in `layers`: files that were written with such a feature keep its format.
    return feature_catalog.feature_record(name).kind is FeatureKind.READER_WRITER
