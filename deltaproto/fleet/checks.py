"""A policy over the tables of one scan, on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

from deltaproto.checking.check import Checked, Checker, unreadable
from deltaproto.fleet.kept import NEEDED, error_of, errors_query, facts_of, query
from deltaproto.fleet.past import LocalQuestions, PastScan
from deltaproto.fleet.schemas import Inventory


def is_inventory(folder: str) -> bool:
    """Whether a local folder is an inventory, and not a table."""
    return os.path.isdir(os.path.join(folder, Inventory.SCANS, "_delta_log")) and not (
        os.path.isdir(os.path.join(folder, "_delta_log"))
    )


def checked(questions: LocalQuestions, scan: PastScan, checker: Checker) -> Iterator[Checked]:
    """The check of every table of the scan, by location; at the end what it could not read.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    names = {name: str(name) for name in Inventory}
    asked = f"{query(scan.scan_id, questions.quote, names)} ORDER BY t.location"
    for batch in questions.ask(asked, NEEDED):
        for row in batch.to_pylist():
            yield checker.check(facts_of(row))
    errors = errors_query(scan.scan_id, questions.quote, Inventory.ERRORS)
    for batch in questions.ask(errors, (Inventory.ERRORS,)):
        for row in batch.to_pylist():
            yield unreadable(row["table"], error_of(row))
