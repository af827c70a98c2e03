"""The results of `apply` in each format."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import IO, Any

from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult
from deltaproto.execution.prepare import PreparedPlan
from deltaproto.execution.result import ApplyResult, ApplyStatus, StepRecord
from deltaproto.execution.warning import ApplyWarning
from deltaproto.planning.plan import Step
from deltaproto.render.activity import activity_fields
from deltaproto.render.apply_section import (
    finished_line,
    result_section,
    retry_line,
    summary_line,
    warning_section,
)
from deltaproto.render.document.blocks import Block
from deltaproto.render.document.render import BlockWriter
from deltaproto.render.inspection_json import protocol_fields
from deltaproto.render.interface import (
    JsonArraySpool,
    dump_json,
    envelope,
    map_texts,
    open_envelope,
    stamp,
)

_PIPED_WIDTH = 100
_WHOLE = (ApplyStatus.DONE, ApplyStatus.NOTHING, ApplyStatus.READY, ApplyStatus.WAITING)


class ApplyFormat(StrEnum):
    """Values of `--format` for the commands that execute plans."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class ApplyReport:
    """Writes results in JSON as they arrive; `ApplyText` prints text during execution.

    Args:
        complete: False if the plan files have tables that could not be planned.
    """

    def __init__(
        self,
        command: str,
        format: ApplyFormat,
        file: IO[str],
        redact: Callable[[str], str],
        *,
        complete: bool,
    ) -> None:
        self._complete = complete
        self._command, self._format, self._file = command, format, file
        self._redact = redact
        self._spool = JsonArraySpool()
        self._counts: Counter[str] = Counter()
        self._order: list[str] = []
        self._entries: dict[str, str] = {}
        self.rollout: dict[str, Any] | None = None
        """the progress of the rollout at the end, as JSON; None without a rollout"""

    def expect(self, plans: Iterable[str]) -> None:
        """Order the results in the JSON document by these plan ids."""
        self._order = list(plans)

    def add(self, applied: ApplyResult) -> None:
        """Add the result of one plan."""
        self._counts[str(applied.status)] += 1
        fields = map_texts(applied_fields(applied), self._redact)
        if self._format is ApplyFormat.JSONL:
            whole = applied.status in _WHOLE
            line = envelope(self._command, fields, complete=whole)
            self._file.write(dump_json(line, indent=None) + "\n")
            self._file.flush()
        elif self._format is ApplyFormat.JSON:
            self._entries[applied.planned.id] = json.dumps(fields)

    def so_far(self) -> dict[str, Any]:
        """Return the results of a run that is ending early, as JSON; empty if there are none.

        Empty for `jsonl` too, whose results are already written.
        """
        if not self._entries:
            return {}
        return {"results": [*map(json.loads, self._ordered())], "summary": self._summary()}

    def _ordered(self) -> list[str]:
        """Return the entries, starting with the expected plans in their order."""
        ids = [each for each in self._order if each in self._entries]
        return [self._entries[each] for each in dict.fromkeys((*ids, *self._entries))]

    def _summary(self) -> dict[str, int]:
        return {"plans": self._counts.total(), **dict(sorted(self._counts.items()))}

    def close(self) -> None:
        """Write the JSON document after the last plan."""
        if self._format is not ApplyFormat.JSON:
            return
        complete = self._complete and all(status in _WHOLE for status in self._counts)
        self._file.write(open_envelope(self._command, complete=complete))
        self._spool.add(*self._ordered())
        self._spool.close("results", self._file)
        rollout = ""
        if self.rollout is not None:
            rollout = f',\n  "rollout": {json.dumps(map_texts(self.rollout, self._redact))}'
        self._file.write(f',\n  "summary": {json.dumps(self._summary())}{rollout}\n}}\n')


class ApplyText:
    """Prints warnings, gates, steps and results as they happen. Thread-safe.

    Args:
        redact: function that removes credentials from a text.
    """

    def __init__(self, file: IO[str], *, color: bool, redact: Callable[[str], str]) -> None:
        self._writer = BlockWriter("text", file, color=color, piped_width=_PIPED_WIDTH)
        self._file, self._redact = file, redact
        self._lock = threading.Lock()
        self._results: list[ApplyResult] = []
        self.closing: Block | None = None
        """printed after the summary"""

    def warned(self, prepared: PreparedPlan) -> None:
        """Print what is about to happen, who is affected, and the gates."""
        self._write(warning_section(prepared))

    def finished(self, planned: LoadedPlan, record: StepRecord, *, many: bool) -> None:
        """Print that one step is finished."""
        self._write(finished_line(record, planned.plan.table if many else ""))

    def retries(self, _planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None:
        """Print that a step lost a commit race and will be retried."""
        self._write(retry_line(step, winner, seconds))

    def result(self, applied: ApplyResult) -> None:
        """Print the final status of a plan."""
        self._results.append(applied)
        self._write(result_section(applied))

    def close(self) -> None:
        """Print the summary if there were several plans, and the closing block."""
        if len(self._results) > 1:
            self._write(summary_line(self._results))
        if self.closing is not None:
            self._write(self.closing)

    def _write(self, block: Block) -> None:
        redacted: Block = map_texts(block, self._redact)
        with self._lock:
            self._writer.write(redacted)
            self._file.flush()


def applied_fields(applied: ApplyResult) -> dict[str, Any]:
    """Return the result of one plan as JSON."""
    plan = applied.planned.plan
    return {
        "plan_id": applied.planned.id,
        "plan_file": applied.planned.path,
        "table": plan.table,
        "location": plan.location,
        "status": str(applied.status),
        "exit_code": int(applied.code),
        "message": applied.message,
        "hint": applied.hint or None,
        "version": applied.version,
        "protocol": None if applied.protocol is None else protocol_fields(applied.protocol),
        "protocol_after": protocol_fields(plan.protocol_after),
        "not_before": stamp(applied.earliest),
        "steps": [_step(record) for record in applied.steps],
        "gates": [_gate(gate) for gate in applied.gates],
        "warning": None if applied.warning is None else _warning(applied.warning),
        "journal": applied.journal,
        "remarks": list(applied.remarks),
    }


def _step(record: StepRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "state": str(record.done),
        "versions": list(record.versions),
        "operations": list(record.operations),
        "attempts": record.attempts,
        "seconds": round(record.seconds, 3),
        "message": record.message or None,
        "remarks": list(record.remarks),
        "delta_rs": record.delta_rs or None,
    }


def _gate(gate: GateResult) -> dict[str, Any]:
    return {
        "name": gate.name,
        "passed": gate.passed,
        "message": gate.message,
        "hint": gate.hint or None,
    }


def _warning(warning: ApplyWarning) -> dict[str, Any]:
    window = warning.window
    return {
        "hits": [
            {
                "steps": list(hit.steps),
                "engine": hit.engine,
                "who": hit.who,
                "exceptions": list(hit.exceptions),
                "loser": hit.loser,
            }
            for hit in warning.hits
        ],
        "streams": [
            {
                "step": step,
                "reads": stream.reads,
                "effect": str(stream.effect),
                "why": stream.why,
            }
            for step, stream in warning.streams
        ],
        "activity": None if warning.activity is None else activity_fields(warning.activity),
        "window": None
        if window is None
        else {
            "open": window.open,
            "next": None if window.next is None else stamp(window.next.timestamp()),
        },
        "notes": [*warning.sources, *warning.notes],
    }
