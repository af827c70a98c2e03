"""Measured results of a client: the outcome of each operation on each reference table.

The built-in measurements are files in `measured/`; `certification` creates them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from deltaproto.clients.model import Access
from deltaproto.clients.resolve import ClientReference
from deltaproto.errors import UsageError

_FOLDER = Path(__file__).parent / "measured"


class ResultColumn(StrEnum):
    """The columns of a client's results."""

    ROWS = "rows"
    COUNT = "count"
    TOTAL = "total"
    FILTER = "filter"
    SCHEMA = "schema"
    TIME_TRAVEL = "time-travel"
    APPEND = "append"
    APPEND_OMITTING = "append-omitting"
    """without the columns that a writer must fill"""
    APPEND_VIOLATING = "append-violating"
    """a row that violates a constraint"""
    OVERWRITE = "overwrite"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    OPTIMIZE = "optimize"
    CHECKPOINT = "checkpoint"
    VACUUM = "vacuum"
    CONFIGURE = "configure"

    @property
    def access(self) -> Access:
        """The access that a policy declares for it."""
        return _ACCESS.get(self, Access.READ)

    @property
    def reads(self) -> bool:
        return self.access is Access.READ


_ACCESS = {
    ResultColumn.APPEND: Access.APPEND,
    ResultColumn.APPEND_OMITTING: Access.APPEND,
    ResultColumn.APPEND_VIOLATING: Access.APPEND,
    ResultColumn.OVERWRITE: Access.DML,
    ResultColumn.DELETE: Access.DML,
    ResultColumn.UPDATE: Access.DML,
    ResultColumn.MERGE: Access.DML,
    ResultColumn.OPTIMIZE: Access.MAINTAIN,
    ResultColumn.CHECKPOINT: Access.MAINTAIN,
    ResultColumn.VACUUM: Access.MAINTAIN,
    ResultColumn.CONFIGURE: Access.MAINTAIN,
}


class MeasuredOutcome(StrEnum):
    """Outcome of an operation, best first."""

    RIGHT = "right"
    REFUSED = "refused"
    """it failed with an error and changed nothing"""
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    """its process died, panicked, or produced endless output"""
    WRONG = "WRONG"
    """it reported success, but the result is wrong"""
    NOT_OFFERED = "not offered"
    """the client or its adapter lacks this operation"""


class MeasurementCell(NamedTuple):
    """One operation on one table."""

    case: str
    operation: ResultColumn
    outcome: MeasuredOutcome
    why: str = ""
    """the client's error, or the wrong result"""


class Measurement(NamedTuple):
    """Measured results, with tools and date."""

    client: str
    path: str | None
    version: str | None
    release: str
    """the version that the client itself reports"""
    kit_version: int
    kit_digest: str
    date: str
    """YYYY-MM-DD"""
    tool: str
    """deltaproto and its version"""
    python: str
    packages: tuple[str, ...]
    """packages installed with the client"""
    processors: int
    """number of processors: some clients behave differently with another number"""
    seconds: float
    cells: tuple[MeasurementCell, ...]

    @property
    def name(self) -> str:
        """Client name as used in policies."""
        return str(ClientReference(self.client, self.path, self.version))


def measurement_to_json(measured: Measurement) -> str:
    """Serialize to JSON. Equal reasons are stored once; operations not offered are omitted."""
    kept = [cell for cell in measured.cells if cell.outcome is not MeasuredOutcome.NOT_OFFERED]
    reasons = list(dict.fromkeys(cell.why for cell in kept if cell.why))
    number = {why: position for position, why in enumerate(reasons)}
    cells: dict[str, dict[str, Any]] = {}
    for cell in kept:
        value = [cell.outcome, number[cell.why]] if cell.why else str(cell.outcome)
        cells.setdefault(cell.case, {})[cell.operation] = value
    plain = measured._asdict() | {"packages": list(measured.packages), "reasons": reasons}
    del plain["cells"]
    lines = [f" {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in plain.items()]
    rows = [f"  {json.dumps(case)}: {json.dumps(found)}" for case, found in cells.items()]
    lines.append(' "cells": {\n' + ",\n".join(rows) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def measurement_from_json(text: str, where: str) -> Measurement:
    """Parse a measurement file.

    Raises:
        UsageError: if it is not a valid measurement.
    """
    try:
        plain: Mapping[str, Any] = json.loads(text)
        reasons = plain["reasons"]
        cells = tuple(
            _cell(case, operation, value, reasons)
            for case, found in plain["cells"].items()
            for operation, value in found.items()
        )
        fields = {name: plain[name] for name in Measurement._fields if name != "cells"}
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(
            f"{where} is not a measurement: {error}", "measure again: deltaproto certify CLIENT"
        ) from None
    return Measurement(**{**fields, "packages": tuple(fields["packages"]), "cells": cells})


@cache
def load_shipped_measurements() -> tuple[Measurement, ...]:
    """Return the built-in measurements, sorted by name."""
    files = sorted(_FOLDER.glob("*.json"))
    return tuple(
        measurement_from_json(file.read_text(encoding="utf-8"), file.name) for file in files
    )


def find_measurement(client: str, path: str | None, version: str | None) -> Measurement | None:
    """Return the built-in measurement of exactly this version, or None."""
    file = _FOLDER / f"{measurement_file_name(client, path, version)}.json"
    return (
        measurement_from_json(file.read_text(encoding="utf-8"), file.name)
        if file.exists()
        else None
    )


def measurement_file_name(client: str, path: str | None, version: str | None) -> str:
    """Return the name of a measurement's file, without extension."""
    named = f"{client}.{path}" if path else client
    return f"{named}@{version}" if version else named


def _cell(case: str, operation: str, value: Any, reasons: list[str]) -> MeasurementCell:
    outcome, why = (value, "") if isinstance(value, str) else (value[0], reasons[value[1]])
    return MeasurementCell(case, ResultColumn(operation), MeasuredOutcome(outcome), why)
