"""The results of `apply` in each format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import IO, Any

from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.render.apply_json import applied_fields
from deltaproto.render.interface import dump_json, envelope
from deltaproto.render.json_stream import JsonArraySpool, open_envelope

_WHOLE = (ApplyStatus.DONE, ApplyStatus.NOTHING, ApplyStatus.READY, ApplyStatus.WAITING)


class ApplyFormat(StrEnum):
    """Values of `--format` for the commands that execute plans."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class ApplyReport:
    """Writes results as they arrive, in JSON; `ApplyText` prints text during execution."""

    def __init__(
        self, command: str, format: ApplyFormat, file: IO[str], redact: Callable[[str], str]
    ) -> None:
        self._command, self._format, self._file = command, format, file
        self._redact = redact
        self._spool = JsonArraySpool()
        self._counts: Counter[str] = Counter()
        self._order: list[str] = []
        self._entries: dict[str, str] = {}

    def expect(self, plans: Iterable[str]) -> None:
        """Order the results in the JSON document by these plan ids."""
        self._order = list(plans)

    def add(self, applied: ApplyResult) -> None:
        """Add the result of one plan."""
        self._counts[str(applied.status)] += 1
        fields = _redacted(applied_fields(applied), self._redact)
        if self._format is ApplyFormat.JSONL:
            whole = applied.status in _WHOLE
            line = envelope(self._command, fields, complete=whole)
            self._file.write(dump_json(line, indent=None) + "\n")
            self._file.flush()
        elif self._format is ApplyFormat.JSON:
            self._entries[applied.planned.id] = json.dumps(fields)

    def close(self) -> None:
        """Write the JSON document after the last plan."""
        if self._format is not ApplyFormat.JSON:
            return
        complete = all(status in _WHOLE for status in self._counts)
        self._file.write(open_envelope(self._command, complete=complete))
        ids = [each for each in self._order if each in self._entries]
        self._spool.add(*map(self._entries.pop, ids), *self._entries.values())
        self._spool.close("results", self._file)
        summary = {"plans": self._counts.total(), **dict(sorted(self._counts.items()))}
        self._file.write(f',\n  "summary": {json.dumps(summary)}\n}}\n')


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(each, redact) for key, each in value.items()}
    if isinstance(value, list):
        return [_redacted(each, redact) for each in value]
    return value
