"""Everything that a plan needs from one table's log: state, files, history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import LocationKind, locate
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.catalog_managed import is_whole
from deltaproto.tables.log.files import LogListing, sort_names
from deltaproto.tables.log.live_files import Census, census_with
from deltaproto.tables.log.log_retention import Aging, aging
from deltaproto.tables.log.snapshot import check_reach, replay
from deltaproto.tables.log.traces import Traces, history_traces
from deltaproto.tables.storage import LogStore, open_log


class Survey(NamedTuple):
    """One table's newest version, and its remaining history."""

    version: int
    protocol: Protocol
    metadata: Metadata
    census: Census
    traces: Traces
    aging: Aging
    listing: LogListing


def survey(table: str, storage_options: Mapping[str, str] | None = None) -> Survey:
    """Read the plan input of the table at a path or URI.

    Raises:
        TableError: see `ErrorCode`; not-found for a catalog name.
    """
    location = locate(table)
    if location.kind is LocationKind.NAME:
        raise TableError(
            ErrorCode.NOT_FOUND,
            f"{table} is neither a path that exists nor a URI",
            "pass the table's path",
        )
    return survey_log(open_log(location, storage_options or {}))


def survey_log(store: LogStore) -> Survey:
    """Read the plan input of the table whose log is in `store`; otherwise like `survey`."""
    entries = store.list_dated()
    listing = sort_names(entries)
    version = listing.newest or 0
    check_reach(listing, version)
    snapshot = replay(store, listing, version)
    protocol, metadata = snapshot.protocol, snapshot.metadata
    assert protocol is not None
    assert metadata is not None
    census = census_with(store, listing, version, metadata)
    times = aging(entries, listing)
    vectors = census.files_with_vectors > 0
    whole = is_whole(store, protocol)
    traces = history_traces(store, listing, times, protocol, metadata, vectors=vectors, whole=whole)
    return Survey(version, protocol, metadata, census, traces, times, listing)
