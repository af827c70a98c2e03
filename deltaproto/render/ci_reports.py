"""Findings for CI systems: JUnit XML, GitLab's code quality report, and GitHub's annotations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from deltaproto.errors import ExitCode
from deltaproto.policy.finding import FailOn, Finding, Rule, Severity, exit_code
from deltaproto.render.findings import Report, advice, encodable, fingerprint, problem
from deltaproto.render.interface import NOTICES, dump_json, escape_control_chars, neutralize_lines

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


_NO_XML = re.compile("[\ufffe\uffff]")


def write_junit(
    reports: Iterable[Report],
    file: IO[str],
    *,
    rules: Sequence[Rule],
    fail_on: FailOn,
    hidden: Callable[[], str] = str,
) -> None:
    """Write a suite for each table, as soon as the table is known.

    A finding is a test case: it fails at severity `fail_on` or higher and passes below; a
    suppressed one is skipped. A table without findings is a case that passes. A table with an
    incomplete result has a case with an error. A last suite has the number of findings without a
    case, if any (`hidden`). The XML is ASCII, so that it is valid in every encoding of `file`.
    """
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    names = {rule.id: rule.name for rule in rules}
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="deltaproto">\n')
    for report in reports:
        suite = _Suite(report, names, fail_on).element()
        indent(suite)
        file.write(tostring(suite, encoding="us-ascii").decode("ascii") + "\n")
    if message := hidden():
        suite = Element("testsuite", name="findings not shown", tests="1")
        case = SubElement(suite, "testcase", classname="deltaproto", name="findings not shown")
        SubElement(case, "system-out").text = message
        indent(suite)
        file.write(tostring(suite, encoding="us-ascii").decode("ascii") + "\n")
    if NOTICES:
        suite = _notices()
        indent(suite)
        file.write(tostring(suite, encoding="us-ascii").decode("ascii") + "\n")
    file.write("</testsuites>\n")


def _notices() -> Element:
    from xml.etree.ElementTree import Element

    count = {"tests": str(len(NOTICES)), "failures": "0", "errors": "0", "skipped": "0"}
    suite = Element("testsuite", {"name": "deltaproto", **count})
    for number, notice in enumerate(NOTICES, 1):
        case = Element("testcase", classname="deltaproto", name=f"notice {number}")
        _child(case, "system-out", f"warning: {notice}")
        suite.append(case)
    return suite


class _Suite:
    """The test cases of one table."""

    def __init__(self, report: Report, names: dict[str, str], fail_on: FailOn) -> None:
        self._report = report
        self._names = names
        self._fail_on = fail_on
        self._taken: set[str] = set()
        self._cases: list[Element] = []

    def element(self) -> Element:
        """Return the suite with its counts."""
        from xml.etree.ElementTree import Element

        for finding in self._report.findings:
            self._finding(finding)
        for each in self._report.suppressed:
            case = self._finding_case(each.finding)
            _child(case, "skipped", advice(each.finding), message=each.reason)
        if (found := problem(self._report.error, complete=self._report.complete)) is not None:
            case = self._case("deltaproto", "answer")
            _child(case, "error", advice(found), type=found.code, message=found.message)
        if not self._cases:
            self._case("deltaproto", "no findings")
        counts = {
            "tests": len(self._cases),
            "failures": self._count("failure"),
            "errors": self._count("error"),
            "skipped": self._count("skipped"),
        }
        suite = Element("testsuite", name=_line(self._report.table))
        for name, count in counts.items():
            suite.set(name, str(count))
        suite.extend(self._cases)
        return suite

    def _finding(self, finding: Finding) -> None:
        case = self._finding_case(finding)
        text = advice(finding) + (f"\nEvidence: {finding.evidence}" if finding.evidence else "")
        if exit_code((finding,), self._fail_on) is ExitCode.FINDINGS:
            _child(case, "failure", text, type=str(finding.severity), message=finding.message)
        else:
            _child(case, "system-out", f"{finding.severity}: {text}")

    def _finding_case(self, finding: Finding) -> Element:
        about = (finding.feature, finding.client)
        name = self._names.get(finding.rule, finding.rule)
        return self._case(finding.rule, name, *(text for text in about if text is not None))

    def _case(self, class_name: str, name: str, *about: str) -> Element:
        from xml.etree.ElementTree import Element

        # GitLab and Jenkins identify a case by its class and name alone, without the suite.
        wanted = _line(f"{name}: {', '.join((self._report.table, *about))}")
        unique, number = wanted, 1
        while unique in self._taken:
            number += 1
            unique = f"{wanted} #{number}"
        self._taken.add(unique)
        case = Element("testcase", classname=_line(class_name), name=unique)
        self._cases.append(case)
        return case

    def _count(self, tag: str) -> int:
        return sum(case.find(tag) is not None for case in self._cases)


def _child(case: Element, tag: str, text: str, **attributes: str) -> None:
    from xml.etree.ElementTree import SubElement

    child = SubElement(case, tag, {name: _text(value) for name, value in attributes.items()})
    child.text = neutralize_lines(_text(text))


def _line(text: str) -> str:
    return _text(text).replace("\n", "\\x0a")


def _text(text: str) -> str:
    """Return `text` with only the characters of XML 1.0 (section 2.2)."""
    return _NO_XML.sub("\ufffd", encodable(escape_control_chars(text)))


_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}
_FAILED = "blocker"


def write_gitlab(
    reports: Iterable[Report], file: IO[str], *, hidden: Callable[[], str] = str
) -> None:
    """Write one JSON array with an entry for each finding and for each table without a result.

    Suppressed findings have no entry; `hidden` returns the closing line with their number. The
    severities are critical, major and info for errors, warnings and infos, info for findings in the
    baseline, and blocker for unreadable tables. Fingerprints equal those of SARIF, so they are
    stable from run to run.

    Source: docs.gitlab.com, "Code quality report format".
    """
    file.write("[")
    separator = "\n"
    for entry in _entries(reports, hidden):
        file.write(separator + dump_json(entry, indent=None))
        separator = ",\n"
    file.write("\n]\n")


def _entries(reports: Iterable[Report], hidden: Callable[[], str]) -> Iterator[dict[str, Any]]:
    for report in reports:
        for finding in report.findings:
            severity = "info" if finding.known else _SEVERITIES[finding.severity]
            identity = fingerprint(report, finding)
            line = 1 if finding.position is None else finding.position[0]
            yield _entry(finding.rule, advice(finding), severity, report.table, identity, line)
        if (found := problem(report.error, complete=report.complete)) is not None:
            yield _entry(found.code, advice(found), _FAILED, report.table)
    if message := hidden():
        yield _entry("findings-not-shown", message, "info", "deltaproto")
    for notice in NOTICES:
        yield _entry("notice", notice, "major", "deltaproto")


def _entry(
    name: str, text: str, severity: str, path: str, identity: str | None = None, line: int = 1
) -> dict[str, Any]:
    path = encodable(escape_control_chars(path))
    if identity is None:
        identity = hashlib.sha256(
            "\0".join((name, path, text)).encode(errors="replace")
        ).hexdigest()
    return {
        "description": encodable(escape_control_chars(text)),
        "check_name": encodable(escape_control_chars(name)),
        "fingerprint": identity,
        "severity": severity,
        # A table has no lines, but GitLab requires one.
        "location": {"path": path, "lines": {"begin": line}},
    }


_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write_github(
    reports: Iterable[Report], file: IO[str], *, hidden: Callable[[], str] = str
) -> None:
    """Write a line for each finding, and an error for each table with an incomplete result.

    Findings in the baseline are notices. Suppressed findings have no line. All others have one,
    although GitHub shows at most ten errors, ten warnings and ten notices per step; the log
    has the rest. `hidden` returns the closing line with the number of findings that the policy
    waives or turns off.
    """
    for report in reports:
        for finding in report.findings:
            title = f"{finding.rule} {report.table}"
            name = "notice" if finding.known else _COMMANDS[finding.severity]
            file.write(_command(name, title, advice(finding), _annotated_place(finding)))
        if (found := problem(report.error, complete=report.complete)) is not None:
            file.write(_command("error", f"{found.code} {report.table}", advice(found)))
    if message := hidden():
        file.write(_command("notice", "findings not shown", message))

    for notice in NOTICES:
        file.write(_command("warning", "deltaproto", notice))


def _annotated_place(finding: Finding) -> str:
    """Return the properties of a position in the policy file; empty for a table."""
    if finding.position is None:
        return ""
    line, column = finding.position
    return f"file={_property(finding.table)},line={line},col={column},"


def _command(name: str, title: str, message: str, place: str = "") -> str:
    return f"::{name} {place}title={_property(title)}::{_data(message)}\n"


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    # The escapes of actions/toolkit, packages/core/src/command.ts; the percent sign is first.
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return encodable(escape_control_chars(escaped))
