"""Reports with hostile text everywhere, and one ordinary one."""

from __future__ import annotations

from hypothesis import strategies as st

from deltaproto.errors import ErrorCode, TableError
from deltaproto.policy.finding import Finding, Rule, Severity, Suppression
from deltaproto.policy.rules import all_rules, find_rule
from deltaproto.render.findings import Report, RulePage

RULES: tuple[Rule, ...] = all_rules()
PAGES: list[RulePage] = [found for rule in RULES if (found := find_rule(rule.id)) is not None]

_FRAGMENTS = (
    "]]>",
    "<!--",
    "&amp;\"'<>",
    "%0A",
    "%",
    "::",
    "\r\n::error title=x::y",
    "##[error]",
    "a, b: c",
    "\x00\x08\x1b[31m\x7f\x85",
    "\u2028\ufeff",
    "\ufffe\uffff",
    "\ud800",
    "\udc80",
    "\ud83d\ude00",
    "😀",
    "[a](http://b)",
    "{0}",
    "s3://",
    "//@:x@[::1]:y/",
    "?#[ ]\\^`{|}",
)
texts = st.lists(
    st.sampled_from(_FRAGMENTS) | st.text(st.characters(exclude_categories=()), max_size=8),
    max_size=4,
).map("".join)
locations = st.one_of(
    texts,
    st.builds(lambda scheme, rest: scheme + rest, st.sampled_from(["s3://", "file:///"]), texts),
)
findings = st.builds(
    Finding,
    rule=st.sampled_from([rule.id for rule in RULES]) | texts,
    severity=st.sampled_from(Severity),
    message=texts,
    hint=texts,
    table=texts,
    feature=st.none() | texts,
    client=st.none() | texts,
    evidence=st.none() | texts,
    position=st.none() | st.tuples(st.integers(1, 999), st.integers(1, 999)),
)
reports = st.builds(
    Report,
    table=texts,
    location=st.none() | locations,
    findings=st.lists(findings, max_size=3).map(tuple),
    suppressed=st.lists(st.builds(Suppression, findings, texts, st.none() | texts), max_size=2).map(
        tuple
    ),
    error=st.none() | st.builds(TableError, st.sampled_from(ErrorCode), texts, texts),
    complete=st.booleans(),
)


def finding(
    rule: str = "DP107",
    severity: Severity = Severity.INFO,
    message: str = "the protocol could be lower",
    hint: str = "lower it",
    *,
    feature: str | None = None,
    client: str | None = None,
    evidence: str | None = None,
) -> Finding:
    return Finding(rule, severity, message, hint, "orders", feature, client, evidence)


ORDERS = Report(
    "orders",
    "s3://lake/orders",
    (
        finding(),
        finding("DP103", Severity.ERROR, "it is needed", "add it", feature="deletionVectors"),
    ),
    (Suppression(finding("DP108", Severity.WARNING, client="delta-rs"), "known", "2027-01-31"),),
)
CLEAN = Report("clean", "s3://lake/clean")
MISSING = Report(
    "gone", None, error=TableError(ErrorCode.NOT_FOUND, "there is no table", "look elsewhere")
)
PARTIAL = Report("partly", "file:///tmp/partly", complete=False)
