"""What a plan is made from: one table as it was seen, and who uses it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import Candidate
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Files
from deltaproto.planning.writer_survival import Writers
from deltaproto.policy.context import TableFacts
from deltaproto.protocol.layers import FeatureState


class User(NamedTuple):
    """A client that uses the table."""

    candidate: Candidate
    access: tuple[Access, ...]
    label: str | None = None
    """as the policy calls it"""


class PlanInput(NamedTuple):
    """One table before a plan."""

    name: str
    """as the user named it"""
    location: str
    sql: str
    """as statements name it"""
    table: Table
    needs: TableRequirements
    states: tuple[FeatureState, ...]
    fingerprint: Fingerprint
    facts: TableFacts | None = None
    """for a policy; None: nobody asked a policy"""
    files: Files = Files()
    engine: Engine = Engine()
    clients: tuple[User, ...] = ()
    everybody: bool = False
    """the clients are all that are known, so that only those are told of that change"""
    complete: bool = True
    """False: the reader could not see everything"""
    session: Mapping[str, str] = MappingProxyType({})
    """settings of the Spark session that writes, as far as they are known"""
    releases: frozenset[str] | None = None
    """of Delta Spark, whose writers the recent log shows; None: not looked, or none is shown"""
    warnings: tuple[str, ...] = ()
    """what the reader noticed that bears on any plan"""

    @property
    def writers(self) -> Writers:
        """Delta Spark's writers, as far as they are known."""
        return Writers(self.releases, self.session)

    def executed_by(self, engine: Engine, session: Mapping[str, str]) -> PlanInput:
        """Return the table with the engine that will execute the plan, and the session's settings.

        An engine that is newer than all known ones is a warning.
        """
        warnings = self.warnings
        if engine.newer_than_known:
            warnings += (
                f"{engine} is newer than every version that is known: the plan assumes that it "
                "does what they do.",
            )
        return self._replace(engine=engine, session=session, warnings=warnings)
