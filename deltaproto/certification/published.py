"""The requirements of a kit's reference tables, for comparing clients with them."""

from __future__ import annotations

from deltaproto.certification.entry import KnownTable
from deltaproto.certification.fixtures.case import Kit
from deltaproto.clients.requirements import table_requirements
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.protocol.protocol import Protocol


def known_tables(kit: Kit) -> tuple[KnownTable, ...]:
    """Return every table with its requirements, from its log and its files."""
    found = []
    for case in kit.cases:
        inspection = inspect_table(str(kit.table(case)), ReadRequest(look_in_files=True))
        if isinstance(inspection, Inspection):
            asked = facts_from_inspection(inspection).needs
            if case.folder != kit.table(case).name and case.hazard is not None:
                # Only a copy has the name that clients see.
                asked = asked._replace(hazards=asked.hazards | {case.hazard})
            found.append(KnownTable(case, asked))
        else:
            # Tables with future versions, which the readers reject as well.
            found.append(
                KnownTable(case, table_requirements(Protocol.stored(case.protocol), {}, {}))
            )
    return tuple(found)
