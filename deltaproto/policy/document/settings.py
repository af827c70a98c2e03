"""What a policy asks of the tables of one pattern."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from deltaproto.policy.document import patterns, reader
from deltaproto.policy.document.clients import declared
from deltaproto.policy.document.errors import Fault
from deltaproto.policy.document.model import Levels, Settings, TableEntry
from deltaproto.policy.document.source import Node, Scalar
from deltaproto.policy.document.windows import windows
from deltaproto.policy.finding import Severity
from deltaproto.protocol import catalogue
from deltaproto.protocol.isolation import DECLARABLE, IsolationLevel
from deltaproto.protocol.violations import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION

_OFF = "off"
_LEVELS = (*(severity.value for severity in Severity), _OFF)


def entries(node: Node, rules: Collection[str]) -> tuple[TableEntry, ...]:
    """The table patterns of a policy, in its order.

    Raises:
        Fault: a pattern or setting that cannot be meant.
    """
    return tuple(
        TableEntry(pattern(key), _settings(value, rules), key.position)
        for key, value in reader.pairs(node, "a mapping from patterns to settings")
    )


def pattern(node: Node) -> str:
    """A table pattern."""
    read = reader.text(node, "a table pattern")
    problem = patterns.problem(read)
    if problem:
        raise Fault(
            f"{reader.shown(read)} matches no table: {problem}",
            "write a pattern such as main.sales.*, gold/** or s3://bucket/gold/**",
            node.position,
        )
    return read


def severities(node: Node, rules: Collection[str]) -> Levels:
    """Severities by rule id; `off` needs no quotes."""
    levels: dict[str, Severity | None] = {}
    for key, value in reader.pairs(node, "a mapping from rules to severities"):
        level = reader.choice(value, _LEVELS, "severity")
        levels[rule(key, rules)] = None if level == _OFF else Severity(level)
    return MappingProxyType(levels)


def rule(node: Node, rules: Collection[str]) -> str:
    """The id of a rule."""
    return reader.choice(node, sorted(rules), "rule")


def feature(node: Node) -> str:
    """A feature of the catalogue, in its exact spelling."""
    name = reader.text(node, "the name of a feature")
    if catalogue.find(name) is None:
        known, near = catalogue.search(name[:100])
        meant = (known.name,) if known else near[:1]
        hint = f'did you mean "{meant[0]}"?' if meant else "deltaproto features lists them all"
        raise Fault(f"unknown feature {reader.shown(name)}", hint, node.position)
    return name


def _settings(node: Node, rules: Collection[str]) -> Settings:
    values = reader.fields(node, Settings._fields)
    settings = Settings(
        clients=declared(values["clients"]) if "clients" in values else None,
        max_reader_version=_version(values, "max_reader_version", READER_FEATURES_VERSION),
        max_writer_version=_version(values, "max_writer_version", WRITER_FEATURES_VERSION),
        min_reader_version=_version(values, "min_reader_version", READER_FEATURES_VERSION),
        min_writer_version=_version(values, "min_writer_version", WRITER_FEATURES_VERSION),
        forbid_features=_features(values, "forbid_features"),
        require_features=_features(values, "require_features"),
        isolation=_isolation(values["isolation"]) if "isolation" in values else None,
    )
    if "maintenance_windows" in values:
        settings = settings._replace(maintenance_windows=windows(values["maintenance_windows"]))
    if "require_properties" in values:
        settings = settings._replace(require_properties=_properties(values["require_properties"]))
    if "severities" in values:
        settings = settings._replace(severities=severities(values["severities"], rules))
    settings = settings._replace(
        clients_replace=_replaces(values, "clients"),
        forbid_features_replace=_replaces(values, "forbid_features"),
        require_features_replace=_replaces(values, "require_features"),
    )
    _check(settings, values)
    return settings


def _replaces(values: Mapping[str, Node], name: str) -> bool:
    """Whether a list replaces those of less specific patterns."""
    node = values.get(f"{name}_replace")
    if node is None or not reader.boolean(node):
        return False
    if name not in values:
        raise Fault(f"{name}_replace without {name}", f'add "{name}:"', node.position)
    return True


def _check(settings: Settings, values: Mapping[str, Node]) -> None:
    """Refuse settings that no table can meet."""
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
            "take it out of one list",
            values["require_features"].position,
        )


def _version(values: Mapping[str, Node], name: str, most: int) -> int | None:
    if name not in values:
        return None
    return reader.integer(values[name], 1, most)


def _features(values: Mapping[str, Node], name: str) -> tuple[str, ...] | None:
    if name not in values:
        return None
    named: list[str] = []
    for item in reader.items(values[name], "a list of feature names"):
        each = feature(item)
        if each in named:
            raise Fault(f"{each} is named twice", "name it once", item.position)
        named.append(each)
    return tuple(named)


def _isolation(node: Node) -> IsolationLevel:
    written = reader.text(node, "an isolation level")
    folded = "".join(character for character in written.lower() if character not in " _-")
    for level in DECLARABLE:
        if level.lower() == folded:
            return level
    raise Fault(
        f"{reader.shown(written)} is no isolation level that a table may declare",
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
    """A property's value: a text, or a whole number, true or false as it is written."""
    if isinstance(node, Scalar) and node.plain:
        match reader.kind(node):
            case reader.Kind.BOOLEAN:
                return str(reader.boolean(node)).lower()
            case reader.Kind.INTEGER if node.text.isdecimal() and node.text[0] != "0":
                return node.text
            case _ if node.text == "0":
                return node.text
    return reader.text(node, "the value of a property")
