"""A client uses the table in an older version than the declared one.

## What it does
`check --seen INVENTORY` compares the versions of declared clients with those that `discover`
counted, and reports one that is older than every declared version of the client.

## Why it breaks
An older version supports fewer features. The verdict applies only to the declared version.

## Who breaks
The users and jobs behind the older version; the finding names them.

## How to fix
Upgrade the client, or declare the version that is in use as well.

## How safe
Only clients of the last 90 days count (`--seen-days`), and clients with a longer rhythm. Clients
that do not report their version are not compared.

## References
`deltaproto discover`, the inventory's table `clients_seen`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP405", "seen-older-version", Severity.WARNING, since="0.1.0")
