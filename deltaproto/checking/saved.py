"""Tables from a file that `inspect --format json` or `jsonl` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from deltaproto.checking.stream import Document
from deltaproto.clients.needs import needs, used
from deltaproto.errors import ErrorCode, TableError, UsageError
from deltaproto.policy.facts import Facts
from deltaproto.policy.finding import Finding, Severity
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.location import Kind, locate

_KNOWN_SHAPE = "1"


class SavedError(TableError):
    """A table that could not be read when the inspection was made."""

    def __init__(self, table: str, code: ErrorCode, message: str, hint: str) -> None:
        super().__init__(code, message, hint)
        self.table = table


def read_saved(path: str) -> Iterator[Facts | SavedError]:
    """Every table of a saved inspection, in its order, one at a time.

    Raises:
        UsageError: when the file cannot be read, or is no saved inspection.
    """
    with _opened(path) as file:
        document, found = Document(file, path, "tables"), False
        for entries in document.objects():
            for entry in entries:
                yield _facts(entry, path)
            _check(document.members, path)
            found = True
        if not found:
            raise UsageError(f"{path} is empty", "it is not a saved inspection")


def _opened(path: str) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None


def _check(members: Mapping[str, Any], path: str) -> None:
    if members.get("command") != "inspect" or "error" in members:
        raise UsageError(
            f"{path} is not the output of inspect", "save one with `deltaproto inspect --output`"
        )
    shape = str(members.get("schema_version"))
    if shape.partition(".")[0] != _KNOWN_SHAPE:
        raise UsageError(
            f"{path} has the schema_version {shape}, which this deltaproto does not know",
            "use the deltaproto that wrote it, or inspect again",
        )


def _facts(entry: Any, path: str) -> Facts | SavedError:
    try:
        if "error" in entry:
            error = entry["error"]
            code = ErrorCode(error["code"])
            return SavedError(entry["table"], code, error["message"], error["hint"])
        protocol = Protocol.stored({k: v for k, v in entry["protocol"].items() if v is not None})
        usage = {f["name"]: used(f["enabled"], f["present"]) for f in entry["features"]}
        table = str(entry["table"])
        configuration = dict(entry["configuration"])
        by_name = entry["reader"] == "spark" and locate(table).kind is Kind.NAME
        return Facts(
            table=table,
            location=str(entry["location"]),
            version=int(entry["version"]),
            needs=needs(protocol, usage, configuration, by_name=by_name),
            configuration=configuration,
            isolation=dict(entry["isolation"]["effective"]),
            findings=tuple(_finding(finding) for finding in entry["findings"]),
            complete=bool(entry["complete"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path} is not what `inspect --format json` writes: a table lacks or breaks {error}",
            "save it again with `deltaproto inspect … --format json --output FILE`",
        ) from None


def _finding(entry: Mapping[str, Any]) -> Finding:
    return Finding(
        rule=entry["rule"],
        severity=Severity(entry["severity"]),
        message=entry["message"],
        hint=entry["hint"],
        table=entry["table"],
        feature=entry.get("feature"),
        client=entry.get("client"),
        evidence=entry.get("evidence"),
    )
