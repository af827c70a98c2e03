"""Parse a YAML file into a tree of nodes with positions.

Only a plain subset of YAML is accepted, in which a file cannot expand or have a hidden meaning: no
anchors, aliases, tags, merge keys or multiple documents. The limits below bound time and memory for
any file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from deltaproto.errors import quote_short
from deltaproto.input_file import open_input
from deltaproto.policy.document.errors import Fault, Position

if TYPE_CHECKING:
    import yaml


MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_NODES = 50_000

# Characters that YAML forbids, and Unicode line breaks, which editors do not count as lines.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
EMPTY_FILE = "the file is empty"
_BEGIN = 'begin the file with "policy_version: 1"'


class Scalar(NamedTuple):
    """A single value. `plain`: unquoted, so YAML may read it as a number."""

    text: str
    plain: bool
    position: Position


class Sequence(NamedTuple):
    """A list."""

    items: tuple[Node, ...]
    position: Position


class Mapping(NamedTuple):
    """Unique keys and their values, in file order."""

    pairs: tuple[tuple[Scalar, Node], ...]
    position: Position


Node: TypeAlias = Scalar | Sequence | Mapping


def parse_file(path: str) -> Node:
    """Parse the file at `path`.

    Raises:
        Fault: the file cannot be read, is too large, or is not plain YAML.
    """
    try:
        with open_input(path) as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise Fault("file not found", "check the path") from None
    except IsADirectoryError:
        raise Fault("a folder, not a file", "pass the path of a file") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Fault(f"cannot be read: {why}", "check the path and permissions") from None
    return parse_text(_decode(data))


def parse_text(text: str) -> Node:
    """Parse `text`.

    Raises:
        Fault: `text` is not plain YAML.
    """
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        raise Fault(
            f"control character U+{ord(forbidden[0]):04X}",
            "remove it",
            _position_after(text[: forbidden.start()]),
        )
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    building = _TreeBuilder()
    try:
        for event in yaml.parse(text, Loader=loader):
            building.take(event)
    except yaml.MarkedYAMLError as error:
        raise _find_deep_brackets(text, error) or to_fault(error, text) from None
    except (yaml.YAMLError, ValueError) as error:
        # The Python scanner raises a ValueError for "\U00110000".
        raise Fault(
            f"not valid YAML: {str(error).splitlines()[0]}", "check escapes", Position(1, 1)
        ) from None
    root = building.root
    if root is None or (isinstance(root, Scalar) and root.plain and not root.text):
        raise Fault(EMPTY_FILE, _BEGIN, Position(1, 1))
    return root


def _find_deep_brackets(text: str, error: yaml.MarkedYAMLError) -> Fault | None:
    """Return the fault of brackets that libyaml itself refuses before it reports their events.

    It looks ahead for the end of a key, and has a limit of its own, which depends on its version.
    """
    if not re.search("(?i)nest|depth|level|recurs", f"{error.context} {error.problem}"):
        return None
    opened = re.search(rf"(?:[\[{{]\s*){{{MAX_DEPTH}}}[\[{{]", text)
    if opened is None:
        return None
    return _too_deep(_position_after(text[: opened.end() - 1]))


def _too_deep(position: Position) -> Fault:
    return Fault(f"nested deeper than {MAX_DEPTH} levels", "flatten it", position)


def _decode(data: bytes) -> str:
    start = Position(1, 1)
    if len(data) > MAX_BYTES:
        raise Fault("the file is larger than 1 MiB", "split or shorten it", start)
    if data.startswith(_MARKS):
        raise Fault("the file begins with a byte order mark", "save it as UTF-8 without one", start)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Fault(
            f"the file is not UTF-8: byte 0x{data[error.start]:02X}",
            "save it as UTF-8",
            _position_after(data[: error.start].decode()),
        ) from None


def _position_after(text: str) -> Position:
    """Return the position after `text`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Position(len(lines), len(lines[-1]) + 1)


class _OpenCollection:
    """A collection that is still being parsed; a mapping alternates keys and values."""

    def __init__(self, position: Position, *, mapping: bool) -> None:
        self.position = position
        self.mapping = mapping
        self.children: list[Node] = []
        self.keys: dict[str, Position] = {}

    def add(self, node: Node) -> None:
        if self.mapping and len(self.children) % 2 == 0:
            self._check_key(node)
        self.children.append(node)

    def close(self) -> Node:
        children = self.children
        if not self.mapping:
            return Sequence(tuple(children), self.position)
        keys = (key for key in children[::2] if isinstance(key, Scalar))
        return Mapping(tuple(zip(keys, children[1::2], strict=True)), self.position)

    def _check_key(self, key: Node) -> None:
        if not isinstance(key, Scalar):
            raise Fault("a key must be text", "write a name as the key", key.position)
        if key.plain and key.text == "<<":
            raise Fault("merge keys are not supported", "write out the entries", key.position)
        first = self.keys.setdefault(key.text, key.position)
        if first is not key.position:
            raise Fault(
                f"the key {quote_short(key.text)} is already at {first.line}:{first.column}",
                "keep one of the two",
                key.position,
            )


class _TreeBuilder:
    """Builds the tree from parser events with its own stack, so depth is limited explicitly."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[_OpenCollection] = []
        self._documents = 0
        self._nodes = 0

    def take(self, event: yaml.Event) -> None:
        import yaml

        mark = event.start_mark
        assert mark is not None
        position = Position(mark.line + 1, mark.column + 1)
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise Fault("a second document begins", "one file holds one document", position)
            case yaml.AliasEvent():
                raise Fault(
                    "aliases are not supported",
                    "write out the entry; quote text that begins with *",
                    position,
                )
            case yaml.ScalarEvent():
                self._count(event, position)
                self._add(Scalar(event.value, event.implicit[0], position))
            case yaml.CollectionStartEvent():
                self._count(event, position)
                if len(self._open) == MAX_DEPTH:
                    raise _too_deep(position)
                mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_OpenCollection(position, mapping=mapping))
            case yaml.CollectionEndEvent():
                self._add(self._open.pop().close())

    def _count(self, event: yaml.NodeEvent, position: Position) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Fault(f"more than {MAX_NODES:,} entries", "split the file", position)
        if event.anchor is not None:
            raise Fault(
                "anchors are not supported",
                "write out the entry; quote text that begins with &",
                position,
            )
        if getattr(event, "tag", None) is not None:
            raise Fault(
                "tags are not supported",
                "remove the tag; quote text that begins with !",
                position,
            )

    def _add(self, node: Node) -> None:
        if self._open:
            self._open[-1].add(node)
        else:
            self.root = node


def to_fault(error: yaml.MarkedYAMLError, text: str) -> Fault:
    """Convert the scanner error to a message with position and hint."""
    problem, context = error.problem or "", error.context or ""
    here = error.problem_mark or error.context_mark
    line, column = (here.line, here.column) if here else (0, 0)
    begin = error.context_mark or here
    where = Position(line + 1, column + 1)
    opened = Position(begin.line + 1, begin.column + 1) if begin else where
    found = _character(text, line, column)
    if "tab character" in problem or found == "\t":
        return Fault("a tab where YAML requires spaces", "indent with spaces", where)
    if "alias" in context:
        return Fault(
            "text that begins with * must be in quotes", 'write "*" with its quotes', opened
        )
    if "cannot start any token" in problem:
        return Fault(
            f"text that begins with {found} must be in quotes", "put the text in quotes", where
        )
    if "quoted scalar" in context and "end of stream" in problem:
        return Fault("a quote that is never closed", "add the closing quote", opened)
    if "mapping values are not allowed" in problem:
        return Fault(
            "a colon where no value can follow",
            "check the indentation; quote text that contains a colon and a space",
            where,
        )
    message = ", ".join(part for part in (context, problem) if part)
    return Fault(
        f"not valid YAML: {' '.join(message.split())}",
        "check indentation, brackets and quotes",
        where,
    )


def _character(text: str, line: int, column: int) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[line][column : column + 1] if line < len(lines) else ""
