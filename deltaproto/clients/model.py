"""What a client version accepts: gates, ranges of versions, and their evidence.

A capability is a set, not a maximum. A gate is the check of one side, reading or writing, as the
client makes it: which legacy versions it takes as such, and which features when they are listed.
To write, a client must pass both gates (PROTOCOL.md, "Writer Requirements for Table Features").
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients.requirements import more_general
from deltaproto.clients.verdict import Verdict

STRANGE = "*"
EVERY = "every table"
"""among the features of something that is known: it happens whatever the protocol is"""
_NONE: frozenset[str] = frozenset()


class Access(StrEnum):
    """What a client does with a table."""

    READ = "read"
    APPEND = "append"
    DML = "dml"
    """UPDATE, DELETE, MERGE"""
    MAINTAIN = "maintain"
    """OPTIMIZE, VACUUM, checkpoints, properties"""
    STREAM = "stream"
    """reads the table as a stream"""


READING = frozenset({Access.READ, Access.STREAM})


class Confidence(StrEnum):
    """How a range is known, the surest first."""

    MEASURED = "measured"
    SOURCE = "source"
    DOCUMENTED = "documented"
    INFERRED = "inferred"


class Evidence(NamedTuple):
    """Where a range is known from."""

    kind: str
    """measured, source, documentation or inference"""
    reference: str
    date: str | None = None
    """of the release, page or measurement, as YYYY-MM-DD"""


class ProtocolGate(NamedTuple):
    """One side's check."""

    legacy: frozenset[int]
    """legacy versions taken as such: reader 1 and 2, writer 1 to 6"""
    features: frozenset[str] | None = None
    """taken when listed; None: a table that lists features is refused"""
    unused: frozenset[str] = _NONE
    """taken, listed or implied, only while nothing on the table uses them"""
    legacy_unused: frozenset[str] = _NONE
    """the same, but only where a legacy version implies them; refused when listed"""
    unchecked: frozenset[str] | None = _NONE
    """let through without being understood: rows may be wrong where they are used; None: all.
    `STRANGE` in it stands for every name that nobody knows"""
    modes: Mapping[str, frozenset[str]] = MappingProxyType({})
    """feature to the modes of it that are understood, where not all are"""
    readers: frozenset[int] | None = None
    """legacy reader versions that a writer takes; None: those that it reads"""
    reader_features: frozenset[str] | None = None
    """reader features that a writer takes although it does not read them; None: those it reads"""


class AppliesTo(StrEnum):
    """Which of the tables that support a feature something happens to."""

    SUPPORTED = "supported"
    """all of them"""
    USED = "used"
    """those on which it is enabled or present"""
    PRESENT = "present"
    """those whose files or log hold traces of it"""


class KnownBad(NamedTuple):
    """What a release does although its gate lets the table through."""

    features: frozenset[str]
    access: frozenset[Access]
    what: str
    reference: str
    fails: bool = False
    """True: it fails safely; False: it does wrong without an error"""
    where: AppliesTo = AppliesTo.USED
    """which tables it happens to"""
    pairs: frozenset[tuple[int, int]] = frozenset()
    """reader and writer version of the tables that it happens to; empty: whatever they are"""
    ungated: bool = False
    """it happens to tables that the gates refuse as well: one of the operations asks no gate"""
    disputed: bool = False
    """two sources disagree on it, so that it is not known; `what` names both"""


class Handling(NamedTuple):
    """What a client does with tables that show a hazard."""

    verdict: Verdict
    what: str = ""
    """what goes wrong; empty when it is ok"""
    reference: str = ""


class Path(NamedTuple):
    """One way through a client. `read` also gates writing; `write` None: read-only."""

    name: str | None
    """None where the client has only one"""
    read: ProtocolGate | None
    write: ProtocolGate | None
    access: frozenset[Access]
    """what it offers at all"""
    known_bad: tuple[KnownBad, ...] = ()
    hazards: Mapping[tuple[str, Access], Handling] = MappingProxyType({})
    """what is known of tables with a hazard (`hazards`); what is missing is not known"""

    def handling(self, hazard: str, access: Access) -> Handling | None:
        """What the client does with a table that shows the hazard; None when that is not known."""
        for word in (hazard, more_general(hazard)):
            for tried in (access, Access.READ) if access is Access.STREAM else (access,):
                if word is not None and (word, tried) in self.hazards:
                    return self.hazards[word, tried]
        return None

    def offers(self, access: Access) -> bool:
        """Whether the access is offered, and by a gate: without one nothing is known to pass."""
        gate = self.read if access in READING else self.write
        return access in self.access and gate is not None


class Range(NamedTuple):
    """The client's versions that behave alike: from `start` (inclusive) to `end` (exclusive)."""

    start: str | None
    end: str | None
    paths: tuple[Path, ...]
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    note: str = ""
    whole: bool = False
    """a listed feature without the feature it requires is refused, even for reading"""
    catalog_only: frozenset[str] = _NONE
    """features of tables that are reached by catalog name only"""
    exact: bool = False
    """`start` alone is meant"""
    newest: str | None = None
    """the newest release of the range that is known; None: only `start` is"""
    partial: bool = False
    """the documents name some features only: one that is not listed is not known to be refused"""


class Client(NamedTuple):
    """An engine or library with all versions that are known."""

    id: str
    name: str
    aliases: tuple[str, ...]
    versions: str
    """the scheme: see `scheme`"""
    ranges: tuple[Range, ...]
    measured: tuple[Range, ...] = ()
    """single versions that were measured: `start` is the version. They go before the ranges"""

    @property
    def newest(self) -> Range:
        """What is known of its newest versions."""
        return (self.ranges or self.measured)[-1]
