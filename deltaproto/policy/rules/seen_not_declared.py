"""A client uses the table, but is not declared for it.

## What it does
`check --seen INVENTORY` compares the declared clients of each table with those that `discover`
counted: by the table's commits, and by the requests of access logs. It reports an undeclared
client, an undeclared use (a client declared for read that appends), and a program with a mark that
no declared client leaves.

## Why it breaks
Verdicts, plans and approvals cover only declared clients. A protocol change can block another
client without any warning.

## Who breaks
The users and jobs behind the client; the finding names them.

## How to fix
Declare the client with the access that it needs, or waive the finding. `deltaproto discover
INVENTORY --write-policy policy.yaml` adds the clients seen to a policy.

## How safe
Only clients of the last 90 days count (`--seen-days`), and clients with a longer rhythm. Most
readers leave a mark only in access logs. A library's mark does not distinguish the programs that
use the library: if one of them is declared, the mark is not reported.

## References
`deltaproto discover`, the inventory's table `clients_seen`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP403", "seen-not-declared", Severity.WARNING, since="0.1.0")
