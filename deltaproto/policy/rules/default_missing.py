"""A property that the policy requires on every table is missing or has another value.

## What it does
Compares the table's properties with `require_properties`.

## Why it breaks
If a default is missing, the engine chooses: a new table may get features or settings that were not
requested, or lack those that others rely on.

## Who breaks
Processes that rely on the property.

## How to fix
Set the property, and set the engine's default for new tables
(`spark.databricks.delta.properties.defaults.…`).

## How safe
Setting a property is a metadata change: it makes concurrent writes fail. Some properties require
features: see `deltaproto features`.

## References
The policy's `require_properties`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.properties import CONSTRAINT_PREFIX

RULE = Rule("DP209", "default-missing", Severity.WARNING, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    configuration = case.facts.configuration
    for key, wanted in sorted((case.settings.require_properties or {}).items()):
        value = configuration.get(key)
        if value is None or value.strip().casefold() != wanted.strip().casefold():
            yield RULE.finding(
                case.table,
                f"the policy requires {key} = {wanted}; "
                + ("it is not set" if value is None else f"it is {value}"),
                _statement(key, wanted),
                evidence=key,
                detail=key,
            )


def _statement(key: str, wanted: str) -> str:
    if key.lower().startswith(CONSTRAINT_PREFIX):
        return f"ALTER TABLE … ADD CONSTRAINT {key[len(CONSTRAINT_PREFIX) :]} CHECK ({wanted})"
    return f"ALTER TABLE … SET TBLPROPERTIES ({_literal(key)} = {_literal(wanted)})"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
