"""The tables of an inventory, as the planner takes them."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.drafting.saved import given_row
from deltaproto.errors import TableError
from deltaproto.fleet.kept import NEEDED, error_of, errors_query, facts_of, query
from deltaproto.fleet.past import LocalQuestions, PastScan
from deltaproto.fleet.schemas import Inventory
from deltaproto.planning.given import Given


def kept_tables(
    questions: LocalQuestions, scan: PastScan, where: str | None
) -> Iterator[tuple[str, str, Given | TableError]]:
    """Name, location, and what the scan saw of each table; without `where` also what it could not.

    Raises:
        UsageError: when the inventory cannot be read, or `where` cannot be understood.
    """
    names = {name: str(name) for name in Inventory}
    asked = f"{query(scan.scan_id, questions.quote, names, where)} ORDER BY t.location"
    for batch in questions.ask(asked, NEEDED):
        for row in batch.to_pylist():
            try:
                found: Given | TableError = given_row(row, facts_of(row))
            except TableError as error:
                found = error
            yield row["table"], row["location"], found
    if where:
        return
    errors = errors_query(scan.scan_id, questions.quote, Inventory.ERRORS)
    for batch in questions.ask(errors, (Inventory.ERRORS,)):
        for row in batch.to_pylist():
            yield row["table"], row["location"], error_of(row)
