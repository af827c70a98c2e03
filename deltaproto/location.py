"""Addresses of tables: a path, a URI, a catalog name or a name in a catalog with a URL."""

import os
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple, TextIO

from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.redaction import has_credentials, may_have_credentials

_RESERVED = r"[^A-Za-z0-9\-._~/]"
_NAME_PART = r"(?:[^\s./`\\]+|`(?:[^`]|``)+`)"
_NAME = rf"{_NAME_PART}(?:\.{_NAME_PART}){{1,2}}"
_LONGEST_LINE = 1 << 16
CATALOG_SCHEMES = {
    "glue": "glue://REGION/DATABASE",
    "hms": "hms://HOST:PORT/DATABASE",
    "uc": "uc://HOST/CATALOG.SCHEMA",
}
"""schemes of catalogs that are reached without Spark, each with the form of its addresses"""
_HADOOP_SCHEMES = ("dbfs", "hdfs", "viewfs")
"""schemes that Hadoop, and therefore catalogs, also write with a single slash"""


NO_WORKING_DIRECTORY = (
    "the working directory was removed, so a relative path cannot be resolved",
    "change to a folder that exists, or give absolute paths",
)
"""message and hint"""


class LocationKind(StrEnum):
    """How the table is addressed."""

    PATH = "path"
    URI = "uri"
    NAME = "name"
    CATALOG = "catalog"


class Location(NamedTuple):
    """A table's address. `path` is set for local tables, `uri` for every table but a name.

    The `uri` of a name in a catalog is the catalog's URL and the name, not the table's location.
    """

    text: str
    kind: LocationKind
    path: str | None
    uri: str

    @property
    def local(self) -> bool:
        return self.path is not None

    @property
    def path_or_uri(self) -> str:
        """The path of a local table, the URI of any other."""
        return self.path or self.uri

    @property
    def by_name(self) -> bool:
        """True if a catalog resolves the address."""
        return self.kind in (LocationKind.NAME, LocationKind.CATALOG)

    @property
    def name(self) -> str:
        """The name in its catalog, with back quotes; empty for paths, URIs and whole catalogs."""
        if self.kind is LocationKind.NAME:
            return self.text
        return name_in_catalog(self.uri) if self.kind is LocationKind.CATALOG else ""


def is_catalog_name(text: str) -> bool:
    """Return True for `schema.table` and `catalog.schema.table`, whatever exists at that path."""
    return re.fullmatch(_NAME, text) is not None


def is_remote(table: str) -> bool:
    """Return True for a URI, and for a name with its catalog's URL: reading it mostly waits."""
    try:
        return locate(table).kind in (LocationKind.URI, LocationKind.CATALOG)
    except TableError:
        return False


def name_in_catalog(url: str) -> str:
    """Return the name after the host in a catalog's URL; empty if there is none."""
    return "/".join(url.split("/")[3:]).strip("/")


def catalog_server(url: str) -> str:
    """Return the scheme and host of a catalog's URL, without the name that follows."""
    return "/".join(url.split("/")[:3])


def locate(table: str) -> Location:
    """Parse the address of a table.

    A plain path is taken literally: `%20` in it is three characters. Only in a `file:` URI is it
    a space. `schema.table` and `catalog.schema.table` are catalog names unless something exists at
    that path. A path to a table's `_delta_log` means the table.

    Raises:
        TableError: not-found, when `table` is empty, has a null character, names a file on another
            host, or a catalog without its host or region; permission-denied, when it contains a
            password or a web signature.
    """
    if not table.strip():
        raise TableError(
            ErrorCode.NOT_FOUND, "the table name is empty", "give a path, a URI or a catalog name"
        )
    if table[:7].lower() == "delta.`" and table.endswith("`"):
        return locate(table[7:-1].replace("``", "`"))._replace(text=table)
    _without_credentials(table)
    scheme, colon, rest = table.partition(":")
    if colon and scheme.lower() == "file":
        from urllib.parse import unquote_to_bytes

        return _local_location(
            table, os.fsdecode(unquote_to_bytes(_file_system_bytes(_without_host(rest))))
        )
    if rest.startswith("//") and scheme.lower() in CATALOG_SCHEMES:
        return _catalog_location(table, scheme.lower(), rest[2:])
    if rest.startswith("//") and scheme.replace("+", "").isalnum():
        return Location(table, LocationKind.URI, None, f"{scheme.lower()}:{rest.rstrip('/')}")
    if rest.startswith("/") and scheme.lower() in _HADOOP_SCHEMES and not os.path.lexists(table):
        return Location(table, LocationKind.URI, None, f"{scheme.lower()}://{rest.rstrip('/')}")
    if "/" not in table and not os.path.lexists(table) and is_catalog_name(table):
        return Location(table, LocationKind.NAME, None, table)
    _file_system_bytes(table)
    return _local_location(table, table)


def _catalog_location(table: str, scheme: str, rest: str) -> Location:
    authority, _, name = rest.partition("/")
    if "@" in authority:
        raise _credentials_error()
    if not authority:
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{table} names no {'region' if scheme == 'glue' else 'host'}",
            f"write {CATALOG_SCHEMES[scheme]}",
        )
    return Location(
        table, LocationKind.CATALOG, None, f"{scheme}://{authority.lower()}/{name.strip('/')}"
    )


def _without_credentials(table: str) -> None:
    if may_have_credentials(table) and has_credentials(table):
        raise _credentials_error()


def _credentials_error() -> TableError:
    return TableError(
        ErrorCode.PERMISSION_DENIED,
        "the address contains credentials, but addresses are shown and stored",
        "pass them with the environment, a profile or --storage-option instead",
    )


def _file_system_bytes(path: str) -> bytes:
    """Encode a path as the file system does; undecodable bytes are kept."""
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        raise TableError(
            ErrorCode.NOT_FOUND,
            "the table's name contains an unpaired surrogate, which no file name can have",
            "check how the name was encoded",
        ) from None


def parse_table_list(file: TextIO) -> Iterator[str]:
    """Yield the table names in a list, one per line.

    Blank lines and lines that start with `#` are ignored. Spaces around a name are dropped, unless
    a path with them exists.

    Raises:
        UsageError: for a line that is too long for a name, as in a file of something else.
    """
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise UsageError(
                f"line {number} of the list of tables has more than {_LONGEST_LINE:,} characters",
                "put one path, URI or name on each line",
            )
        written = line.rstrip("\r\n")
        if number == 1:
            # Some programs begin a text with a byte order mark.
            written = written.removeprefix("\ufeff")
        name = written.strip()
        if name and not name.startswith("#"):
            yield written if os.path.lexists(written) else name


def quote_for_shell(text: str, is_plain: Callable[[str], bool] = str.isprintable) -> str:
    """Quote a word for a POSIX shell; with bash's syntax, on one line, if it has odd characters.

    Args:
        is_plain: returns False for words and characters that must be escaped.
    """
    if is_plain(text):
        import shlex

        return shlex.quote(text)
    # Source: the Bash manual, "ANSI-C Quoting".
    return f"$'{''.join(_escape_for_bash(each, is_plain) for each in text)}'"


def _escape_for_bash(character: str, is_plain: Callable[[str], bool]) -> str:
    if character in "\\'":
        return f"\\{character}"
    if is_plain(character):
        return character
    encoded = character.encode("utf-8", "surrogateescape")
    return "".join(f"\\{byte:03o}" for byte in encoded)


def location_at(place: str, table: str) -> Location:
    """Return the address of a table found at an absolute path or URI; `table` is its name."""
    if place.startswith("/") and not place.endswith(("/", "/_delta_log")):
        return Location(table, LocationKind.PATH, place, f"file://{_percent_encode(place)}")
    return locate(place)._replace(text=table)


def _without_host(rest: str) -> str:
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"a file URI cannot name another host ({host})",
            "write file:///absolute/path",
        )
    return slash + path


def _local_location(text: str, path: str) -> Location:
    if "\0" in path:
        raise TableError(
            ErrorCode.NOT_FOUND,
            "the table's name contains a null character, which no file name can have",
            "check the file or program that wrote the name",
        )
    try:
        absolute = os.path.abspath(path)
    except FileNotFoundError:
        raise TableError(ErrorCode.NOT_FOUND, *NO_WORKING_DIRECTORY) from None
    if os.path.basename(absolute) == "_delta_log":
        absolute = os.path.dirname(absolute)
    return Location(text, LocationKind.PATH, absolute, f"file://{_percent_encode(absolute)}")


def _percent_encode(path: str) -> str:
    # RFC 3986 percent-encoding of paths. urllib.parse does the same, but importing it costs three
    # milliseconds at every start.
    if not re.search(_RESERVED, path):
        return path
    octets = os.fsencode(path).decode("latin-1")
    return re.sub(_RESERVED, lambda octet: f"%{ord(octet[0]):02X}", octets)
