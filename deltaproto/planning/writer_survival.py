"""The effect of a step on Delta Spark's in-flight writers, by the release of each writer.

Source: Delta Spark's `ConflictChecker` at each release tag, and measurements with delta-spark 3.3
to 4.4; see `conflicts/releases.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.conflicts.operation import ExceptionName
from deltaproto.conflicts.releases import (
    ENFORCE_ENABLEMENT_SETTING,
    ENFORCED_SINCE,
    REBASED_SINCE,
    RESOLVE_CONFLICTS_SETTING,
    SPARED_RELEASES,
    SURVIVED_PROPERTIES,
)
from deltaproto.counts import all_names
from deltaproto.planning.ddl.user_statement import ClusterByPaths, UserStatement
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.schema import Struct, walk_columns
from deltaproto.planning.predict.set_properties import is_protocol_property
from deltaproto.planning.predict.table import MAPPING_MODE, Table
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
# Commits before a drop that contain only files and metadata domains.
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
    """What is known about a table's Delta Spark writers."""

    releases: frozenset[str] | None = None
    """releases found in the recent log; None: unknown"""
    session: Mapping[str, str] = MappingProxyType({})
    """known settings of their sessions"""


UNKNOWN_WRITERS = Writers()
EVERY_WRITE = "every in-flight write, including blind appends"


class WriterFate(NamedTuple):
    """The effect on a writer that overlaps one of the step's commits."""

    exception: str
    why: str
    since: str | None = None
    """writers of this release and later survive; None: no release does"""
    until: str | None = None
    """writers before this release also survive; None: no release does"""


def predict_writer_fates(
    statement: Statement, before: Table, outcome: Outcome, writers: Writers
) -> Iterator[WriterFate]:
    """Yield exceptions that the step causes in writers, with the surviving releases."""
    if isinstance(statement, DropFeature):
        yield from _fates_of_drop(statement, outcome)
        return
    added = outcome.table.protocol.supported - before.protocol.supported
    since, why = _first_rebased_release(statement, before, added, writers)
    if since != _EVERY_RELEASE:
        yield WriterFate(_METADATA, why, since)
    if since is not None:
        yield from _fates_of_unknown_features(added, since)
    if _is_true(writers.session, ENFORCE_ENABLEMENT_SETTING):
        yield from _fates_of_enforcement(added)


def describe_affected_writers(fate: WriterFate, writers: Writers) -> str | None:
    """Describe the affected writers; None if no release in the recent log is affected."""
    since, until = fate.since, fate.until
    if since is None and until is None:
        return EVERY_WRITE
    if writers.releases:
        found = [
            release
            for release in sorted(writers.releases, key=_parse_release)
            if (since is None or _is_before(release, since))
            and (until is None or not _is_before(release, until))
        ]
        hit = all_names(found)
    else:
        bounds = [f"{until} or later" if until else "", f"before {since}" if since else ""]
        found = [bound for bound in bounds if bound]
        hit = ", ".join(found)
    return f"every in-flight write by Delta Spark {hit}, including blind appends" if found else None


def describe_other_writers(before: Table, outcome: Outcome, writers: Writers) -> str:
    """Describe the effect on the writers without an exception."""
    seen = ""
    if writers.releases:
        shown = " and ".join(sorted(writers.releases, key=_parse_release))
        seen = f"; the recent log shows Delta Spark {shown}"
    added = outcome.table.protocol.supported - before.protocol.supported
    unsafe = [name for name in sorted(added) if SPARED_RELEASES.get(name) != ENFORCED_SINCE]
    unless = ""
    if unsafe and not _is_true(writers.session, ENFORCE_ENABLEMENT_SETTING):
        unless = (
            f", unless their session sets {ENFORCE_ENABLEMENT_SETTING} to true "
            f"({ENFORCED_SINCE} and later), which "
            f"aborts them because of {', '.join(unsafe)}"
        )
    return f"other writers are rebased{unless}{seen}"


def _fates_of_drop(statement: DropFeature, outcome: Outcome) -> Iterator[WriterFate]:
    prepared = outcome.commits if outcome.refusal is not None else outcome.commits[:-1]
    metadata = [commit for commit in prepared if commit.operation not in _NO_METADATA]
    if metadata:
        names = ", ".join(dict.fromkeys(commit.operation for commit in metadata))
        yield WriterFate(_METADATA, f"{names} changes the metadata before the drop")
    if outcome.refusal is None:
        yield WriterFate(_PROTOCOL, f"{statement.feature} is removed from the protocol")


def _first_rebased_release(
    statement: Statement, before: Table, added: frozenset[str], writers: Writers
) -> tuple[str | None, str]:
    """Return the first release that is rebased over the metadata change (or None), and why."""
    every = "the metadata changes, and no writer is rebased over that"
    if only_changes_clustering(statement, before):
        return _EVERY_RELEASE, ""
    if _is_clustering_statement(statement):
        changes = {}
    elif isinstance(statement, SetProperties):
        changes = {
            key.lower(): value
            for key, value in statement.properties.items()
            if not is_protocol_property(key) and _find_property(before, key) != value
        }
    elif isinstance(statement, UnsetProperties):
        if any(_find_property(before, key) is not None for key in statement.keys):
            return None, every
        changes = {}
    else:
        return None, every
    if _tracks_rows_only(statement):
        return _SURVIVED[_ROW_TRACKING].since, "earlier releases abort on every metadata change"
    if "rowTracking" in added and not before.names_row_ids and _ROW_TRACKING not in changes:
        return None, "it stores column names for row ids, which only enabling row tracking may do"
    if writers.session.get(RESOLVE_CONFLICTS_SETTING, "true").strip().lower() == "false":
        return (
            None,
            f"the metadata changes, and the session sets {RESOLVE_CONFLICTS_SETTING} to false",
        )
    if not all(_is_survivable(key, changes, before) for key in changes):
        return None, every
    if MAPPING_MODE.lower() in changes and before.schema is None:
        return None, (
            "the metadata changes; the schema is unknown, and only on a table without structs "
            f"are writers since {_SURVIVED[MAPPING_MODE.lower()].since} rebased over column mapping"
        )
    since = max(
        (_SURVIVED[key].since for key in changes), key=_parse_release, default=REBASED_SINCE
    )
    since = max(since, REBASED_SINCE, key=_parse_release)
    stays = "" if changes else " that does not change"
    return since, f"the step stores metadata{stays}, and earlier releases are not rebased over that"


def _tracks_rows_only(statement: Statement) -> bool:
    """Return True if Delta marks the commit as only enabling row tracking."""
    if not isinstance(statement, SetProperties) or len(statement.properties) != 1:
        return False
    ((key, value),) = statement.properties.items()
    return key.lower() == _ROW_TRACKING and value.strip().lower() == "true"


def only_changes_clustering(statement: Statement, before: Table) -> bool:
    """Return True if the step only stores clustering columns, which data writes ignore.

    The first CLUSTER BY of a table also stores its metadata.
    """
    return _is_clustering_statement(statement) and "clustering" in before.protocol.supported


def _is_clustering_statement(statement: Statement) -> bool:
    if isinstance(statement, UserStatement):
        return isinstance(statement.effect, ClusterByPaths)
    return isinstance(statement, ClusterBy)


def _find_property(table: Table, key: str) -> str | None:
    lower = key.lower()
    return next((v for k, v in table.configuration.items() if k.lower() == lower), None)


def _is_survivable(key: str, changes: Mapping[str, str], before: Table) -> bool:
    """Return True if writers survive this property change with the newest conflict checker."""
    survived = _SURVIVED.get(key)
    if survived is None or changes[key].strip().lower() != survived.value:
        return False
    if key == MAPPING_MODE.lower():
        return not before.mapped and not _has_structs(before.schema)
    return True


def _has_structs(schema: Struct | None) -> bool:
    """Return True if a column contains a struct, whose fields also get physical names."""
    return schema is not None and any(isinstance(c.type, Struct) for _, c in walk_columns(schema))


def _fates_of_unknown_features(added: Iterable[str], rebased: str) -> Iterator[WriterFate]:
    """Yield the effect on writers of releases that do not support an added feature."""
    for name in sorted(added):
        since = feature_catalog.feature_record(name).since.delta_spark
        if since is not None and _is_before(rebased, since):
            yield WriterFate(_UNKNOWN_FEATURE, f"these releases do not support {name}", since)


def _fates_of_enforcement(added: Iterable[str]) -> Iterator[WriterFate]:
    for name in sorted(added):
        releases = SPARED_RELEASES.get(name)
        if releases != ENFORCED_SINCE:
            yield WriterFate(
                _PROTOCOL,
                f"{name} is added, and the session sets {ENFORCE_ENABLEMENT_SETTING} to true",
                releases,
                ENFORCED_SINCE,
            )


def _is_true(session: Mapping[str, str], key: str) -> bool:
    return session.get(key, "").strip().lower() == "true"


def _is_before(release: str, bound: str) -> bool:
    return _parse_release(release) < _parse_release(bound)


def _parse_release(release: str) -> version_scheme.Version:
    found = version_scheme.parse_version("dotted", release)
    assert found is not None, release
    return found
