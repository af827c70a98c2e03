"""A table's hazards, derived from its findings; a saved inspection is enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from deltaproto.clients import requirements
from deltaproto.policy.contents import find_contents
from deltaproto.policy.finding import Finding
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.indexed_columns import has_indexed_timestamps
from deltaproto.protocol.isolation import ISOLATION_PROPERTY, WriterEngine, evaluate_isolation
from deltaproto.protocol.table_state import TableState

SEPARATOR = "; "
"""between the hazards in a finding's evidence"""
_RULES = (
    "DP134",
    "DP136",
    "DP137",
    "DP140",
    "DP141",
    "DP142",
    "DP143",
    "DP144",
    "DP146",
    "DP147",
    "DP148",
)
_FILES = {
    Trace.ABSOLUTE_PATHS: requirements.ABSOLUTE_PATHS,
    Trace.NON_ASCII_PATHS: requirements.NON_ASCII_PATHS,
    Trace.ESCAPED_PATHS: requirements.ESCAPED_PATHS,
    Trace.HIDDEN_PARTITIONS: requirements.HIDDEN_PARTITIONS,
    Trace.ISO_TIMESTAMPS: requirements.ISO_TIMESTAMPS,
    Trace.MIXED_TIMESTAMPS: requirements.MIXED_TIMESTAMPS,
}
"""hazards of data file paths, from the log"""
HAZARDS_OF_BOUNDS: Mapping[Trace, str] = {
    Trace.UNBOUNDED_COLUMNS: requirements.UNBOUNDED_COLUMNS,
    Trace.UNBOUNDED_BOOLEANS: requirements.UNBOUNDED_BOOLEANS,
    Trace.UNBOUNDED_LATER_COLUMNS: requirements.UNBOUNDED_LATER_COLUMNS,
    Trace.NAN_BOUNDS: requirements.NAN_BOUNDS,
    Trace.EXPONENT_BOUNDS: requirements.EXPONENT_BOUNDS,
}
"""hazards of the bounds in statistics, from the log"""
_WRITERS = {
    Trace.DELTA_RS_REWRITES: requirements.DELTA_RS_REWRITES,
    Trace.DELTA_RS_FILES: requirements.DELTA_RS_FILES,
}
"""hazards of data file writers, from the log; without a finding, as few readers are affected"""
_RANDOM = "delta.randomizeFilePrefixes"
_ROW_TRACKING = "delta.enableRowTracking"
_ROW_ID_COLUMNS = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)


_COLUMN_IDS = (
    requirements.MAPPING_ADDED_LATER,
    requirements.MAPPED_COLLECTIONS,
    requirements.DROPPED_COLUMNS,
    requirements.MAPPED_NAMES,
)
"""hazards of column mapping that the schema shows; no finding reports them, because only readers
that resolve columns by the ids in files are affected, and remedies"""
EVERY_LAYOUT = (
    *_FILES.values(),
    *_WRITERS.values(),
    *_COLUMN_IDS,
    requirements.ROUNDED_TIMESTAMPS,
)
"""hazards that only the log or the schema shows, not a property"""


def hazards_from_findings(
    findings: Iterable[Finding],
    configuration: Mapping[str, str | None],
    location: str,
    partition_columns: Sequence[str] = (),
) -> Iterator[str]:
    """Yield every hazard that findings, properties, path and partitioning show."""
    stored = False
    for finding in findings:
        if finding.rule in _RULES:
            words = (finding.evidence or "").split(SEPARATOR)
            stored |= requirements.STORED_PARTITIONS in words
            yield from (word for word in words if requirements.is_hazard(word))
    if _is_enabled(configuration, "delta.appendOnly"):
        yield requirements.APPEND_ONLY
    named = all(configuration.get(key) for key in _ROW_ID_COLUMNS)
    if _is_enabled(configuration, _ROW_TRACKING) and not named:
        yield requirements.UNNAMED_ROW_IDS
    if not stored and partition_columns and _is_enabled(configuration, _RANDOM):
        yield requirements.RANDOM_PREFIXES
    for word in location_hazards(location):
        yield word
        if partition_columns and word in _OF_PARTITIONED:
            yield _OF_PARTITIONED[word]


_OF_PARTITIONED = {
    requirements.NON_ASCII_LOCATION: requirements.PARTITIONS_AT_NON_ASCII_LOCATION,
    requirements.HIVE_LOCATION: requirements.PARTITIONS_AT_HIVE_LOCATION,
}
"""hazards that a location adds for partitioned tables"""


def location_hazards(location: str) -> Iterator[str]:
    """Yield hazards of a table's path. Local URIs escape most special characters."""
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
    # deltalake refuses control characters.
    requirements.ODD_LOCATION: "[]^|\\`\x7f" + "".join(map(chr, range(32))),
}


def hazards_from_state(state: TableState, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield every hazard of a table that was just read."""
    metadata = state.metadata
    yield from hazards_from_findings(
        findings, metadata.configuration, state.location, metadata.partition_columns
    )
    yield from (word for trace, word in _WRITERS.items() if state.traces.get(trace))
    shown = find_contents(state.metadata)
    yield from (word for word in _COLUMN_IDS if word in shown)
    # No finding reports this, because only old releases are affected.
    if has_indexed_timestamps(metadata):
        yield requirements.ROUNDED_TIMESTAMPS


def uninspected_hazards(state: TableState) -> Iterator[str]:
    """Yield hazards that the reader could not check completely."""
    layout = {**_files_hazards(state.metadata.partition_columns), **_WRITERS}
    yield from (word for trace, word in layout.items() if trace not in state.traces)


def uninspected_by_reader(
    reader: str, configuration: Mapping[str, str | None], partition_columns: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return hazards that an inventory with findings of this reader cannot show.

    Hazards of file writers are excluded: they affect only Daft, and a caveat mentions them. So are
    rounded timestamps, which affect only old releases: nearly every table would be unknown.
    """
    mode = configuration.get(requirements.MAPPING_MODE) or "none"
    columns = () if mode.lower() == "none" else _COLUMN_IDS
    if reader == "log":
        return columns
    # Only the log lists the data files.
    return (*_files_hazards(partition_columns).values(), *columns)


def _files_hazards(partition_columns: Sequence[str]) -> dict[Trace, str]:
    """Return the hazards of data files that a table with these partition columns can have."""
    absent = () if partition_columns else requirements.OF_PARTITION_VALUES
    return {trace: word for trace, word in _FILES.items() if word not in absent}


def _is_enabled(configuration: Mapping[str, str | None], key: str) -> bool:
    return (configuration.get(key) or "").strip().lower() == "true"


INCONSISTENCY_RULES = (
    "DP103", "DP115", "DP130", "DP131", "DP132", "DP133", "DP135", "DP138"
)  # fmt: skip
"""rules whose findings mean that clients may see a different table than this reader"""
_INCONSISTENT = (*INCONSISTENCY_RULES, "DP150")
"""plus the rule on values that some engines cannot parse and others ignore"""


def describe_inconsistencies(
    findings: Iterable[Finding], configuration: Mapping[str, str | None]
) -> Iterator[str]:
    """Yield a sentence for each inconsistency."""
    level = configuration.get(ISOLATION_PROPERTY)
    unparsed = evaluate_isolation(level).effective[WriterEngine.DELTA_SPARK] is None
    for finding in findings:
        if finding.rule in _INCONSISTENT or (unparsed and finding.rule == "DP113"):
            yield f"{finding.message} ({finding.rule}): clients handle this differently"
    for key, value in configuration.items():
        if value is None:
            yield f"the property {key} is stored without a value, and some clients fail on that"
