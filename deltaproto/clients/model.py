"""Supported protocols of client versions: gates, version ranges, and evidence.

Support is a set, not a maximum. A gate is a client's check of one side, reading or writing: the
legacy versions that it accepts without lists, and the features that it accepts when listed.
To write, a client must pass both gates (PROTOCOL.md, "Writer Requirements for Table Features").
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients.requirements import wider_hazards

ANY_UNKNOWN_FEATURE = "*"
ANY_TABLE = "every table"
"""pseudo-feature of a known problem that occurs with every protocol"""
_NONE: frozenset[str] = frozenset()


class Access(StrEnum):
    """A client's use of a table."""

    READ = "read"
    """reads the table"""
    APPEND = "append"
    """adds rows"""
    DML = "dml"
    """UPDATE, DELETE, MERGE"""
    MAINTAIN = "maintain"
    """OPTIMIZE, VACUUM, checkpoints, properties"""
    STREAM = "stream"
    """reads the table as a stream"""


READ_ACCESSES = frozenset({Access.READ, Access.STREAM})


class Confidence(StrEnum):
    """How reliable the facts about a range are, best first."""

    MEASURED = "measured"
    SOURCE = "source"
    DOCUMENTED = "documented"
    INFERRED = "inferred"


class Evidence(NamedTuple):
    """The source of the facts about a range."""

    kind: str
    """measured, source, documentation or inference"""
    reference: str
    date: str | None = None
    """date of the release, page or measurement, as YYYY-MM-DD"""


class ProtocolGate(NamedTuple):
    """The check of one side."""

    legacy: frozenset[int]
    """legacy versions accepted without feature lists: reader 1 and 2, writer 1 to 6"""
    features: frozenset[str] | None = None
    """accepted when listed; None: a table that lists features is refused"""
    unused: frozenset[str] = _NONE
    """accepted, listed or implied, only while nothing on the table uses them"""
    legacy_unused: frozenset[str] = _NONE
    """the same, but only where a legacy version implies them; refused when listed"""
    unchecked: frozenset[str] | None = _NONE
    """accepted without support, so rows may be wrong if the features are used; None: all.
    `ANY_UNKNOWN_FEATURE` stands for every unknown name"""
    modes: Mapping[str, frozenset[str]] = MappingProxyType({})
    """feature to its supported modes, if not all are supported"""
    readers: frozenset[int] | None = None
    """legacy reader versions that a writer accepts; None: those that it reads"""
    reader_features: frozenset[str] | None = None
    """reader features that a writer accepts without reading them; None: those it reads"""

    @property
    def accepts_nothing(self) -> bool:
        """True if no protocol passes: the client publishes tables, and opens none of others."""
        return not self.legacy and self.features is None and self.unchecked == _NONE


class AppliesTo(StrEnum):
    """Which of the tables with a feature a problem affects."""

    SUPPORTED = "supported"
    """all tables that support it"""
    USED = "used"
    """tables on which it is enabled or present"""
    PRESENT = "present"
    """tables with traces of it in files or log"""


MEASURED_REFERENCE = "certify, "
"""the beginning of the reference of what `certify` measured on a reference table"""


def is_measured(reference: str) -> bool:
    """Return True for the reference of a measurement."""
    return reference.startswith(MEASURED_REFERENCE)


class KnownBad(NamedTuple):
    """A known problem of a release on tables that its gates accept."""

    features: frozenset[str]
    access: frozenset[Access]
    what: str
    reference: str
    fails: bool = False
    """True: it fails safely; False: it does wrong without an error"""
    where: AppliesTo = AppliesTo.USED
    """the affected tables"""
    pairs: frozenset[tuple[int, int]] = frozenset()
    """reader and writer versions of affected tables; empty: any"""
    ungated: bool = False
    """True if it also affects tables that the gates refuse: an operation skips the gate"""
    disputed: bool = False
    """True if two sources disagree, so it is unknown; `what` names both"""


class Verdict(StrEnum):
    """What happens when the client tries, worst first."""

    WRONG = "wrong"
    """it may read wrong rows, lose data or break guarantees"""
    UNKNOWN = "unknown"
    """unknown, so not relied on"""
    REFUSED = "refused"
    """it fails safely"""
    OK = "ok"
    """it works"""


class Handling(NamedTuple):
    """A client's handling of tables with a hazard."""

    verdict: Verdict
    what: str = ""
    """what goes wrong; empty if ok"""
    reference: str = ""


class Path(NamedTuple):
    """One path of a client. `read` also gates writing; `write` None: read-only."""

    name: str | None
    """None if the client has only one path"""
    read: ProtocolGate | None
    write: ProtocolGate | None
    access: frozenset[Access]
    """the offered accesses"""
    known_bad: tuple[KnownBad, ...] = ()
    hazards: Mapping[tuple[str, Access], Handling] = MappingProxyType({})
    """handling by hazard (`requirements`); missing entries are unknown"""

    def handling(self, hazard: str, access: Access) -> Handling | None:
        """Return the client's handling of a hazard; None if unknown."""
        for word in wider_hazards(hazard):
            for tried in (access, Access.READ) if access is Access.STREAM else (access,):
                if (word, tried) in self.hazards:
                    return self.hazards[word, tried]
        return None

    def offers(self, access: Access) -> bool:
        """Return True if the access is offered and has a gate."""
        gate = self.read if access in READ_ACCESSES else self.write
        return access in self.access and gate is not None


class Range(NamedTuple):
    """Client versions with equal behavior: from `start` (inclusive) to `end` (exclusive)."""

    start: str | None
    end: str | None
    paths: tuple[Path, ...]
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    note: str = ""
    whole: bool = False
    """True if a listed feature without its required feature is refused, even for reading"""
    catalog_only: frozenset[str] = _NONE
    """features of tables that are accessible only by catalog name"""
    exact: bool = False
    """True if only `start` is covered"""
    newest: str | None = None
    """the newest known release of the range; None: only `start` is known"""
    partial: bool = False
    """True if the documents list only some features, so others are unknown"""


class VersionedHazards(NamedTuple):
    """Handling of hazards by a client, from `start` to before `end`."""

    start: str | None
    end: str | None
    hazards: Mapping[tuple[str, Access], Handling]
    path: str | None = None
    """the path that handles them this way; None: every path"""


def concerns_path(named: str | None, path: str | None) -> bool:
    """Return True if a fact for path `named` (None: every path) may concern `path`.

    A client without named paths (None) has them all.
    """
    return named is None or path is None or named == path


class Client(NamedTuple):
    """An engine or library with all its known versions."""

    id: str
    name: str
    aliases: tuple[str, ...]
    versions: str
    """the version scheme: see `version_scheme`"""
    ranges: tuple[Range, ...]
    measured: tuple[Range, ...] = ()
    """measured single versions (`start`), which take precedence over `ranges`"""
    hazards: tuple[VersionedHazards, ...] = ()
    """facts of every path; those that apply to the first version of a range are in its paths"""

    @property
    def newest(self) -> Range:
        """The range of the newest versions."""
        return (self.ranges or self.measured)[-1]


class PathVerdict(NamedTuple):
    """The verdict on one client path, with the deciding features and a reason.

    While verdicts are collected, `{}` in a reason is a placeholder for the features.
    """

    verdict: Verdict
    because: tuple[str, ...] = ()
    reason: str = ""
