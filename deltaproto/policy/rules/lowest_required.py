"""The policy requires the lowest protocol, and the table has features that it does not need.

## What it does
With `protocol: lowest`, looks for supported features that nothing on the table uses, that the
policy does not require, and whose removal lowers the protocol: lower versions, or fewer listed
features. If the policy's version limits allow only versions without feature lists, the features
that these versions imply are also required. A feature whose use is unknown is reported, because it
may be one of them.

## Why it breaks
An unused feature blocks clients that lack it, for no benefit.

## Who breaks
Clients that support only the lower protocol.

## How to fix
`deltaproto plan TABLE --policy FILE` drops the features, or stores the lowest form of the same
protocol. checkpointProtection protects history: it counts as needed with `history: keep`; otherwise
it is removed together with the history.

## How safe
DROP FEATURE is a metadata and protocol change: it conflicts with concurrent writes.

## References
The policy's `protocol`; "lowest possible protocol" in the platform's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from deltaproto.clients.requirements import TableRequirements
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.document.model import PolicySettings
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol

RULE = Rule("DP213", "lowest-protocol-required", Severity.ERROR, since="0.2.0")
_UNKNOWN = "unknown"
FORM = "form"
"""detail of the finding that a lower form of the same protocol exists"""
_EVERY_TABLE = 2
"""writer version whose features every new table has"""


def examine(case: PolicyContext) -> Iterator[Finding]:
    needs = case.facts.needs
    if case.settings.protocol is None:
        return
    unneeded, lowest = _find_lowest(needs, case.settings)
    for name in sorted(unneeded):
        yield RULE.finding(
            case.table,
            f"the policy requires the lowest protocol, {lowest}; nothing needs {name}",
            "DROP FEATURE; `deltaproto plan` plans it",
            feature=name,
        )
    if find_lower_form(needs, case.settings) is not None and not unneeded:
        yield RULE.finding(
            case.table,
            f"the policy requires the lowest protocol; {needs.protocol} supports the same "
            f"features as {lowest}",
            "SET TBLPROPERTIES with the versions (1,1) stores it; `deltaproto plan` plans it",
            detail=FORM,
        )
    for name in sorted(_find_unknown(needs, case.settings)):
        yield RULE.finding(
            case.table,
            f"the policy requires the lowest protocol; it is unknown whether anything uses {name}",
            "run `deltaproto plan TABLE --policy FILE`: it searches the table's files for traces",
            feature=name,
            detail=_UNKNOWN,
        )


def find_unneeded(needs: TableRequirements, settings: PolicySettings) -> frozenset[str]:
    """Return the features to remove to reach the lowest protocol that the policy allows.

    Empty if the policy does not require the lowest protocol.
    """
    return _find_lowest(needs, settings)[0]


def _find_lowest(
    needs: TableRequirements, settings: PolicySettings
) -> tuple[frozenset[str], Protocol]:
    """Return the unneeded features, and the lowest protocol that the policy allows."""
    protocol = needs.protocol
    if settings.protocol is None or not protocol.uses_table_features:
        return frozenset(), protocol
    required = _required(settings)
    idle = {name for name in protocol.supported - required if _is_idle(name, needs)}
    if settings.history != "keep":
        idle |= {CHECKPOINT_PROTECTION} & protocol.supported - required
    unneeded = _choose_drops(protocol, frozenset(idle)) if idle else frozenset()
    lowest = _without(protocol, unneeded)
    if _is_allowed(lowest.merge(Protocol.carrying(required)), settings):
        return unneeded, lowest
    # Features that the limits exclude must be dropped in any case.
    most = settings.max_writer_version or 7
    needed = {
        name
        for name in (protocol.supported - _closed(idle, protocol)) | required
        if feature_catalog.feature_record(name).min_writer <= most
    }
    for pair in feature_catalog.LEGACY_PAIRS:
        implied = feature_catalog.features_implied_by(*pair)
        if needed <= implied and _is_allowed(Protocol(*pair), settings):
            return _closed(idle - implied, protocol), Protocol(*pair)
    return unneeded, lowest


def _is_allowed(protocol: Protocol, settings: PolicySettings) -> bool:
    """Return True if the policy's version limits allow these versions."""
    reader, writer = protocol.versions
    least = settings.min_reader_version or 1, settings.min_writer_version or 1
    most = settings.max_reader_version or 3, settings.max_writer_version or 7
    return least[0] <= reader <= most[0] and least[1] <= writer <= most[1]


@lru_cache(maxsize=4096)
def _choose_drops(protocol: Protocol, idle: frozenset[str]) -> frozenset[str]:
    """Return the fewest features of `idle` to remove for the lowest possible protocol."""
    # Dropping more may raise the versions, as fewer features fit a pair of versions.
    pairs = (feature_catalog.features_implied_by(*pair) for pair in feature_catalog.LEGACY_PAIRS)
    choices = [_closed(idle - kept, protocol) for kept in (frozenset[str](), *pairs)]
    best = min(choices, key=lambda dropped: (_rank(_without(protocol, dropped)), len(dropped)))
    return best if _rank(_without(protocol, best)) < _rank(protocol.lowest()) else frozenset()


def find_lower_form(needs: TableRequirements, settings: PolicySettings) -> Protocol | None:
    """Return the lowest protocol with the same features if it is required and another is stored.

    None if the policy does not allow it, or requires other features.
    """
    protocol = needs.protocol
    if settings.protocol is None or not protocol.uses_table_features or protocol.violations():
        return None
    lowest = protocol.lowest()
    ending = lowest.merge(Protocol.carrying(_required(settings)))
    if ending.versions != lowest.versions or not _is_allowed(lowest, settings):
        return None
    same = lowest.supported == protocol.supported and lowest != protocol
    return lowest if same else None


def _find_unknown(needs: TableRequirements, settings: PolicySettings) -> frozenset[str]:
    if settings.protocol is None or not needs.protocol.uses_table_features:
        return frozenset()
    return frozenset(
        name
        for name in needs.protocol.listed - _required(settings)
        if needs.holds(name) is None and _can_go(name)
    )


def _required(settings: PolicySettings) -> frozenset[str]:
    """Return the features that the policy requires by name, by property or for clustering."""
    enabled = feature_catalog.features_enabled_by(settings.require_properties)
    clustered = {"clustering"} if settings.cluster_by else set()
    return feature_catalog.with_required_features(
        {*(settings.require_features or ()), *enabled, *clustered}
    )


def _is_idle(name: str, needs: TableRequirements) -> bool:
    switchless = feature_catalog.feature_record(name).switchless
    return _can_go(name) and name in needs.absent and (switchless or name in needs.unused)


def _can_go(name: str) -> bool:
    feature = feature_catalog.feature_record(name)
    return feature.droppable and name != CHECKPOINT_PROTECTION


def _closed(dropped: frozenset[str] | set[str], protocol: Protocol) -> frozenset[str]:
    """Return the features of `dropped` that no other feature requires."""
    kept = feature_catalog.with_required_features(protocol.supported - dropped)
    return frozenset(dropped - kept)


def _without(protocol: Protocol, dropped: frozenset[str] | set[str]) -> Protocol:
    return protocol.without_features(dropped).lowest()


def _rank(protocol: Protocol) -> tuple[int, int, int]:
    """Sort key: versions, then features that not every table has."""
    above = [
        name
        for name in protocol.supported
        if feature_catalog.feature_record(name).min_writer > _EVERY_TABLE
    ]
    return *protocol.versions, len(above)
