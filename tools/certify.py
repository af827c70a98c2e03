"""Measure every client of the roster again, and bring what the package says of them up to date.

    python -m tools.certify                       everything
    python -m tools.certify polars daft@0.7.26    some clients, paths or versions
    python -m tools.certify --missing             only what was never measured on this kit
    python -m tools.certify trino --only 'mix.*'  only these tables; the rest stays as it was
    python -m tools.certify --added               only tables that a stored measurement lacks
    python -m tools.certify --derive              no measuring: entries and documents only

Writes a file for each client, path and version to `deltaproto/clients/measured/`, the catalog
entries that follow from them to `measured/entries/`, `parsed/` and `docs/reference/measured.md`.
`--survey FILE` compares with a survey of documents, in `measured-and-documented.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from deltaproto.certification.client import certify, load_roster, select_client
from deltaproto.certification.entry import (
    build_entry,
    find_contradictions,
    find_entry_discrepancies,
    known_tables,
)
from deltaproto.certification.fixtures.case import Kit, load_kit
from deltaproto.certification.fixtures.make import make_kit
from deltaproto.certification.runner import sort_cells
from deltaproto.certification.verify_writes import SPARK, WriteVerifier
from deltaproto.clients import measurement, version_scheme
from deltaproto.clients.catalog import ClientCatalog, load_shipped_client, parsed_clients
from deltaproto.clients.measurement import Measurement
from deltaproto.errors import DeltaprotoError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.render.certification import outcomes_text
from deltaproto.tables.session import spark_session
from tools.settled import measured_document, survey_document

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / "deltaproto" / "clients" / "measured"
REFERENCE = ROOT / "docs" / "reference"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kit", type=Path, default=ROOT / ".kit")
    parser.add_argument("--cache", type=Path, default=ROOT / ".clients")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument(
        "--added",
        action="store_true",
        help="measure only the tables that a stored measurement lacks; the others are kept",
    )
    parser.add_argument("--only", action="append", default=[], metavar="TABLE")
    parser.add_argument("--derive", action="store_true")
    parser.add_argument(
        "--no-derive", action="store_true", help="measure only; leave entries and documents"
    )
    parser.add_argument(
        "--survey", type=Path, help="clients as documents describe them, to compare"
    )
    given = parser.parse_args()
    failed = 0
    if given.derive:
        kit = load_kit(given.kit)
    else:
        spark = spark_session(SparkSettings(None, {**SPARK, "spark.driver.memory": "2g"}))
        if not given.kit.exists():
            print("making the kit", flush=True)
            make_kit(spark, given.kit)
        kit = load_kit(given.kit)
        referee = WriteVerifier(spark)
        for name in _wanted(given.names, kit, missing=given.missing):
            failed += not _measured(name, kit, referee, given.cache, given.only, added=given.added)
    if not given.no_derive:
        derive(kit, given.survey)
    return 1 if failed else 0


def _wanted(names: list[str], kit: Kit, *, missing: bool) -> Iterator[str]:
    for each in load_roster():
        for version in each.versions:
            name = f"{each}@{version}"
            forms = {each.client, str(each), name, f"{each.client}@{version}"}
            if names and not forms & set(names):
                continue
            known = measurement.find_measurement(each.client, each.path, version)
            if not (missing and known is not None and known.kit_digest == kit.digest):
                yield name


def _measured(
    name: str,
    kit: Kit,
    referee: WriteVerifier,
    cache: Path,
    only: Sequence[str] = (),
    *,
    added: bool = False,
) -> bool:
    cases = tuple(c for c in kit.cases if not only or any(fnmatch(c.name, p) for p in only))
    asked = select_client(name).reference
    known = measurement.find_measurement(asked.id, asked.path, asked.version)
    if added and known is not None:
        there = {cell.case for cell in known.cells}
        cases = tuple(case for case in cases if case.name not in there)
    try:
        found = certify(select_client(name), kit._replace(cases=cases), referee, cache)
    except DeltaprotoError as error:
        print(f"{name}: {error.message}: {error.hint}", flush=True)
        return False
    except Exception:
        traceback.print_exc()
        return False
    file = (
        MEASURED
        / f"{measurement.measurement_file_name(found.client, found.path, found.version)}.json"
    )
    if (only or added) and known is not None:
        again = {case.name for case in cases}
        kept = [cell for cell in known.cells if cell.case not in again]
        cells = sort_cells((*kept, *found.cells))
        # The kit and the date of a measurement are those of most of its tables.
        changed = known if only else found._replace(seconds=known.seconds)
        if found.release != known.release:
            print(f"{name}: now {found.release}, before {known.release}", flush=True)
        found = changed._replace(cells=cells)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(measurement.measurement_to_json(found), encoding="utf-8")
    print(
        f"{time.strftime('%H:%M:%S')} {name}: {found.seconds:.0f} s, {outcomes_text(found.cells)}",
        flush=True,
    )
    return True


def derive(kit: Kit, survey: Path | None = None) -> None:
    """Entries and the document, from the measurements that are there."""
    tables = known_tables(kit)
    measurement.load_shipped_measurements.cache_clear()
    found: dict[str, list[Measurement]] = {}
    for each in measurement.load_shipped_measurements():
        found.setdefault(each.client, []).append(each)
    (MEASURED / "entries").mkdir(parents=True, exist_ok=True)
    left = {}
    for client, all_of_it in found.items():
        ordered = sorted(all_of_it, key=lambda m: (_version(m), m.path or ""))
        entries = [build_entry(each, tables) for each in ordered]
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in entries)
        file = MEASURED / "entries" / f"{client}.json"
        file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        for each, plain in zip(ordered, entries, strict=True):
            left[each.name] = find_entry_discrepancies(plain, each, tables)
    for file, text in parsed_clients():
        file.write_text(text, encoding="utf-8")
    load_shipped_client.cache_clear()
    catalog = ClientCatalog()
    differences = {
        each.name: find_contradictions(catalog, each, tables)
        for group in found.values()
        for each in group
    }
    every = [each for group in found.values() for each in group]
    every.sort(key=lambda m: (m.client, m.path or "", _version(m)))
    text = measured_document(every, differences, left)
    (REFERENCE / "measured.md").write_text(text, encoding="utf-8")
    if survey is not None:
        text = survey_document(survey, every, tables)
        (REFERENCE / "measured-and-documented.md").write_text(text, encoding="utf-8")


def _version(measured: Measurement) -> version_scheme.Version:
    parsed = version_scheme.parse_version("dotted", measured.version or "0")
    assert parsed is not None
    return parsed


if __name__ == "__main__":
    sys.exit(main())
