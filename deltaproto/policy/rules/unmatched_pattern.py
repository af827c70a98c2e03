"""Part of the policy matches nothing that was checked.

## What it does
Compares every table pattern, waiver, approval and canary of the policy with the tables that were
checked, and reports those that matched none. Also reports profiles that no pattern uses. Canaries
are compared only if several tables were checked.

## Why it breaks
A misspelled pattern looks the same as a table that meets its requirements.

## Who breaks
The clients that the pattern declares: nothing checks their access.

## How to fix
Correct the pattern. `gold/` with a slash at its end matches only a table in that folder itself;
write `gold/**` for the tables below it. Remove entries that are no longer needed. If you check only
some of the tables on purpose, ignore the finding or set `severities: {DP301: off}` for the whole
policy.

## How safe
Editing a policy changes no table.

## References
The policy's `tables`, `profiles`, `waivers`, `approvals` and `rollout`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP301", "unmatched-pattern", Severity.WARNING, since="0.1.0")
