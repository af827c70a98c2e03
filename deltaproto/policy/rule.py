"""A rule: its id, its page, and how it makes findings."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.policy.finding import Finding, Severity


class Rule(NamedTuple):
    """One rule. Its page, shown by `explain`, is the docstring of the module it lives in."""

    id: str
    name: str
    severity: Severity
    since: str

    def finding(
        self,
        table: str,
        message: str,
        hint: str,
        *,
        client: str | None = None,
        feature: str | None = None,
        evidence: str | None = None,
        detail: str | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            message=message,
            hint=hint,
            table=table,
            client=client,
            feature=feature,
            evidence=evidence or None,
            detail=detail,
        )


def page_text(docstring: str | None) -> str:
    """A rule's page as Markdown, from its module's docstring."""
    import inspect

    return inspect.cleandoc(docstring or "")
