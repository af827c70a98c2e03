"""Typed views of nodes. Each raises a Fault at a node of the wrong type."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import Enum
from typing import TYPE_CHECKING

from deltaproto.counts import with_article
from deltaproto.errors import MAX_QUOTED, quote_short
from deltaproto.policy.document.errors import Fault, Faults
from deltaproto.policy.document.source import Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    import datetime

_LISTED = 25
_UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,8})")


class ScalarKind(Enum):
    """The YAML 1.1 type of a scalar."""

    NOTHING = "null"
    BOOLEAN = "bool"
    INTEGER = "int"
    FLOAT = "float"
    TEXT = "str"


_KINDS = {member.value: member for member in ScalarKind}


def scalar_kind(scalar: Scalar) -> ScalarKind:
    """Return the YAML 1.1 type: a plain `on` is a boolean, a plain 2.10 a number."""
    if not scalar.plain:
        return ScalarKind.TEXT
    import yaml

    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    for tag, pattern in resolvers.get(scalar.text[:1], ()):
        if pattern.match(scalar.text):
            return _KINDS.get(tag.rpartition(":")[2], ScalarKind.TEXT)
    return ScalarKind.TEXT


def describe_node(node: Node) -> str:
    """Describe the node for a message."""
    match node:
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"
        case Scalar():
            match scalar_kind(node):
                case ScalarKind.NOTHING:
                    return "nothing"
                case ScalarKind.INTEGER | ScalarKind.FLOAT:
                    return f"the number {node.text[:MAX_QUOTED]}"
                case ScalarKind.BOOLEAN:
                    return node.text
                case ScalarKind.TEXT:
                    return f"the text {quote_short(node.text)}"


def unexpected_node(node: Node, wanted: str, hint: str = "") -> Fault:
    """Create the error for a node that is not the `wanted` type."""
    return Fault(
        f"expected {wanted}, found {describe_node(node)}", hint or f"write {wanted}", node.position
    )


def nearest_hint(name: str, known: Collection[str], otherwise: str = "check the spelling") -> str:
    """Return a hint with the most similar known name, with all known names, or `otherwise`."""
    import difflib

    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name.casefold()[:MAX_QUOTED], folded, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{folded[near[0]]}"?'
    return f"known names: {', '.join(known)}" if 0 < len(folded) <= _LISTED else otherwise


def read_text(node: Node, wanted: str = "text", *, prose: bool = False) -> str:
    """Read a non-empty text. An unquoted number or boolean is an error.

    Only `prose` may span several lines; they are joined to one.
    """
    if not isinstance(node, Scalar) or scalar_kind(node) is ScalarKind.NOTHING:
        raise unexpected_node(node, wanted)
    if scalar_kind(node) is not ScalarKind.TEXT:
        raise _unquoted_fault(node)
    if not node.text.strip():
        raise Fault(f"expected {wanted}, found empty text", f"write {wanted}", node.position)
    read = " ".join(node.text.split()) if prose else node.text
    if _UNSEEN.search(read):
        raise Fault(
            f"{quote_short(read)} contains control characters",
            "write it on one line, without escapes",
            node.position,
        )
    return read


def read_address(node: Node, wanted: str = "text") -> str:
    """Read a path, URI or pattern; credentials in it are an error."""
    from deltaproto.redaction import has_credentials

    read = read_text(node, wanted)
    if has_credentials(read):
        raise Fault(
            "the address contains credentials, and addresses are shown and stored",
            "pass credentials by environment, profile or --storage-option instead",
            node.position,
        )
    return read


def read_integer(node: Node, low: int, high: int) -> int:
    """Read an unquoted decimal integer from `low` to `high`."""
    if (
        isinstance(node, Scalar)
        and node.plain
        and _DECIMAL.fullmatch(node.text)
        and low <= int(node.text) <= high
    ):
        return int(node.text)
    raise unexpected_node(node, f"a number from {low} to {high}")


def read_boolean(node: Node) -> bool:
    """Read true or false; other YAML 1.1 spellings such as yes are errors."""
    if isinstance(node, Scalar) and node.plain and node.text.lower() in ("true", "false"):
        return node.text.lower() == "true"
    raise unexpected_node(node, "true or false")


def read_date(node: Node) -> datetime.date:
    """Read a date in the form YYYY-MM-DD, with or without quotes."""
    import datetime

    wanted = "a date such as 2026-12-31"
    if not isinstance(node, Scalar) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", node.text):
        raise unexpected_node(node, wanted)
    try:
        return datetime.date.fromisoformat(node.text)
    except ValueError:
        raise Fault(f"{node.text} is not a valid date", f"write {wanted}", node.position) from None


def read_choice(
    node: Node, known: Collection[str], what: str, otherwise: str = "check the spelling"
) -> str:
    """Read one of `known`, with or without quotes: `off` counts as text.

    Args:
        otherwise: the hint for a name that resembles none of many.
    """
    if not isinstance(node, Scalar) or scalar_kind(node) is ScalarKind.NOTHING:
        raise unexpected_node(
            node, f"one of {', '.join(known)}" if len(known) < 10 else with_article(what)
        )
    if node.text not in known:
        raise Fault(
            f"unknown {what} {quote_short(node.text)}",
            nearest_hint(node.text, known, otherwise),
            node.position,
        )
    return node.text


def read_items(node: Node, wanted: str = "a list") -> tuple[Node, ...]:
    """Return the entries of a list."""
    if not isinstance(node, Sequence):
        hint = "remove the key, or write []" if _is_null(node) else 'begin each entry with "- "'
        raise unexpected_node(node, wanted, hint)
    return node.items


def read_names(node: Node, what: str, known: Collection[str]) -> tuple[str, ...]:
    """Read a non-empty list of distinct names from `known`."""
    named: list[str] = []
    for item in read_items(node, f"a list of {what} names"):
        name = read_choice(item, known, f"{what} name")
        if name in named:
            raise Fault(f"{quote_short(name)} is listed twice", "list it once", item.position)
        named.append(name)
    if not named:
        raise Fault("the list is empty", "remove the key", node.position)
    return tuple(named)


def read_pairs(node: Node, wanted: str = "a mapping") -> tuple[tuple[Scalar, Node], ...]:
    """Return the keys and values of a mapping."""
    if not isinstance(node, Mapping):
        hint = "remove the key, or write {}" if _is_null(node) else 'write "key: value" lines'
        raise unexpected_node(node, wanted, hint)
    return node.pairs


def read_fields(
    node: Node,
    known: Collection[str],
    required: Iterable[str] = (),
    old: Collection[str] = (),
) -> dict[str, Node]:
    """Return the values of a mapping, refusing unknown keys.

    Args:
        old: keys of earlier releases, which still work and which no hint names.
    """
    values: dict[str, Node] = {}
    faults = Faults()
    for key, value in read_pairs(node):
        with faults.catching():
            if key.text not in old:
                require_known_key(key, known)
            values[key.text] = value
    for name in required:
        with faults.catching():
            if name not in values:
                raise Fault(f"{name} is missing", f'add "{name}:"', node.position)
    faults.check()
    return values


def require_known_key(key: Scalar, known: Collection[str]) -> None:
    """Refuse an unknown key."""
    if key.text not in known:
        raise Fault(
            f"unknown key {quote_short(key.text)}", nearest_hint(key.text, known), key.position
        )


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and scalar_kind(node) is ScalarKind.NOTHING


def _unquoted_fault(scalar: Scalar) -> Fault:
    import yaml

    written = scalar.text[:MAX_QUOTED]
    try:
        value = yaml.safe_load(written)
    except (yaml.YAMLError, ValueError):
        value = written
    if isinstance(value, bool):
        reading = str(value).lower()
    else:
        reading = "a number" if str(value) == written else f"the number {value}"
    return Fault(
        f'write "{written}" in quotes: YAML reads {written} as {reading}',
        f'write "{written}"',
        scalar.position,
    )
