"""A client comes back to the table in long intervals only.

## What it does
`check --seen INVENTORY` finds clients whose uses of a table are weeks apart: a monthly or
quarterly job. It reports the usual interval and when the next use is expected.

## Why it breaks
Nobody notices within days that a change of the protocol locked such a client out.

## Who breaks
The users and jobs behind the client, at their next run.

## How to fix
Declare the client, tell its owner before a change, and test it after the change.

## How safe
The interval is the median of those between the beginnings of uses; two uses make one interval.
Only what `discover` counted is known: run it more often than logs are deleted.

## References
`deltaproto discover`, the inventory's table `clients_seen`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP406", "rarely-seen", Severity.INFO, since="0.1.0")
