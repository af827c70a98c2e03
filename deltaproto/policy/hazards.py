"""A table's hazards, told from the findings on it: what a saved inspection holds is enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from deltaproto.clients import requirements
from deltaproto.policy.contents import contents
from deltaproto.policy.finding import Finding
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.table_state import TableState

SEPARATOR = "; "
"""between the hazards that a finding names as its evidence"""
_RULES = ("DP134", "DP140", "DP141", "DP142", "DP143")
_FILES = {
    Trace.ABSOLUTE_PATHS: requirements.ABSOLUTE_PATHS,
    Trace.NON_ASCII_PATHS: requirements.NON_ASCII_PATHS,
    Trace.ESCAPED_PATHS: requirements.ESCAPED_PATHS,
}
"""what the log shows of the paths of data files"""
_WRITERS = {
    Trace.DELTA_RS_REWRITES: requirements.DELTA_RS_REWRITES,
    Trace.DELTA_RS_FILES: requirements.DELTA_RS_FILES,
}
"""what the log shows of who wrote data files; no finding says so, as few readers notice it"""
_ROW_TRACKING = "delta.enableRowTracking"
_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"


_COLUMN_IDS = (
    requirements.MAPPING_ADDED_LATER,
    requirements.MAPPED_COLLECTIONS,
    requirements.DROPPED_COLUMNS,
)
"""what the schema shows of column mapping; no finding says so, as only a reader that goes by the
column ids in files notices it"""
EVERY_LAYOUT = (*_FILES.values(), *_WRITERS.values(), *_COLUMN_IDS)
"""the hazards that are told from the log or the schema, and that no property shows"""


def hazards_of(
    findings: Iterable[Finding], configuration: Mapping[str, str | None], location: str
) -> Iterator[str]:
    """Every hazard that the findings, the properties and the path show."""
    for finding in findings:
        if finding.rule in _RULES:
            words = (finding.evidence or "").split(SEPARATOR)
            yield from (word for word in words if requirements.is_hazard(word))
    if _on(configuration, "delta.appendOnly"):
        yield requirements.APPEND_ONLY
    if _on(configuration, _ROW_TRACKING) and not configuration.get(_ROW_ID_COLUMN):
        yield requirements.UNNAMED_ROW_IDS
    yield from _of_location(location)


def _of_location(location: str) -> Iterator[str]:
    """What a table's path holds; the URI of a local one has most of it escaped."""
    path = unquote(location)
    if "=" in path:
        yield requirements.HIVE_LOCATION
    if not location.startswith("file:"):
        return
    for word, characters in _LOCATIONS.items():
        if any(character in path for character in characters):
            yield word
    if not path.isascii():
        yield requirements.SPECIAL_LOCATION
    if not path.rstrip("/")[-1:].isascii():
        yield requirements.NON_ASCII_LOCATION


_LOCATIONS = {
    requirements.PERCENT_IN_PATH: "%",
    requirements.SPECIAL_LOCATION: ' #?{}"<>',
    requirements.ODD_LOCATION: "[]^|\\`",
}


def hazards_seen(state: TableState, findings: Iterable[Finding]) -> Iterator[str]:
    """Every hazard of a table that was read just now."""
    yield from hazards_of(findings, state.metadata.configuration, state.location)
    yield from (word for trace, word in _WRITERS.items() if state.traces.get(trace))
    shown = contents(state.metadata)
    yield from (word for word in _COLUMN_IDS if word in shown)


def hazards_unseen(state: TableState) -> Iterator[str]:
    """Those that the reader could not look for, or not everywhere."""
    layout = {**_FILES, **_WRITERS}
    yield from (word for trace, word in layout.items() if trace not in state.traces)


def unsaved(reader: str, configuration: Mapping[str, str | None]) -> tuple[str, ...]:
    """Those that nobody looked for, where an inventory has only the findings of this reader.

    Who wrote the files is not among them: it matters to Daft alone, and a note says so.
    """
    mode = configuration.get(requirements.MAPPING_MODE) or "none"
    columns = () if mode.lower() == "none" else _COLUMN_IDS
    # Only the log names the data files.
    return columns if reader == "log" else (*_FILES.values(), *columns)


def _on(configuration: Mapping[str, str | None], key: str) -> bool:
    return (configuration.get(key) or "").strip().lower() == "true"
