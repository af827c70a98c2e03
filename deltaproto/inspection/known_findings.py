"""Compares findings with a saved check, so that only new ones fail.

A finding is known if the saved check of the same table has one by the same rule, about the same
subject and at least as severe. The wording is ignored if feature, client and evidence identify the
subject. A finding on a client is known if each access that fails now already failed in the same way
because of the same features.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple

from deltaproto.clients.model import Verdict
from deltaproto.clients.resolve import ClientReference
from deltaproto.errors import TableError, UsageError
from deltaproto.input_file import require_input
from deltaproto.inspection.json_entries import JsonFile, require_string
from deltaproto.policy.baseline import nothing_compared_error, relative_name
from deltaproto.policy.document import normalize_location
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import SEVERITY_RANKS, Finding, Severity, Suppression
from deltaproto.policy.rules import not_in_baseline
from deltaproto.policy.table_check import CLIENT_RULES, TableCheck

SAVE_HINT = "save one with `deltaproto check … --write-baseline FILE`"
_SUBJECT_NAMED = frozenset(
    "DP102 DP103 DP106 DP108 DP109 DP110 DP112 DP113 DP114 DP134 DP150 DP205 DP206 DP209 DP210"  # noqa: SIM905
    " DP211".split()
)
"""rules whose findings are identified by feature, client and evidence"""
_KINDS = ("inspect", "check")
_ON_CLIENTS = frozenset(CLIENT_RULES.values())
_LISTS = ("tables", "verdicts", "findings", "suppressed")
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError)

_Subject = tuple[str | None, ...]
_Failure = tuple[frozenset[str], str]


class _SavedTable(NamedTuple):
    """The saved check of one table."""

    location: str | None
    findings: dict[_Subject, Severity]
    """worst severity by subject"""
    suppressed: dict[_Subject, Severity]
    failures: dict[tuple[str, str, str], list[_Failure]]
    """by client, access and verdict: the features that decided, and the reason"""


def saved_command(path: str) -> str | None:
    """Return the command that wrote a JSON file, if its beginning names one.

    Raises:
        UsageError: when the file cannot be read, or is not a JSON object.
    """
    with require_input(path, f"check the path, or {SAVE_HINT}") as file:
        document = JsonFile(file, path, None)
        for entries in document.objects():
            next(entries, None)
            command = document.members.get("command")
            return command if isinstance(command, str) else None
    return None


def require_comparable(path: str, command: str | None) -> None:
    """Require the output of `inspect` or `check`.

    Raises:
        UsageError: for the output of another command.
    """
    if command is not None and command not in _KINDS:
        raise UsageError(
            f"{path} is the output of {command}, not of check or inspect",
            SAVE_HINT,
        )


class KnownFindings:
    """The findings of a saved check, by table.

    Tables match by location, else by the relative path or catalog name that was passed.

    Raises:
        UsageError: when the file was not written by `check --format json` or `jsonl`.
    """

    def __init__(self, path: str) -> None:
        self._tables: dict[str, _SavedTable] = {}
        try:
            self._read(path)
        except _MALFORMED:
            raise UsageError(
                f"{path} is not the output of `check --format json`", SAVE_HINT
            ) from None
        named = Counter(relative_name(table) for table in self._tables)
        self._by_place = {
            normalize_location(each.location): table
            for table, each in self._tables.items()
            if each.location is not None
        }
        self._by_name = {
            relative_name(table): table
            for table in self._tables
            if relative_name(table) and named[relative_name(table)] == 1
        }
        self._met: set[str] = set()

    def compared(self, checked: TableCheck, checker: Checker) -> TableCheck:
        """Mark known findings in the check, and count those that no longer occur.

        A table that the saved check does not list gets the finding DP222 as an error.
        """
        if checked.error is not None:
            # Count it as found; otherwise it would also be reported as unchecked.
            self._find(checked)
            return checked
        saved = self._find(checked)
        if saved is None:
            if checked.of_policy:
                return checked
            (missing,) = not_in_baseline.finding(checked.table)
            return checker.with_findings(checked, [missing._replace(severity=Severity.ERROR)])
        return checked._replace(
            findings=tuple(
                each._replace(known=_is_known(each, checked, saved, saved.findings))
                for each in checked.findings
            ),
            suppressed=tuple(
                _mark_suppression(each, checked, saved) for each in checked.suppressed
            ),
            fixed=_count_fixed(checked, saved),
        )

    def unmatched(self) -> TableError | None:
        """Return the error of a saved check that lists none of the checked tables."""
        return None if self._met else nothing_compared_error()

    def unchecked(self) -> list[str]:
        """Return the tables of the saved check that this run did not check."""
        return [
            table
            for table, each in self._tables.items()
            if each.location is not None and table not in self._met
        ]

    def _find(self, checked: TableCheck) -> _SavedTable | None:
        if checked.of_policy:
            return self._tables.get(checked.table)
        where = checked.table if checked.location is None else checked.location
        named = self._by_place.get(normalize_location(where)) or self._by_name.get(
            relative_name(checked.table)
        )
        if named is None and checked.location is None:
            named = self._by_place.get(normalize_location(os.path.abspath(checked.table)))
        if named is None:
            return None
        self._met.add(named)
        return self._tables[named]

    def _read(self, path: str) -> None:
        with require_input(path) as file:
            document = JsonFile(file, path, None)
            for entries in document.objects():
                for entry in entries:
                    self._add(document.current, entry)
                _require_check(document, path)
        for table, each in list(self._tables.items()):
            if each.location == "":
                # Two tables had this name, so the findings cannot be attributed.
                del self._tables[table]

    def _add(self, kind: str, entry: Any) -> None:
        if kind not in _LISTS:
            return
        table = require_string(entry["table"])
        saved = self._tables.get(table) or _SavedTable(None, {}, {}, {})
        if kind == "tables":
            location = require_string(entry["location"])
            if saved.location not in (None, location):
                location = ""
            self._tables[table] = saved._replace(location=location)
            return
        self._tables[table] = saved
        if kind == "verdicts":
            if entry["verdict"] != Verdict.OK:
                reference = ClientReference(entry["client"], entry["path"], entry["version"])
                key = (
                    str(reference),
                    require_string(entry["access"]),
                    str(Verdict(entry["verdict"])),
                )
                failure = (frozenset(map(require_string, entry["because"])), entry["reason"] or "")
                saved.failures.setdefault(key, []).append(failure)
            return
        finding = Finding(
            rule=require_string(entry["rule"]),
            severity=Severity(entry["severity"]),
            message=require_string(entry["message"]),
            hint="",
            table=table,
            feature=entry.get("feature"),
            client=entry.get("client"),
            evidence=entry.get("evidence"),
        )
        subject = _subject(finding)
        pool = saved.findings if kind == "findings" else saved.suppressed
        pool[subject] = min(pool.get(subject, finding.severity), finding.severity, key=_rank)


def _require_check(document: JsonFile, path: str) -> None:
    members = document.members
    if members.get("command") != "check" or "error" in members:
        raise UsageError(f"{path} is not the result of a check", SAVE_HINT)
    shape = str(members.get("schema_version"))
    if shape.partition(".")[0] != "1":
        raise UsageError(
            f"{path} has the schema_version {shape!r:.40}, which this deltaproto does not support",
            "use the deltaproto that wrote it, or save a new check",
        )
    if not {"tables", "findings", "verdicts"} <= document.arrays:
        raise UsageError(
            f"{path} does not list the checked tables, because an older release of deltaproto "
            "wrote it",
            "save a new check with this release",
        )


def _is_known(
    finding: Finding, checked: TableCheck, saved: _SavedTable, pool: dict[_Subject, Severity]
) -> bool:
    if finding.rule in _ON_CLIENTS:
        then = [
            severity
            for (rule, client, *because), severity in pool.items()
            if (rule, client) == (finding.rule, finding.client)
            and _features(finding.feature, finding.evidence) <= _features(*because)
        ]
        return _was_as_severe(finding, then) and _failed_the_same(finding, checked, saved)
    subject = _subject(finding)
    return subject in pool and _was_as_severe(finding, [pool[subject]])


def _was_as_severe(finding: Finding, then: Collection[Severity]) -> bool:
    """Return True if one of the earlier severities is not lower than the finding's."""
    return any(_rank(each) <= _rank(finding.severity) for each in then)


def _failed_the_same(finding: Finding, checked: TableCheck, saved: _SavedTable) -> bool:
    """Return True if each access of the finding failed in the same way then."""
    failing = [
        judged.verdict
        for judged in checked.verdicts
        if judged.verdict.named == finding.client
        and CLIENT_RULES.get(judged.verdict.verdict) == finding.rule
        and frozenset(judged.verdict.because) == _features(finding.feature, finding.evidence)
    ]
    return bool(failing) and all(
        any(
            set(verdict.because) <= because if verdict.because else verdict.reason == reason
            for because, reason in saved.failures.get(
                (verdict.named, str(verdict.access), str(verdict.verdict)), ()
            )
        )
        for verdict in failing
    )


def _features(feature: str | None, evidence: str | None) -> frozenset[str]:
    """Return the deciding features from a finding on a client."""
    return frozenset(evidence.split(", ") if evidence else [feature] if feature else [])


def _mark_suppression(each: Suppression, checked: TableCheck, saved: _SavedTable) -> Suppression:
    known = any(
        _is_known(each.finding, checked, saved, pool) for pool in (saved.findings, saved.suppressed)
    )
    return each._replace(finding=each.finding._replace(known=known))


def _count_fixed(checked: TableCheck, saved: _SavedTable) -> int:
    """Return the findings that no longer occur and have no replacement on the same subject.

    Findings on clients that are no longer declared are not counted.
    """
    now = {*checked.findings, *(each.finding for each in checked.suppressed)}
    subjects = {_stable_subject(_subject(each)) for each in now}
    judged = {each.verdict.named for each in checked.verdicts}
    fixed = [each for each in saved.findings if _stable_subject(each) not in subjects]
    return sum(each[0] not in _ON_CLIENTS or each[1] in judged for each in fixed)


def _subject(finding: Finding) -> _Subject:
    """Return the rule, client and feature of a finding, and the rest of its identity."""
    about = (finding.rule, finding.client, finding.feature, finding.evidence)
    if finding.rule in _SUBJECT_NAMED or finding.rule in _ON_CLIENTS:
        return about
    return (*about, finding.message)


def _stable_subject(subject: _Subject) -> _Subject:
    """Return the subject without parts that may change while the problem remains."""
    if subject[0] in _ON_CLIENTS:
        return ("client", subject[1])
    return subject[:3]


def _rank(severity: Severity) -> int:
    return SEVERITY_RANKS[severity]
