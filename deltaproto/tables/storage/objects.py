"""Tables on object stores, through obstore: the same object_store library that deltalake uses.

So the storage options that work for deltalake work here. Every request has a short time limit:
without credentials the library would otherwise wait for an instance metadata service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from typing import IO, cast

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.redact import Redactor
from deltaproto.tables.storage.interface import STAGED_COMMITS, Entry, check_size, gone
from deltaproto.tables.storage.opening import opened
from deltaproto.tables.storage.ranges import RangeFile
from deltaproto.tables.storage.refusals import DENIED, refusal

LOG_FOLDER = "_delta_log"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectLogStore:
    """The `_delta_log` folder of the table at `uri`.

    Args:
        options: storage options as deltalake takes them; keys in any case.
        listed: what `list` would say, where somebody asked just now.
    """

    def __init__(
        self, uri: str, options: Mapping[str, str], listed: tuple[Entry, ...] | None = None
    ) -> None:
        self._uri, self._options, self._listed = uri, options, listed
        self._sizes = _sizes(listed or ())
        with failures(uri, options):
            self._store, folder = opened(uri, options)
        self._folder = f"{folder}/{LOG_FOLDER}/".lstrip("/")

    def list(self) -> list[Entry]:
        return list(self._listed or self._entries(dated=False))

    def list_dated(self) -> tuple[Entry, ...]:
        return self._entries(dated=True)

    def _entries(self, *, dated: bool) -> tuple[Entry, ...]:
        import obstore

        with failures(self._uri, self._options):
            found = obstore.list_with_delimiter(self._store, self._folder)
        entries = [
            Entry(
                meta["path"].rsplit("/", 1)[-1],
                meta["size"],
                _milliseconds(meta["last_modified"]) if dated else None,
            )
            for meta in found["objects"]
        ]
        folders = found["common_prefixes"]
        entries += [Entry(path.rstrip("/").rsplit("/", 1)[-1] + "/", None) for path in folders]
        if not entries:
            raise TableError(
                ErrorCode.NOT_A_DELTA_TABLE,
                f"{self._uri} has no {LOG_FOLDER}",
                "check the bucket and the path; object stores have no empty folders",
            )
        self._sizes = _sizes(entries)
        return tuple(entries)

    def list_staged(self) -> tuple[Entry, ...]:
        import obstore

        with failures(self._uri, self._options):
            found = obstore.list_with_delimiter(self._store, self._folder + STAGED_COMMITS)
        entries = tuple(
            Entry(
                STAGED_COMMITS + meta["path"].rsplit("/", 1)[-1],
                meta["size"],
                _milliseconds(meta["last_modified"]),
            )
            for meta in found["objects"]
        )
        self._sizes.update(_sizes(entries))
        return entries

    def open(self, name: str) -> IO[bytes]:
        import obstore

        key, size = self._folder + name, self._sizes.get(name)
        check_size(name, size)
        with self._reading(name):
            if name.endswith(".parquet"):
                length = obstore.head(self._store, key)["size"] if size is None else size
                return cast(IO[bytes], RangeFile(length, partial(self._range, name)))
            data = bytes(obstore.get(self._store, key).bytes())
        if size is not None and size != len(data):
            raise _cut_off(name, len(data), size)
        return BytesIO(data)

    def _range(self, name: str, start: int, end: int) -> bytes:
        import obstore

        with self._reading(name):
            read = obstore.get_range(self._store, self._folder + name, start=start, end=end)
            data = bytes(read)
        if len(data) != end - start:
            raise _cut_off(name, start + len(data), end)
        return data

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            with failures(self._uri, self._options):
                yield
        except TableError as error:
            if error.code is ErrorCode.NOT_FOUND:
                raise gone(name) from None
            raise


def _cut_off(name: str, had: int, wanted: int) -> TableError:
    return TableError(
        ErrorCode.STORAGE,
        f"{name} has {had} bytes, and {wanted} when it was listed",
        "the answer was cut off, or the file changed meanwhile; run again",
    )


def _sizes(entries: Iterable[Entry]) -> dict[str, int]:
    return {entry.name: entry.size for entry in entries if entry.size is not None}


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@contextmanager
def failures(uri: str, options: Mapping[str, str]) -> Iterator[None]:
    """Tell what an object store refuses as a `TableError` on `uri`, without what `options` hide."""
    from obstore import exceptions

    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise (refusal(str(error)) or DENIED).on(uri) from None
    except (exceptions.NotFoundError, FileNotFoundError):
        raise TableError(
            ErrorCode.NOT_FOUND, f"{uri} does not exist", "check the bucket and the path"
        ) from None
    except (exceptions.BaseError, ValueError, OSError) as error:
        raise _classified(uri, error, options) from None


def _classified(uri: str, error: BaseException, options: Mapping[str, str]) -> TableError:
    # A refused listing comes as a general error whose text holds the server's answer, and
    # after "Debug source" the client's state.
    message, _, state = str(error).partition("Debug source")
    text = " ".join(message.split())
    refused = refusal(text)
    if refused is not None:
        return refused.on(uri)
    timed_out = "timed out" in text or "kind: Timeout" in state
    if "http://" in text and "builder error" in text:
        return TableError(
            ErrorCode.STORAGE,
            f"{uri} cannot be read: its endpoint is not encrypted, which must be allowed",
            "give --storage-option allow_http=true",
        )
    return TableError(
        ErrorCode.TIMEOUT if timed_out else ErrorCode.STORAGE,
        f"{uri} cannot be read: {_short(Redactor(options)(text[:_MOST]))}",
        "check the endpoint, the region and the credentials",
    )


_MOST = 4000
"""as many letters of what a store says are looked at; fewer are shown"""


def _short(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
