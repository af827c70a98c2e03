"""Damage and contradictions on which clients differ: no verdict can be ok where there are any.

Source: the readers compared on damaged logs (delta-rs 1.6, Delta Spark 4.4, the log reader).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltaproto.policy.finding import Finding

DOUBTED = ("DP103", "DP115", "DP130", "DP131", "DP132", "DP133")
"""the rules whose findings say that clients may see another table than this reader"""
_RULES = (*DOUBTED, "DP150")
"""and that of values that some engines cannot parse and others ignore"""


def doubts(findings: Iterable[Finding], configuration: Mapping[str, str | None]) -> Iterator[str]:
    """A sentence for each."""
    for finding in findings:
        if finding.rule in _RULES:
            yield f"{finding.message} ({finding.rule}): clients differ on that"
    for key, value in configuration.items():
        if value is None:
            yield f"the property {key} is stored without a value, on which some clients fail"
