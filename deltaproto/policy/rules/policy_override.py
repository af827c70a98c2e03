"""A part of the policy changes what a more general part, or the catalog, requires.

## What it does
For patterns that matched tables, reports: a list of clients or features that adds to the lists of
less specific patterns, a list that replaces them (`clients_replace: true`), and a value that is
weaker than the value it overrides, such as a higher version ceiling. Also reports a declared
client of the catalog that the policy (`define`, `catalogues`) or a `--client-file` defines
differently.

## Why it breaks
Nothing breaks. Earlier versions of deltaproto replaced the lists, so a policy that relied on
it now checks more clients.

## Who breaks
Clients that a pattern removes are not checked on its tables.

## How to fix
If the change is intended, do nothing.

## How safe
Editing a policy changes no table.

## References
The policy's `tables`; `deltaproto check --format json` lists the pattern of every setting.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP304", "policy-override", Severity.INFO, since="0.1.0")
