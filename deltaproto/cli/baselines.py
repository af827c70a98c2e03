"""Baselines of a check: saved inspections and checks that results are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.cli import options
from deltaproto.errors import ExitCode
from deltaproto.inspection.known_findings import KnownFindings, require_comparable, saved_command
from deltaproto.inspection.saved import read_saved
from deltaproto.policy.baseline import Baseline
from deltaproto.policy.evaluate import Checker, TableCheck, unreadable_table
from deltaproto.policy.finding import FailOn
from deltaproto.render.interface import NOTICES


def save_baseline(
    tables: Iterable[TableCheck], path: str, notes: Iterable[str]
) -> Iterator[TableCheck]:
    """Yield the tables, then write their checks to `path`, in the format of `--format json`.

    An interrupted check keeps the old file.

    Raises:
        UsageError: when the file cannot be written.
    """
    from deltaproto.render.check_json import CheckDocument

    with options.open_output(path) as file:
        document = CheckDocument(file)
        for checked in tables:
            document.add(checked)
            yield checked
        document.close(notes)


def load_baseline(path: str | None) -> tuple[Baseline | None, KnownFindings | None]:
    """Load the baseline: a saved inspection or a saved check."""
    if path is None:
        return None, None
    command = saved_command(path)
    require_comparable(path, command)
    if command == "check":
        return None, KnownFindings(path)
    return Baseline(read_saved(path)), None


def compare_with_baseline(
    path: str | None,
    checker: Checker,
    baseline: Baseline | None,
    codes: set[ExitCode],
    fail_on: FailOn,
) -> Iterator[TableCheck]:
    """Yield an error for each baseline entry that no table matched."""
    if baseline is None:
        return
    if (error := baseline.unmatched()) is not None:
        yield unreadable_table(str(path), error)
        return
    for error in baseline.unread():
        yield unreadable_table(error.table, error)
    gone, unchecked = baseline.left()
    yield from map(checker.gone, gone)
    _notice_unchecked([each.table for each in unchecked], codes, fail_on)


def _notice_unchecked(tables: list[str], codes: set[ExitCode], fail_on: FailOn) -> None:
    if not tables:
        return
    one = len(tables) == 1
    many = "1 table" if one else f"{len(tables):,} tables"
    was = "was" if one else "were"
    NOTICES.append(f"{many} of the baseline {was} not checked: " + ", ".join(tables))
    if fail_on is FailOn.WARNING:
        codes.add(ExitCode.FINDINGS)


def mark_known_findings(
    tables: Iterable[TableCheck],
    path: str,
    checker: Checker,
    saved: KnownFindings,
    codes: set[ExitCode],
    fail_on: FailOn,
) -> Iterator[TableCheck]:
    """Mark the findings of each table that the saved check already has."""
    for checked in tables:
        yield saved.compared(checked, checker)
    if (error := saved.unmatched()) is not None:
        yield unreadable_table(path, error)
        return
    _notice_unchecked(saved.left(), codes, fail_on)
