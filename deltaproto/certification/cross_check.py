"""Compares the catalog's statements about a client with its measurement."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.certification.entry import Discrepancy, find_discrepancies
from deltaproto.certification.fixtures.case import Kit
from deltaproto.certification.outcomes import KnownTable
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.measurement import Measurement
from deltaproto.clients.requirements import table_requirements
from deltaproto.clients.resolve import ClientReference
from deltaproto.errors import UsageError
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.protocol.protocol import Protocol


def find_contradictions(
    catalog: ClientCatalog, measured: Measurement, tables: Iterable[KnownTable]
) -> list[Discrepancy]:
    """List contradictions between documentation and measurement; empty for an undocumented client.

    Ignores what the catalog took from measurements of this version, which would agree with itself.
    """
    try:
        named = str(ClientReference(measured.client, None, measured.version))
        candidate = catalog.resolve(named)
    except UsageError:
        return []
    below = candidate.documented or candidate.range
    if below is None or below in candidate.client.measured:
        return []
    paths = [path for path in below.paths if path.name in (measured.path, None)]
    return find_discrepancies(below, paths[0], measured, tables) if paths else []


def known_tables(kit: Kit) -> tuple[KnownTable, ...]:
    """Return every table with its requirements, from its log and its files."""
    found = []
    for case in kit.cases:
        inspection = inspect_table(str(kit.table(case)), ReadRequest(look_in_files=True))
        if isinstance(inspection, Inspection):
            needs = facts_from_inspection(inspection).needs
            if case.folder != kit.table(case).name and case.hazard is not None:
                # Only a copy has the name that clients see.
                needs = needs._replace(hazards=needs.hazards | {case.hazard})
            found.append(KnownTable(case, needs))
        else:
            # Tables with future versions, which the readers reject as well.
            found.append(
                KnownTable(case, table_requirements(Protocol.stored(case.protocol), {}, {}))
            )
    return tuple(found)
