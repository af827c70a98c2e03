"""A client uses the table only at long intervals.

## What it does
`check --seen INVENTORY` finds clients whose uses of a table are weeks apart: a monthly or
quarterly job. It reports the usual interval and when the next use is expected.

## Why it breaks
It may take weeks to notice that a protocol change blocked such a client.

## Who breaks
The users and jobs behind the client, at their next run.

## How to fix
Declare the client, notify its owner before a change, and test it after the change.

## How safe
The interval is the median time between the starts of uses; two uses make one interval.
Only what `discover` counted is known: run it more often than logs are deleted.

## References
`deltaproto discover`, the inventory's table `clients_seen`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP406", "rarely-seen", Severity.INFO, since="0.1.0")
