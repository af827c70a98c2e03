"""Reads tables from a file that `inspect --format json` or `jsonl` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from deltaproto.clients.requirements import is_hazard, is_used, table_requirements
from deltaproto.errors import ErrorCode, SavedError, TableError, UsageError
from deltaproto.input_file import require_input
from deltaproto.inspection.age import SavedAges
from deltaproto.inspection.json_entries import (
    JsonFile,
    WrongTypeError,
    optional_string,
    require_string,
    require_type,
)
from deltaproto.location import LocationKind, locate
from deltaproto.policy.context import TableFacts
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.hazards import EVERY_LAYOUT, describe_inconsistencies, hazards_from_findings
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.stored_secrets import hide_in_json
from deltaproto.redaction import redact_address, redact_addresses_in

_KNOWN_SHAPE = "1"
_SAVE = "save one with `deltaproto inspect … --format json --output FILE`"
MALFORMED_ENTRY_ERRORS = (KeyError, TypeError, ValueError, AttributeError)
"""exceptions while reading an entry that `inspect` did not write"""


def read_saved(path: str, ages: SavedAges | None = None) -> Iterator[TableFacts | SavedError]:
    """Yield every table of a saved inspection in order.

    Args:
        ages: receives the time of each part before its tables.

    Raises:
        UsageError: when the file cannot be read, or is not a saved inspection.
        TableError: not-found, when tables may be missing at its end or in between.
    """
    for entry in saved_entries(path, ages):
        yield read_entry(entry, path)


def saved_entries(path: str, ages: SavedAges | None = None) -> Iterator[Any]:
    """Yield the raw entries of a saved inspection. Raises like `read_saved`."""
    with require_input(path) as file:
        document, parts, endless = JsonFile(file, path, "tables"), None, False
        for entries in document.objects():
            whole = True
            for entry in entries:
                whole &= isinstance(entry, dict) and entry.get("complete") is True
                if "schema_version" in document.members:
                    _check_shape(document.members, path)
                if document.members.get("command", "inspect") != "inspect":
                    raise _wrong_command_error(path)
                if ages is not None:
                    ages.read(document.members.get("generated_at"))
                yield _without_credentials(entry)
            _check_document(document, path)
            if whole and document.members.get("complete") is not True:
                raise TableError(
                    ErrorCode.NOT_FOUND,
                    f"{path} was not complete when it was saved, and every table in it is: tables "
                    "that could not be read are missing",
                    _SAVE,
                )
            if ages is not None:
                ages.read(document.members.get("generated_at"))
            endless = endless or _is_before_parts(document)
            parts = _next_part(parts, document.members.get("part"), path)
        if parts is None:
            raise UsageError(f"{path} is empty", "pass the JSON that `inspect` or `check` wrote")
        if parts.read != parts.of:
            raise _cut_off_error(path, parts)
        if endless:
            raise TableError(
                ErrorCode.NOT_FOUND,
                f"{path} was written by an older deltaproto without end marks: it may be truncated",
                _SAVE,
            )


def _without_credentials(entry: Any) -> Any:
    # A file of an older release, or an edited one, may contain signed addresses.
    if isinstance(entry, dict):
        own = {
            name: redact_address(entry[name])
            for name in ("table", "location")
            if isinstance(entry.get(name), str)
        }
        hidden = hide_in_json(entry, _without_signed_address) or {}
        return {**hidden, **own}
    return entry


# Most texts are in every table.
@lru_cache(maxsize=8192)
def _without_signed_address(text: str) -> str:
    return redact_addresses_in(text)


class _Parts(NamedTuple):
    """The number of the last line read of an inspection, and its total number of lines."""

    read: int = 0
    of: int = 0


def _next_part(last: _Parts | None, part: Any, path: str) -> _Parts:
    """Return the position of the next object; an object without `part` is complete by itself.

    Raises:
        TableError: not-found, when objects between the two are missing.
    """
    last = last or _Parts()
    ended = last.read == last.of
    if not isinstance(part, dict):
        if not ended:
            raise _cut_off_error(path, last)
        return _Parts()
    next_ = _Parts(part.get("number", 0), part.get("of", 0))
    if next_.read != (1 if ended else last.read + 1) or not (ended or next_.of == last.of):
        raise _cut_off_error(path, last)
    return next_


def _is_before_parts(document: JsonFile) -> bool:
    """Return True for a line of an inspection before 1.1, which lacks the number of lines."""
    members = document.members
    return document.one_line and "part" not in members and members["schema_version"] == "1.0"


def _cut_off_error(path: str, last: _Parts) -> TableError:
    known = f"table {last.read} of {last.of}, but not all others" if last.of else "no table 1"
    return TableError(ErrorCode.NOT_FOUND, f"{path} is truncated: it has {known}", _SAVE)


def _check_document(document: JsonFile, path: str) -> None:
    members = document.members
    if members.get("command") != "inspect" or "error" in members:
        raise _wrong_command_error(path)
    _check_shape(members, path)
    if not document.listed:
        raise UsageError(f"{path} lists no tables", _SAVE)


def _wrong_command_error(path: str) -> UsageError:
    return UsageError(f"{path} is not the output of `inspect --format json`", _SAVE)


def _check_shape(members: Mapping[str, Any], path: str) -> None:
    shape = str(members.get("schema_version"))
    if shape.partition(".")[0] != _KNOWN_SHAPE:
        raise UsageError(
            f"{path} has the schema_version {shape!r:.40}, which this deltaproto does not support",
            "use the deltaproto that wrote it, or inspect again",
        )


def read_entry(entry: Any, path: str) -> TableFacts | SavedError:
    """Convert one entry of a saved inspection.

    Raises:
        UsageError: when `inspect` did not write it.
    """
    try:
        if "error" in entry:
            error = entry["error"]
            code, message, hint = ErrorCode(error["code"]), error["message"], error["hint"]
            return SavedError(
                require_string(entry["table"]),
                code,
                require_string(message),
                require_string(hint),
            )
        protocol = Protocol.stored({k: v for k, v in entry["protocol"].items() if v is not None})
        _check_features(entry["features"], protocol)
        usage = {
            f["name"]: is_used(f["name"], f["enabled"], f["present"]) for f in entry["features"]
        }
        absent = [f["name"] for f in entry["features"] if f["present"] is False]
        table = require_string(entry["table"])
        configuration = {k: optional_string(v) for k, v in entry["configuration"].items()}
        reached = locate(table).kind
        by_name = reached is LocationKind.CATALOG or (
            entry["reader"] == "spark" and reached is LocationKind.NAME
        )
        location = require_string(entry["location"])
        findings = tuple(_read_finding(finding) for finding in entry["findings"])
        return TableFacts(
            table=table,
            location=location,
            version=_read_version(entry["version"]),
            needs=table_requirements(
                protocol,
                usage,
                configuration,
                by_name=by_name,
                absent=absent,
                doubts=describe_inconsistencies(findings, configuration),
                hazards=_read_hazards(
                    entry,
                    "hazards",
                    hazards_from_findings(
                        findings, configuration, location, entry.get("partition_columns") or ()
                    ),
                ),
                unseen=_read_hazards(entry, "hazards_not_looked_at", EVERY_LAYOUT),
            ),
            configuration=configuration,
            isolation={k: optional_string(v) for k, v in entry["isolation"]["effective"].items()},
            findings=findings,
            # An inspection of an older version has no information on the newest.
            complete=require_type(bool, entry["complete"])
            and entry.get("requested_version") is None,
            id=optional_string(entry.get("id")),
            clustering=_read_columns(entry.get("clustering_columns")),
            older=entry.get("requested_version") is not None,
        )
    except (*MALFORMED_ENTRY_ERRORS, TableError) as error:
        raise malformed_error(path, error) from None


def _check_features(features: Iterable[Mapping[str, Any]], protocol: Protocol) -> None:
    """Check the features' members that checks and plans read, and that the list of supported
    features is complete.
    """
    for feature in features:
        supported = feature.get("listed") is True or feature.get("implied") is True
        if supported and feature["name"] not in protocol.supported:
            raise ValueError("a feature is supported that the protocol lacks")
        require_string(feature["name"])
        for key in ("enabled", "present"):
            if feature[key] is not None:
                require_type(bool, feature[key])
        for name in feature.get("required_by") or ():
            require_string(name)


def _read_hazards(entry: Mapping[str, Any], key: str, otherwise: Iterable[str]) -> Iterable[str]:
    """Return the hazards in an entry; entries of older releases have none, as none were checked."""
    words = [require_string(word) for word in entry.get(key, otherwise)]
    for word in words:
        if not is_hazard(word):
            raise ValueError(f"{word!r:.40} is not a hazard")
    return words


def malformed_error(path: str, error: Exception) -> UsageError:
    """Return the error for an entry that `inspect` did not write."""
    if isinstance(error, KeyError) and error.args:
        why = f'a table has no "{error.args[0]}"'
    elif isinstance(error, TableError):
        why = error.message
    elif isinstance(error, WrongTypeError) or "not a table version" in str(error):
        why = str(error)
    else:
        # Python's message names its own types.
        why = "a member of a table has the wrong type or value"
    return UsageError(f"{path} is not the output of `inspect --format json`: {why}", _SAVE)


def _read_columns(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(map(require_string, require_type(list, value)))


def _read_finding(entry: Mapping[str, Any]) -> Finding:
    return Finding(
        rule=require_string(entry["rule"]),
        severity=Severity(entry["severity"]),
        message=require_string(entry["message"]),
        hint=require_string(entry["hint"]),
        table=require_string(entry["table"]),
        feature=optional_string(entry.get("feature")),
        client=optional_string(entry.get("client")),
        evidence=optional_string(entry.get("evidence")),
    )


def _read_version(value: Any) -> int:
    version = require_type(int, value)
    if version < 0:
        raise ValueError(f"{version} is not a table version")
    return version
