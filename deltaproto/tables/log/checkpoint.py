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
from deltaproto.tables.storage.interface import LogStore

_ACTIONS = ("protocol", "metaData", "domainMetadata")
_BATCH_ROWS = 64 * 1024


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
    import pyarrow.parquet as pq

    try:
        parquet = pq.ParquetFile(file)
        wanted = [column for column in _ACTIONS if column in parquet.schema_arrow.names]
        # Statistics are not asked for here: of a damaged file they end the whole process.
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=wanted):
            for column, values in zip(batch.schema.names, batch.columns, strict=True):
                if values.null_count < len(values):
                    yield from ({column: _plain(v)} for v in values.drop_null().to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise corrupt(name, None, f"not a readable checkpoint: {_first_line(error)}") from None


def _plain(action: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in action.items() if value is not None}
    if "configuration" in plain and isinstance(plain["configuration"], list):
        plain["configuration"] = dict(plain["configuration"])
    return plain


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
