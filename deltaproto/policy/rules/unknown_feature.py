"""The table supports a feature that is not in deltaproto's catalog.

## What it does
Reports every supported feature that is not in the catalog. deltaproto assumes that no client
supports it, and does not plan changes with it.

## Why it breaks
A client must not write a table with a feature that it does not support. If the feature is in
`readerFeatures`, the client must not read the table either.

## Who breaks
Probably every client except the one that added the feature.

## How to fix
Look for a newer deltaproto. Check the name's case: `deletionvectors` is not
`deletionVectors`. Find the client that added it with `deltaproto history`.

## How safe
Checking is read-only. Dropping the feature requires an engine that supports it.

## References
PROTOCOL.md, "Protocol Evolution": what clients must do with unknown features.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, FeatureStatus

RULE = Rule("DP109", "unknown-feature", Severity.WARNING, since="0.1.0")


_MOST_SEARCHED = 100
"""maximum number of unknown features per table that get a similar known name as a hint"""


def check(subject: RuleContext) -> Iterator[Finding]:
    searched = 0
    for state in subject.features:
        if state.feature.status is not FeatureStatus.UNKNOWN:
            continue
        who = "readers and writers" if state.kind is FeatureKind.READER_WRITER else "writers"
        # Each search compares the name with the whole catalog.
        searched += 1
        suggestion, near = (
            feature_catalog.search_feature(state.name) if searched <= _MOST_SEARCHED else (None, ())
        )
        guess = suggestion.name if suggestion else ", ".join(near)
        yield RULE.finding(
            subject.table,
            f"{state.name} is unknown; {who} that do not support it must refuse the table",
            f"feature names are exact; did a client mean {guess}?"
            if guess
            else "look for a newer deltaproto, or for the client that added it",
            feature=state.name,
        )
