"""A waiver or an approval of the policy has expired.

## What it does
Compares `expires` of every waiver and approval with today's date (UTC).

## Why it breaks
After that date, the waiver or approval no longer suppresses any finding.

## Who breaks
No one directly: the suppressed findings are reported again.

## How to fix
Renew or remove it.

## How safe
Editing a policy changes no table.

## References
The policy's `waivers` and `approvals`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP303", "expired-exception", Severity.WARNING, since="0.1.0")
