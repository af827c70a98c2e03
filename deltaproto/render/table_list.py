"""The output of `scan --list-tables`: the tables that were found, without reading them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO

from deltaproto.fleet.discovered import DiscoveredTable, UnreadablePlace
from deltaproto.render.interface import JsonArraySpool, error_fields, open_envelope
from deltaproto.render.scan import ScanFormat
from deltaproto.render.terminal import single_line


def write_table_list(
    found: Iterable[DiscoveredTable | UnreadablePlace], format_: ScanFormat, file: IO[str]
) -> list[UnreadablePlace]:
    """Write each table on a line, or as JSON. Return the places that could not be searched."""
    tables, errors, unseen = JsonArraySpool(), JsonArraySpool(), list[UnreadablePlace]()
    for each in found:
        if isinstance(each, UnreadablePlace):
            unseen.append(each)
            errors.add(json.dumps({"place": each.place, "error": error_fields(each.error)}))
        elif format_ is ScanFormat.TEXT:
            file.write(f"{single_line(each.table)}\n")
        else:
            tables.add(json.dumps({"table": each.table, "location": each.uri}))
    if format_ is ScanFormat.JSON:
        file.write(open_envelope("scan", complete=not unseen))
        tables.close("listed", file)
        errors.close("errors", file)
        file.write("\n}\n")
    return unseen
