"""What a plan needs to know of a table, and what statements do to that.

A value: every statement gives a new one. What is not known is None, and then both possibilities
count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.planning.predict.schema import Struct, of_type, unmappable, walk
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED, CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol

CONSTRAINT = "delta.constraints."
MODE = "delta.columnMapping.mode"
READER, WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
ROW_TRACKING = "delta.enableRowTracking"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
CHECKPOINT_POLICY = "delta.checkpointPolicy"
MAX_COLUMN = "delta.columnMapping.maxColumnId"
ROW_ID_COLUMNS = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
"""name the columns in data files that keep the ids of rewritten rows"""
_INTERVAL = 10
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NOTHING_LEFT: Mapping[str, float] = MappingProxyType({})


def checkpoint_interval(configuration: Mapping[str, str | None]) -> int:
    """After how many commits Delta makes a checkpoint unasked (`delta.checkpointInterval`)."""
    stored = configuration.get("delta.checkpointInterval") or ""
    return int(stored) if re.fullmatch(r"0*[1-9][0-9]{0,8}", stored) else _INTERVAL


class Table(NamedTuple):
    """One table before or after a statement."""

    protocol: Protocol
    configuration: Mapping[str, str] = _NOTHING
    """the table properties as stored"""
    vectors: bool | None = None
    """deletion vectors on live files"""
    widened: bool | None = None
    """type changes recorded in the schema"""
    unmappable: tuple[str, ...] = ()
    """columns whose names only column mapping allows"""
    geospatial: tuple[str, ...] = ()
    """columns of geospatial types"""
    v2_checkpoint: bool | None = None
    """the newest checkpoint is a V2 one"""
    row_ids: bool | None = None
    """live files have row ids"""
    domains: tuple[str, ...] | None = ()
    """live metadata domains"""
    clustering: tuple[str, ...] | None = ()
    """columns that the table is clustered by"""
    partition_columns: tuple[str, ...] = ()
    rewritten: bool = False
    """every data file was written by the plan itself"""
    strays: bool | None = False
    """data files hold columns that the schema does not, which REORG takes for dropped ones"""
    traced: frozenset[str] | None = None
    """features that history shows which no truncation may remove yet; None: not known"""
    unsure: frozenset[str] = frozenset()
    """features of which it is not known whether history shows them"""
    left: Mapping[str, float] = _NOTHING_LEFT
    """hours until a truncation may remove what history shows of a feature, where it can at all"""
    aged: frozenset[str] | None = None
    """features that only such history shows as a truncation removes; None: not known"""
    open: frozenset[str] = frozenset()
    """those of `aged` that become young again with the next commit, unless a checkpoint comes
    before it: Delta deletes what lies between two checkpoints by the age of its last file"""
    schema: Struct | None = None
    """None: not known"""
    version: int | None = None
    """the newest version, for statements that name one; None: not known, or not needed"""
    beyond: int = 0
    """versions that the table lacks up to the one before which checkpointProtection protects: a
    clone has the value of its source"""
    to_checkpoint: int | None = None
    """commits until Delta makes a checkpoint unasked; None: not known, or without consequence"""

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of CHECK constraints."""
        return tuple(
            sorted(key[len(CONSTRAINT) :] for key in self.configuration if _constrains(key))
        )

    def constraint_key(self, name: str) -> str | None:
        """The property that holds the constraint of this name, in any case; None when none does."""
        wanted = CONSTRAINT + name.lower()
        return next((key for key in self.configuration if key.lower() == wanted), None)

    def on(self, key: str) -> bool:
        """Whether a boolean property is true."""
        return self.configuration.get(key, "").strip().lower() == "true"

    def with_properties(self, properties: Mapping[str, str]) -> Table:
        """With these properties set."""
        return self._replace(configuration={**self.configuration, **properties})

    def without_properties(self, *keys: str) -> Table:
        """With these properties unset, if they were set."""
        kept = {key: value for key, value in self.configuration.items() if key not in keys}
        return self._replace(configuration=kept)

    def waited(self) -> Table:
        """After a wait: what history shows can be removed, where it can be at all."""
        if self.traced is None:
            return self._replace(traced=frozenset(), unsure=frozenset(), aged=None)
        # Dropping checkpointProtection leaves a checkpoint before it deletes anything.
        old = self.traced & {*self.left, CHECKPOINT_PROTECTION}
        aged = old | (self.aged or frozenset())
        return self._replace(traced=self.traced - old, left=_NOTHING_LEFT, aged=aged)

    def ended(self, hours: float) -> Table:
        """With the log's newest run ended by a checkpoint, so that it is old after `hours`."""
        if self.traced is None:
            return self
        left = {name: self.left.get(name, hours) for name in self.traced | self.unsure}
        return self._replace(left=left)

    def grown(self, hours: float, *, sure: bool) -> Table:
        """With a commit, or perhaps one, at the end of the log's newest run."""
        young = self.open & (self.aged or frozenset())
        if not young:
            return self._replace(open=frozenset())
        known = self._replace(open=frozenset(), aged=(self.aged or frozenset()) - young)
        if not sure or self.traced is None:
            return known._replace(unsure=self.unsure | young)
        left = {**self.left, **dict.fromkeys(young, hours)}
        return known._replace(traced=self.traced | young, left=left)

    def without_history(self) -> Table:
        """As if nothing were known of what history shows."""
        nothing = frozenset[str]()
        return self._replace(
            traced=None, aged=None, unsure=nothing, open=nothing, left=_NOTHING_LEFT
        )

    def checkpointed(self) -> Table:
        """With a new checkpoint, of the kind that the table's policy asks for."""
        policy = self.configuration.get(CHECKPOINT_POLICY, "classic")
        return self._replace(v2_checkpoint=policy.strip().lower() == "v2")

    def committed(self, fewest: int, most: int) -> Table:
        """After so many commits: at every tenth version, or so, Delta makes a checkpoint."""
        version = None
        if self.version is not None and fewest == most:
            version = self.version + most
        table = self._replace(version=version, beyond=max(self.beyond - fewest, 0))
        left = table.to_checkpoint
        if left is None or most == 0:
            return table
        after = table.checkpointed() if "v2Checkpoint" in table.protocol.supported else table
        kind = after.v2_checkpoint
        if fewest < left and (most >= left or fewest < most):
            # The next one may be anywhere now.
            kind = table.v2_checkpoint if table.v2_checkpoint is kind else None
        elif fewest < left:
            kind = table.v2_checkpoint
        coming = None
        if fewest == most:
            interval = checkpoint_interval(table.configuration)
            coming = left - most if most < left else interval - (most - left) % interval
        return table._replace(v2_checkpoint=kind, to_checkpoint=coming)

    def with_schema(self, schema: Struct | None) -> Table:
        """With these columns; what is told from a schema follows."""
        if schema is None:
            return self._replace(schema=None, widened=None)
        return self._replace(
            schema=schema,
            widened=any(column.widened for _, column in walk(schema)),
            unmappable=unmappable(schema),
            geospatial=of_type(schema, "geometry", "geography"),
        )

    @property
    def names_row_ids(self) -> bool:
        """Whether it names columns of its data files that keep the ids of rewritten rows."""
        return any(name in self.configuration for name in ROW_ID_COLUMNS)

    @property
    def keeps_changes(self) -> bool:
        """Whether the change data feed is on."""
        rule = feature_catalog.record("changeDataFeed").enablement
        assert isinstance(rule, PropertyIs)
        return self.on(rule.key_in(self.configuration))

    @property
    def managed(self) -> bool:
        """Whether a catalog decides on its commits."""
        return bool(CATALOG_MANAGED & self.protocol.supported)

    @property
    def mapped(self) -> bool:
        """Whether column mapping is on."""
        return self.configuration.get(MODE, "none").strip().lower() in ("name", "id")

    def shows(self, feature: str) -> bool | None:
        """Whether history shows the feature, so that a truncating drop has to wait."""
        if self.traced is None or feature in self.unsure:
            return None
        return feature in self.traced

    def tracing(self, *features: str) -> Table:
        """With history that shows these features too."""
        if self.traced is None:
            return self
        return self._replace(traced=self.traced | {*features}, unsure=self.unsure - {*features})

    def without_mapping(self) -> Table:
        """With the properties of column mapping unset, which rewrites every file."""
        plain = self.without_properties(MODE, MAX_COLUMN)
        return plain._replace(vectors=False, rewritten=True, strays=False)


def _constrains(key: str) -> bool:
    return key.lower().startswith(CONSTRAINT)
