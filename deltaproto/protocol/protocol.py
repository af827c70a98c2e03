"""`Protocol`: a table's requirements for readers and writers, and its arithmetic.

The arithmetic is Delta's own (`TableFeatureSupport.scala`, PROTOCOL.md "Table Features") and
is compared with it in the tests: *normalized* is the weakest form of a feature set,
*denormalized* the same set as explicit lists.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.stored_secrets import hide_in_name
from deltaproto.protocol.violations import (
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    InvalidProtocol,
    Violation,
    find_violations,
)

_REMEMBERED = 4096
_LONGEST_NAME = 255
"""most characters of a feature name; Delta's longest has fewer than 40"""
_MOST_MEMBERS = 20
_SHOWN = 100


class _Fields(NamedTuple):
    min_reader_version: int
    """the lowest reader version"""
    min_writer_version: int
    """the lowest writer version"""
    reader_features: frozenset[str] | None
    """the reader features as stored; None without a list"""
    writer_features: frozenset[str] | None
    """the writer features as stored; None without a list"""


class Protocol(_Fields):
    """One protocol action. The constructor refuses combinations that the spec forbids.

    `reader_features` is set exactly at reader version 3, `writer_features` exactly at writer
    version 7; an empty list differs from a missing one.

    Raises:
        InvalidProtocol: with every violated rule.
    """

    __slots__ = ()

    def __new__(
        cls,
        min_reader_version: int,
        min_writer_version: int,
        reader_features: frozenset[str] | None = None,
        writer_features: frozenset[str] | None = None,
    ) -> "Protocol":
        protocol = super().__new__(
            cls, min_reader_version, min_writer_version, reader_features, writer_features
        )
        broken = protocol.violations()
        if broken:
            raise InvalidProtocol(broken)
        return protocol

    def __reduce__(self) -> tuple[Any, ...]:
        # An invalid stored protocol must survive pickling unchanged.
        return Protocol._make, (tuple(self),)

    @classmethod
    def stored(cls, action: Mapping[str, Any]) -> "Protocol":
        """Parse a log action's protocol exactly as stored, valid or not.

        Only this constructor allows an invalid protocol; check `violations()` before use.

        Raises:
            ValueError: if versions are not integers or lists are not lists of strings.
        """
        return cls._make(
            (
                _version(action, "minReaderVersion"),
                _version(action, "minWriterVersion"),
                _names(action, "readerFeatures"),
                _names(action, "writerFeatures"),
            )
        )

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> "Protocol":
        """Parse a log action's protocol; refuse an invalid one."""
        return cls(*cls.stored(action))

    @classmethod
    def carrying(
        cls, features: Iterable[str], *, reader_features: Iterable[str] = ()
    ) -> "Protocol":
        """Return the lowest protocol that supports `features` and their requirements.

        `reader_features` lists the unknown features that readers must support.
        """
        return _lowest_form(
            feature_catalog.with_required_features(features), frozenset(reader_features)
        )

    def to_action(self) -> dict[str, Any]:
        """Return the action as stored in the log: no key for a missing list."""
        action: dict[str, Any] = {
            "minReaderVersion": self.min_reader_version,
            "minWriterVersion": self.min_writer_version,
        }
        if self.reader_features is not None:
            action["readerFeatures"] = sorted(self.reader_features)
        if self.writer_features is not None:
            action["writerFeatures"] = sorted(self.writer_features)
        return action

    def violations(self) -> tuple[Violation, ...]:
        """Return every violated rule of the spec; empty if valid."""
        return find_violations(
            self.min_reader_version,
            self.min_writer_version,
            self.reader_features,
            self.writer_features,
        )

    @property
    def from_the_future(self) -> bool:
        """True if a version is higher than the spec defines."""
        return (
            self.min_reader_version > READER_FEATURES_VERSION
            or self.min_writer_version > WRITER_FEATURES_VERSION
        )

    @property
    def listed(self) -> frozenset[str]:
        """Features in either list."""
        return (self.reader_features or frozenset()) | (self.writer_features or frozenset())

    @property
    def implied(self) -> frozenset[str]:
        """Features implied by the version numbers."""
        return feature_catalog.features_implied_by(self.min_reader_version, self.min_writer_version)

    @property
    def supported(self) -> frozenset[str]:
        """Features that a client must support: listed and implied."""
        return _supported(self)

    @property
    def uses_table_features(self) -> bool:
        """True if writers use an explicit list; otherwise this is a legacy pair."""
        return self.min_writer_version >= WRITER_FEATURES_VERSION

    def kind_of(self, feature: str) -> FeatureKind:
        """Return who must support `feature`; for an unknown one, its lists decide."""
        in_reader_list = feature in (self.reader_features or ())
        return feature_catalog.feature_record(feature, in_reader_list=in_reader_list).kind

    def denormalized(self) -> "Protocol":
        """Return the same features as explicit lists; a table-features protocol is unchanged."""
        if self.uses_table_features:
            return self
        return _with_lists(self.implied, frozenset())

    def normalized(self) -> "Protocol":
        """Return the weakest form of the same features; a legacy pair is unchanged."""
        if not self.uses_table_features:
            return self
        return _lowest_form(self.supported, self._reader_features_by_list())

    def lowest(self) -> "Protocol":
        """Return the lowest protocol for the same features; repairs odd legacy pairs.

        (2,3) becomes (1,3), (1,5) becomes (1,4): Delta's `denormalizedNormalized`.
        """
        return self.denormalized().normalized()

    def merge(self, *others: "Protocol") -> "Protocol":
        """Return the lowest protocol with all features of all protocols, as for upgrades.

        Two legacy pairs merge to the larger of each number, which may imply a feature that
        neither does: (2,1) with (1,5) is (2,5). Delta does the same.
        """
        protocols = (self, *others)
        if not any(protocol.uses_table_features for protocol in protocols):
            return Protocol(
                max(protocol.min_reader_version for protocol in protocols),
                max(protocol.min_writer_version for protocol in protocols),
            ).lowest()
        supported = frozenset().union(*(protocol.supported for protocol in protocols))
        unknown = frozenset().union(*(p._reader_features_by_list() for p in protocols))
        return _lowest_form(supported, unknown)

    @property
    def versions(self) -> tuple[int, int]:
        """The minimum reader and writer version."""
        return self.min_reader_version, self.min_writer_version

    def with_feature(self, name: str, *, in_reader_list: bool = False) -> "Protocol":
        """Return the lowest protocol that also supports `name` and its requirements."""
        unknown = frozenset({name} if in_reader_list else ())
        added = feature_catalog.with_required_features({name})
        return _lowest_form(self.supported | added, self._reader_features_by_list() | unknown)

    def without_feature(self, name: str) -> "Protocol":
        """Return the lowest protocol without `name`; requirements stay (Protocol.removeFeature)."""
        return self.without_features((name,))

    def without_features(self, names: Iterable[str]) -> "Protocol":
        """Return the lowest protocol without `names`, which may require each other.

        A feature that a remaining feature requires stays.
        """
        gone = frozenset(names)
        return _lowest_form(self.supported - gone, self._reader_features_by_list() - gone)

    def _reader_features_by_list(self) -> frozenset[str]:
        # Delta Spark rebuilds the lists from its own records. For unknown features only the list
        # itself decides.
        return frozenset(
            name for name in self.reader_features or () if not feature_catalog.is_registered(name)
        )

    @property
    def in_words(self) -> str:
        """The features, then the versions, as text."""
        return f"{', '.join(sorted(self.supported)) or 'no features'} {self}"

    def __str__(self) -> str:
        return f"({self.min_reader_version},{self.min_writer_version})"


@lru_cache(maxsize=_REMEMBERED)
def _supported(protocol: Protocol) -> frozenset[str]:
    return protocol.listed | protocol.implied


@lru_cache(maxsize=_REMEMBERED)
def _lowest_form(features: frozenset[str], by_list: frozenset[str]) -> Protocol:
    records = [feature_catalog.feature_record(n, in_reader_list=n in by_list) for n in features]
    reader = max((record.min_reader for record in records), default=1)
    writer = max((record.min_writer for record in records), default=1)
    if (
        writer < WRITER_FEATURES_VERSION
        and feature_catalog.features_implied_by(reader, writer) == features
    ):
        return Protocol(reader, writer)
    # Delta re-adds each feature with its requirements, so a missing requirement of a listed feature
    # is restored here (TableFeatureSupport.withFeature).
    return _with_lists(feature_catalog.with_required_features(features), by_list)


def _with_lists(features: frozenset[str], by_list: frozenset[str]) -> Protocol:
    records = [feature_catalog.feature_record(n, in_reader_list=n in by_list) for n in features]
    reader = max((record.min_reader for record in records), default=1)
    for_readers = frozenset(r.name for r in records if r.kind is FeatureKind.READER_WRITER)
    return Protocol(
        reader,
        WRITER_FEATURES_VERSION,
        for_readers if reader >= READER_FEATURES_VERSION else None,
        features,
    )


def _version(action: Mapping[str, Any], key: str) -> int:
    value = action.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{key} is {show_value(value)}, not an integer")
    return value


def _names(action: Mapping[str, Any], key: str) -> frozenset[str] | None:
    value = action.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key} is {show_value(value)}, not a list of names")
    names = frozenset(value)
    if "" in names:
        raise ValueError(f"{key} has an empty name")
    longest = max(map(len, names), default=0)
    if longest > _LONGEST_NAME:
        raise ValueError(
            f"{key} has a name of {longest} characters; the longest accepted is {_LONGEST_NAME}"
        )
    return frozenset(map(hide_in_name, names))


def show_value(value: object) -> str:
    """Format a stored value as JSON for an error message, shortened if long."""
    if isinstance(value, str | bytes):
        text = repr(value[: _SHOWN + 1])
    elif isinstance(value, list | dict) and len(value) > _MOST_MEMBERS:
        # A damaged log may have a million members here.
        kind = "an array" if isinstance(value, list) else "an object"
        text = f"{kind} of {len(value)}"
    else:
        text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
