"""The delta-rs reader: what deltalake says, refusals above all."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.delta_rs import DeltaRsReader
from tests.support.logs import Log, metadata, protocol

REFUSED: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "unknown-reader-feature": (
        protocol(3, 7, ["fooReader"], ["fooReader"]),
        ErrorCode.UNSUPPORTED_PROTOCOL,
    ),
    "future": (protocol(99, 2), ErrorCode.UNSUPPORTED_PROTOCOL),
    "geospatial": (
        protocol(3, 7, ["geospatial"], ["geospatial"]),
        ErrorCode.UNSUPPORTED_PROTOCOL,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_reported_and_never_hides_the_log(case: str, log: Log, cli: Any) -> None:
    action, code = REFUSED[case]
    log.commit(0, action, metadata())
    with pytest.raises(TableError) as raised:
        DeltaRsReader().read(log.table)
    assert raised.value.code is code
    assert raised.value.message.startswith("deltalake: ")
    assert "\n" not in raised.value.message
    ran = cli("inspect", log.table, "--reader", "delta-rs", "--format", "json")
    assert (ran.code, ran.table["error"]["code"]) == (3, code)
    ran = cli("inspect", log.table, "--reader", "log", "--format", "json")
    assert ran.table["protocol"]["minReaderVersion"] == action["protocol"]["minReaderVersion"]


def test_catalog_managed_tables_are_refused_as_such(log: Log) -> None:
    names = ["catalogManaged", "vacuumProtocolCheck"]
    log.commit(0, protocol(3, 7, names, [*names, "inCommitTimestamp"]), metadata())
    with pytest.raises(TableError) as raised:
        DeltaRsReader().read(log.table)
    assert raised.value.code is ErrorCode.CATALOG_MANAGED


def test_empty_lists_come_back_as_lists(log: Log) -> None:
    log.commit(0, protocol(3, 7, [], []), metadata())
    state = DeltaRsReader().read(log.table)
    assert (state.protocol.reader_features, state.protocol.writer_features) == (
        frozenset(),
        frozenset(),
    )


def test_time_travel(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata()).commit(1, protocol(1, 3))
    assert DeltaRsReader().read(log.table, 0).protocol.min_writer_version == 2
    with pytest.raises(TableError):
        DeltaRsReader().read(log.table, 9)


def test_a_panic_in_a_forked_process_is_an_error_like_any_other(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata())
    script = (
        "import os, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from deltaproto.errors import EngineError\n"
        "from deltaproto.tables.delta_rs import DeltaRsReader\n"
        "DeltaRsReader().read(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try:\n"
        "        DeltaRsReader().read(sys.argv[1])\n"
        "        print('no panic', flush=True)\n"
        "    except EngineError as error:\n"
        "        print(error.message, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, log.table],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0
    assert ran.stdout.startswith("deltalake panicked: Forked process detected"), ran.stderr


def test_a_catalog_name_is_none_of_its_business() -> None:
    with pytest.raises(TableError) as raised:
        DeltaRsReader().read("catalog.schema.table")
    assert raised.value.code is ErrorCode.NOT_FOUND


class PanicException(BaseException):
    """Named as the class of deltalake, which cannot be imported."""


@pytest.mark.parametrize(
    ("said", "code", "hint"),
    [
        ("Forked process detected", ErrorCode.ENGINE, "spawn"),
        ("called `Option::unwrap()` on a `None` value", ErrorCode.CORRUPT_LOG, "--reader log"),
    ],
)
def test_a_panic_has_the_hint_of_its_cause(
    log: Log, monkeypatch: pytest.MonkeyPatch, said: str, code: ErrorCode, hint: str
) -> None:
    import deltalake

    def panics(*_: object, **__: object) -> None:
        raise PanicException(said)

    log.commit(0, protocol(1, 2), metadata())
    monkeypatch.setattr(deltalake, "DeltaTable", panics)
    with pytest.raises(TableError) as raised:
        DeltaRsReader().read(log.table)
    assert raised.value.code is code
    assert said in raised.value.message
    assert hint in raised.value.hint
