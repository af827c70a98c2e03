"""How errors of deltalake are classified, by type and text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.inspection import ReadRequest, Unreadable, inspect_table
from deltaproto.inspection.interface import ReaderChoice
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.delta_rs import DeltaRsReader
from tests.support.logs import Log, metadata, protocol


class TableNotFoundError(Exception):
    """Named as deltalake's."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("Table is catalog-managed"), ErrorCode.CATALOG_MANAGED),
        (ValueError("a Catalog Version is required"), ErrorCode.CATALOG_MANAGED),
        (OSError("Permission denied (os error 13)"), ErrorCode.PERMISSION_DENIED),
        (ValueError("Unsupported reader features: x"), ErrorCode.UNSUPPORTED_PROTOCOL),
        (ValueError("version 9 is not supported"), ErrorCode.UNSUPPORTED_PROTOCOL),
        (ValueError("Unknown Feature x"), ErrorCode.UNSUPPORTED_PROTOCOL),
        (OSError("operation timed out"), ErrorCode.TIMEOUT),
        (OSError("request TIMEOUT"), ErrorCode.TIMEOUT),
        (TableNotFoundError("no files in log segment"), ErrorCode.NOT_A_DELTA_TABLE),
        (TableNotFoundError("not there"), ErrorCode.NOT_FOUND),
        (ValueError("no files in log segment"), ErrorCode.CORRUPT_LOG),
        (OSError("broken disk"), ErrorCode.STORAGE),
        (ValueError("bad json"), ErrorCode.CORRUPT_LOG),
    ],
)
def test_a_refusal_has_the_code_of_its_cause(
    error: Exception, code: ErrorCode, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise error

    log.commit(0, protocol(1, 2), metadata())
    monkeypatch.setattr(deltalake, "DeltaTable", refuses)
    with pytest.raises(TableError) as caught:
        DeltaRsReader().read(log.table)
    assert (caught.value.code, caught.value.message) == (code, f"deltalake: {error}")


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (OSError("Permission denied (os error 13)"), "run as a user with permission to list and"),
        (ValueError("Unknown Feature x"), "use --reader log, which shows what the log has"),
        (ValueError("bad json"), "use --reader log, which shows what the log has"),
    ],
)
def test_a_refusal_has_a_hint(
    error: Exception, hint: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise error

    log.commit(0, protocol(1, 2), metadata())
    monkeypatch.setattr(deltalake, "DeltaTable", refuses)
    found = inspect_table(log.table, ReadRequest(reader=ReaderChoice.DELTA_RS))
    assert isinstance(found, Unreadable)
    assert found.error.hint.startswith(hint)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("\n\x1b[31m  first \x1b[0m\n second"), "deltalake: first"),
        (ValueError(""), "deltalake: ValueError"),
        (ValueError("key=k3y-of-mine is wrong"), "deltalake: key=*** is wrong"),
    ],
)
def test_a_message_is_one_line_without_secrets(
    error: Exception, message: str, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise error

    log.commit(0, protocol(1, 2), metadata())
    monkeypatch.setattr(deltalake, "DeltaTable", refuses)
    with pytest.raises(TableError) as caught:
        DeltaRsReader({"secret_access_key": "k3y-of-mine"}).read(log.table)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("reader", "writer", "lists", "expected"),
    [
        (1, 2, (None, None), Protocol(1, 2)),
        (1, 7, (None, None), Protocol(1, 7, None, frozenset())),
        (3, 7, (None, None), Protocol(3, 7, frozenset(), frozenset())),
        (
            3,
            7,
            (["deletionVectors"], ["appendOnly", "deletionVectors"]),
            Protocol(
                3, 7, frozenset({"deletionVectors"}), frozenset({"appendOnly", "deletionVectors"})
            ),
        ),
    ],
)
def test_lists_that_the_versions_require_are_empty_and_not_missing(
    reader: int,
    writer: int,
    lists: tuple[Any, Any],
    expected: Protocol,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log.commit(0, protocol(1, 2), metadata())
    stored = SimpleNamespace(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=lists[0],
        writer_features=lists[1],
    )
    monkeypatch.setattr(deltalake.DeltaTable, "protocol", lambda _: stored)
    assert DeltaRsReader().read(log.table).protocol == expected
    stored.min_reader_version = "1"
    with pytest.raises(TableError, match="malformed protocol") as caught:
        DeltaRsReader().read(log.table)
    assert caught.value.code is ErrorCode.CORRUPT_LOG


def test_what_is_read_is_what_the_log_has(tmp_path: Path) -> None:
    log = Log(tmp_path / "t")
    log.commit(0, protocol(1, 2), metadata({"a": "b"}, partition_columns=["id"]))
    log.commit(1, metadata({"a": "c"}))
    one, other = (DeltaRsReader().read(log.table, version) for version in (0, None))
    assert (one.version, other.version) == (0, 1)
    assert (one.metadata.configuration, other.metadata.configuration) == ({"a": "b"}, {"a": "c"})
    assert (one.metadata.partition_columns, other.metadata.partition_columns) == (("id",), ())
    assert one.metadata.id == metadata()["metaData"]["id"]
    assert one.location == tmp_path.joinpath("t").as_uri()
