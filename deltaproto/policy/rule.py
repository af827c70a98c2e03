"""A rule: its id, its page, and the findings it produces."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.policy.finding import Finding, Severity

_MOST_TEXT = 10_000
"""most characters of a message"""


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
            message=_truncate(message),
            hint=_truncate(hint),
            table=table,
            client=client,
            feature=feature,
            evidence=_truncate(evidence or "") or None,
            detail=detail,
        )


def _truncate(text: str) -> str:
    # A table property may have a value of any length.
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def page_text(docstring: str | None) -> str:
    """Convert a rule module's docstring to its page in Markdown."""
    import inspect

    return inspect.cleandoc(docstring or "")
