"""The settings with which clients identify themselves, in every format."""

from __future__ import annotations

from typing import IO

from deltaproto.fleet.seen.user_agents import SETTINGS
from deltaproto.render.document.blocks import Code, Document, TableBlock
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import PageFormat, json_text

_SETTING_HINT = (
    "Replace VERSION with the client's version. Without these, most readers leave the mark of "
    "a library only."
)


def write_settings(format_: PageFormat, file: IO[str], *, color: bool) -> None:
    """Write the settings with which clients identify themselves in access logs."""
    if format_ in (PageFormat.JSON, PageFormat.JSONL):
        rows = [{**each._asdict(), "clients": list(each.clients)} for each in SETTINGS]
        line = format_ is PageFormat.JSONL
        file.write(json_text("discover", {"settings": rows}, line=line))
        return
    table = TableBlock(
        ("Clients", "Object store", "Setting"),
        [
            [(", ".join(each.clients) or "any",), (each.store,), (Code(each.setting),)]
            for each in SETTINGS
        ],
    )
    document = Document("Settings that identify clients", (_SETTING_HINT,), [table])
    write_document(document, format_, file, color=color)
