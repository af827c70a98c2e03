"""A measurement as JSON."""

from __future__ import annotations

from typing import Any

from deltaproto.clients.measurement import MeasuredOutcome
from deltaproto.render.certification.words import Certified, counts


def certified_fields(certified: Certified) -> dict[str, Any]:
    """Return the JSON payload of `certify`."""
    measured = certified.measured
    return {
        "client": measured.client,
        "path": measured.path,
        "version": measured.version,
        "release": measured.release or None,
        "kit": {"version": measured.kit_version, "digest": measured.kit_digest},
        "measured_on": measured.date,
        "python": measured.python or None,
        "packages": list(measured.packages),
        "processors": measured.processors,
        "seconds": measured.seconds,
        "counts": {str(outcome): number for outcome, number in counts(measured.cells).items()},
        "cells": [
            {
                "table": cell.case,
                "feature": certified.cases[cell.case].feature,
                "state": str(certified.cases[cell.case].state),
                "operation": str(cell.operation),
                "access": str(cell.operation.access),
                "outcome": str(cell.outcome),
                "why": cell.why or None,
                "reproduce": certified.command(cell)
                if cell.outcome is MeasuredOutcome.WRONG
                else None,
            }
            for cell in measured.cells
        ],
        "differences": [
            {
                "table": each.case,
                "access": str(each.access),
                "catalogue": str(each.verdict),
                "measured": str(each.outcome),
                "why": each.why or None,
                "looser": each.looser,
            }
            for each in certified.differences
        ],
    }
