"""Adapters whose process does not keep to the form."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from deltaproto.certification import adapter
from deltaproto.certification.adapter import ReplyKind, ServedAdapter
from deltaproto.certification.adapter_server import RowsToWrite
from deltaproto.certification.operation import AdapterRequest
from deltaproto.certification.process import ProcessLimits
from deltaproto.errors import EngineError

READY = '{"ready": true, "release": "1", "python": "3", "offers": ["count"]}'


def served(said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServedAdapter:
    """A process that tells its id, prints these lines, and then waits."""
    host = tmp_path / "host.py"
    host.write_text(
        "import os, pathlib, sys, time\n"
        "pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
        f"print({chr(10).join(said)!r}, flush=True)\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setattr(adapter, "ADAPTER_SERVER", host)
    return ServedAdapter(
        Path(sys.executable), tmp_path / "pid", tmp_path, ProcessLimits(seconds=10)
    )


def test_rows_to_write_have_the_types_of_the_table() -> None:
    field = {"name": "x", "type": "decimal(10,2)", "nullable": True, "metadata": {}}
    pair = {"type": "struct", "fields": [field]}
    columns = [
        ("price", "decimal(10,2)"),
        ("pair", pair),
        ("listed", {"type": "array", "elementType": "integer", "containsNull": True}),
        (
            "lookup",
            {"type": "map", "keyType": "string", "valueType": pair, "valueContainsNull": True},
        ),
    ]
    price = pa.decimal128(10, 2)
    inner = pa.struct([("x", price)])
    assert RowsToWrite([{"listed": [1]}], columns).arrow().schema == pa.schema(
        {
            "price": price,
            "pair": inner,
            "listed": pa.list_(pa.int32()),
            "lookup": pa.map_(pa.string(), inner),
        }
    )


def test_the_real_server_answers(tmp_path: Path) -> None:
    file = Path(__file__).parent / "adapters" / "honest.py"
    adapter = ServedAdapter(Path(sys.executable), file, tmp_path, ProcessLimits(seconds=60))
    adapter.start()
    adapter.close()
    assert adapter.offers


def running(tmp_path: Path) -> bool:
    try:
        os.kill(int((tmp_path / "pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("line", ["hello", "[]", "{}", '{"ready": false}', '{"ready": true}'])
def test_one_that_starts_in_no_known_form_is_ended(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EngineError, match="an invalid response"):
        served([line], tmp_path, monkeypatch).start()
    assert not running(tmp_path)


@pytest.mark.parametrize("line", ["hello", "[]", '"x"', "7", '{"failed": 3}', '{"failed": {}}'])
def test_one_that_answers_in_no_known_form_has_crashed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served([READY, line], tmp_path, monkeypatch)
    client.start()
    assert client.ask(tmp_path, AdapterRequest("rows", {})).kind is ReplyKind.NOT_OFFERED
    reply = client.ask(tmp_path, AdapterRequest("count", {}))
    assert (reply.kind, reply.message) == (
        ReplyKind.CRASHED,
        "its process sent an invalid response",
    )
    assert not running(tmp_path)
