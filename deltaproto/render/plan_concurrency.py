"""A plan's lasting effect on concurrent writers, as text."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.planning.plan import ChangedCell, ConcurrencyChange
from deltaproto.render import words


def concurrency_lines(change: ConcurrencyChange) -> Iterator[tuple[str, str]]:
    """Yield label and text of the isolation level, row-level concurrency and changed conflicts."""
    before, after = change.before, change.after
    levels = words.isolation(after.isolation)
    if before.isolation != after.isolation:
        levels = f"{words.isolation(before.isolation)} -> {levels}"
    yield "isolation", levels
    rows = f"{after.row_level} on Databricks: {after.reason}"
    if before.row_level is not after.row_level:
        rows = f"{before.row_level} -> {rows}"
    yield "row-level", rows
    for (engine, how), pairs in _group_cells(change.cells).items():
        changed = (f"{one} with {', '.join(others)}" for one, others in pairs.items())
        yield engine, f"{how}: {'; '.join(changed)}"


def _group_cells(cells: tuple[ChangedCell, ...]) -> dict[tuple[str, str], dict[str, list[str]]]:
    """Group cells by engine and change; a pair that changes in both directions appears once."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for cell in cells:
        how = f"conflict {cell.before.conflict} -> {cell.after.conflict}"
        if cell.before.conflict == cell.after.conflict:
            sentence, *_ = cell.after.when.split(". ")
            how = f"conflict still {cell.after.conflict} ({sentence.rstrip('.')})"
        pairs = found.setdefault((cell.engine, how), {})
        if cell.operation not in pairs.get(cell.against, ()):
            pairs.setdefault(cell.operation, []).append(cell.against)
    return found
