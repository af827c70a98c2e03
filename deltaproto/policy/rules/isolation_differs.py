"""The table's isolation level differs from the policy.

## What it does
Compares the effective level on each engine with the policy's `isolation`. An engine that lacks the
level uses another one: delta-rs is Serializable regardless of the value that Databricks stores.

## Why it breaks
Under WriteSerializable, history and content may disagree. Under Serializable, blind appends can
make other writers fail.

## Who breaks
Processes that rely on the required level.

## How to fix
Set `delta.isolationLevel`: `Serializable` with any engine, `WriteSerializable` on Databricks only.
By default, Databricks uses WriteSerializable and Delta Spark Serializable.

## How safe
Setting it is a metadata change: every concurrent write fails.

## References
The policy's `isolation`; `deltaproto conflicts TABLE` for what each level means.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.isolation import evaluate_isolation

RULE = Rule("DP208", "isolation-differs", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    wanted = case.settings.isolation
    if wanted is None:
        return
    at_best = {str(engine): level for engine, level in evaluate_isolation(wanted).effective.items()}
    differing = [
        f"{level or 'refused'} on {engine}"
        for engine, level in case.facts.isolation.items()
        if level not in (wanted, at_best.get(engine))
    ]
    if differing:
        yield RULE.finding(
            case.table,
            f"the policy requires {wanted}, but the effective level is {', '.join(differing)}",
            f"set delta.isolationLevel = {wanted}"
            + ("" if wanted == "Serializable" else " on Databricks; Delta Spark refuses to set it"),
        )
