"""Declared clients, and client definitions inside a policy."""

from __future__ import annotations

import re
from typing import Any

from deltaproto.clients.model import Access
from deltaproto.clients.resolve import parse_reference
from deltaproto.errors import UsageError, quote_short
from deltaproto.policy.document import reader
from deltaproto.policy.document.errors import Fault, parse_each
from deltaproto.policy.document.model import ClientDefinition, Consumer, Declared
from deltaproto.policy.document.reader import ScalarKind
from deltaproto.policy.document.source import Mapping, Node, Scalar, Sequence

_ID = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_MISWRITTEN_VERSION = re.compile(r"([A-Za-z][\w-]*)[ =:]+v?([0-9][\w.]*)")
_WANTED = "a client such as trino@476"
_FIELDS = ("client", "access", "as", "stream", "share")
_DEFINITION = ("name", "aliases", "versions", "ranges")
_LONGEST = 200
_VERSION_KEYS = ("from", "before")
_DEFAULT_ACCESS = {
    None: (Access.READ, Access.APPEND),
    Consumer.STREAM: (Access.STREAM,),
    Consumer.SHARE: (Access.READ,),
}


def parse_declared_clients(node: Node) -> tuple[Declared, ...]:
    """Parse a list of clients, each `id@version` or a mapping with more keys.

    Raises:
        Fault: an entry is not a client.
    """
    return parse_each(_parse_declared, reader.read_items(node, "a list of clients"))


def parse_definitions(node: Node) -> tuple[ClientDefinition, ...]:
    """Parse the policy's client definitions. Their contents are not validated here.

    Raises:
        Fault: an entry is not a mapping with the keys of a client.
    """
    return parse_each(lambda pair: _parse_definition(*pair), reader.read_pairs(node))


def parse_client(node: Node) -> Declared:
    """Parse a client such as `trino@476`.

    Raises:
        Fault: the text is not a client.
    """
    text = reader.read_text(node, _WANTED)
    try:
        slip = _MISWRITTEN_VERSION.fullmatch(text)
        if slip is not None:
            raise UsageError(f"{quote_short(text)} is not a client", f"write {slip[1]}@{slip[2]}")
        if len(text) > _LONGEST:
            raise UsageError(f"{quote_short(text)} is not a client", "write id@version")
        reference = parse_reference(text)
    except UsageError as error:
        raise Fault(error.message, error.hint, node.position) from None
    return Declared(
        text=text,
        id=reference.id,
        path=reference.path,
        version=reference.version,
        access=_DEFAULT_ACCESS[None],
        label=None,
        consumer=None,
        position=node.position,
    )


def parse_plain(node: Node) -> Any:
    """Convert a client file to plain values for `parse_client`."""
    return _to_plain("", node)


def _parse_declared(node: Node) -> Declared:
    if not isinstance(node, Mapping):
        return parse_client(node)
    # `- trino: 476` is a common mistake for `- trino@476`.
    if len(node.pairs) == 1 and node.pairs[0][0].text not in _FIELDS:
        key, value = node.pairs[0]
        version = value.text if isinstance(value, Scalar) else "1.2.3"
        raise Fault(
            f"unknown key {quote_short(key.text)}",
            f"write the client and its version as {key.text[:60]}@{version[:60]}",
            key.position,
        )
    values = reader.read_fields(node, _FIELDS, required=("client",))
    consumer = _parse_consumer(values)
    return parse_client(values["client"])._replace(
        access=parse_access(values["access"]) if "access" in values else _DEFAULT_ACCESS[consumer],
        label=reader.read_text(values["as"], "who uses it", prose=True) if "as" in values else None,
        consumer=consumer,
        position=node.position,
    )


def _parse_consumer(values: dict[str, Node]) -> Consumer | None:
    chosen = [each for each in Consumer if each in values and reader.read_boolean(values[each])]
    if len(chosen) > 1:
        raise Fault(
            "a client is a stream or a share, not both",
            "declare the client twice, once as each",
            values[chosen[1]].position,
        )
    return chosen[0] if chosen else None


def parse_access(node: Node) -> tuple[Access, ...]:
    """Parse a list of accesses.

    Raises:
        Fault: an unknown access, or an empty list.
    """
    named = reader.read_names(node, "access", tuple(Access))
    return tuple(Access(each) for each in named)


def _parse_definition(key: Scalar, node: Node) -> ClientDefinition:
    name = _defined_id(key)
    values = reader.read_fields(node, _DEFINITION, required=("name", "ranges"))
    reader.read_text(values["name"], "the name of a client")
    for entry in reader.read_items(values["ranges"], "a list of ranges"):
        reader.read_pairs(entry)
    plain = {"id": name, **{field: _to_plain(field, value) for field, value in values.items()}}
    return ClientDefinition(name, plain, key.position)


def _defined_id(key: Scalar) -> str:
    name = reader.read_text(key, "the id of a client")
    if not _ID.fullmatch(name):
        raise Fault(
            f"{quote_short(name)} is not a valid client id",
            "use letters, digits, dots and dashes, such as nightly-loader",
            key.position,
        )
    return name


def _to_plain(key: str, node: Node) -> Any:
    """Convert the node to plain values, but refuse unquoted decimal numbers."""
    match node:
        case Mapping():
            return {each.text: _to_plain(each.text, value) for each, value in node.pairs}
        case Sequence():
            return [_to_plain(key, item) for item in node.items]
    match reader.scalar_kind(node):
        case ScalarKind.NOTHING:
            return None
        case ScalarKind.BOOLEAN:
            return reader.read_boolean(node)
        case ScalarKind.INTEGER if key not in _VERSION_KEYS:
            return reader.read_integer(node, 0, 999_999_999)
        case ScalarKind.INTEGER | ScalarKind.FLOAT:
            return reader.read_text(node)
        case ScalarKind.TEXT:
            return node.text
