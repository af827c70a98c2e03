"""What clients meet on a table as a plan leaves it."""

from __future__ import annotations

from deltaproto.planning.goal import Ending
from deltaproto.planning.pulled import by_columns
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Kind, PropertyIs


def ending_of(after: Table) -> Ending:
    """The ending that a predicted table stands for."""
    on, off = set(), set()
    for name in after.protocol.supported:
        rule = catalogue.record(name).enablement
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
        on |= by_columns(after.schema, after.protocol) & after.protocol.supported
    mode = after.configuration.get(MODE)
    return Ending(after.protocol, frozenset(off), frozenset(on), mode)


def _leaves_traces(name: str, after: Table) -> bool:
    """Whether files or schema may still hold traces of a feature that is switched off."""
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
    # As in `layers`: files that were written under such a feature keep its form.
    return catalogue.record(name).kind is Kind.READER_WRITER
