"""The settings of a table pattern."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from deltaproto.policy.document import patterns, reader
from deltaproto.policy.document.clients import declared
from deltaproto.policy.document.errors import Fault, Faults, collected, shown
from deltaproto.policy.document.model import Levels, PolicySettings, TableEntry
from deltaproto.policy.document.source import Node, Scalar
from deltaproto.policy.document.windows import windows
from deltaproto.policy.finding import Severity
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.isolation import DECLARABLE, IsolationLevel
from deltaproto.protocol.violations import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION

_OFF = "off"
_LEVELS = (*(severity.value for severity in Severity), _OFF)


def entries(node: Node, rules: Collection[str]) -> tuple[TableEntry, ...]:
    """Parse the table patterns of a policy, in file order.

    Raises:
        Fault: a pattern or setting is invalid.
    """
    pairs = reader.pairs(node, "a mapping from patterns to settings")
    return collected(lambda pair: _entry(*pair, rules), pairs)


def _entry(key: Scalar, value: Node, rules: Collection[str]) -> TableEntry:
    faults = Faults()
    with faults.catching():
        read = pattern(key)
    with faults.catching():
        settings = _settings(value, rules)
    faults.check()
    return TableEntry(read, settings, key.position)


def pattern(node: Node) -> str:
    """Parse a table pattern."""
    read = reader.address(node, "a table pattern")
    problem = patterns.problem(read)
    if problem:
        raise Fault(
            f"{shown(read)} can never match: {problem}",
            "write a pattern such as main.sales.*, gold/** or s3://bucket/gold/**",
            node.position,
        )
    return read


def severities(node: Node, rules: Collection[str]) -> Levels:
    """Parse severities by rule id; `off` needs no quotes."""
    levels: dict[str, Severity | None] = {}
    faults = Faults()
    for key, value in reader.pairs(node, "a mapping from rules to severities"):
        with faults.catching():
            level = reader.choice(value, _LEVELS, "severity")
            levels[rule(key, rules)] = None if level == _OFF else Severity(level)
    faults.check()
    return MappingProxyType(levels)


def rule(node: Node, rules: Collection[str]) -> str:
    """Parse a rule id."""
    return reader.choice(node, sorted(rules), "rule")


def feature(node: Node) -> str:
    """Parse a feature name, in its exact spelling."""
    name = reader.text(node, "the name of a feature")
    if feature_catalog.find(name) is None:
        known, near = feature_catalog.search(name[:100])
        meant = (known.name,) if known else near[:1]
        hint = f'did you mean "{meant[0]}"?' if meant else "run deltaproto features for all names"
        raise Fault(f"unknown feature {shown(name)}", hint, node.position)
    return name


def _settings(node: Node, rules: Collection[str]) -> PolicySettings:
    values = reader.fields(node, PolicySettings._fields)
    faults, read = Faults(), dict[str, Any]()
    for name, value in values.items():
        with faults.catching():
            read[name] = _setting(name, value, values, rules)
    faults.check()
    settings = PolicySettings(**read)
    _check(settings, values)
    return settings


def _setting(name: str, node: Node, values: Mapping[str, Node], rules: Collection[str]) -> object:
    match name:
        case "clients":
            return declared(node)
        case "max_reader_version" | "min_reader_version":
            return reader.integer(node, 1, READER_FEATURES_VERSION)
        case "max_writer_version" | "min_writer_version":
            return reader.integer(node, 1, WRITER_FEATURES_VERSION)
        case "isolation":
            return _isolation(node)
        case "maintenance_windows":
            return windows(node)
        case "require_properties":
            return _properties(node)
        case "severities":
            return severities(node, rules)
        case "forbid_features" | "require_features":
            return _features(node)
    return _replaces(values, name.removesuffix("_replace"))


def _replaces(values: Mapping[str, Node], name: str) -> bool:
    """Return True if the list replaces those of less specific patterns."""
    node = values.get(f"{name}_replace")
    if node is None or not reader.boolean(node):
        return False
    if name not in values:
        raise Fault(f"{name}_replace without {name}", f'add "{name}:"', node.position)
    return True


def _check(settings: PolicySettings, values: Mapping[str, Node]) -> None:
    """Refuse contradictory settings."""
    for side, low, high in (
        ("reader", settings.min_reader_version, settings.max_reader_version),
        ("writer", settings.min_writer_version, settings.max_writer_version),
    ):
        if low is not None and high is not None and low > high:
            raise Fault(
                f"min_{side}_version {low} is above max_{side}_version {high}",
                "lower the floor or raise the ceiling",
                values[f"min_{side}_version"].position,
            )
    both = set(settings.forbid_features or ()) & set(settings.require_features or ())
    if both:
        raise Fault(
            f"{min(both)} is both required and forbidden",
            "remove it from one list",
            values["require_features"].position,
        )


def _features(node: Node) -> tuple[str, ...]:
    faults, named = Faults(), list[str]()
    for item in reader.items(node, "a list of feature names"):
        with faults.catching():
            each = feature(item)
            if each in named:
                raise Fault(f"{each} is listed twice", "list it once", item.position)
            named.append(each)
    faults.check()
    return tuple(named)


def _isolation(node: Node) -> IsolationLevel:
    written = reader.text(node, "an isolation level")
    folded = "".join(character for character in written.lower() if character not in " _-")
    for level in DECLARABLE:
        if level.lower() == folded:
            return level
    raise Fault(
        f"{shown(written)} is not an isolation level that tables can declare",
        f"choose {' or '.join(DECLARABLE)}",
        node.position,
    )


def _properties(node: Node) -> Mapping[str, str]:
    return MappingProxyType(
        {
            reader.text(key, "the name of a property"): _property(value)
            for key, value in reader.pairs(node, "a mapping from properties to values")
        }
    )


def _property(node: Node) -> str:
    """Read a property value: a text, or an integer, true or false, as written."""
    if isinstance(node, Scalar) and node.plain:
        match reader.kind(node):
            case reader.ScalarKind.BOOLEAN:
                return str(reader.boolean(node)).lower()
            case reader.ScalarKind.INTEGER if node.text.isdecimal() and node.text[0] != "0":
                return node.text
            case _ if node.text == "0":
                return node.text
    return reader.text(node, "the value of a property")
