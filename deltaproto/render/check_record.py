"""What a check says about one table, as the renderers for other people's tools take it."""

from __future__ import annotations

import re
from typing import NamedTuple

from deltaproto.errors import TableError
from deltaproto.policy.finding import Finding, Suppressed
from deltaproto.policy.rule import Rule

RulePage = tuple[Rule, str]
"""a rule and its page, as `find_rule` gives them"""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Report(NamedTuple):
    """One table: what was found there, or why nothing could be."""

    table: str
    """as the user named it"""
    location: str | None
    """an absolute URI; None when it is not known"""
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    error: TableError | None = None
    complete: bool = True


class Problem(NamedTuple):
    """Why a report is no answer, or only a part of one."""

    code: str
    message: str
    hint: str


def problem(report: Report) -> Problem | None:
    """What keeps the report from being a whole answer, if anything does."""
    if report.error is not None:
        return Problem(str(report.error.code), report.error.message, report.error.hint)
    if not report.complete:
        return Problem("incomplete", "the answer may miss something", "see the table's findings")
    return None


def advice(said: Finding | Problem) -> str:
    """The message, marked if the baseline has the finding, and the hint on a line of its own."""
    message = f"known: {said.message}" if isinstance(said, Finding) and said.known else said.message
    return f"{message}\nHint: {said.hint}" if said.hint else message


def fingerprint(report: Report, finding: Finding) -> str:
    """The finding's identity from run to run, whatever its wording and severity have become."""
    import hashlib
    import json

    where = report.table if report.location is None else report.location
    about = [finding.rule, where, finding.feature, finding.client]
    identity = json.dumps(about if finding.detail is None else [*about, finding.detail])
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def encodable(text: str) -> str:
    """`text` without lone surrogates, which no encoding of Unicode has."""
    return _SURROGATE.sub("\ufffd", text)
