"""What a plan for a target must add, and the statements that add it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from deltaproto.planning.builder import PlanBuilder
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.lowest import is_higher
from deltaproto.planning.search.route import raise_to_pair
from deltaproto.planning.statement import SetProperties
from deltaproto.planning.target import Requirements, each_version
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX


def possible_additions(
    wanted: Requirements, kept: Requirements
) -> Iterator[tuple[Requirements, ...]]:
    """Yield what statements other than drops must achieve, in the order of these statements.

    Drops may lower the versions too far, so the table's current versions are included. A legacy
    pair may imply features that would need feature lists by themselves.
    """
    every = (
        Requirements(features=wanted.features, properties=wanted.properties),
        Requirements(at_least=each_version(max, wanted.at_least, kept.at_least)),
        Requirements(cluster_by=wanted.cluster_by),
    )
    parts = tuple(part for part in every if part != Requirements())
    yield parts
    needed = wanted.features | feature_catalog.features_enabled_by(wanted.properties)
    for pair in feature_catalog.LEGACY_PAIRS:
        lower = pair[0] <= wanted.at_most[0] and pair[1] <= wanted.at_most[1]
        implied = needed & feature_catalog.features_implied_by(*pair)
        if lower and implied:
            yield (Requirements(features=implied, at_least=pair), *parts)


def additions_by_name(
    table: Table, wanted: Requirements, plain: Sequence[Requirements]
) -> tuple[Requirements, ...]:
    """Return the additions with missing features only added to the protocol, or none."""
    lacking = feature_catalog.with_required_features(wanted.features) - table.protocol.supported
    named = {f"{FEATURE_PREFIX}{name}": "supported" for name in sorted(lacking)}
    return (Requirements(properties=named), *plain) if named else ()


def add_statements(
    builder: PlanBuilder, additions: Iterable[Requirements], *, lower: bool = False
) -> PlanBuilder:
    """Add the statements for these requirements; `lower`: set versions below the table's, too."""
    for part in additions:
        lacking = part.features - builder.table.protocol.supported
        # A table with feature lists gets the features of a legacy pair below its versions, too.
        implied = lacking & feature_catalog.features_implied_by(*part.at_least)
        if implied or is_higher(builder.table.protocol.versions, part.at_least):
            builder.raise_versions(part.at_least, together=True)
        elif lower and part.at_least != (1, 1):
            builder.add(raise_to_pair(part.at_least), together=True)
        for name in sorted(lacking - implied):
            builder.enable(FeatureToEnable(name))
        if part.properties:
            builder.add(SetProperties(part.properties), together=True)
        if part.cluster_by is not None:
            builder.cluster_by(part.cluster_by)
    return builder
