"""Protocol, metadata and domains out of a checkpoint, without its file actions.

Classic, multi-part and V2 checkpoints keep these actions in their own columns (Parquet) or
lines (JSON); the sidecars of a V2 checkpoint hold file actions only (PROTOCOL.md, "V2 Spec").
Only the needed columns are decoded, and row groups whose statistics say that they are empty of them
are skipped: the cost does not grow with the number of files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from deltaproto.tables.log.actions import corrupt, read_actions
from deltaproto.tables.log.names import Checkpoint
from deltaproto.tables.log.parquet import NotSimple, rows
from deltaproto.tables.log.parquet.batches import batches, to_list
from deltaproto.tables.log.parquet.limits import LARGEST_STATE, MOST_ACTIONS
from deltaproto.tables.storage.interface import LogStore

_ACTIONS = ("protocol", "metaData", "domainMetadata")


def checkpoint_actions(store: LogStore, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    """The protocol, metaData and domainMetadata actions of a checkpoint.

    Raises:
        TableError: corrupt-log when a part is not readable as what its name says.
    """
    for name in checkpoint.files:
        with store.open(name) as file:
            if name.endswith(".json"):
                yield from read_actions(name, file)
            else:
                yield from _parquet_actions(name, file)


def _parquet_actions(name: str, file: IO[bytes]) -> Iterator[dict[str, Any]]:
    try:
        found = rows(file, _ACTIONS)
    except NotSimple:
        # What the simple reader does not take is read, or found damaged, by pyarrow.
        file.seek(0)
        yield from _with_pyarrow(name, file)
    else:
        yield from ({column: _plain(action)} for column, action in found)


def _with_pyarrow(name: str, file: IO[bytes]) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    size = count = 0
    for batch in batches(name, file, lambda path: path.partition(".")[0] in _ACTIONS):
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            if values.null_count == len(values):
                continue
            if not pa.types.is_struct(values.type):
                raise corrupt(name, None, f"its column {column} is not a struct")
            found = values.drop_null()
            size, count = size + found.nbytes, count + len(found)
            if size > LARGEST_STATE or count > MOST_ACTIONS:
                why = f"it decompresses to {count} actions of {size} bytes and more"
                raise corrupt(name, None, f"not a readable checkpoint: {why}")
            yield from ({column: _plain(value)} for value in to_list(name, found))


def _plain(action: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in action.items() if value is not None}
    pairs = plain.get("configuration")
    # pyarrow shows a map as a list of pairs; a list of anything else is damage.
    if isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs):
        plain["configuration"] = dict(pairs)
    return plain
