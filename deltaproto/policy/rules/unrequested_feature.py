"""A commit added a feature that it did not request and that nothing uses.

## What it does
For each listed feature that nothing uses, finds the commit that added it. The feature was not
requested if that commit set properties that do not enable the feature, and added no feature that
requires it.

## Why it breaks
Every supported feature blocks clients that do not support it, even if unused.

## Who breaks
Clients that lack the feature: see `deltaproto features <name>`.

## How to fix
Drop the feature if it can be dropped. deltalake's `set_table_properties` is known to add
`variantType` along with `deletionVectors`. Delta Spark cannot drop `variantType`; only a copy into
a new table removes it.

## How safe
DROP FEATURE is a metadata and protocol change: it conflicts with concurrent writes.

## References
PROTOCOL.md, "Supported Features"; the measured behavior of deltalake 1.6.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.table_state import ProtocolChange

RULE = Rule("DP106", "unrequested-feature", Severity.WARNING, since="0.1.0")
_DEFAULT_WRITER = 2


def check(subject: RuleContext) -> Iterator[Finding]:
    for state, change in unrequested(subject):
        from deltaproto.protocol.writers import name_writer

        engine = name_writer(change.commit_info) or "an unnamed client"
        yield RULE.finding(
            subject.table,
            f"version {change.version} added {state.name} without requesting it",
            f"see `deltaproto features {state.name}` for whether it can be dropped",
            feature=state.name,
            evidence=f"version {change.version}: {change.commit_info['operation']} by {engine}",
        )


def unused(subject: RuleContext) -> list[FeatureState]:
    """Return listed features that nothing uses, except those that every new table has."""
    return [
        state
        for state in subject.features
        if state.listed and state.unused and state.feature.min_writer > _DEFAULT_WRITER
    ]


def unrequested(subject: RuleContext) -> Iterator[tuple[FeatureState, ProtocolChange]]:
    """Yield unused features with the commit that added them without a request."""
    for state in unused(subject):
        previous: frozenset[str] | None = None
        for change in subject.changes:
            added = change.protocol.supported - (previous or frozenset())
            if (
                previous is not None
                and state.name in added
                and _is_unrequested(state, change, added)
            ):
                yield state, change
            previous = change.protocol.supported


def _is_unrequested(state: FeatureState, change: ProtocolChange, added: frozenset[str]) -> bool:
    operation = str(change.commit_info.get("operation", ""))
    if "PROPERTIES" not in operation.upper():
        return False
    parameters = json.dumps(change.commit_info.get("operationParameters", "")).lower()
    if any(name.lower() in parameters for name in (state.name, *state.feature.switches)):
        return False
    if "minreaderversion" in parameters or "minwriterversion" in parameters:
        return False
    return not any(state.name in feature_catalog.required_features(name) for name in added)
