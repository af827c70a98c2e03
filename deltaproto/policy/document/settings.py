"""The settings of a table pattern."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from deltaproto.errors import quote_short
from deltaproto.policy.document import patterns, reader, source
from deltaproto.policy.document.clients import parse_declared_clients
from deltaproto.policy.document.contradictions import find_contradictions
from deltaproto.policy.document.errors import Fault, Faults, Position, parse_each
from deltaproto.policy.document.merging import merge_settings
from deltaproto.policy.document.model import Levels, Policy, PolicySettings, TableEntry
from deltaproto.policy.document.source import Node, Scalar
from deltaproto.policy.document.windows import parse_windows
from deltaproto.policy.finding import Severity
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.isolation import DECLARABLE_LEVELS, IsolationLevel
from deltaproto.protocol.properties import CANONICAL_NAMES
from deltaproto.protocol.violations import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION

_OFF = "off"
_PROFILE = "profile"
_SETTINGS = PolicySettings._fields
_LEVELS = (*(severity.value for severity in Severity), _OFF)

Profiles = Mapping[str, PolicySettings]


def parse_profiles(node: Node, rules: Collection[str]) -> Profiles:
    """Parse named settings, which patterns inherit.

    Raises:
        Fault: a name or setting is invalid.
    """
    profiles: dict[str, PolicySettings] = {}
    faults = Faults()
    for key, value in reader.read_pairs(node, "a mapping from names to settings"):
        with faults.catching():
            name = reader.read_text(key, "the name of a profile")
            profiles[name] = _parse_settings(reader.read_fields(value, _SETTINGS), rules)
    faults.check()
    return MappingProxyType(profiles)


def parse_table_entries(
    node: Node, rules: Collection[str], profiles: Profiles | None
) -> tuple[TableEntry, ...]:
    """Parse the table patterns of a policy, in file order; a profile precedes the pattern's own.

    Args:
        profiles: None if they have errors, so the names of profiles are not looked up.

    Raises:
        Fault: a pattern or setting is invalid, or a profile does not exist.
    """
    pairs = reader.read_pairs(node, "a mapping from patterns to settings")
    found = parse_each(lambda pair: _parse_entries(*pair, rules, profiles), pairs)
    return tuple(entry for entries in found for entry in entries)


def _parse_entries(
    key: Scalar, value: Node, rules: Collection[str], profiles: Profiles | None
) -> list[TableEntry]:
    faults, found = Faults(), list[TableEntry]()
    read = ""
    with faults.catching():
        read = parse_pattern(key)
    with faults.catching():
        values = reader.read_fields(value, (_PROFILE, *_SETTINGS))
        node = values.pop(_PROFILE, None)
        if node is not None and profiles is not None:
            with faults.catching():
                name = reader.read_choice(
                    node, sorted(profiles), "profile", "define it in profiles"
                )
                found.append(TableEntry(read, profiles[name], node.position, name))
        found.append(TableEntry(read, _parse_settings(values, rules), key.position))
    faults.check()
    if len(found) > 1:
        _validate_inherited(found, key.position)
    return found


def _validate_inherited(entries: list[TableEntry], position: Position) -> None:
    """Refuse settings that contradict their profile."""
    faults = Faults()
    for found in merge_settings(Policy(""), tuple(entries)).contradictions:
        with faults.catching():
            raise Fault(
                f"{found.problem} (with the profile {entries[0].profile})", found.hint, position
            )
    faults.check()


def parse_pattern(node: Node) -> str:
    """Parse a table pattern."""
    read = reader.read_address(node, "a table pattern")
    problem = patterns.find_pattern_problem(read)
    if problem:
        raise Fault(
            f"{quote_short(read)} can never match: {problem}",
            "write a pattern such as main.sales.*, gold/** or s3://bucket/gold/**; ? matches any "
            "character, also one that a pattern cannot contain",
            node.position,
        )
    return read


def parse_severities(node: Node, rules: Collection[str]) -> Levels:
    """Parse severities by rule id; `off` needs no quotes."""
    levels: dict[str, Severity | None] = {}
    faults = Faults()
    for key, value in reader.read_pairs(node, "a mapping from rules to severities"):
        with faults.catching():
            level = reader.read_choice(value, _LEVELS, "severity")
            levels[parse_rule(key, rules)] = None if level == _OFF else Severity(level)
    faults.check()
    return MappingProxyType(levels)


def parse_rule(node: Node, rules: Collection[str]) -> str:
    """Parse a rule id."""
    hint = "write the rule's id; `deltaproto explain` lists all"
    return reader.read_choice(node, sorted(rules), "rule", hint)


def parse_feature(node: Node) -> str:
    """Parse a feature name, in its exact spelling."""
    name = reader.read_text(node, "the name of a feature")
    if feature_catalog.find_feature(name) is None:
        known, near = feature_catalog.search_feature(name[:100])
        suggested = (known.name,) if known else near[:1]
        hint = (
            f'did you mean "{suggested[0]}"?'
            if suggested
            else "run deltaproto features for all names"
        )
        raise Fault(f"unknown feature {quote_short(name)}", hint, node.position)
    return name


def _parse_settings(values: Mapping[str, Node], rules: Collection[str]) -> PolicySettings:
    faults, read = Faults(), dict[str, Any]()
    for name, value in values.items():
        with faults.catching():
            read[name] = _parse_setting(name, value, values, rules)
    faults.check()
    settings = PolicySettings(**read)
    _validate_settings(settings, values)
    return settings


def _parse_setting(
    name: str, node: Node, values: Mapping[str, Node], rules: Collection[str]
) -> object:
    match name:
        case "clients":
            return parse_declared_clients(node)
        case "max_reader_version" | "min_reader_version":
            return reader.read_integer(node, 1, READER_FEATURES_VERSION)
        case "max_writer_version" | "min_writer_version":
            return reader.read_integer(node, 1, WRITER_FEATURES_VERSION)
        case "isolation":
            return _parse_isolation(node)
        case "protocol":
            return reader.read_choice(node, ("lowest",), "protocol")
        case "cluster_by":
            return _parse_distinct(node, "a list of column names", _parse_column)
        case "history":
            return reader.read_choice(node, ("keep", "truncate"), "history")
        case "maintenance_windows":
            return parse_windows(node)
        case "require_properties":
            return _parse_properties(node)
        case "severities":
            return parse_severities(node, rules)
        case "forbid_features" | "require_features":
            return _parse_distinct(node, "a list of feature names", parse_feature)
    return _parse_replaces(values, name.removesuffix("_replace"))


def _parse_replaces(values: Mapping[str, Node], name: str) -> bool:
    """Return True if the list replaces those of less specific patterns."""
    node = values.get(f"{name}_replace")
    if node is None or not reader.read_boolean(node):
        return False
    if name not in values:
        raise Fault(f"{name}_replace without {name}", f'add "{name}:"', node.position)
    return True


def _validate_settings(settings: PolicySettings, values: Mapping[str, Node]) -> None:
    """Refuse contradictory settings."""
    faults = Faults()
    for found in find_contradictions(settings):
        with faults.catching():
            position = _position_of(values[found.setting], found.entry)
            raise Fault(found.problem, found.hint, position)
    faults.check()


def _position_of(node: Node, entry: str | None) -> Position:
    """Return the position of an entry of a setting, or of the setting itself."""
    keys: Iterable[Node] = ()
    if isinstance(node, source.Mapping):
        keys = (key for key, _ in node.pairs)
    elif isinstance(node, source.Sequence):
        keys = node.items
    wanted = "" if entry is None else entry.lower()
    named = (key for key in keys if isinstance(key, Scalar) and key.text.lower() == wanted)
    return next(named, node).position


def _parse_column(node: Node) -> str:
    return reader.read_text(node, "the name of a column")


def _parse_distinct(node: Node, wanted: str, parse: Callable[[Node], str]) -> tuple[str, ...]:
    """Parse a list of names that differ by more than their case."""
    faults, named = Faults(), list[str]()
    for item in reader.read_items(node, wanted):
        with faults.catching():
            each = parse(item)
            if each.casefold() in map(str.casefold, named):
                raise Fault(f"{each} is listed twice", "list it once", item.position)
            named.append(each)
    faults.check()
    return tuple(named)


def _parse_isolation(node: Node) -> IsolationLevel:
    written = reader.read_text(node, "an isolation level")
    folded = "".join(character for character in written.lower() if character not in " _-")
    for level in DECLARABLE_LEVELS:
        if level.lower() == folded:
            return level
    raise Fault(
        f"{quote_short(written)} is not an isolation level that tables can declare",
        f"choose {' or '.join(DECLARABLE_LEVELS)}",
        node.position,
    )


def _parse_properties(node: Node) -> Mapping[str, str]:
    """Read properties.

    Names of Delta's own properties are case-insensitive, because Delta stores each under one
    spelling.
    """
    found: dict[str, str] = {}
    faults = Faults()
    for key, value in reader.read_pairs(node, "a mapping from properties to values"):
        with faults.catching():
            written = reader.read_text(key, "the name of a property")
            name = CANONICAL_NAMES.get(written.lower(), written)
            if name in found:
                raise Fault(f"{name} is listed twice", "list it once", key.position)
            found[name] = _parse_property(value)
    faults.check()
    return MappingProxyType(found)


def _parse_property(node: Node) -> str:
    """Read a property value: a text, or an integer, true or false, as written."""
    if isinstance(node, Scalar) and node.plain:
        match reader.scalar_kind(node):
            case reader.ScalarKind.BOOLEAN:
                return str(reader.read_boolean(node)).lower()
            case reader.ScalarKind.INTEGER if node.text.isdecimal() and node.text[0] != "0":
                return node.text
            case _ if node.text == "0":
                return node.text
    return reader.read_text(node, "the value of a property")
