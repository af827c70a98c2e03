"""Patterns of the policy together require something that no table can meet.

## What it does
Combines the settings of all patterns that match a table, and compares features that are required
with those that are forbidden, including what they require; properties that enable forbidden
features; the highest allowed versions with those that required features need; and isolation
levels. Within one pattern, a contradiction is an error in the policy file.

## Why it breaks
Such a table always violates the policy: the hint of one finding causes the other finding.

## Who breaks
No one directly.

## How to fix
Decide which requirement applies, and remove the other. `forbid_features_replace: true` or
`require_features_replace: true` under the narrower pattern replaces the lists of wider ones.

## How safe
Editing a policy changes no table.

## References
The policy's `tables`; `deltaproto check --format json` lists the pattern of every setting.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP306", "contradictory-requirements", Severity.WARNING, since="0.1.0")
