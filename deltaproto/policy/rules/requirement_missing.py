"""A supported feature lacks a feature that it requires, or conflicts with another one.

## What it does
Checks the four kinds of requirement between features: another one is supported (`rowTracking`
needs `domainMetadata`), enabled (`icebergCompatV2` needs column mapping enabled), not
supported, or not enabled (deletion vectors with Iceberg compatibility).

## Why it breaks
Clients validate these rules when they open the table. Each client checks different ones.

## Who breaks
Delta Kernel and delta-rs refuse to open or to write the table; Delta Spark fails when it next
changes metadata.

## How to fix
Add the missing feature, or drop the one that requires it. Delta Spark adds required features
automatically when it adds a feature, so another client probably caused this.

## How safe
Adding is a protocol change and may be permanent; check `deltaproto features <name>` first.

## References
`requiredFeatures` in Delta Spark's TableFeature.scala; the feature requirements in
delta-kernel-rs; IcebergCompat checks in Delta Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature import Requirement, RequirementKind
from deltaproto.protocol.layers import FeatureState

RULE = Rule("DP104", "requirement-missing", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    states = {state.name: state for state in subject.features}
    for state in subject.features:
        for requirement in state.feature.requires:
            broken = _broken(state, requirement, states)
            if broken:
                yield RULE.finding(
                    subject.table,
                    f"{state.name} {broken}",
                    f"see `deltaproto features {state.name}` for what it requires",
                    feature=state.name,
                    evidence=requirement.source,
                )


def _broken(state: FeatureState, requirement: Requirement, states: dict[str, FeatureState]) -> str:
    name = requirement.feature
    other = states.get(name)
    if requirement.need in (RequirementKind.SUPPORTED, RequirementKind.ENABLED) and other is None:
        return f"requires {name}, which the protocol does not support"
    if not state.enabled:
        return ""
    if requirement.need is RequirementKind.ENABLED and other is not None and other.enabled is False:
        return f"is enabled and requires {name} to be enabled too"
    if requirement.need is RequirementKind.NOT_SUPPORTED and other is not None:
        return f"is enabled and excludes {name}, which the protocol supports"
    if requirement.need is RequirementKind.NOT_ENABLED and other is not None and other.enabled:
        return f"is enabled and excludes {name}, which is enabled"
    return ""
