"""The `delta-rs` reader: the table as `deltalake.DeltaTable` reads it, with its refusals."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

from deltaproto.errors import EngineError, ErrorCode, TableError
from deltaproto.location import locate
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState
from deltaproto.redaction import Redactor
from deltaproto.tables.storage.errors import (
    StorageRefusal,
    classify_connection,
    classify_refusal,
)
from deltaproto.tables.storage.local import NO_PERMISSION_HINT, LocalLogStore

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


_FORBIDDEN = ("permission denied", "access denied", "forbidden", "necessary privileges")


class DeltaRsReader:
    """Opens the table with deltalake. `storage_options` are passed unchanged."""

    name = ReaderName.DELTA_RS

    def __init__(self, storage_options: Mapping[str, str] | None = None) -> None:
        self._options = dict(storage_options or {})

    def read(self, table: str, version: int | None = None) -> TableState:
        """Read the table's state with deltalake.

        Raises:
            TableError: when deltalake rejects the table, with its own reason.
            EngineError: when deltalake is not installed.
        """
        location = locate(table)
        if location.by_name:
            raise TableError(
                ErrorCode.NOT_FOUND,
                f"{table} is neither a path that exists nor a URI",
                "delta-rs does not support catalog names; use --reader spark",
            )
        if location.path is not None and _ESCAPE.search(location.path):
            # deltalake lists the literal folder but reads files from the percent-decoded one,
            # and so may return the protocol of a sibling table.
            raise TableError(
                ErrorCode.STORAGE,
                "deltalake decodes the % in this path and may read another table",
                "use --reader log, which reads the path as written",
            )
        if location.path is not None:
            LocalLogStore(location.path).check_files()
        opened = self._open(location.path_or_uri, version)
        metadata = opened.metadata()
        return TableState(
            table=table,
            location=location.uri,
            reader=self.name,
            version=opened.version(),
            protocol=_parse_protocol(opened.protocol()),
            metadata=Metadata(
                id=str(metadata.id),
                name=metadata.name,
                schema_string=opened.schema().to_json(),
                partition_columns=tuple(metadata.partition_columns),
                configuration=dict(metadata.configuration),
            ),
        )

    def _open(self, uri: str, version: int | None) -> Any:
        try:
            import deltalake
        except ImportError as error:
            raise EngineError(
                f"cannot import deltalake: {error}", "pip install deltalake"
            ) from None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                opened = partial(
                    deltalake.DeltaTable,
                    uri,
                    version=version,
                    storage_options=self._options or None,
                )
                if "://" not in uri:
                    return opened()
                from deltaproto.interrupts import interruptible

                return interruptible(opened)
        except Exception as error:
            raise _refusal_error(uri, error, Redactor(self._options)) from None
        except BaseException as error:
            # A Rust panic is not an Exception, and its class cannot be imported.
            if type(error).__name__ != "PanicException":
                raise
            raise _panic_error(error, Redactor(self._options)) from None


def _panic_error(error: BaseException, redact: Redactor) -> TableError:
    message = f"deltalake panicked: {redact(_first_line(error))}"
    if "fork" in message.lower():
        hint = "it does not work in a forked process; use spawn, threads, or the log reader"
        return EngineError(message, hint)
    return TableError(
        ErrorCode.CORRUPT_LOG,
        message,
        "this is a bug in deltalake, perhaps caused by a damaged log; use --reader log",
    )


def _parse_protocol(versions: Any) -> Protocol:
    # deltalake returns None for an empty list; versions 3 and 7 require the list.
    reader, writer = versions.min_reader_version, versions.min_writer_version
    action = {
        "minReaderVersion": reader,
        "minWriterVersion": writer,
        "readerFeatures": versions.reader_features or ([] if reader == 3 else None),
        "writerFeatures": versions.writer_features or ([] if writer == 7 else None),
    }
    try:
        return Protocol.stored(action)
    except ValueError as error:
        raise TableError(ErrorCode.CORRUPT_LOG, f"deltalake: malformed protocol: {error}") from None


def _refusal_error(uri: str, error: BaseException, redact: Redactor) -> TableError:
    refused = find_store_refusal(error)
    if refused is not None and "://" in uri:
        return TableError(refused.code, f"deltalake: {refused.as_error(uri).message}", refused.hint)
    message = redact(_first_line(error))
    code = _error_code(error, message)
    local = code is ErrorCode.PERMISSION_DENIED and "://" not in uri
    return TableError(code, f"deltalake: {message}", NO_PERMISSION_HINT if local else "")


def find_store_refusal(error: BaseException) -> StorageRefusal | None:
    """Return a store's message, which follows the first line of deltalake's error."""
    if not isinstance(error, OSError):
        return None
    text = " ".join(_ANSI.sub("", str(error)).replace("\u21b3", " ").split())
    return classify_refusal(text) or classify_connection(text)


def _first_line(error: BaseException) -> str:
    lines = (line.strip() for line in _ANSI.sub("", str(error)).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _error_code(error: BaseException, message: str) -> ErrorCode:
    folded = message.lower()
    if "catalog-managed" in folded or "catalog version" in folded:
        return ErrorCode.CATALOG_MANAGED
    if any(word in folded for word in _FORBIDDEN):
        return ErrorCode.PERMISSION_DENIED
    if "unsupported" in folded or "not supported" in folded or "unknown feature" in folded:
        return ErrorCode.UNSUPPORTED_PROTOCOL
    if "timed out" in folded or "timeout" in folded:
        return ErrorCode.TIMEOUT
    if type(error).__name__ == "TableNotFoundError":
        empty = "no files in log segment" in folded
        return ErrorCode.NOT_A_DELTA_TABLE if empty else ErrorCode.NOT_FOUND
    if isinstance(error, OSError):
        return ErrorCode.STORAGE
    return ErrorCode.CORRUPT_LOG
