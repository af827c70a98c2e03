"""A constraint or generated column uses SQL that not every writer can plan.

## What it does
Lists the functions and operators that CHECK constraints, generated columns and invariants use,
except comparisons with literals, AND, OR, NOT, IS NULL, BETWEEN, IN and arithmetic.

## Why it breaks
The expressions are Spark SQL. Writers in other languages must plan the same text with their own
SQL engine. A missing function makes every write fail. A function with another meaning accepts
rows that it should reject.

## Who breaks
Writers that evaluate constraints without Spark: deltalake and libraries that write with it, such as
Polars. About half of Spark's functions fail there. Readers are not affected.

Delta Spark, if another engine stored a function that Spark does not have: deltalake stores
`arrow_cast()` if a timestamp is compared with a literal. INSERT, UPDATE, MERGE, OPTIMIZE, REORG and
drops that rewrite files then fail. Spark 3 cannot read `::`, which deltalake stores for dates. A
column in double quotes is a string for Spark.

## How to fix
If possible, write the constraint with plain comparisons: `x LIKE 'a%'` instead of
`startswith(x, 'a')`, `x IS NOT NULL` instead of `isnotnull(x)`.

## How safe
Dropping and adding a constraint takes two commits; adding one reads the whole table.

## References
PROTOCOL.md, "CHECK Constraints" and "Generated Columns"; measured with deltalake, and
with Delta Spark 3.3.3 and 4.4.0 on constraints that deltalake 1.6.6 stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients import requirements
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.policy.hazards import SEPARATOR

RULE = Rule("DP143", "constraint-constructs", Severity.INFO, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    found = {
        w: c for w, c in subject.contents.items() if w.startswith(requirements.EXPRESSION_PREFIX)
    }
    if not found:
        return
    names = ", ".join(dict.fromkeys(name for names in found.values() for name in names))
    used = ", ".join(map(requirements.describe_construct, found))
    yield RULE.finding(
        subject.table,
        f"constraints and generated columns ({names}) use {used}, which not every writer supports",
        "check the writers of the table; all of them accept plain comparisons",
        evidence=SEPARATOR.join(found),
    )
