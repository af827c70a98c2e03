"""The newest state of every root of an inventory, combined from several scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from deltaproto.fleet.discovered import FolderSelection
from deltaproto.fleet.scan_history import Extent, PastScan, newest_scan
from deltaproto.fleet.staging import Unfinished
from deltaproto.policy.document import normalize_location


def newest_of_each_root(scans: Sequence[PastScan]) -> list[PastScan]:
    """Return the scans that no newer one replaces, newest first.

    A scan replaces an older one if it searched all its roots and skipped nothing that the older
    one searched. A scan with `--include` or `--exclude` replaces only scans with the same patterns.

    Raises:
        UsageError: when there is no scan.
    """
    newest_scan(list(scans))
    found: list[PastScan] = []
    for scan in reversed(scans):
        replaced = (
            any(_replaces(newer.extent, scan.extent, root) for newer in found)
            for root in scan.roots
        )
        if not found or not all(replaced):
            found.append(scan)
    return found


def _replaces(newer: Extent, older: Extent, root: str) -> bool:
    if root not in newer.roots:
        return False
    return newer[1:] == older[1:] or not (newer.included or newer.excluded or older.included)


class NewestState:
    """Decides which rows of several scans are the newest state of their table.

    A row of an older scan counts until a newer scan has a row for the same location, or has
    searched the place without finding a table there.

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
        # Per location, one bit for each scan that has a row.
        self._seen: dict[str, int] = {}
        if len(self.scans) == 1:
            return
        for number, scan in enumerate(self.scans):
            for location in locations(scan):
                where = normalize_location(location)
                self._seen[where] = self._seen.get(where, 0) | 1 << number
        self.contributing += tuple(
            scan
            for number, scan in enumerate(self.scans[1:], 1)
            if any(
                seen >> number & 1 and self.holds(scan, where) for where, seen in self._seen.items()
            )
        )

    def holds(self, scan: PastScan, location: str) -> bool:
        """Return True if the row of `location` in `scan` is the newest state of that table."""
        number, where = self.scans.index(scan), normalize_location(location)
        if number == 0:
            return True
        if self._seen.get(where, 0) & (1 << number) - 1:
            return False
        return not any(self._searched(newer, where) for newer in range(number))

    def replaces(self, stopped: Unfinished) -> bool:
        """Return True if later finished scans cover everything that a stopped scan would have."""
        if any(scan.scan_id == stopped.scan_id for scan in self.scans):
            # It was stopped after its last commit.
            return True
        extent = stopped.extent
        later = [n for n, scan in enumerate(self.scans) if scan.scan_id > stopped.scan_id]
        if extent is None:
            return bool(later)
        return all(
            any(self._replaces(number, extent, root) for number in later) for root in extent.roots
        )

    def _replaces(self, number: int, older: Extent, root: str) -> bool:
        newer = self.scans[number].extent
        if _replaces(newer, older, root):
            return True
        patterns = newer.included or newer.excluded or older.included
        return not patterns and self._searched(number, normalize_location(root))

    def _searched(self, number: int, where: str) -> bool:
        """Return True if the scan would have found a table there."""
        scan = self.scans[number]
        selection = FolderSelection(scan.included, scan.excluded)
        for root in map(normalize_location, scan.roots):
            if where == root:
                # This includes errors of a root as a whole, such as a root without tables.
                return True
            if not where.startswith(f"{root}/"):
                continue
            parts = where[len(root) + 1 :].split("/")
            folders = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
            # Below a table, or below a place that could not be listed, not everything is searched.
            left = any(self._seen.get(f"{root}/{above}", 0) >> number & 1 for above in folders[:-1])
            if not left and all(map(selection.enters, folders)) and selection.takes(folders[-1]):
                return True
        return False
