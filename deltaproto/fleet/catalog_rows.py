"""Completes the staged rows of a scan with facts known only after all catalogs are listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import FolderLinks, PlaceKind, SkippedPlaces
from deltaproto.fleet.rows_builder import arrow_array
from deltaproto.fleet.schemas import OTHER_NAMES
from deltaproto.location import locate

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaproto.fleet.reconcile import Reconciliation
    from deltaproto.policy.finding import Finding

_TEXTS = ("rule", "severity", "message", "hint", "feature", "client", "evidence")


def note_other_names(entries: CatalogEntries, skipped: SkippedPlaces) -> None:
    """Count the names of tables other than the one that outputs show."""
    for _, names in entries.renamed():
        for name in names[1:]:
            skipped.add(PlaceKind.RENAMED, name)


class CatalogFinding(NamedTuple):
    """A finding that compares a table's log with catalogs."""

    location: str
    table: str
    number: int
    """its position among the findings of the table"""
    finding: Finding


def catalog_findings(
    entries: CatalogEntries, batches: Iterable[pa.RecordBatch]
) -> list[CatalogFinding]:
    """Return findings that compare the tables in staged rows with their catalog entries."""
    import pyarrow as pa

    if not entries:
        return []
    from deltaproto.fleet.reconcile import COLUMNS, Reconciliation

    compared = Reconciliation(entries)
    found: list[CatalogFinding] = []
    for batch in batches:
        places = enumerate(batch.column("location").to_pylist())
        chosen = batch.take(
            pa.array([n for n, place in places if compared.concerns(place)], "int32")
        )
        rows = chosen.select(COLUMNS).to_pylist()
        codes = [error and error["code"] for error in chosen.column("error").to_pylist()]
        findings = chosen.column("findings").to_pylist()
        for row, code, own in zip(rows, codes, findings, strict=True):
            found += findings_of_row(compared, {**row, "code": code}, len(own or ()))
    return found


def findings_of_row(
    compared: Reconciliation, row: Mapping[str, Any], own: int
) -> Iterator[CatalogFinding]:
    """Yield the findings on one staged row, which has `own` other findings."""
    for number, finding in enumerate(compared.findings_on(row), own):
        yield CatalogFinding(row["location"], finding.table, number, finding)


def finding_rows(scan_id: str, found: Iterable[CatalogFinding]) -> list[dict[str, Any]]:
    """Return the rows of the findings in the inventory's table."""
    return [
        {
            "scan_id": scan_id,
            "location": each.location,
            "table": each.table,
            **{name: _text(getattr(each.finding, name)) for name in _TEXTS},
            "number": each.number,
        }
        for each in found
    ]


def _text(value: object) -> str | None:
    """Return a text that Arrow can store: unpaired surrogates are escaped."""
    return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def with_all_names(
    batch: pa.RecordBatch, entries: CatalogEntries, links: FolderLinks
) -> pa.RecordBatch:
    """Return staged rows with the preferred name of each table, and its other names."""
    import pyarrow as pa

    if not entries and not links:
        return batch
    places = batch.column("location").to_pylist()
    several = [names if len(names := entries.names(place)) > 1 else () for place in places]
    linked = [_paths_through(links, place) for place in places]
    if not any(several) and not any(linked):
        return batch
    tables = [
        names[0] if names else table
        for names, table in zip(several, batch.column("table").to_pylist(), strict=True)
    ]
    columns: dict[str, list[Any]] = {
        "table": tables,
        OTHER_NAMES: [
            [*names[1:], *paths] or None for names, paths in zip(several, linked, strict=True)
        ],
    }
    return pa.RecordBatch.from_arrays(
        [
            arrow_array(columns[field.name], field.type) if field.name in columns else column
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ],
        schema=batch.schema,
    )


def _paths_through(links: FolderLinks, location: str) -> list[str]:
    """Return the further paths of a location that Arrow can store."""
    if not links or not location.startswith("file:"):
        return []
    path = locate(location).path
    others = [] if path is None else links.other_paths(path)
    return [other for other in others if other.isprintable()]
