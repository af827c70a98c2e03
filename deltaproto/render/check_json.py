"""A check as JSON, written table by table so that a fleet's verdicts need not fit into memory."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import IO, Any

from deltaproto.caches import cache_by_identity
from deltaproto.clients.model import Verdict
from deltaproto.clients.usability import Usability
from deltaproto.counts import counted
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document.merging import Decision
from deltaproto.policy.finding import Finding, Severity, describe_hidden
from deltaproto.policy.table_check import TableCheck
from deltaproto.render.inspection_json import finding_fields
from deltaproto.render.interface import (
    ENTRY_START,
    JsonArraySpool,
    dump_json,
    error_fields,
    open_envelope,
)
from deltaproto.render.usability import usability_fields


class CheckDocument:
    """One JSON document for all tables.

    Nothing is written before the end: an interrupted check leaves no partial document, and
    `complete` comes first.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._complete = True
        self._lists = {
            name: JsonArraySpool()
            for name in (
                "verdicts",
                "findings",
                "suppressed",
                "errors",
                "settings",
                "usability",
                "tables",
            )
        }
        self._counts = Counts()

    def add(self, checked: TableCheck) -> None:
        """Add the results of one table."""
        self._complete = self._complete and checked.complete
        self._counts.add(checked)
        self._keep("tables", table_fields(checked))
        start = f'{{"table": {json.dumps(checked.table)}, '
        verdicts = _encode_verdicts(checked.verdicts)
        if _MARK in verdicts:
            verdicts = verdicts.replace(_MARK, _inner(shlex.quote(checked.table)))
        self._lists["verdicts"].add_joined(verdicts, start)
        self._lists["settings"].add_joined(_encode_decisions(checked.decisions), start)
        self._lists["usability"].add_joined(_encode_usability(checked.usability), start)
        self._keep("findings", map(known_fields, checked.findings))
        self._keep("suppressed", suppressed_fields(checked))
        if checked.error is not None:
            self._keep("errors", [{"table": checked.table, "error": error_fields(checked.error)}])

    def close(self, notes: Iterable[str]) -> None:
        """Write the document."""
        self._file.write(open_envelope("check", complete=self._complete))
        for name, spool in self._lists.items():
            spool.close(name, self._file)
        self._file.write(f',\n  "summary": {json.dumps(self._counts.fields())}')
        self._file.write(f',\n  "notes": {dump_json(list(notes), indent=None)}\n}}\n')

    def _keep(self, name: str, entries: Iterable[Mapping[str, Any]]) -> None:
        self._lists[name].add(*map(json.dumps, entries))


def _inner(text: str) -> str:
    return json.dumps(text)[1:-1]


_MARKED = "\0deltaproto table\0"
_MARK = _inner(shlex.quote(_MARKED))


# Tables with equal requirements share one tuple of verdicts, and tables that match the same
# patterns one tuple of decisions.
@cache_by_identity(1024)
def _encode_verdicts(verdicts: tuple[DeclaredVerdict, ...]) -> str:
    return _encode_without_table(verdict_fields(judged, _MARKED) for judged in verdicts)


@cache_by_identity(1024)
def _encode_decisions(decisions: tuple[Decision, ...]) -> str:
    return _encode_without_table(map(decision_fields, decisions))


@cache_by_identity(1024)
def _encode_usability(usability: tuple[Usability, ...]) -> str:
    return _encode_without_table(map(usability_fields, usability))


def _encode_without_table(entries: Iterable[Mapping[str, Any]]) -> str:
    """Return entries that are complete once the table is written where each of them begins."""
    return "".join([ENTRY_START + json.dumps(entry)[1:] for entry in entries])


def checked_fields(checked: TableCheck) -> dict[str, Any]:
    """Return one table as a separate document (for JSON lines)."""
    counts = Counts()
    counts.add(checked)
    return {
        "verdicts": [
            {"table": checked.table, **verdict_fields(judged, checked.table)}
            for judged in checked.verdicts
        ],
        "findings": [known_fields(finding) for finding in checked.findings],
        "suppressed": suppressed_fields(checked),
        "errors": []
        if checked.error is None
        else [{"table": checked.table, "error": error_fields(checked.error)}],
        "settings": [
            {"table": checked.table, **decision_fields(each)} for each in checked.decisions
        ],
        "usability": [
            {"table": checked.table, **usability_fields(each)} for each in checked.usability
        ],
        "tables": table_fields(checked),
        "summary": counts.fields(),
    }


def table_fields(checked: TableCheck) -> list[dict[str, Any]]:
    """Return the table and its location; empty if it is unreadable or stands for the policy."""
    if checked.error is not None or checked.of_policy:
        return []
    return [
        {
            "table": checked.table,
            "location": checked.location,
            "other_names": list(checked.other_names),
            "complete": checked.complete,
        }
    ]


def known_fields(finding: Finding) -> dict[str, Any]:
    """Return one finding, marked if it is in the baseline."""
    fields = finding_fields(finding)
    return {**fields, "known": True} if finding.known else fields


def decision_fields(decision: Decision) -> dict[str, Any]:
    """Return a setting and the pattern that it comes from, without its table."""
    return {
        "setting": decision.setting,
        "value": decision.value,
        "pattern": decision.pattern,
        "line": None if decision.position is None else decision.position.line,
        **({} if decision.profile is None else {"profile": decision.profile}),
    }


def verdict_fields(judged: DeclaredVerdict, table: str) -> dict[str, Any]:
    """Return one verdict, without its table."""
    verdict = judged.verdict
    return {
        "client": verdict.client,
        "version": verdict.version,
        "path": verdict.path,
        "access": str(verdict.access),
        "verdict": str(verdict.verdict),
        "because": list(verdict.because),
        "reason": verdict.reason or None,
        "remedies": [
            {
                "kind": remedy.kind,
                "cost": str(remedy.cost),
                "text": remedy.text,
                "client": remedy.client,
                "features": list(remedy.features),
                "command": remedy.command_for(table),
            }
            for remedy in verdict.remedies
        ],
        "confidence": None if verdict.confidence is None else str(verdict.confidence),
        "declared_as": judged.declared.label,
    }


def suppressed_fields(checked: TableCheck) -> list[dict[str, Any]]:
    """Return the waived findings, each with its reason and last day."""
    return [
        {
            **finding_fields(each.finding),
            "waived": {
                "reason": each.reason,
                "expires": each.expires,
                "approver": each.approver,
                "ticket": each.ticket,
            },
        }
        for each in checked.suppressed
    ]


def total(
    tables: int,
    unreadable: int,
    verdicts: Counter[Verdict],
    findings: Counter[Severity],
    inputs: int = 0,
) -> str:
    """Return one line that summarizes all tables.

    Args:
        inputs: the number of inventories and files that could not be read.
    """
    judged = ", ".join(f"{verdicts[v]:,} {v}" for v in reversed(Verdict) if verdicts[v])
    found = ", ".join(f"{findings[s]:,} {s}" for s in Severity)
    parts = [counted(tables, "table")]
    parts += [f"{unreadable:,} unreadable"] if unreadable else []
    parts += [counted(inputs, "unreadable input")] if inputs else []
    return f"{', '.join(parts)}; verdicts: {judged or 'none'}; findings: {found}"


# Tables with equal requirements share one tuple of verdicts.
@cache_by_identity(4096)
def _count_outcomes(verdicts: tuple[DeclaredVerdict, ...]) -> Counter[Verdict]:
    return Counter(judged.verdict.verdict for judged in verdicts)


class Counts:
    """The counts of the summary."""

    def __init__(self) -> None:
        self.tables = self.unreadable = 0
        """tables, and the tables and inputs that could not be read"""
        self.inputs = 0
        """inventories and files that could not be read"""
        self.waived = self.off = 0
        """findings that the policy waives, and findings of rules that it turns off"""
        self.known = self.fixed = 0
        """findings that are also in the saved check, and saved findings that are fixed"""
        self.verdicts: Counter[Verdict] = Counter()
        self.findings: Counter[Severity] = Counter()

    def add(self, checked: TableCheck) -> None:
        """Count one table."""
        self.tables += not (checked.of_policy or checked.of_input)
        self.inputs += checked.of_input
        self.unreadable += checked.error is not None
        self.waived += len(checked.suppressed)
        self.off += checked.silenced
        self.verdicts.update(_count_outcomes(checked.verdicts))
        new = [finding.severity for finding in checked.findings if not finding.known]
        self.known += len(checked.findings) - len(new)
        self.fixed += checked.fixed
        self.findings.update(new)

    def line(self) -> str:
        """Return the summary as one line."""
        unreadable = self.unreadable - self.inputs
        line = total(self.tables, unreadable, self.verdicts, self.findings, self.inputs)
        parts = (
            self.known and f"{self.known:,} known from the baseline",
            self.fixed and f"{self.fixed:,} fixed since",
            self.hidden(),
        )
        return "; ".join([line, *(part for part in parts if part)])

    def hidden(self) -> str:
        """Describe how many findings the policy hides; empty if zero."""
        return describe_hidden(self.waived, self.off)

    def turned_off(self) -> str:
        """Describe how many findings come from rules that the policy turns off; empty if zero."""
        return describe_hidden(0, self.off)

    def fields(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {
            "tables": self.tables,
            "unreadable": self.unreadable,
            "verdicts": {str(each): self.verdicts[each] for each in Verdict},
            "findings": {str(each): self.findings[each] for each in Severity},
            "waived": self.waived,
            "off": self.off,
            "known": self.known,
            "fixed": self.fixed,
        }
