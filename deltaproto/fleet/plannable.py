"""The tables of an inventory, as the planner takes them."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.drafting.saved import given_row
from deltaproto.errors import TableError
from deltaproto.fleet.kept import error_of, errors, facts_of, tables
from deltaproto.fleet.past import LocalQuestions, PastScan
from deltaproto.planning.given import Given
from deltaproto.tables.defect import one_table


def kept_tables(
    questions: LocalQuestions, scan: PastScan, where: str | None, notice: str | None = None
) -> Iterator[tuple[str, str, Given | TableError]]:
    """Name, location, and what the scan saw of each table; without `where` also what it could not.

    Args:
        notice: what to know of the age of the scan, for each plan.

    Raises:
        UsageError: when the inventory cannot be read, or `where` cannot be understood.
    """
    for row in tables(questions, scan, where):
        try:
            with one_table():
                found: Given | TableError = given_row(
                    row, facts_of(row), scan.scan_id, scan.ended_at, notice
                )
        except TableError as error:
            found = error
        yield row["table"], row["location"], found
    if not where:
        for row in errors(questions, scan):
            yield row["table"], row["location"], error_of(row)
