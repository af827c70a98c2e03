"""Remedies for clients that cannot use a table, cheapest first.

Upgrading the client does not touch the table. Dropping a feature changes the table's protocol. It
is cheap only if it rewrites no files and keeps the history (the feature's `DropBehavior` record).
"""

from deltaproto.caches import cache_by_identity
from deltaproto.clients import requirements
from deltaproto.clients.drop_remedies import (
    after_timestamps,
    disable_timestamps_remedy,
    drop_features_remedy,
    is_drop,
    normalize_remedy,
)
from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import Access, Client, Path, PathVerdict, Range, Verdict
from deltaproto.clients.remedy import TABLE, Failing, Remedy, RemedyCost
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import (
    ClientAtVersion,
    ClientReference,
    first_version_of,
    newest_version_of,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.compatibility_mode import FORMAT, FORMATS, LOCATION
from deltaproto.protocol.feature_catalog import add_unlisted
from deltaproto.protocol.protocol import Protocol

COPY_PROTOCOL = Protocol(1, 2)
"""the protocol that readers of a copy see: Delta and Iceberg metadata of version 1"""
_COPY = TableRequirements(COPY_PROTOCOL, frozenset(), frozenset())


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
    failing = Failing(candidate, path, table, access, judgement.because)
    found = [remedy for find in _REMEDIES if (remedy := find(failing)) is not None]
    if requirements.UNSTAMPED in table.hazards:
        first = disable_timestamps_remedy(failing)
        found = [after_timestamps(each) for each in found if not (first and is_drop(each))]
    return tuple(sorted(found, key=lambda remedy: list(RemedyCost).index(remedy.cost)))


def _look_in_files_remedy(failing: Failing) -> Remedy | None:
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


def _upgrade_remedy(failing: Failing) -> Remedy | None:
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


def _complete_features_remedy(failing: Failing) -> Remedy | None:
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


def _give_row_ids_remedy(failing: Failing) -> Remedy | None:
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


def _lower_case_remedy(failing: Failing) -> Remedy | None:
    """Store values of properties in lower case, if only their case decides."""
    case = {requirements.MAPPING_MODE_CASE, requirements.SWITCHES_CASE}
    changed = failing.table._replace(hazards=failing.table.hazards - case)
    if changed == failing.table or not failing.works_on(changed):
        return None
    return Remedy(
        "set-property",
        RemedyCost.METADATA,
        "set the properties of finding DP148 again, in lower case",
        features=failing.because,
    )


def _catalog_name_remedy(failing: Failing) -> Remedy | None:
    known = failing.candidate.range
    if known is None or not set(failing.because) & known.catalog_only:
        return None
    return Remedy(
        "use-catalog",
        RemedyCost.CLIENT,
        "access and check the table by its catalog name",
    )


def _read_copy_remedy(failing: Failing) -> Remedy | None:
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
    _lower_case_remedy,
    disable_timestamps_remedy,
    normalize_remedy,
    _catalog_name_remedy,
    _read_copy_remedy,
    drop_features_remedy,
)
"""in the order in which remedies of the same cost are shown"""
