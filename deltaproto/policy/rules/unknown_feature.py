"""The table supports a feature that is not in deltaproto's catalogue.

## What it does
Names every supported feature without a record. Nothing is assumed about it: a client is taken
not to know it, and nothing is planned with it.

## Why it breaks
A client that meets a feature it does not know must not write the table, and must not read it
either when the feature stands in `readerFeatures`.

## Who breaks
Every client except the one that wrote the feature, as far as anyone can tell from here.

## How to fix
Look for a newer deltaproto. Look at the name's case: `deletionvectors` is not
`deletionVectors`. Find the client that added it with `deltaproto history`.

## How safe
Reading about it is; dropping it takes an engine that knows it.

## References
PROTOCOL.md, "Protocol Evolution": what clients must do with unknown features.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, FeatureStatus

RULE = Rule("DP109", "unknown-feature", Severity.WARNING, since="0.1.0")


_MOST_SEARCHED = 100
"""unknown features of one table that get the nearest known name as their hint"""


def check(subject: RuleContext) -> Iterator[Finding]:
    searched = 0
    for state in subject.features:
        if state.feature.status is not FeatureStatus.UNKNOWN:
            continue
        who = "readers and writers" if state.kind is FeatureKind.READER_WRITER else "writers"
        # A search compares the name with the whole catalog.
        searched += 1
        meant, near = (
            feature_catalog.search(state.name) if searched <= _MOST_SEARCHED else (None, ())
        )
        guess = meant.name if meant else ", ".join(near)
        yield RULE.finding(
            subject.table,
            f"{state.name} is unknown; {who} without it must refuse the table",
            f"feature names are exact; did a client mean {guess}?"
            if guess
            else "look for a newer deltaproto, or for the client that added it",
            feature=state.name,
        )
