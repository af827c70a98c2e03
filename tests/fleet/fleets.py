"""Fleets of hand-made tables, each of another kind, some of them broken."""

from __future__ import annotations

import json
import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from deltaproto.errors import TableError
from deltaproto.protocol.table_state import NoteKind
from deltaproto.tables.log.reader import LogReader
from tests.support.logs import (
    Log,
    add,
    column,
    commit_info,
    metadata,
    protocol,
    schema_string,
)

_PAIRS = ((1, 1), (1, 2), (1, 4), (2, 5), (1, 7), (2, 6), (4, 8), (99999999999, 2))
_WRITER = ("appendOnly", "invariants", "checkConstraints", "rowTracking", "domainMetadata")
_BOTH = ("deletionVectors", "v2Checkpoint", "columnMapping", "timestampNtz", "odd-feature")
_PROPERTIES: tuple[tuple[str, str | None], ...] = (
    ("delta.enableDeletionVectors", "true"),
    ("delta.appendOnly", "true"),
    ("delta.isolationLevel", "WriteSerializable"),
    ("delta.isolationLevel", "Snapshotish"),
    ("delta.columnMapping.mode", "name"),
    ("delta.constraints.positive", "id > 0"),
    ("delta.enableRowTracking", "true"),
    ("delta.rowTracking.materializedRowIdColumnName", "_row-id-col-1"),
    ("delta.columnMapping.maxColumnId", "7"),
    ("own.note", None),
    ("own.note", "naïve \ud800 \x00 \u202e"),
)
_COLUMNS: tuple[dict[str, Any], ...] = (
    column("id"),
    column("when", "timestamp_ntz"),
    column("note", "string", nullable=False),
    column("made", "long", delta__generationExpression="id + 1"),
    column("wide", {"type": "struct", "fields": [column("deep", "variant")]}),
)


def make_fleet(root: Path, seed: int, count: int, *, folders: bool = True) -> list[Path]:
    """`count` tables in folders below `root`; equal seeds make equal fleets.

    `folders` allows folders where files belong, of which object stores know nothing.
    """
    chance = random.Random(seed)
    made = []
    for number in range(count):
        path = root / f"area {number % 3}" / f"t{number:04}"
        _table(Log(path), chance, number, folders=folders)
        made.append(path)
    date_files(root)
    return made


HOUR_AGO = time.time() - 3600


def date_files(root: Path, at: float = HOUR_AGO) -> None:
    """Date every file, by default to a time that is long ago enough for a scan to trust it."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (at, at))


def without_contradictions(tables: list[Path]) -> list[Path]:
    """The same tables, without the checksums that contradict their logs.

    A scan believes such a checksum where an inspection holds it against the log.
    """
    for table in tables:
        with suppress(TableError):
            notes = LogReader(every_commit=True).read(str(table)).notes
            if any(note.kind is NoteKind.CHECKSUM_CONTRADICTS for note in notes):
                for file in (table / "_delta_log").glob("*.crc"):
                    file.unlink()
    return tables


def _table(log: Log, chance: random.Random, number: int, *, folders: bool) -> None:
    stored = _protocol(chance)
    described = metadata(
        dict(chance.sample(_PROPERTIES, chance.randint(0, 4))),
        chance.choice(("", "{", schema_string(*chance.sample(_COLUMNS, chance.randint(1, 5))))),
        chance.choice(([], [], ["id"])),
        id=f"00000000-0000-0000-0000-{number:012}",
    )
    info = commit_info(
        "SET TBLPROPERTIES", txnId=f"txn-{number}", engineInfo="Apache-Spark/4.2.0 Delta-Lake/4.4.0"
    )
    log.commit(0, info, stored, described, add(baseRowId=0))
    for version in range(1, chance.randint(1, 4)):
        log.commit(version, commit_info("WRITE", txnId=f"txn-{number}-{version}"), add(baseRowId=0))
    newest = max(int(path.stem) for path in log.folder.glob("*.json"))
    if chance.random() < 0.5:
        txn = f"txn-{number}" if newest == 0 else f"txn-{number}-{newest}"
        log.checksum(newest, stored, described, txnId=chance.choice((txn, txn, "another")))
    if chance.random() < 0.2:
        # A checkpoint cannot hold all that JSON can.
        with suppress(UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
            log.checkpoint(newest, stored, described, add(baseRowId=0))
    if chance.random() < 0.15:
        _damage(log, chance, folders=folders)


def _protocol(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.5:
        return protocol(*chance.choice(_PAIRS))
    both = chance.sample(_BOTH, chance.randint(0, 4))
    return protocol(3, 7, both, [*both, *chance.sample(_WRITER, chance.randint(0, 4))])


def _damage(log: Log, chance: random.Random, *, folders: bool) -> None:
    file = chance.choice(sorted(log.folder.iterdir()))
    content = file.read_bytes()
    match chance.randint(0, 4):
        case 0:
            file.write_bytes(content[: chance.randint(0, len(content))])
        case 1:
            place = chance.randrange(len(content))
            file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        case 2:
            file.unlink()
        case 3 if folders:
            file.unlink()
            file.mkdir()
        case _:
            file.write_text(json.dumps(["no", "action"]))


def two_folders(root: Path, plain: int, vectors: int, broken: int = 0) -> list[str]:
    """Make tables of three kinds, in the folders `silver` and `gold`; their paths, sorted."""
    names = ["deletionVectors"]
    for number in range(plain):
        log = Log(root / "silver" / f"p{number:03d}")
        log.commit(0, commit_info(), protocol(1, 2), metadata())
    for number in range(vectors):
        on = metadata({"delta.enableDeletionVectors": "true"})
        log = Log(root / "gold" / f"v{number:03d}")
        log.commit(0, commit_info(), protocol(3, 7, names, names), on)
    for number in range(broken):
        folder = root / "gold" / f"x{number}" / "_delta_log"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.json").write_text("no JSON")
    return sorted(str(log.parent) for log in root.rglob("_delta_log"))
