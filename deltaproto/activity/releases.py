"""Which releases of Delta Spark write to a table, as its log shows.

Source: Delta's `CommitInfo.engineInfo` (`Apache-Spark/3.5.1 Delta-Lake/3.2.0`; through Delta Kernel
`Kernel-<k>/Apache-Spark/<s> Delta-Lake/<d>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from deltaproto.clients import scheme
from deltaproto.errors import TableError
from deltaproto.tables.log.actions import commit_info, read_actions
from deltaproto.tables.log.commits import Commit
from deltaproto.tables.log.names import Listing
from deltaproto.tables.storage import LogStore

MOST_COMMITS = 50
_DELTA_SPARK = re.compile(r"(?:^|[\s/])Delta-Lake/([\w.+-]+)", re.ASCII)


def recent_releases(store: LogStore, listing: Listing) -> frozenset[str] | None:
    """The releases that made the newest 50 commits; None where these show none."""
    newest = islice(sorted(listing.commits, reverse=True), MOST_COMMITS)
    return releases_of(_engine(store, listing.commits[version]) for version in newest) or None


def _engine(store: LogStore, name: str) -> str | None:
    """The engine of one commit; None where it names none, and where it cannot be read."""
    try:
        with store.open(name) as file:
            # Usually the first line: nothing below it is read.
            return Commit(0, commit_info(read_actions(name, file)), None, None).engine
    except TableError:
        return None


def releases_of(engines: Iterable[str | None]) -> frozenset[str]:
    """The releases of Delta Spark among engines as they name themselves."""
    found = (_DELTA_SPARK.search(engine) for engine in engines if engine is not None)
    named = (match[1] for match in found if match is not None)
    return frozenset(name for name in named if scheme.parse("dotted", name) is not None)
