"""What a step does to Delta Spark's writers in flight, by the release of each writer.

Source: Delta Spark's `ConflictChecker` at its tags, and measured with delta-spark 3.3 to 4.4; see
`conflicts/releases.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.conflicts.operation import ExceptionName
from deltaproto.conflicts.releases import (
    ENFORCE,
    ENFORCED_SINCE,
    REBASED_SINCE,
    RESOLVE,
    SPARED,
    SURVIVED_PROPERTIES,
)
from deltaproto.planning.ddl.table_statements import ClusterByPaths
from deltaproto.planning.ddl.user_statement import UserStatement
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.schema import Struct, walk
from deltaproto.planning.predict.set_properties import about_protocol
from deltaproto.planning.predict.table import MODE, Table
from deltaproto.planning.statement import (
    ClusterBy,
    DropFeature,
    SetProperties,
    Statement,
    UnsetProperties,
)
from deltaproto.protocol import feature_catalog

_METADATA, _PROTOCOL = str(ExceptionName.METADATA), str(ExceptionName.PROTOCOL)
_UNKNOWN_FEATURE = "DeltaUnsupportedTableFeatureException"
_SURVIVED = {key.lower(): each for key, each in SURVIVED_PROPERTIES.items()}
_ROW_TRACKING = "delta.enablerowtracking"
_EVERY_RELEASE = "0"
# Commits before a drop that store files and metadata domains only.
_NO_METADATA = frozenset(
    {
        "Empty Commit",
        "REORG",
        "Deletion Vector Tombstones",
        "ROW TRACKING UNBACKFILL",
        "DOMAIN METADATA CLEANUP",
    }
)


class Writers(NamedTuple):
    """Delta Spark's writers of a table, as far as they are known."""

    releases: frozenset[str] | None = None
    """those that the recent log shows; None: not known"""
    session: Mapping[str, str] = MappingProxyType({})
    """settings of their sessions, as far as they are known"""


UNKNOWN = Writers()
EVERY = "every write in flight, blind appends too"


class Fate(NamedTuple):
    """What becomes of a writer that spans one of the step's commits."""

    exception: str
    why: str
    since: str | None = None
    """writers of this release and later survive; None: none does"""
    until: str | None = None
    """writers before this release survive, too; None: none does"""


def fates(
    statement: Statement, before: Table, outcome: Outcome, writers: Writers
) -> Iterator[Fate]:
    """The exceptions that the step raises in writers, each with the releases that it spares."""
    if isinstance(statement, DropFeature):
        yield from _dropped(statement, outcome)
        return
    added = outcome.table.protocol.supported - before.protocol.supported
    since, why = _by_metadata(statement, before, added, writers)
    if since != _EVERY_RELEASE:
        yield Fate(_METADATA, why, since)
    if since is not None:
        yield from _unknown(added, since)
    if _true(writers.session, ENFORCE):
        yield from _enforced(added)


def who(fate: Fate, writers: Writers) -> str | None:
    """Who gets the exception; None when the recent log shows releases, and none of these is hit."""
    since, until = fate.since, fate.until
    if since is None and until is None:
        return EVERY
    if writers.releases:
        found = [
            release
            for release in sorted(writers.releases, key=_parsed)
            if (since is None or _before(release, since))
            and (until is None or not _before(release, until))
        ]
        hit = " and ".join(found)
    else:
        bounds = [f"{until} or later" if until else "", f"before {since}" if since else ""]
        found = [bound for bound in bounds if bound]
        hit = ", ".join(found)
    return f"every write in flight by Delta Spark {hit}, blind appends too" if found else None


def others(statement: Statement, before: Table, outcome: Outcome, writers: Writers) -> str:
    """What becomes of the writers that no exception is named for."""
    seen = ""
    if writers.releases:
        shown = " and ".join(sorted(writers.releases, key=_parsed))
        seen = f"; the recent log shows Delta Spark {shown}"
    added = outcome.table.protocol.supported - before.protocol.supported
    unsafe = [name for name in sorted(added) if SPARED.get(name) != ENFORCED_SINCE]
    unless = ""
    if unsafe and not _true(writers.session, ENFORCE):
        unless = (
            f", unless their session sets {ENFORCE} to true ({ENFORCED_SINCE} and later), which "
            f"aborts them over {', '.join(unsafe)}"
        )
    return f"other writers are rebased{unless}{seen}"


def _dropped(statement: DropFeature, outcome: Outcome) -> Iterator[Fate]:
    prepared = outcome.commits if outcome.refusal is not None else outcome.commits[:-1]
    metadata = [commit for commit in prepared if commit.operation not in _NO_METADATA]
    if metadata:
        names = ", ".join(dict.fromkeys(commit.operation for commit in metadata))
        yield Fate(_METADATA, f"{names} changes the metadata before the drop itself")
    if outcome.refusal is None:
        yield Fate(_PROTOCOL, f"{statement.feature} leaves the protocol")


def _by_metadata(
    statement: Statement, before: Table, added: frozenset[str], writers: Writers
) -> tuple[str | None, str]:
    """The first release that is rebased over the step's metadata; None: none is. And why."""
    every = "the metadata changes, which no writer is rebased over"
    if reclusters(statement, before):
        return _EVERY_RELEASE, ""
    if _clusters(statement):
        changes = {}
    elif isinstance(statement, SetProperties):
        changes = {
            key.lower(): value
            for key, value in statement.properties.items()
            if not about_protocol(key) and _stored(before, key) != value
        }
    elif isinstance(statement, UnsetProperties):
        if any(_stored(before, key) is not None for key in statement.keys):
            return None, every
        changes = {}
    else:
        return None, every
    if _tracks_rows_only(statement):
        return _SURVIVED[_ROW_TRACKING].since, "earlier releases abort at every change of metadata"
    if "rowTracking" in added and not before.names_row_ids and _ROW_TRACKING not in changes:
        return None, "it stores the names of columns for row ids, which only enabling them may do"
    if writers.session.get(RESOLVE, "true").strip().lower() == "false":
        return None, f"the metadata changes, and the session sets {RESOLVE} to false"
    if not all(_allowed(key, changes, before) for key in changes):
        return None, every
    if MODE.lower() in changes and before.schema is None:
        return None, (
            "the metadata changes; the schema is not known, and only on a table without structs "
            f"are writers since {_SURVIVED[MODE.lower()].since} rebased over column mapping"
        )
    since = max((_SURVIVED[key].since for key in changes), key=_parsed, default=REBASED_SINCE)
    since = max(since, REBASED_SINCE, key=_parsed)
    stays = "" if changes else " that stays the same"
    return since, f"the step stores metadata{stays}, which earlier releases are not rebased over"


def _tracks_rows_only(statement: Statement) -> bool:
    """Whether Delta marks the commit as one that only enables row tracking."""
    if not isinstance(statement, SetProperties) or len(statement.properties) != 1:
        return False
    ((key, value),) = statement.properties.items()
    return key.lower() == _ROW_TRACKING and value.strip().lower() == "true"


def reclusters(statement: Statement, before: Table) -> bool:
    """Whether the step stores nothing but clustering columns, a domain that no data write touches.

    The first CLUSTER BY of a table stores its metadata as well.
    """
    return _clusters(statement) and "clustering" in before.protocol.supported


def _clusters(statement: Statement) -> bool:
    if isinstance(statement, UserStatement):
        return isinstance(statement.effect, ClusterByPaths)
    return isinstance(statement, ClusterBy)


def _stored(table: Table, key: str) -> str | None:
    lower = key.lower()
    return next((v for k, v in table.configuration.items() if k.lower() == lower), None)


def _allowed(key: str, changes: Mapping[str, str], before: Table) -> bool:
    """Whether the newest conflict checker lets writers survive this change of a property."""
    survived = _SURVIVED.get(key)
    if survived is None or changes[key].strip().lower() != survived.value:
        return False
    if key == MODE.lower():
        return not before.mapped and not _has_structs(before.schema)
    return True


def _has_structs(schema: Struct | None) -> bool:
    """Whether a column holds a struct, whose fields column mapping gives physical names as well."""
    return schema is not None and any(isinstance(c.type, Struct) for _, c in walk(schema))


def _unknown(added: Iterable[str], rebased: str) -> Iterator[Fate]:
    """Writers that would be rebased, of releases that do not know an added feature."""
    for name in sorted(added):
        since = feature_catalog.record(name).since.delta_spark
        if since is not None and _before(rebased, since):
            yield Fate(_UNKNOWN_FEATURE, f"these releases do not know {name}", since)


def _enforced(added: Iterable[str]) -> Iterator[Fate]:
    for name in sorted(added):
        spared = SPARED.get(name)
        if spared != ENFORCED_SINCE:
            yield Fate(
                _PROTOCOL,
                f"{name} is added, and the session sets {ENFORCE} to true",
                spared,
                ENFORCED_SINCE,
            )


def _true(session: Mapping[str, str], key: str) -> bool:
    return session.get(key, "").strip().lower() == "true"


def _before(release: str, bound: str) -> bool:
    return _parsed(release) < _parsed(bound)


def _parsed(release: str) -> version_scheme.Version:
    found = version_scheme.parse("dotted", release)
    assert found is not None, release
    return found
