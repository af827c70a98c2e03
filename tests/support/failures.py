"""Check every row of a table in one test, and report all rows that fail."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Failures:
    """The failed rows of a loop."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._rows = 0

    @contextmanager
    def of(self, *row: object) -> Iterator[None]:
        """Run the checks of one row. A failure is kept under the row's name; the loop continues."""
        self._rows += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = "".join(traceback.format_exception_only(error)).strip()
            name = " ".join(map(str, row))
            self._found.append(f"{name} ({where.name}, line {where.lineno}): {text}")

    def report(self) -> None:
        """Fail if any row failed, or if there was no row at all."""
        assert self._rows, "no row was checked"
        if self._found:
            head = f"{len(self._found)} of {self._rows} rows failed:"
            raise AssertionError("\n".join([head, *self._found]))

    def note_in(self, error: BaseException) -> None:
        """Add the failures so far to an error that ends the loop."""
        if self._found:
            error.add_note("\n".join(["Rows that failed before:", *self._found]))


@contextmanager
def collect_failures() -> Iterator[Failures]:
    """Collect the failures of the rows below, and fail once, at the end, with all of them.

    `with collect_failures() as failures: for row in rows: with failures.of(row): assert ...`
    """
    failures = Failures()
    try:
        yield failures
    except BaseException as error:
        failures.note_in(error)
        raise
    failures.report()


def each_row(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], object] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for all rows: the counterpart of `pytest.mark.parametrize` for rows of data.

    All rows share the test's fixtures, so the test must not change them. `ids` names a value.
    """
    arguments = (names,) if isinstance(names, str) else names
    table = [(row,) if isinstance(names, str) else tuple(row) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_rows(*args: Any, **fixtures: Any) -> None:
            with collect_failures() as failures:
                for row in table:
                    with failures.of(*(f"{ids(value):.80}" for value in row)):
                        test(*args, **fixtures, **dict(zip(arguments, row, strict=True)))

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in arguments]
        all_rows.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return all_rows

    return decorate
