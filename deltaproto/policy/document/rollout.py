"""The section `rollout` of a policy."""

from __future__ import annotations

import re
from typing import Any

from deltaproto.policy.document import reader
from deltaproto.policy.document.errors import Fault, Faults, parse_each
from deltaproto.policy.document.model import RolloutSettings, WaveSize
from deltaproto.policy.document.settings import parse_pattern
from deltaproto.policy.document.source import Node, Scalar

_FIELDS = ("canary", "waves", "soak", "parallel", "max_failures", "hook_timeout", "rehearse")
_HOURS = {"m": 1 / 60, "h": 1.0, "d": 24.0}
_MAX_TABLES = 999_999
MAX_PARALLEL = 64
_MAX_HOOK_HOURS = 24.0


def parse_rollout(node: Node) -> RolloutSettings:
    """Parse the section.

    Raises:
        Fault: a key or value is invalid, or the section divides nothing into waves.
    """
    values = reader.read_fields(node, _FIELDS)
    faults, read = Faults(), dict[str, Any]()
    for name, value in values.items():
        with faults.catching():
            read |= _parse_value(name, value)
    faults.check()
    if not (read.get("canary") or read.get("waves")):
        raise Fault("a rollout without waves", 'add "waves: [10%, 50%]"', node.position)
    return RolloutSettings(**read)


def _parse_value(name: str, node: Node) -> dict[str, Any]:
    match name:
        case "canary":
            items = reader.read_items(node, "a list of table patterns")
            return {name: parse_each(parse_pattern, items)}
        case "waves":
            sizes = parse_each(_parse_size, reader.read_items(node, "a list of wave sizes"))
            if sum(each.number for each in sizes if each.percent) > 100:
                raise Fault("the waves have more than 100%", "lower the percentages", node.position)
            return {name: sizes}
        case "soak":
            return {"soak_hours": _parse_hours(node)}
        case "hook_timeout":
            hours = _parse_hours(node)
            if not 0 < hours <= _MAX_HOOK_HOURS:
                raise reader.unexpected_node(node, "a time from 1m to 24h")
            return {"hook_minutes": hours * 60}
        case "rehearse":
            return {name: reader.read_boolean(node)}
        case "parallel":
            return {name: reader.read_integer(node, 1, MAX_PARALLEL)}
    return {name: reader.read_integer(node, 0, _MAX_TABLES)}


def _parse_size(node: Node) -> WaveSize:
    """Parse a number of tables, or a percentage such as 10%."""
    if isinstance(node, Scalar) and re.fullmatch(r"([1-9][0-9]?|100)%", node.text):
        return WaveSize(int(node.text[:-1]), percent=True)
    if isinstance(node, Scalar) and re.fullmatch(r"[1-9][0-9]{0,5}", node.text) and node.plain:
        return WaveSize(int(node.text))
    raise reader.unexpected_node(node, "a number of tables such as 5, or a percentage such as 10%")


def _parse_hours(node: Node) -> float:
    if isinstance(node, Scalar) and (parts := re.fullmatch(r"([0-9]{1,5})([mhd])", node.text)):
        return int(parts[1]) * _HOURS[parts[2]]
    raise reader.unexpected_node(node, "a time such as 30m, 24h or 7d")
