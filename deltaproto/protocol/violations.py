"""Rules for version pairs and feature lists (PROTOCOL.md, "Table Features")."""

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind

READER_FEATURES_VERSION = 3
WRITER_FEATURES_VERSION = 7
"""the versions that use feature lists; the spec defines no higher ones"""


class ViolationKind(StrEnum):
    """The kinds of rules that a protocol can violate."""

    VERSION = "version-out-of-range"
    PAIR = "reader-3-needs-writer-7"
    LIST_MISSING = "feature-list-missing"
    LIST_UNEXPECTED = "feature-list-unexpected"
    NOT_IN_WRITER_LIST = "reader-feature-not-in-writer-list"
    NOT_FOR_READERS = "readers-are-not-told"


class Violation(NamedTuple):
    """One violated rule, with its feature if any."""

    breach: ViolationKind
    message: str
    feature: str | None = None


class InvalidProtocol(ValueError):
    """A protocol that the spec forbids; `violations` contains every reason."""

    def __init__(self, broken: tuple[Violation, ...]) -> None:
        super().__init__("; ".join(violation.message for violation in broken))
        self.violations = broken


# Every verdict on a table looks this up again; a set keeps its hash.
@lru_cache(maxsize=256)
def find_violations(
    reader: int,
    writer: int,
    reader_features: frozenset[str] | None,
    writer_features: frozenset[str] | None,
) -> tuple[Violation, ...]:
    """Return every violated rule, versions first."""
    return (
        *_version_violations(reader, writer),
        *_list_violations(reader, writer, reader_features, writer_features),
        *_member_violations(reader, reader_features or frozenset(), writer_features),
    )


def _version_violations(reader: int, writer: int) -> Iterator[Violation]:
    if not 1 <= reader <= READER_FEATURES_VERSION:
        yield Violation(
            ViolationKind.VERSION,
            f"minReaderVersion is {reader}; the spec defines 1 to {READER_FEATURES_VERSION}",
        )
    if not 1 <= writer <= WRITER_FEATURES_VERSION:
        yield Violation(
            ViolationKind.VERSION,
            f"minWriterVersion is {writer}; the spec defines 1 to {WRITER_FEATURES_VERSION}",
        )
    if reader >= READER_FEATURES_VERSION and 1 <= writer < WRITER_FEATURES_VERSION:
        yield Violation(
            ViolationKind.PAIR,
            f"reader version {reader} requires writer version 7, but it is {writer}",
        )


def _list_violations(
    reader: int,
    writer: int,
    reader_features: frozenset[str] | None,
    writer_features: frozenset[str] | None,
) -> Iterator[Violation]:
    for role, number, needed, names in (
        ("reader", reader, READER_FEATURES_VERSION, reader_features),
        ("writer", writer, WRITER_FEATURES_VERSION, writer_features),
    ):
        if number == needed and names is None:
            yield Violation(
                ViolationKind.LIST_MISSING,
                f"{role} version {needed} requires the list {role}Features",
            )
        if number < needed and names is not None:
            yield Violation(
                ViolationKind.LIST_UNEXPECTED,
                f"{role}Features is only allowed at {role} version {needed}, not at {number}",
            )


def _member_violations(
    reader: int,
    reader_features: frozenset[str],
    writer_features: frozenset[str] | None,
) -> Iterator[Violation]:
    if writer_features is None:
        return
    for name in sorted(reader_features - writer_features):
        yield Violation(
            ViolationKind.NOT_IN_WRITER_LIST,
            f"{name} is in readerFeatures but not in writerFeatures",
            name,
        )
    for name in sorted(writer_features - reader_features):
        known = feature_catalog.find_feature(name)
        if known is None or known.kind is FeatureKind.WRITER:
            continue
        # Reader version 2 implies columnMapping for readers, so (2,7) lists it only for writers.
        if known.legacy and reader == known.min_reader:
            continue
        yield Violation(
            ViolationKind.NOT_FOR_READERS,
            f"{name} is a reader-writer feature, but not listed for readers: "
            f"reader version {reader}"
            + (", not in readerFeatures" if reader >= READER_FEATURES_VERSION else ""),
            name,
        )
