"""Findings from verdicts, one per client and path, and general caveats about declared clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients import requirements
from deltaproto.clients.matching import NOT_OFFERED
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.remedy import TABLE
from deltaproto.clients.requirements import TableRequirements
from deltaproto.counts import any_name
from deltaproto.location import quote_for_shell
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.finding import Finding, Rule, truncate
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED

ACCESS_PHRASES = {
    Access.READ: ("read",),
    Access.APPEND: ("append",),
    Access.DML: ("update", "delete", "merge"),
    Access.MAINTAIN: ("maintain",),
    Access.STREAM: ("stream",),
}


def verdict_findings(
    rule: Rule, case: PolicyContext, verdict: Verdict, words: str
) -> Iterator[Finding]:
    """Yield a finding per client, path and reason for this verdict."""
    table, word = case.table, case.shell_name
    for finding, first in _group_verdicts(rule, case.verdicts, verdict, words):
        hint = finding.hint
        if TABLE in hint:
            hint = truncate(hint.replace(TABLE, word))
        elif not hint:
            hint = truncate(_hint_for_table(first, case))
        yield finding._replace(table=table, hint=hint)


class _Group(NamedTuple):
    """The verdicts of one client and path with the same reason."""

    finding: Finding
    """the finding without its table: its hint has a placeholder, or is empty"""
    first: DeclaredVerdict


# Tables with equal requirements share one tuple of verdicts.
@cache_by_identity(4096)
def _group_verdicts(
    rule: Rule, verdicts: tuple[DeclaredVerdict, ...], verdict: Verdict, words: str
) -> tuple[_Group, ...]:
    groups = []
    grouped: dict[tuple[str, str], list[DeclaredVerdict]] = {}
    for judged in verdicts:
        if judged.verdict.verdict is verdict:
            key = (judged.verdict.named, judged.verdict.reason)
            grouped.setdefault(key, []).append(judged)
    for (client, reason), members in grouped.items():
        phrases = (ACCESS_PHRASES[each.verdict.access] for each in members)
        accesses = any_name([*dict.fromkeys(chain.from_iterable(phrases))])
        first = members[0]
        labels = ", ".join(dict.fromkeys(m.declared.label for m in members if m.declared.label))
        label = f" ({labels})" if labels else ""
        because = first.verdict.because
        finding = rule.finding(
            "",
            f"{client}{label} {words} {accesses}: {reason}",
            _common_hint(first) or "",
            client=client,
            feature=because[0] if len(because) == 1 else None,
            evidence=", ".join(because) if len(because) > 1 else None,
        )
        groups.append(_Group(finding, first))
    return tuple(groups)


def _common_hint(judged: DeclaredVerdict) -> str | None:
    """Return the hint if only the table's name differs for tables with this verdict."""
    if judged.verdict.remedies:
        return "; or ".join(
            remedy.text if remedy.command is None else f"{remedy.text}: {remedy.command}"
            for remedy in judged.verdict.remedies
        )
    if judged.verdict.reason.startswith(NOT_OFFERED):
        return "declare only the access that it needs, such as access: [read] or --access read"
    if judged.verdict.verdict is Verdict.UNKNOWN:
        return "try the client on a copy of the table, and declare the result with --client-file"
    if judged.verdict.reason.startswith(requirements.OF_EXPRESSIONS):
        return (
            "no known version works: use another client, or replace the constraint by one in "
            "Spark SQL with plain comparisons"
        )
    if not judged.verdict.because:
        return (
            "no known version works: use another client, or remove the cause named in the "
            "message, for example in a copy of the table"
        )
    return None


def _hint_for_table(judged: DeclaredVerdict, case: PolicyContext) -> str:
    """Return the hint if `_common_hint` has none."""
    needs = case.facts.needs
    if needs.protocol.violations():
        return (
            "no known version works, and no statement can change a protocol that violates the "
            f"spec: repair it first; deltaproto inspect {case.shell_name} shows what is wrong"
        )
    if needs.by_name and _has_unseen_features(needs):
        place = quote_for_shell(case.facts.location)
        return (
            "no known version works, and Spark does not show whether dropping features helps: "
            f"check the table by its location: deltaproto check {place}"
        )
    return (
        "no known version works and dropping the features does not help: use another client, or "
        "see whether other changes or a copy into a new table help: "
        f"deltaproto plan-downgrade {case.shell_name} --for-client {judged.verdict.named} "
        f"--access {judged.verdict.access}"
    )


def _has_unseen_features(needs: TableRequirements) -> bool:
    """Return True if the log would show which features are used, but the reader did not."""
    supported = needs.protocol.supported
    return not CATALOG_MANAGED & supported and any(needs.uses(name) is None for name in supported)


RUNTIME = "databricks-runtime"
_GENERAL_CAVEATS = (
    "A verdict applies to the declared version only. Clients and tools that you add later must "
    "support the table's features too.",
    "A reader-writer feature blocks readers and writers that do not support it; a writer feature "
    "blocks writers only.",
)
_RUNTIME_CAVEATS = (
    "Older Databricks runtimes may be unable to use tables that newer runtimes write. Older "
    "runtimes that can still write may skip optimizations.",
    "What works on a Databricks Runtime may fail on the Delta release of the same version: also "
    "declare delta-spark if you use it.",
    "Databricks SQL and Lakeflow Declarative Pipelines upgrade their runtime automatically: "
    "declare the oldest and the newest runtime that they may use.",
)
_OPEN_SOURCE_CAVEAT = (
    "Open-source clients may implement only part of a feature, legacy features included; "
    "`deltaproto clients ID@VERSION` shows the evidence for each verdict."
)


_DAFT_CAVEAT = (
    "An inventory does not record who wrote the data files, or whether column mapping was enabled "
    "on existing files. Daft cannot read some of these files: check its tables by path."
)


def caveats_for(clients: Iterable[str]) -> tuple[str, ...]:
    """Return the caveats for clients with these ids."""
    ids = set(clients)
    found = list(_GENERAL_CAVEATS) if ids else []
    if RUNTIME in ids:
        found += _RUNTIME_CAVEATS
    if "daft" in ids:
        found.append(_DAFT_CAVEAT)
    if ids - {RUNTIME}:
        found.append(_OPEN_SOURCE_CAVEAT)
    return tuple(found)
