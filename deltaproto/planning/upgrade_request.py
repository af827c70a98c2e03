"""The request of plan-upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from deltaproto.planning.ddl.user_statement import ParsedStatement
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.request import TableClient


class UpgradeRequest(NamedTuple):
    """The request; its parts are executed in this order."""

    enable: tuple[FeatureToEnable, ...] = ()
    set: Mapping[str, str] = MappingProxyType({})
    to: tuple[int, int] | None = None
    isolation: str | None = None
    statements: tuple[ParsedStatement, ...] = ()
    """of the user's SQL"""
    keep: tuple[TableClient, ...] = ()
    """clients that must keep their access"""


def goal_fields(asked: UpgradeRequest) -> Mapping[str, Any]:
    """Return the goal as stored in plan files."""
    goal: dict[str, Any] = {"kind": "upgrade"}
    if asked.enable:
        goal["enable"] = [wanted.feature for wanted in asked.enable]
    for wanted in asked.enable:
        if wanted.mode is not None:
            goal["mapping_mode"] = wanted.mode
        if wanted.columns:
            goal["cluster_by"] = list(wanted.columns)
    if asked.set:
        goal["set"] = dict(asked.set)
    if asked.to is not None:
        goal["to"] = {"reader": asked.to[0], "writer": asked.to[1]}
    if asked.isolation is not None:
        goal["isolation"] = asked.isolation
    if asked.statements:
        goal["sql"] = [parsed.text for parsed in asked.statements]
    if asked.keep:
        goal["keep"] = [str(client.candidate.reference) for client in asked.keep]
    return goal
