"""A constraint or generated column uses SQL that not every writer can plan.

## What it does
Names the functions and operators that CHECK constraints, generated columns and invariants use,
beyond comparisons with literals, AND, OR, NOT, IS NULL, BETWEEN, IN and sums.

## Why it breaks
The expressions are Spark SQL. A writer in another language must plan the same text with its own
SQL engine: a function that is missing there fails every write, and one that means something else
takes rows that it should refuse.

## Who breaks
Writers that evaluate constraints without Spark: deltalake and what writes through it, such as
Polars. About half of Spark's functions fail there. Readers are not affected.

## How to fix
Write the constraint in plain comparisons where that is possible: `x LIKE 'a%'` instead of
`startswith(x, 'a')`, `x IS NOT NULL` instead of `isnotnull(x)`.

## How safe
Dropping and adding a constraint are two commits; adding one reads the whole table.

## References
PROTOCOL.md, "CHECK Constraints" and "Generated Columns"; measured with deltalake.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.hazards import SEPARATOR
from deltaproto.policy.rule import Rule

RULE = Rule("DP143", "constraint-constructs", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    found = {w: c for w, c in subject.contents.items() if w.startswith(requirements.EXPRESSION)}
    if not found:
        return
    names = ", ".join(dict.fromkeys(name for names in found.values() for name in names))
    used = ", ".join(word.removeprefix(requirements.EXPRESSION) for word in found)
    yield RULE.finding(
        subject.table,
        f"constraints and generated columns ({names}) use {used}, which not every writer plans",
        "check the writers of the table; plain comparisons are taken by all that check them",
        evidence=SEPARATOR.join(found),
    )
