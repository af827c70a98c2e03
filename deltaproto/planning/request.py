"""Planner input: the observed table and its clients."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Files
from deltaproto.planning.writer_survival import Writers
from deltaproto.policy.context import TableFacts
from deltaproto.protocol.layers import FeatureState


class TableClient(NamedTuple):
    """A client that uses the table."""

    candidate: ClientAtVersion
    access: tuple[Access, ...]
    label: str | None = None
    """label in the policy"""


class PlanInput(NamedTuple):
    """One table before a plan."""

    name: str
    """name given by the user"""
    location: str
    sql: str
    """name used in statements"""
    table: Table
    needs: TableRequirements
    states: tuple[FeatureState, ...]
    fingerprint: Fingerprint
    facts: TableFacts | None = None
    """facts for a policy check; None: no policy is used"""
    files: Files = Files()
    engine: Engine = Engine()
    clients: tuple[TableClient, ...] = ()
    everybody: bool = False
    """True: the clients are all known ones, so only those that change are reported"""
    complete: bool = True
    """False: the reader could not read everything"""
    session: Mapping[str, str] = MappingProxyType({})
    """known settings of the writing Spark session"""
    releases: frozenset[str] | None = None
    """Delta Spark releases of writers in the recent log; None: not checked, or none found"""
    warnings: tuple[str, ...] = ()
    """warnings from the reader that apply to any plan"""

    @property
    def writers(self) -> Writers:
        """Return what is known about Delta Spark's writers."""
        return Writers(self.releases, self.session)

    def executed_by(self, engine: Engine, session: Mapping[str, str]) -> PlanInput:
        """Return the table with the engine that will execute the plan, and the session's settings.

        Warn about an engine that is newer than all known versions.
        """
        warnings = self.warnings
        if engine.newer_than_known:
            warnings += (
                f"{engine} is newer than every known version: the plan assumes that it behaves the "
                "same way.",
            )
        return self._replace(engine=engine, session=session, warnings=warnings)
