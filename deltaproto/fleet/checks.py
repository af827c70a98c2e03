"""A policy over the tables of one scan, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.checking.check import Checked, Checker, unreadable
from deltaproto.errors import TableError
from deltaproto.fleet.kept import error_of, errors, facts_of, tables
from deltaproto.fleet.past import LocalQuestions, PastScan
from deltaproto.tables.defect import one_table


def check_row(row: Mapping[str, Any], checker: Checker) -> Checked:
    """Return the check of a row of `kept.query`; a damaged row is that table's error."""
    try:
        with one_table():
            return checker.check(facts_of(row))
    except TableError as error:
        return unreadable(row["table"], error)


def checked(questions: LocalQuestions, scan: PastScan, checker: Checker) -> Iterator[Checked]:
    """The check of every table of the scan, by location; at the end what it could not read.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    for row in tables(questions, scan):
        yield check_row(row, checker)
    for row in errors(questions, scan):
        yield unreadable(row["table"], error_of(row))
