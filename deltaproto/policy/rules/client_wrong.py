"""A declared client may read wrong rows, or do harm, without an error.

## What it does
Finds declared clients that let the table through without understanding what is in it: releases
that do not check a feature, or that check it and are known to be wrong.

## Why it breaks
Whoever ignores deletion vectors reads deleted rows; whoever ignores column mapping reads nulls; a
writer that ignores a feature breaks its promise for everybody else. Nothing fails.

## Who breaks
The client that is named, and everybody who relies on its answers.

## How to fix
Stop that client on this table until it is upgraded, the feature is dropped, or it reads a copy
(Compatibility Mode of Databricks: `deltaproto explain client-refused`).

## How safe
Stopping a client is always safe. For a drop see `deltaproto explain client-refused`.

## References
`deltaproto clients ID@VERSION` for the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.matching import Verdict
from deltaproto.policy.client_findings import about
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rule import Rule

RULE = Rule("DP202", "client-wrong", Severity.ERROR, since="0.1.0")


def examine(case: PolicyContext) -> Iterator[Finding]:
    return about(RULE, case, Verdict.WRONG, "may silently do wrong when it tries to")
