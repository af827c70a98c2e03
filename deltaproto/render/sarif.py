"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from deltaproto import __version__
from deltaproto.policy.finding import Finding, Severity, Suppression
from deltaproto.render.findings import (
    Problem,
    Report,
    RulePage,
    advice,
    encodable,
    fingerprint,
    problem,
)
from deltaproto.render.interface import NOTICES, dump_json

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "deltaproto/v1"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"(?:[^@]*@)?[^@:]*(?::[0-9]*)?")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def write_sarif(
    reports: Iterable[Report],
    file: IO[str],
    *,
    rules: Sequence[RulePage],
    started_at: str,
    summary: Callable[[], Mapping[str, Any]] = dict,
    compared: bool = False,
) -> None:
    """Write one run with one result per line, each as soon as its table is known.

    `rules` are the rules that were evaluated; `started_at` is their start time, in UTC as
    RFC 3339; `summary` has the totals. `compared`: each result records whether it is in the
    baseline. Only tables with an incomplete result are kept in memory until the end.

    Every result is written. GitHub refuses a run of more than 25,000 results, or a file of more
    than 10 MB compressed: check such a fleet in several runs.
    """
    driver = {
        "name": "deltaproto",
        "version": __version__,
        "rules": [_rule(rule_page) for rule_page in rules],
    }
    indices = {rule.id: index for index, (rule, _) in enumerate(rules)}
    notifications: list[dict[str, Any]] = []
    file.write(f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{\n')
    file.write(f'"tool": {_line({"driver": driver})},\n"results": [')
    separator = "\n"
    for report in reports:
        for result, known in _results(report, indices):
            if compared:
                # SARIF 2.1.0, 3.27.24.
                result["baselineState"] = "unchanged" if known else "new"
            file.write(separator + _line(result))
            separator = ",\n"
        if (found := problem(report.error, complete=report.complete)) is not None:
            notifications.append(_notification(report, found))
    invocation = {
        "executionSuccessful": not notifications,
        "startTimeUtc": started_at,
        "toolExecutionNotifications": [
            *notifications,
            *({"level": "warning", "message": _message(notice)} for notice in NOTICES),
        ],
    }
    totals = dict(summary())
    properties = f',\n"properties": {_line({"summary": totals})}' if totals else ""
    file.write(f'\n]{properties},\n"invocations": [{_line(invocation)}]\n}}]}}\n')


def _rule(rule_page: RulePage) -> dict[str, Any]:
    rule, page = rule_page
    return {
        "id": rule.id,
        "name": "".join(word[:1].upper() + word[1:] for word in rule.name.split("-")),
        "shortDescription": {"text": page.partition("\n")[0]},
        "fullDescription": {"text": _summary(page)},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"since": rule.since},
    }


def _summary(page: str) -> str:
    # GitHub accepts 1,024 characters of a full description, fewer than a page has.
    head, _, rest = page.partition("\n## What it does\n")
    return " ".join((rest.partition("\n## ")[0] or head).split())


def _results(report: Report, indices: dict[str, int]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each result, and whether it is in the baseline."""
    for finding in report.findings:
        yield _result(report, finding, indices, []), finding.known
    for suppressed in report.suppressed:
        finding = suppressed.finding
        yield _result(report, finding, indices, [_suppression(suppressed)]), finding.known


def _result(
    report: Report,
    finding: Finding,
    indices: dict[str, int],
    suppressions: list[dict[str, Any]],
) -> dict[str, Any]:
    identity = fingerprint(report, finding)
    index = indices.get(finding.rule)
    extra = {
        "table": report.table,
        "feature": finding.feature,
        "client": finding.client,
        "evidence": finding.evidence,
    }
    return {
        "ruleId": finding.rule,
        **({} if index is None else {"ruleIndex": index}),
        "level": _LEVELS[finding.severity],
        "message": _message(advice(finding._replace(known=False))),
        "locations": [_location(report, *(finding.position or ()))],
        # GitHub reads only the second name. Without it, two findings about one table are the same
        # alert.
        "partialFingerprints": {FINGERPRINT: identity, "primaryLocationLineHash": identity},
        # SARIF 2.1.0, 3.27.23: either all results of a run have this array, or none does.
        "suppressions": suppressions,
        "properties": {name: value for name, value in extra.items() if value is not None},
    }


def _suppression(suppressed: Suppression) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": "external",
        "status": "accepted",
        "justification": suppressed.reason,
    }
    if suppressed.expires is not None:
        fields["properties"] = {"expires": suppressed.expires}
    return fields


def _notification(report: Report, found: Problem) -> dict[str, Any]:
    return {
        "level": "error",
        "message": _message(f"{report.table}: {advice(found)}"),
        "locations": [_location(report)],
        "properties": {"code": found.code, "table": report.table},
    }


def _message(text: str) -> dict[str, str]:
    # SARIF 2.1.0, 3.11.6: `[text](target)` in a plain message is a link. A space prevents that; a
    # backslash would be canceled by another one in front of it.
    return {"text": text.replace("](", "] (")}


def _location(report: Report, line: int = 1, column: int = 1) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(report)},
            # A table has no lines, but GitHub requires a region.
            "region": {
                "startLine": line,
                "startColumn": column,
                "endLine": line,
                "endColumn": column,
            },
        },
        "logicalLocations": [{"fullyQualifiedName": report.table}],
    }


def _uri(report: Report) -> str:
    """Return the location as a URI, or the table's name as a relative reference of one segment.

    Object store URIs are used as typed by the user; characters that are not yet escaped become
    escapes.
    """
    scheme = _SCHEME.match(report.location or "")
    if report.location is None or scheme is None:
        if report.location is not None:
            return _quoted(report.location, "")
        return _quoted(report.table, "" if "`" in report.table else "/")
    rest = _LONE_PERCENT.sub("%25", report.location[scheme.end() :])
    authority = ""
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        plain = _AUTHORITY.fullmatch(host) is not None
        authority, rest = "//" + _quoted(host, "%@:" if plain else "%"), slash + path
    return scheme.group() + authority + _quoted(rest, "%/@:!$&'()*+,;=")


def _quoted(text: str, safe: str) -> str:
    from urllib.parse import quote

    return quote(text, safe, errors="surrogatepass")


def _line(fields: dict[str, Any]) -> str:
    return dump_json(_encodable(fields), indent=None)


def _encodable(value: Any) -> Any:
    match value:
        case dict():
            return {name: _encodable(item) for name, item in value.items()}
        case list():
            return [_encodable(item) for item in value]
        case str():
            return encodable(value)
        case _:
            return value
