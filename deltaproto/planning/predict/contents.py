"""Changes in columns and constraints that some clients cannot handle.

The columns do not show everything: data files keep dropped columns and the old names of renamed
ones.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from deltaproto.clients import requirements
from deltaproto.planning.predict.schema import Struct, schema_json
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_TRACKING, Table, is_constraint
from deltaproto.policy.contents import find_contents, find_other_case
from deltaproto.protocol.metadata import Metadata

_NONE = frozenset[str]()
_CAST, _CAST_OF_TIME = (
    requirements.EXPRESSION_PREFIX + word for word in ("cast", "cast with a timestamp column")
)


class ContentChange(NamedTuple):
    """The hazards that statements add to columns and constraints, and those that they remove."""

    added: frozenset[str] = _NONE
    removed: frozenset[str] = _NONE

    def after(self, earlier: ContentChange) -> ContentChange:
        """Return this change and an earlier one together."""
        added = (earlier.added - self.removed) | self.added
        return ContentChange(added, (earlier.removed - self.added) | self.removed)


def find_content_change(before: Table, after: Table) -> ContentChange:
    """Return the changes in a table's columns and constraints that affect clients.

    Common parts of both tables are not compared, because a planned table shows less than the log.
    If the columns are unknown, only those that the statements added are compared.
    """
    tracked = before.untracked and (after.untracked is False or not after.is_on(ROW_TRACKING))
    removed = frozenset({requirements.UNTRACKED_FILES} if tracked else _NONE)
    if before.unstamped and before != after:
        # An engine that can commit to such a table gives a timestamp to its commit.
        removed |= {requirements.UNSTAMPED}
    cased, will_be = (
        frozenset(find_other_case(each.configuration).values()) for each in (before, after)
    )
    removed |= cased - will_be
    added = after.added_hazards | (will_be - cased)
    if _contents(before) == _contents(after):
        return ContentChange(added, removed)
    was, will = _hazards(before), _hazards(after)
    gone = was - will
    if after.schema is None:
        gone = frozenset(w for w in gone if w.startswith(requirements.EXPRESSION_PREFIX))
    return ContentChange((will - was) | added, gone | removed)


def hazards_of_columns(table: Table, columns: Struct) -> frozenset[str]:
    """Return the hazards of columns that are added to this table."""
    return _hazards(table._replace(schema=columns, configuration=_mode(table)))


def _contents(table: Table) -> tuple[object, ...]:
    return table.schema, table.mapped, _constraints(table)


def _constraints(table: Table) -> dict[str, str]:
    return {key: text for key, text in table.configuration.items() if is_constraint(key)}


def _mode(table: Table) -> dict[str, str]:
    return {MAPPING_MODE: "name"} if table.mapped else {}


def _hazards(table: Table) -> frozenset[str]:
    """Return the hazards of columns and constraints that the planner's columns show."""
    schema = None if table.schema is None else json.dumps(schema_json(table.schema))
    configuration = {**_constraints(table), **_mode(table)}
    found = find_contents(Metadata(None, schema_string=schema, configuration=configuration))
    prefixes = (requirements.TYPE_PREFIX, requirements.EXPRESSION_PREFIX)
    shown = {word for word in found if word.startswith(prefixes)}
    if requirements.MAPPED_COLLECTIONS in found:
        shown.add(requirements.MAPPED_COLLECTIONS)
    if table.schema is None and _CAST in shown:
        # Which columns are timestamps is unknown.
        shown.add(_CAST_OF_TIME)
    return frozenset(shown)
