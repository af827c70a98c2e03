"""A declared client does not use the tables it is declared for.

## What it does
`check --seen INVENTORY` compares the clients of the policy with those that `discover` counted. It
reports a client that used none of the checked tables it is declared for in the last 90 days
(`--seen-days`).

## Why it breaks
An abandoned client can hold back the protocol: plans and approvals consider it for years.

## Who breaks
No client now.

## How to fix
Ask the client's owner, and remove the declaration if it is no longer needed.

## How safe
It is reported only if it would have been seen: every table's commits are counted for the whole
period, the client signs its commits, and for declared reads the access logs that were counted cover
the table and the period. A library's mark counts as a use by each program that may leave it. A
cache in front of the store can hide a reader.

## References
`deltaproto discover`, the inventory's table `clients_seen`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP404", "declared-not-seen", Severity.INFO, since="0.1.0")
