"""Remedies for clients that cannot use a table, cheapest first.

Upgrading the client does not touch the table. Dropping a feature changes the table's protocol. It
is cheap only if it rewrites no files and keeps the history (the feature's `DropBehavior` record).
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients import requirements
from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import Access, Client, Path, PathVerdict, Range, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import (
    ClientAtVersion,
    ClientReference,
    first_version_of,
    newest_version_of,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.compatibility_mode import FORMAT, FORMATS, LOCATION
from deltaproto.protocol.feature import DropBehavior
from deltaproto.protocol.feature_catalog import add_unlisted
from deltaproto.protocol.protocol import Protocol

TABLE = "{table}"
COPY_PROTOCOL = Protocol(1, 2)
"""the protocol that readers of a copy see: Delta and Iceberg metadata of version 1"""
_COPY = TableRequirements(COPY_PROTOCOL, frozenset(), frozenset())


class RemedyCost(StrEnum):
    """The cost of a remedy, cheapest first."""

    NONE = "none"
    """nothing is changed"""
    METADATA = "metadata"
    """a few commits, without rewriting files"""
    CLIENT = "client"
    """another client version"""
    COPY = "copy"
    """an additional copy of the table"""
    HISTORY = "history"
    """the history is truncated, or checkpointProtection is left"""
    REWRITE = "rewrite"
    """data files are rewritten"""


class Remedy(NamedTuple):
    """One remedy."""

    kind: str
    """`look-in-files`, `raise-client`, `use-catalog`, `normalise`, `add-feature`, `set-property`,
    `drop-feature` or `read-copy`"""
    cost: RemedyCost
    text: str
    client: str | None = None
    features: tuple[str, ...] = ()
    command: str | None = None
    """command to run; `{table}` is a placeholder for the table"""

    def command_for(self, table: str) -> str | None:
        """Return the command with the table's name, quoted for a POSIX shell."""
        if self.command is None:
            return None
        import shlex

        return self.command.replace(TABLE, shlex.quote(table))


class _Failing(NamedTuple):
    """A client that cannot use a table, or may not be able to."""

    candidate: ClientAtVersion
    path: Path
    table: TableRequirements
    access: Access
    because: tuple[str, ...]
    """the features that decide"""

    def works_on(self, changed: TableRequirements | None) -> bool:
        """Return True if this version can use a changed table; False if it is unknown."""
        known = self.candidate.range
        return (
            known is not None
            and changed is not None
            and judge_access(known, self.path, changed, self.access).verdict is Verdict.OK
        )


def find_remedies(
    candidate: ClientAtVersion,
    path: Path,
    table: TableRequirements,
    access: Access,
    judgement: PathVerdict,
) -> tuple[Remedy, ...]:
    """Return the remedies for this verdict; empty if it is ok or nothing helps."""
    if judgement.verdict is Verdict.OK:
        return ()
    failing = _Failing(candidate, path, table, access, judgement.because)
    found = [remedy for find in _REMEDIES if (remedy := find(failing)) is not None]
    return tuple(sorted(found, key=lambda remedy: list(RemedyCost).index(remedy.cost)))


def _look_in_files_remedy(failing: _Failing) -> Remedy | None:
    """Suggest reading all statistics, if only the unread ones decide."""
    table, unread = failing.table, {requirements.UNREAD_BOOLEAN_BOUNDS}
    # Spark does not show them.
    if table.by_name or not unread & table.hazards:
        return None
    if not failing.works_on(table._replace(hazards=table.hazards - unread)):
        return None
    return Remedy(
        "look-in-files",
        RemedyCost.NONE,
        "read the statistics of every data file",
        command=f"deltaproto check {TABLE} --look-in-files",
    )


def _upgrade_remedy(failing: _Failing) -> Remedy | None:
    """Return the newest known version that passes, with the first version that works."""
    candidate = failing.candidate
    client, here = candidate.client, candidate.documented or candidate.range
    later = client.ranges[client.ranges.index(here) + 1 :] if here in client.ranges else ()
    first: ClientReference | None = None
    newest: ClientReference | None = None
    for each in later:
        start, known = _passing_versions(each, client, failing.path, failing.table, failing.access)
        if known is None and newest is not None:
            break
        first, newest = first or start or known, known or newest
    if newest is None:
        return None
    text = f"upgrade the client to {newest}"
    if first is not None and first.version not in (None, newest.version):
        text += f" (works since {first.version})"
    return Remedy("raise-client", RemedyCost.CLIENT, text, client=str(newest))


@cache_by_identity(4096)
def _passing_versions(
    each: Range, client: Client, path: Path, table: TableRequirements, access: Access
) -> tuple[ClientReference | None, ClientReference | None]:
    """Return the first and the newest version of a range; None for a version that fails."""
    start = _find_passing_path(first_version_of(each, client), path, table, access)
    newest = _find_passing_path(newest_version_of(each, client), path, table, access)
    return start, newest or start


def _find_passing_path(
    there: ClientAtVersion, path: Path, table: TableRequirements, access: Access
) -> ClientReference | None:
    """Return the first passing path of a version: the one with the same name, or the only one."""
    others = [p for p in there.paths if path.name is None or p.name in (path.name, None)]
    for passing in others:
        if there.range and _passes(there.range, passing, table, access):
            return there.reference._replace(path=passing.name)
    return None


@cache_by_identity(4096)
def _passes(each: Range, path: Path, table: TableRequirements, access: Access) -> bool:
    """Return True if the verdict is ok; cached, because many versions ask about the same ones."""
    return judge_access(each, path, table, access).verdict is Verdict.OK


def _complete_features_remedy(failing: _Failing) -> Remedy | None:
    """Add missing features required by listed ones, if that is sufficient."""
    missing = {
        required
        for name in failing.because
        for required in feature_catalog.required_features(name)
        if required not in failing.table.protocol.supported
    }
    names = tuple(sorted(missing))
    if not names or not failing.works_on(requirements.with_unused_features(failing.table, names)):
        return None
    # No command: Delta Spark and Databricks refuse every statement on such a table.
    ways = (f"{name} is missing from the protocol: {add_unlisted(name)}" for name in names)
    return Remedy("add-feature", RemedyCost.METADATA, "; ".join(ways), features=names)


def _give_row_ids_remedy(failing: _Failing) -> Remedy | None:
    """Enable row tracking again, if only files without row ids decide."""
    hazards = failing.table.hazards - {requirements.UNTRACKED_FILES}
    changed = failing.table._replace(hazards=hazards)
    if hazards == failing.table.hazards or not failing.works_on(changed):
        return None
    return Remedy(
        "set-property",
        RemedyCost.METADATA,
        "enable row tracking again, which gives row ids to all files",
        features=("rowTracking",),
        command=f"deltaproto plan-upgrade {TABLE} --enable rowTracking",
    )


def _drop_features_remedy(failing: _Failing) -> Remedy | None:
    """Drop the features that decide; otherwise all that keep the protocol from a legacy pair.

    A client may accept a pair, but not the same features in a list.
    """
    if failing.candidate.range is None or not failing.path.offers(failing.access):
        return None
    supported = failing.table.protocol.supported
    legacy = {record.name for record in feature_catalog.LEGACY}
    others = tuple(sorted(supported - legacy))
    pairs = _find_pairs(supported & legacy) if others else ()
    tries = ((failing.because, None), (others, None), *((others, pair) for pair in pairs))
    found = (_drop_remedy(failing, features, pair) for features, pair in tries)
    return next(filter(None, found), None)


def _find_pairs(features: frozenset[str]) -> Iterator[Protocol]:
    """Yield the legacy pairs that imply these features, and perhaps others; the lowest first."""
    pairs = (Protocol(*pair) for pair in feature_catalog.LEGACY_PAIRS)
    return (pair for pair in pairs if features <= pair.supported)


def _drop_remedy(
    failing: _Failing, features: tuple[str, ...], pair: Protocol | None
) -> Remedy | None:
    """Return the remedy that drops the droppable ones of these features, if it is sufficient.

    `pair` is the protocol to store afterwards; None: the one that the drops leave.
    """
    table, known = failing.table, failing.candidate.range
    names = _find_droppable(table, features)
    if not names or known is None or set(names) & known.catalog_only:
        return None
    # All of them must go before a pair can be stored.
    if pair is not None and not {*features} <= {*names}:
        return None
    engine = _find_dropping_engine(table.protocol, names)
    if engine is None:
        return None
    drops = [feature_catalog.feature_record(name).drop for name in names]
    without = requirements.without_features(table, names)
    if without is not None and pair is not None:
        without = requirements.stored_as(without, pair)
    if without is None or not failing.works_on(without):
        return None
    cost, text, flags = _cost(drops), f"drop {', '.join(names)}", ""
    if "checkConstraints" in names and table.uses("checkConstraints") is not False:
        text = f"drop the constraints, then {', '.join(names)}"
    if "columnMapping" in names and _is_clustered(table):
        text = f"ALTER TABLE … CLUSTER BY NONE (otherwise Delta 4.4 breaks the table), then {text}"
    if engine:
        text = f"with Databricks, {text}"
    if cost is RemedyCost.REWRITE:
        text += ", which rewrites data files"
    if any(drop.protects_history or drop.needs_truncate for drop in drops):
        if any(drop.needs_truncate for drop in drops) or not failing.works_on(
            requirements.with_checkpoint_protection(without)
        ):
            flags = " --history truncate"
            text += "; the history is truncated"
        else:
            text += "; checkpointProtection is left"
    goal = f"--drop {' '.join(names)}{flags}"
    if pair is not None:
        text += f"; then store the protocol as {pair}"
        goal = f"--protocol {pair.min_reader_version},{pair.min_writer_version}"
    command = None
    if table.by_name or not feature_catalog.CATALOG_MANAGED & table.protocol.supported:
        command = f"deltaproto plan-downgrade {TABLE} {goal}{engine}"
    else:
        text += "; use the table's catalog name"
    return Remedy("drop-feature", cost, text, features=names, command=command)


def _find_dropping_engine(protocol: Protocol, names: tuple[str, ...]) -> str | None:
    """Return the option that selects an engine which can drop the features; empty for Delta Spark.

    None if neither Delta Spark nor Databricks can, because each drops or supports only some of the
    features, or a feature that a listed one requires is missing: both then refuse every statement.
    """
    listed = [feature_catalog.feature_record(name) for name in protocol.listed]
    if any(
        required not in protocol.supported
        for record in listed
        for required in feature_catalog.required_features(record.name)
    ):
        return None
    drops = [feature_catalog.feature_record(name).drop for name in names]
    on_spark = [record.since.delta_spark is not None for record in listed]
    if all(on_spark) and all(drop.delta_spark for drop in drops):
        return ""
    # Which runtime supports some features of Delta Spark is not documented.
    known = zip(on_spark, listed, strict=True)
    if all(drop.databricks for drop in drops) and all(
        spark or record.since.databricks for spark, record in known
    ):
        return " --engine databricks"
    return None


def _is_clustered(table: TableRequirements) -> bool:
    return "clustering" in table.protocol.supported and table.uses("clustering") is not False


def _find_droppable(table: TableRequirements, because: tuple[str, ...]) -> tuple[str, ...]:
    """Return the droppable ones of the features, dependents first."""
    found: dict[str, None] = {}

    def take(name: str) -> bool:
        drop = feature_catalog.feature_record(name).drop
        if not (drop.delta_spark or drop.databricks):
            return False
        if all(
            take(other) for other in feature_catalog.find_dependents(name, table.protocol.supported)
        ):
            found.setdefault(name)
            return True
        return False

    for name in because:
        take(name)
    return tuple(found)


def _normalize_remedy(failing: _Failing) -> Remedy | None:
    """Store the lowest protocol or a legacy pair, which may add features, if that helps."""
    protocol = failing.table.protocol
    if protocol.violations():
        return None
    for other in (protocol.lowest(), *_find_pairs(protocol.supported)):
        if other == protocol or not failing.works_on(requirements.stored_as(failing.table, other)):
            continue
        added = ", ".join(sorted(other.supported - protocol.supported))
        text = f"store the same features as {other}"
        return Remedy(
            "normalise",
            RemedyCost.METADATA,
            f"{text}, which adds {added}" if added else text,
            command=f"deltaproto plan-downgrade {TABLE} --protocol "
            f"{other.min_reader_version},{other.min_writer_version}",
        )
    return None


def _catalog_name_remedy(failing: _Failing) -> Remedy | None:
    known = failing.candidate.range
    if known is None or not set(failing.because) & known.catalog_only:
        return None
    return Remedy(
        "use-catalog",
        RemedyCost.CLIENT,
        "access and check the table by its catalog name",
    )


def _read_copy_remedy(failing: _Failing) -> Remedy | None:
    """Use Databricks Compatibility Mode, for a client that only reads."""
    table, known = failing.table, failing.candidate.range
    if failing.access is not Access.READ or known is None or not failing.because:
        return None
    if table.doubts or table.protocol.violations():
        return None
    if not _passes(known, failing.path, _COPY, failing.access):
        return None
    command = (
        f"deltaproto plan-upgrade {TABLE} --engine databricks "
        f"--set {FORMATS}={FORMAT} --set {LOCATION}=URI"
    )
    return Remedy(
        "read-copy",
        RemedyCost.COPY,
        "if Unity Catalog manages the table on Databricks, let the client read the "
        "Compatibility Mode copy",
        # The statement requires a three-part name.
        command=command if table.by_name else None,
    )


_REMEDIES = (
    _look_in_files_remedy,
    _upgrade_remedy,
    _complete_features_remedy,
    _give_row_ids_remedy,
    _normalize_remedy,
    _catalog_name_remedy,
    _read_copy_remedy,
    _drop_features_remedy,
)
"""in the order in which remedies of the same cost are shown"""


def _cost(drops: list[DropBehavior]) -> RemedyCost:
    if any(drop.rewrites_data for drop in drops):
        return RemedyCost.REWRITE
    if any(drop.protects_history or drop.needs_truncate for drop in drops):
        return RemedyCost.HISTORY
    return RemedyCost.METADATA
