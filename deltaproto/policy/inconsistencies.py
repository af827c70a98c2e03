"""Damage and contradictions that clients handle differently; they rule out the verdict ok.

Source: the readers compared on damaged logs (delta-rs 1.6, Delta Spark 4.4, the log reader).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltaproto.policy.finding import Finding

INCONSISTENCY_RULES = ("DP103", "DP115", "DP130", "DP131", "DP132", "DP133", "DP135")
"""rules whose findings mean that clients may see a different table than this reader"""
_RULES = (*INCONSISTENCY_RULES, "DP150")
"""plus the rule on values that some engines cannot parse and others ignore"""


def describe_inconsistencies(
    findings: Iterable[Finding], configuration: Mapping[str, str | None]
) -> Iterator[str]:
    """Yield a sentence for each inconsistency."""
    for finding in findings:
        if finding.rule in _RULES:
            yield f"{finding.message} ({finding.rule}): clients handle this differently"
    for key, value in configuration.items():
        if value is None:
            yield f"the property {key} is stored without a value, and some clients fail on that"
