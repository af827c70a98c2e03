"""The table supports a preview, experimental or retired feature name.

## What it does
Reports supported features with a preview name, or that later releases renamed.

## Why it breaks
Preview names are not part of the spec. They may be renamed or removed: `inCommitTimestamp-preview`
of Delta 3.2 is unknown to 3.3, `catalogOwned-preview` of 4.0.0 is unknown to 4.0.1.

## Who breaks
Every client that knows only the final name, and eventually the writer itself.

## How to fix
Move to the final feature while a client still supports both: drop the preview feature if it can
be dropped, then enable the final one.

## How safe
See `deltaproto features <name>`; several preview features can never be dropped.

## References
PROTOCOL.md, "Valid Feature Names in Table Features"; protocol_rfcs in delta-io/delta.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import FeatureStatus

RULE = Rule("DP108", "preview-feature", Severity.WARNING, since="0.1.0")
_UNFINISHED = (
    FeatureStatus.PREVIEW,
    FeatureStatus.RETIRED,
    FeatureStatus.RFC,
    FeatureStatus.TESTING,
)


def check(subject: RuleContext) -> Iterator[Finding]:
    for state in subject.features:
        if state.feature.status in _UNFINISHED:
            successor = state.feature.renamed_to
            yield RULE.finding(
                subject.table,
                f"{state.name} is a {state.feature.status} feature"
                + (f", now called {successor}" if successor else ""),
                f"see `deltaproto features {state.name}` for who supports it and how to drop it",
                feature=state.name,
            )
