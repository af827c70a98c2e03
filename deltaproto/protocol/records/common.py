"""What several records share: the Drop of features nobody drops, and names of documents."""

from __future__ import annotations

from deltaproto.protocol.feature import Drop, DropRefusal, Need, Requirement, Trigger

NEVER = Drop(delta_spark=None, databricks=None, commits=(0, 0))

VALID_NAMES = "PROTOCOL.md#valid-feature-names-in-table-features"
DROP_PAGE = "learn.microsoft.com/azure/databricks/tables/features/drop-feature"
DROP_LEGACY_PAGE = "learn.microsoft.com/azure/databricks/archive/legacy/drop-feature-legacy"
COMPATIBILITY_PAGE = "learn.microsoft.com/azure/databricks/tables/features/feature-compatibility"
COLLATION_PAGE = "learn.microsoft.com/azure/databricks/tables/features/collation"


def by_hand(name: str, note: str = "") -> Trigger:
    """The property that adds feature `name` to a protocol without switching anything on."""
    return Trigger(f"delta.feature.{name}=supported", by="feature-property", note=note)


def supported(*names: str, source: str) -> tuple[Requirement, ...]:
    """One requirement per name: it must be listed in the protocol."""
    return tuple(Requirement(Need.SUPPORTED, name, source) for name in names)


def enabled(*names: str, source: str) -> tuple[Requirement, ...]:
    """One requirement per name: it must be listed and switched on."""
    return tuple(Requirement(Need.ENABLED, name, source) for name in names)


def not_enabled(*names: str, source: str) -> tuple[Requirement, ...]:
    """One requirement per name: it may be listed, but must be switched off."""
    return tuple(Requirement(Need.NOT_ENABLED, name, source) for name in names)


def not_supported(*names: str, source: str) -> tuple[Requirement, ...]:
    """One requirement per name: it must not be in the protocol at all."""
    return tuple(Requirement(Need.NOT_SUPPORTED, name, source) for name in names)


def needed_by(*dependents: str) -> DropRefusal:
    """The refusal to drop a feature while one of `dependents` is in the protocol."""
    return DropRefusal(
        when=f"the protocol lists a feature that requires it ({', '.join(dependents)})",
        error="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        remedy="Drop that feature first; if it cannot be dropped, this one stays for good.",
    )
