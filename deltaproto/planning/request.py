"""Planner input: the observed table, its clients, and the request."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.clients.requirements import TableRequirements
from deltaproto.counts import all_names
from deltaproto.planning.ddl.user_statement import ParsedStatement
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Fingerprint, Plan
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Files
from deltaproto.planning.search.goals import FeaturesAbsent, TableClient, VersionsAtMost
from deltaproto.planning.writer_survival import Writers
from deltaproto.policy.context import TableFacts
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

if TYPE_CHECKING:
    from deltaproto.planning.enable import FeatureToEnable
    from deltaproto.planning.target import Target


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
    """True: all known clients are evaluated, so only those that change are reported"""
    complete: bool = True
    """False: the reader could not read everything"""
    session: Mapping[str, str] = MappingProxyType({})
    """known settings of the writing Spark session"""
    releases: frozenset[str] | None = None
    """Delta Spark releases of writers in the recent log; None: not checked, or none found"""
    engines: tuple[str, ...] = ()
    """names of the engines of recent commits, as the log has them"""
    warnings: tuple[str, ...] = ()
    """warnings from the reader that apply to any plan"""
    target: Target | None = None
    """what a policy requires of the table; None: no plan for a policy is made"""
    comments: Mapping[tuple[str, ...], str] | None = None
    """comments by column path (the table's comment has the empty path), for a table that was read
    by its name in Spark; None: other addresses, whose copies are made manually
    """
    row_group: Hashable = None
    """equal for tables whose inputs differ only in name, location, id and version; None: unknown"""
    address: str | None = None
    """the name with its catalog's URL, by which a saved table is read again; None: its location"""

    @property
    def other_names(self) -> tuple[str, ...]:
        """Further catalog names of the table."""
        return () if self.facts is None else self.facts.other_names

    @property
    def writers(self) -> Writers:
        """What is known about Delta Spark's writers."""
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


class UpgradeRequest(NamedTuple):
    """The requested changes, in the order in which they are executed."""

    enable: tuple[FeatureToEnable, ...] = ()
    set: Mapping[str, str] = MappingProxyType({})
    to: tuple[int, int] | None = None
    isolation: str | None = None
    statements: tuple[ParsedStatement, ...] = ()
    """of the user's SQL"""
    keep: tuple[TableClient, ...] = ()
    """clients that must keep their access"""


def goal_fields(request: UpgradeRequest) -> Mapping[str, Any]:
    """Return the goal as stored in plan files."""
    goal: dict[str, Any] = {"kind": "upgrade"}
    if request.enable:
        goal["enable"] = [wanted.feature for wanted in request.enable]
    for wanted in request.enable:
        if wanted.mode is not None:
            goal["mapping_mode"] = wanted.mode
        if wanted.columns:
            goal["cluster_by"] = list(wanted.columns)
    if request.set:
        goal["set"] = dict(request.set)
    if request.to is not None:
        goal["to"] = {"reader": request.to[0], "writer": request.to[1]}
    if request.isolation is not None:
        goal["isolation"] = request.isolation
    if request.statements:
        goal["sql"] = [parsed.text for parsed in request.statements]
    if request.keep:
        goal["keep"] = [str(client.candidate.reference) for client in request.keep]
    return goal


def goal_text(goal: Mapping[str, Any], before: Protocol) -> str:
    """Describe the goal of a plan for a table with the protocol `before`.

    Raises:
        KeyError, TypeError, ValueError: if the goal is invalid.
    """
    if "undo" in goal:
        return f"undo plan {goal['undo']}"
    match goal["kind"]:
        case "upgrade":
            return "; ".join(_upgrade(goal))
        case "drop":
            return FeaturesAbsent(frozenset(goal["features"]) & before.supported).text
        case "to":
            return VersionsAtMost(int(goal["reader"]), int(goal["writer"])).text
        case "for-client":
            return _clients(goal)
        case "lowest":
            what = "is in use, too" if goal["include_enabled"] else "nothing uses"
            text = f"the lowest protocol: drop what {what}"
            return f"{text}; {_clients(goal)}" if goal.get("clients") else text
        case "policy":
            return "; ".join(_target(goal, before)) or "what the policy requires"
    raise ValueError(f"{goal['kind']!r} is not a goal")


def approvable_goal(plan: Plan) -> str:
    """Return the goal as an approval must name it: user-written SQL statements are part of it."""
    statements = plan.goal.get("sql")
    return f"{plan.goal_text}: {'; '.join(statements)}" if statements else plan.goal_text


def _upgrade(goal: Mapping[str, Any]) -> Iterator[str]:
    if enabled := goal.get("enable"):
        modes = {"columnMapping": goal.get("mapping_mode")}
        yield f"enable {', '.join(f'{n} {modes[n]}' if modes.get(n) else n for n in enabled)}"
    if columns := goal.get("cluster_by"):
        yield f"cluster by {', '.join(columns)}"
    if properties := goal.get("set"):
        yield f"set {', '.join(f'{key}={value}' for key, value in properties.items())}"
    if goal.get("isolation") is not None:
        yield f"isolation level {goal['isolation']}"
    if (versions := goal.get("to")) is not None:
        reader, writer = int(versions["reader"]), int(versions["writer"])
        yield f"reader version {reader} and writer version {writer} at least"
    if count := len(goal.get("sql") or ()):
        yield f"{count} SQL statement{'s' if count > 1 else ''}"
    if kept := goal.get("keep"):
        yield f"{', '.join(kept)} keep working"


def _target(goal: Mapping[str, Any], before: Protocol) -> Iterator[str]:
    yield from _upgrade(goal)
    if features := goal.get("features"):
        yield FeaturesAbsent(frozenset(features) & before.supported).text
    if (versions := goal.get("at_most")) is not None:
        yield VersionsAtMost(int(versions["reader"]), int(versions["writer"])).text
    if goal.get("clients"):
        yield _clients(goal)


def _clients(goal: Mapping[str, Any]) -> str:
    uses = goal["clients"]
    return "; ".join(f"{use['client']} can {all_names(use['access'])}" for use in uses)
