"""Findings from verdicts: one per client and path, combining all accesses."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.matching import NOT_OFFERED, Verdict
from deltaproto.clients.model import Access
from deltaproto.policy.context import PolicyContext
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.finding import Finding, Rule

ACCESS_PHRASES = {
    Access.READ: "read",
    Access.APPEND: "append",
    Access.DML: "update, delete or merge",
    Access.MAINTAIN: "maintain",
    Access.STREAM: "stream",
}


def verdict_findings(
    rule: Rule, case: PolicyContext, verdict: Verdict, words: str
) -> Iterator[Finding]:
    """Yield a finding per client, path and reason for this verdict."""
    grouped: dict[tuple[str, str], list[DeclaredVerdict]] = {}
    for judged in case.verdicts:
        if judged.verdict.verdict is verdict:
            key = (judged.verdict.named, judged.verdict.reason)
            grouped.setdefault(key, []).append(judged)
    for (client, reason), members in grouped.items():
        accesses = " or ".join(dict.fromkeys(ACCESS_PHRASES[m.verdict.access] for m in members))
        first = members[0]
        labels = ", ".join(dict.fromkeys(m.declared.label for m in members if m.declared.label))
        label = f" ({labels})" if labels else ""
        because = first.verdict.because
        yield rule.finding(
            case.table,
            f"{client}{label} {words} {accesses}: {reason}",
            _hint(first, case.table),
            client=client,
            feature=because[0] if len(because) == 1 else None,
            evidence=", ".join(because) if len(because) > 1 else None,
        )


def _hint(judged: DeclaredVerdict, table: str) -> str:
    found = [
        remedy.text if remedy.command is None else f"{remedy.text}: {remedy.command_for(table)}"
        for remedy in judged.verdict.remedies
    ]
    if found:
        return "; or ".join(found)
    if judged.verdict.reason.startswith(NOT_OFFERED):
        return "declare only the access that it needs, such as access: [read] or --access read"
    if judged.verdict.verdict is Verdict.UNKNOWN:
        return "try the client on a copy of the table, and declare the result with --client-file"
    if not judged.verdict.because:
        return (
            "no known version passes: use another client, or remove the cause named in the "
            "message, for example in a copy of the table"
        )
    return "no known version passes and no feature can be dropped: use another client"
