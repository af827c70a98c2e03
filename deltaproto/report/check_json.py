"""A check as JSON, written table by table: a fleet's verdicts need not fit into memory."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import IO, Any

from deltaproto.checking.check import Checked
from deltaproto.policy.case import Judged
from deltaproto.report.inspection_json import finding_fields
from deltaproto.report.interface import error_fields
from deltaproto.report.spool import Spool, opened

_REMEMBERED = 4096


class CheckDocument:
    """One JSON document for all tables.

    Nothing is written before the end: what stops the check half-way leaves no half document, and
    `complete` comes first.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._complete = True
        self._encoded: dict[int, tuple[tuple[Judged, ...], list[str]]] = {}
        self._lists = {name: Spool() for name in ("verdicts", "findings", "suppressed", "errors")}

    def add(self, checked: Checked) -> None:
        """Keep what is said of one table."""
        self._complete = self._complete and checked.complete
        table, word = json.dumps(checked.table), _inner(shlex.quote(checked.table))
        start = f'{{"table": {table}, '
        self._lists["verdicts"].add(
            *[start + text.replace(_MARK, word) for text in self._texts(checked)]
        )
        self._keep("findings", map(finding_fields, checked.findings))
        self._keep("suppressed", suppressed_fields(checked))
        if checked.error is not None:
            self._keep("errors", [{"table": checked.table, "error": error_fields(checked.error)}])

    def close(self, notes: Iterable[str]) -> None:
        """Write the document."""
        self._file.write(opened("check", complete=self._complete))
        for name, spool in self._lists.items():
            spool.close(name, self._file)
        self._file.write(f',\n  "notes": {json.dumps(list(notes))}\n}}\n')

    def _texts(self, checked: Checked) -> list[str]:
        # Tables with equal needs share one tuple of verdicts, which is encoded once.
        found = self._encoded.get(id(checked.verdicts))
        if found is None or found[0] is not checked.verdicts:
            if len(self._encoded) >= _REMEMBERED:
                self._encoded.clear()
            found = (
                checked.verdicts,
                [json.dumps(verdict_fields(judged, _MARKED))[1:] for judged in checked.verdicts],
            )
            self._encoded[id(checked.verdicts)] = found
        return found[1]

    def _keep(self, name: str, entries: Iterable[Mapping[str, Any]]) -> None:
        self._lists[name].add(*map(json.dumps, entries))


def _inner(text: str) -> str:
    return json.dumps(text)[1:-1]


_MARKED = "\0deltaproto table\0"
_MARK = _inner(shlex.quote(_MARKED))


def checked_fields(checked: Checked) -> dict[str, Any]:
    """One table as a document of its own (JSON lines)."""
    return {
        "verdicts": [
            {"table": checked.table, **verdict_fields(judged, checked.table)}
            for judged in checked.verdicts
        ],
        "findings": [finding_fields(finding) for finding in checked.findings],
        "suppressed": suppressed_fields(checked),
        "errors": []
        if checked.error is None
        else [{"table": checked.table, "error": error_fields(checked.error)}],
    }


def verdict_fields(judged: Judged, table: str) -> dict[str, Any]:
    """One verdict, without its table."""
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


def suppressed_fields(checked: Checked) -> list[dict[str, Any]]:
    """Waived findings, each with its reason and last day."""
    return [
        {**finding_fields(each.finding), "waived": {"reason": each.reason, "expires": each.expires}}
        for each in checked.suppressed
    ]
