"""Shared parts of records: the Drop of undroppable features, and document names."""

from __future__ import annotations

from deltaproto.protocol.feature import (
    DropBehavior,
    DropRefusal,
    EnablementTrigger,
    Requirement,
    RequirementKind,
)

NEVER_DROPPED = DropBehavior(delta_spark=None, databricks=None, commits=(0, 0))

VALID_NAMES = "PROTOCOL.md#valid-feature-names-in-table-features"
DROP_PAGE = "learn.microsoft.com/azure/databricks/tables/features/drop-feature"
DROP_LEGACY_PAGE = "learn.microsoft.com/azure/databricks/archive/legacy/drop-feature-legacy"
COMPATIBILITY_PAGE = "learn.microsoft.com/azure/databricks/tables/features/feature-compatibility"
COLLATION_PAGE = "learn.microsoft.com/azure/databricks/tables/features/collation"


def feature_property_trigger(name: str, note: str = "") -> EnablementTrigger:
    """Return the property that adds feature `name` to a protocol without enabling it."""
    return EnablementTrigger(f"delta.feature.{name}=supported", by="feature-property", note=note)


def requires_supported(*names: str, source: str) -> tuple[Requirement, ...]:
    """Return a requirement per name: it must be in the protocol."""
    return tuple(Requirement(RequirementKind.SUPPORTED, name, source) for name in names)


def requires_enabled(*names: str, source: str) -> tuple[Requirement, ...]:
    """Return a requirement per name: it must be listed and enabled."""
    return tuple(Requirement(RequirementKind.ENABLED, name, source) for name in names)


def requires_not_enabled(*names: str, source: str) -> tuple[Requirement, ...]:
    """Return a requirement per name: it may be listed, but must be disabled."""
    return tuple(Requirement(RequirementKind.NOT_ENABLED, name, source) for name in names)


def requires_not_supported(*names: str, source: str) -> tuple[Requirement, ...]:
    """Return a requirement per name: it must not be in the protocol."""
    return tuple(Requirement(RequirementKind.NOT_SUPPORTED, name, source) for name in names)


def dependent_refusal(*dependents: str) -> DropRefusal:
    """Return the refusal to drop a feature while one of `dependents` is in the protocol."""
    return DropRefusal(
        when=f"the protocol lists a feature that requires it ({', '.join(dependents)})",
        error="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        remedy="Drop that feature first; if it cannot be dropped, this one cannot either.",
    )
