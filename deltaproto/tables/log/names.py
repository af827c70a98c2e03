"""File names in `_delta_log` (PROTOCOL.md, "Delta Log Entries" and "Checkpoint Naming Scheme")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from deltaproto.tables.storage.interface import STAGED_COMMITS, Entry

_VERSION_DIGITS = 20
_PART_DIGITS = 10


class Checkpoint(NamedTuple):
    """A checkpoint with all of its parts, in order."""

    version: int
    files: tuple[str, ...]
    v2_name: bool = False
    """named with a UUID, as only V2 checkpoints are"""


class Listing:
    """What one listing of the log shows.

    Incomplete multi-part checkpoints and checkpoint files of 0 bytes are no checkpoints, as in
    Delta Spark (SnapshotManagement).
    """

    def __init__(self) -> None:
        self.commits: dict[int, str] = {}
        self.checksums: dict[int, str] = {}
        self.checkpoints: dict[int, list[Checkpoint]] = {}
        self.empty_checkpoints: list[str] = []
        self.staged_commits = False

    @property
    def newest(self) -> int | None:
        """The newest version: of a commit, or of a checkpoint whose commits are gone."""
        if not self.checkpoints:
            return max(self.commits, default=None)
        return max((*self.commits, *self.checkpoints))

    def missing(self, base: int, version: int) -> int | None:
        """The newest commit that is not there, of those after `base` up to `version`."""
        for each in range(version, base, -1):
            if each not in self.commits:
                return each
        return None

    def checkpoints_up_to(self, version: int) -> list[Checkpoint]:
        """Complete checkpoints at or below `version`, newest first."""
        versions = sorted((v for v in self.checkpoints if v <= version), reverse=True)
        return [checkpoint for v in versions for checkpoint in self.checkpoints[v]]

    def last_checkpoints(self, version: int) -> list[Checkpoint]:
        """Those of `checkpoints_up_to` that have the newest version; there may be several."""
        versions = [v for v in self.checkpoints if v <= version]
        return self.checkpoints[max(versions)] if versions else []


def sort_names(entries: Iterable[Entry]) -> Listing:
    """The listing made of `entries`; everything that is no log file is passed over."""
    listing = Listing()
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name, size, _ in entries:
        digits, rest = name[:_VERSION_DIGITS], name[_VERSION_DIGITS:]
        # As `_number`, without a call for each of all names.
        if not (rest and digits.isdigit() and digits.isascii()):
            listing.staged_commits |= name == STAGED_COMMITS
        elif rest == ".json":
            listing.commits[int(digits)] = name
        elif rest == ".crc":
            listing.checksums[int(digits)] = name
        elif rest.startswith(".checkpoint."):
            if size == 0:
                listing.empty_checkpoints.append(name)
            else:
                _sort_checkpoint(listing, parts, int(digits), rest.split(".")[2:], name)
    for (version, total), found in parts.items():
        # The name of one file may announce ten thousand million parts.
        if len(found) == total and min(found) == 1 and max(found) == total:
            _add(listing, Checkpoint(version, tuple(found[n] for n in sorted(found))))
    for same_version in listing.checkpoints.values():
        same_version.sort(key=lambda checkpoint: checkpoint.files)
    return listing


def _sort_checkpoint(
    listing: Listing,
    parts: dict[tuple[int, int], dict[int, str]],
    version: int,
    rest: list[str],
    name: str,
) -> None:
    match rest:
        case ["parquet"]:
            _add(listing, Checkpoint(version, (name,)))
        case [part, total, "parquet"] if _number(part, _PART_DIGITS) and _number(
            total, _PART_DIGITS
        ):
            parts.setdefault((version, int(total)), {})[int(part)] = name
        case [identity, "json" | "parquet"] if _identity(identity):
            _add(listing, Checkpoint(version, (name,), v2_name=True))


def _number(text: str, digits: int) -> bool:
    return len(text) == digits and text.isascii() and text.isdigit()


def _identity(text: str) -> bool:
    return len(text) >= 8 and text.isascii() and text.replace("-", "").isalnum()


def _add(listing: Listing, checkpoint: Checkpoint) -> None:
    listing.checkpoints.setdefault(checkpoint.version, []).append(checkpoint)
