"""Two readers answered, and their answers differ.

## What it does
With `--reader all`, compares version, id, protocol, configuration, partition and clustering columns
between the readers, field by field.

## Why it breaks
Two clients of the same table act on different facts. Either the table was written meanwhile
(then the versions differ), or one of the readers reads the log differently.

## Who breaks
Whoever trusts the wrong one. The log reader replays the log as the spec says.

## How to fix
Run again; when the versions agree and a field still differs, look at the log and report it.

## How safe
Nothing is changed by looking.

## References
PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

from deltaproto.policy.finding import Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP121", "readers-disagree", Severity.ERROR, since="0.1.0")
