"""Table data for the page's script, as JSON that is small and safe inside a script element.

Tables of the same group share their features and verdicts, so that ten thousand need only one or
two megabytes.
"""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from deltaproto.fleet.overview import Overview, TableRow
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.overview.numbers import FleetSummary

_Key = TypeVar("_Key")
_LETTERS = {"wrong": "w", "unknown": "u", "refused": "r", "ok": "o"}


class _Numbered(Generic[_Key]):
    """Items numbered in order of arrival."""

    def __init__(self) -> None:
        self.known: dict[_Key, int] = {}

    def __call__(self, key: _Key) -> int:
        return self.known.setdefault(key, len(self.known))


def page_data(overview: Overview, numbers: FleetSummary, most: int) -> str:
    """Return the JSON document for the script.

    Args:
        most: maximum number of tables; the script shows how many more were omitted.
    """
    asked: _Numbered[tuple[str, str]] = _Numbered()
    features: _Numbered[str] = _Numbered()
    engines: _Numbered[str] = _Numbered()
    groups: _Numbered[str] = _Numbered()
    findings: _Numbered[tuple[str, str, str]] = _Numbered()
    kinds: _Numbered[tuple[Any, ...]] = _Numbered()

    def kind(row: TableRow) -> int:
        told = tuple(
            (features(escape_control_chars(name)), (2 if present else 0) + (1 if enabled else 0))
            for name, enabled, present in row.features
        )
        verdicts = tuple(
            (
                asked((escape_control_chars(said.client), str(said.access))),
                _LETTERS[str(said.verdict)],
                tuple(features(escape_control_chars(name)) for name in said.because),
            )
            for said in row.verdicts
            if str(said.verdict) != "ok"
        )
        isolation = None if row.isolation is None else escape_control_chars(row.isolation)
        return kinds((row.protocol, told, verdicts, isolation))

    rows = []
    for row, group in zip(overview.tables[:most], numbers.groups, strict=False):
        moment = row.last_commit
        rows.append(
            [
                escape_control_chars(row.table),
                0 if row.location == row.table else escape_control_chars(row.location),
                kind(row),
                row.version,
                "" if moment is None else f"{moment:%Y-%m-%dT%H:%MZ}",
                engines(escape_control_chars(row.last_engine or "")),
                groups(escape_control_chars(group)),
                [
                    findings((f.rule, str(f.severity), escape_control_chars(f.message)))
                    for f in row.findings
                ],
            ]
        )
    document = {
        "asked": [list(key) for key in asked.known],
        "features": list(features.known),
        "engines": list(engines.known),
        "groups": list(groups.known),
        "findings": [list(key) for key in findings.known],
        "kinds": [
            {"p": f"({p[0]},{p[1]})", "f": f, "v": v, "i": isolation}
            for p, f, v, isolation in kinds.known
        ],
        "tables": rows,
        "left": len(overview.tables) - len(rows),
    }
    return json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
