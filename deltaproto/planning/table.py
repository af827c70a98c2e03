"""What a plan needs to know of a table, and what statements do to that.

A value: every statement gives a new one. What is not known is None, and then both possibilities
count.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.protocol.protocol import Protocol

CONSTRAINT = "delta.constraints."
MODE = "delta.columnMapping.mode"
_NOTHING: Mapping[str, str] = MappingProxyType({})


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
    traced: frozenset[str] | None = None
    """features whose traces are in the history that is left; None: not known"""

    @property
    def constraints(self) -> tuple[str, ...]:
        """The names of CHECK constraints."""
        return tuple(
            sorted(key[len(CONSTRAINT) :] for key in self.configuration if _constrains(key))
        )

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

    def without_mapping(self) -> Table:
        """With the properties of column mapping unset."""
        return self.without_properties(MODE, "delta.columnMapping.maxColumnId")


def _constrains(key: str) -> bool:
    return key.lower().startswith(CONSTRAINT)
