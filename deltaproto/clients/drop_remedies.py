"""Remedies that change the table's protocol: dropping features, and storing it in another form."""

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.clients.remedy import TABLE, Failing, Remedy, RemedyCost
from deltaproto.clients.requirements import TableRequirements
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import DropBehavior
from deltaproto.protocol.protocol import Protocol

_CHARACTERS = "spaces, tabs, line breaks or any of ,;{}()="
_DISABLE_TIMESTAMPS = (
    "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false'), for which Delta Spark raises "
    "an error, but its commit is made"
)
_GEOSPATIAL = frozenset(("geospatial", "geospatial-dev"))


def disable_timestamps_remedy(failing: Failing) -> Remedy | None:
    """Disable in-commit timestamps, if only the newest commit without one decides."""
    hazards = failing.table.hazards - {requirements.UNSTAMPED}
    changed = failing.table._replace(hazards=hazards)
    if hazards == failing.table.hazards or not failing.works_on(changed):
        return None
    text, names = f"{_DISABLE_TIMESTAMPS}; then enable them again", ("inCommitTimestamp",)
    return Remedy("set-property", RemedyCost.METADATA, text, features=names)


def is_drop(remedy: Remedy) -> bool:
    return remedy.kind in ("normalise", "drop-feature")


def after_timestamps(remedy: Remedy) -> Remedy:
    """Return the remedy with what it needs first, as Delta Spark refuses to commit until then."""
    if not is_drop(remedy) or "Databricks" in remedy.text:
        return remedy
    return remedy._replace(text=f"{_DISABLE_TIMESTAMPS}; then {remedy.text}", command=None)


def drop_features_remedy(failing: Failing) -> Remedy | None:
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
    failing: Failing, features: tuple[str, ...], pair: Protocol | None
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
    if _GEOSPATIAL.intersection(names) & table.used:
        text = f"drop the columns of types GEOMETRY and GEOGRAPHY, then {text}"
    if "columnMapping" in names and requirements.MAPPED_NAMES in table.hazards:
        text = f"rename the columns with {_CHARACTERS} in their names, then {text}"
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
    if _lacks_required_features(protocol):
        return None
    listed = [feature_catalog.feature_record(name) for name in protocol.listed]
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


def _lacks_required_features(protocol: Protocol) -> bool:
    """Return True if Delta Spark and Databricks refuse every statement on such a table."""
    return any(
        required not in protocol.supported
        for name in protocol.listed
        for required in feature_catalog.required_features(name)
    )


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


def normalize_remedy(failing: Failing) -> Remedy | None:
    """Store the lowest protocol or a legacy pair, which may add features, if that helps."""
    protocol = failing.table.protocol
    if protocol.violations() or _lacks_required_features(protocol):
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


def _cost(drops: list[DropBehavior]) -> RemedyCost:
    if any(drop.rewrites_data for drop in drops):
        return RemedyCost.REWRITE
    if any(drop.protects_history or drop.needs_truncate for drop in drops):
        return RemedyCost.HISTORY
    return RemedyCost.METADATA
