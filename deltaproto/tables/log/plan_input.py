"""Everything that a plan needs from one table's log: state, files, history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import LocationKind, locate
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.catalog_managed import has_every_commit
from deltaproto.tables.log.files import LogListing, build_listing
from deltaproto.tables.log.live_files import FileCensus, census_for_metadata
from deltaproto.tables.log.log_retention import LogAging, analyze_aging
from deltaproto.tables.log.snapshot import replay, require_rebuildable
from deltaproto.tables.log.traces import Traces, find_history_traces
from deltaproto.tables.storage import LogStore, open_log


class LogSurvey(NamedTuple):
    """One table's newest version, and its remaining history."""

    version: int
    protocol: Protocol
    metadata: Metadata
    census: FileCensus
    traces: Traces
    aging: LogAging
    listing: LogListing


def survey_table(table: str, storage_options: Mapping[str, str] | None = None) -> LogSurvey:
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


def survey_log(store: LogStore) -> LogSurvey:
    """Read the plan input of the table whose log is in `store`; otherwise like `survey_table`."""
    entries = store.list_dated()
    listing = build_listing(entries)
    version = listing.newest or 0
    require_rebuildable(listing, version)
    snapshot = replay(store, listing, version)
    protocol, metadata = snapshot.protocol, snapshot.metadata
    assert protocol is not None
    assert metadata is not None
    census = census_for_metadata(store, listing, version, metadata)
    times = analyze_aging(entries, listing)
    vectors = census.files_with_vectors > 0
    whole = has_every_commit(store, protocol)
    traces = find_history_traces(
        store, listing, times, protocol, metadata, vectors=vectors, whole=whole
    )
    return LogSurvey(version, protocol, metadata, census, traces, times, listing)
