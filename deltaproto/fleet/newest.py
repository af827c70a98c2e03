"""The newest state of every root of an inventory, put together from several scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from deltaproto.fleet.past import PastScan, newest
from deltaproto.policy.document import place


def newest_of_each_root(scans: Sequence[PastScan]) -> list[PastScan]:
    """Return the scans that no newer one replaces, newest first.

    A scan replaces an older one if it searched all of its roots and left nothing out that the older
    one searched. A scan with `--include` or `--exclude` replaces only scans with the same patterns.

    Raises:
        UsageError: when there is no scan.
    """
    newest(list(scans))
    found: list[PastScan] = []
    for scan in reversed(scans):
        replaced = (any(_replaces(newer, scan, root) for newer in found) for root in scan.roots)
        if not found or not all(replaced):
            found.append(scan)
    return found


def _replaces(newer: PastScan, older: PastScan, root: str) -> bool:
    if root not in newer.roots:
        return False
    return newer.extent[1:] == older.extent[1:] or not (
        newer.included or newer.excluded or older.included
    )


class NewestState:
    """Decides which rows of several scans are the newest of their table.

    Args:
        scans: newest first.
        locations: the locations of all tables and errors of a scan.
    """

    def __init__(
        self, scans: Sequence[PastScan], locations: Callable[[PastScan], Iterable[str]]
    ) -> None:
        self.scans = tuple(scans)
        self.contributing = self.scans[:1]
        """the scans with at least one row that no newer scan replaces; always the newest"""
        self._seen: dict[str, int] = {}
        if len(self.scans) == 1:
            return
        for number, scan in enumerate(self.scans):
            for location in locations(scan):
                self._seen.setdefault(place(location), number)
        self.contributing += tuple(
            scan
            for number, scan in enumerate(self.scans[1:], 1)
            if any(seen == number and self.holds(scan, where) for where, seen in self._seen.items())
        )

    def holds(self, scan: PastScan, location: str) -> bool:
        """Whether the row of `location` in `scan` is the newest state of that table."""
        number, where = self.scans.index(scan), place(location)
        if number == 0:
            return True
        if self._seen.get(where, number) < number:
            return False
        return not any(_covers(newer, scan, where) for newer in self.scans[:number])


def _covers(newer: PastScan, older: PastScan, where: str) -> bool:
    """Whether the newer scan would have found a table there."""
    for root in older.roots:
        start = place(root)
        if root in newer.roots and where == start:
            # What is wrong with a root as a whole, such as that it holds no table.
            return True
        if not where.startswith(f"{start}/") or root not in newer.roots:
            continue
        # Only --include opens such folders.
        parts = where[len(start) + 1 :].split("/")
        hidden = any(part.startswith((".", "_")) or "=" in part for part in parts)
        complete = not (newer.included or newer.excluded or hidden)
        if complete or _replaces(newer, older, root):
            return True
    return False
