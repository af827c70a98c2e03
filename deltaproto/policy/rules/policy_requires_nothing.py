"""The policy requires nothing.

## What it does
Reports a policy without a client or setting that applies to the checked tables.

## Why it breaks
A check without requirements always passes.

## Who breaks
No one directly.

## How to fix
Declare `clients`, or settings under `tables` with a pattern that matches the tables.

## How safe
Editing a policy changes no table.

## References
The policy's `clients` and `tables`.
"""

from __future__ import annotations

from deltaproto.policy.finding import Rule, Severity

RULE = Rule("DP302", "policy-requires-nothing", Severity.WARNING, since="0.1.0")
