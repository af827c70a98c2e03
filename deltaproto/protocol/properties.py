"""Delta's own table properties: their names and valid values.

Source: `DeltaConfigs` of Delta Spark 3.0 to 4.4.0; measured with 4.4.0.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from deltaproto.protocol import compatibility_mode
from deltaproto.protocol.decoding import parse_whole
from deltaproto.protocol.intervals import parse_interval

CONSTRAINT_PREFIX = "delta.constraints."
PREFIXES = ("delta.feature.", CONSTRAINT_PREFIX, "delta.universalformat.config.")
"""prefixes of names that Delta accepts without knowing them, in lowercase"""
FORMATS = compatibility_mode.FORMATS
STATISTICS_COLUMNS_PROPERTY = "delta.dataSkippingStatsColumns"
INDEXED_COLUMNS_PROPERTY = "delta.dataSkippingNumIndexedCols"
_INT, _LONG = 2**31, 2**63
_REDIRECTS = ("ENABLE-REDIRECT-IN-PROGRESS", "REDIRECT-READY", "DROP-REDIRECT-IN-PROGRESS")
# Compiled when first used, which most commands do not need.
_RELEASE = r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:[-+].*)?"
# Valid starts of a column list in Spark's parser, which ignores whatever follows.
_NAME = r"(?:`(?:[^`]|``)+`|(?![0-9]+(?![\w]))\w+)"
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_NAMES = rf"\s*({_PATH}(?:\s*,\s*{_PATH})*)(?!\s*[,`-])"
_PART = r"`((?:[^`]|``)+)`|(\w+)|([.,])"


class ValueKind(NamedTuple):
    """A kind of property value."""

    wanted: str
    """description of valid values, to follow "must be" """
    takes: Callable[[str], bool]


def parse_column_names(text: str) -> tuple[tuple[str, ...], ...] | None:
    """Parse `delta.dataSkippingStatsColumns` to column paths; None if it is not a list."""
    if not text.strip():
        return ()
    found = re.match(_NAMES, text)
    if found is None:
        return None
    paths: list[tuple[str, ...]] = [()]
    for quoted, plain, mark in re.findall(_PART, found[1]):
        if mark == ",":
            paths.append(())
        elif not mark:
            paths[-1] = (*paths[-1], quoted.replace("``", "`") or plain)
    return tuple(paths)


def parse_formats(text: str) -> list[str]:
    """Split `delta.universalFormat.enabledFormats` as Java does."""
    formats = text.split(",") if text else []
    while formats and not formats[-1]:
        formats.pop()
    return formats


def _number(least: int, beyond: int) -> ValueKind:
    wanted = f"an integer of at least {least}" if least > -beyond else "an integer"

    def takes(text: str) -> bool:
        number = parse_whole(text)
        return number is not None and least <= number < beyond

    return ValueKind(wanted, takes)


def _is_interval(text: str) -> bool:
    parsed = parse_interval(text)
    return parsed is not None and not parsed.months and parsed.hours >= 0


def _is_release(text: str) -> bool:
    found = re.fullmatch(_RELEASE, text)
    return found is not None and tuple(map(int, found.groups())) >= (1, 0, 0)


def _are_formats(text: str) -> bool:
    formats = parse_formats(text)
    return len({*formats}) == len(formats) and {*formats} <= {"iceberg", "hudi"}


def _is_map(text: str) -> bool:
    """Return True for a JSON object of scalars, which are stored as strings."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return found is None or (
        isinstance(found, dict) and not any(isinstance(v, dict | list) for v in found.values())
    )


def _is_redirect(text: str) -> bool:
    """Return True for a `TableRedirectConfiguration`."""
    try:
        found = json.loads(text)
        spec = json.loads(found["spec"])
        return found["state"] in _REDIRECTS and isinstance(spec, dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _one_of(*words: str, any_case: bool = False) -> ValueKind:
    wanted = " or ".join((", ".join(words[:-1]), words[-1]) if len(words) > 1 else words)
    return ValueKind(wanted, lambda text: (text.lower() if any_case else text) in words)


_BOOLEAN = _one_of("true", "false", any_case=True)
_INTERVAL = ValueKind("an interval such as '30 days', without months and years", _is_interval)
_TEXT = ValueKind("a string", lambda text: True)
_REDIRECT = ValueKind("a JSON object with a type, a state and a spec", _is_redirect)
_MAP = ValueKind("a JSON object whose values are strings", _is_map)
VALUE_KINDS: Mapping[str, ValueKind] = {
    **dict.fromkeys(
        [
            "ignoreProtocolDefaults",
            "enableExpiredLogCleanup",
            "enableFullRetentionRollback",
            "randomizeFilePrefixes",
            "appendOnly",
            "enableDeletionVectors",
            "enableVariantShredding",
            "autoOptimize",
            "autoOptimize.autoCompact",
            "autoOptimize.optimizeWrite",
            "checkpoint.writeStatsAsJson",
            "checkpoint.writeStatsAsStruct",
            "compatibility.symlinkFormatManifest.enabled",
            "enableChangeDataCapture",
            "enableChangeDataFeed",
            "enableRowTracking",
            "rowTrackingSuspended",
            "universalFormat.iceberg.atomicConversion.supported",
            "castIcebergTimeType",
            "ignoreIcebergBucketPartition",
            "enableTypeWidening",
            "enableInCommitTimestamps",
            "enableMaterializePartitionColumnsFeature",
            "writePartitionColumnsToParquet",
            "enableIcebergCompatV1",
            "enableIcebergCompatV2",
            "enableIcebergCompatV3",
        ],
        _BOOLEAN,
    ),
    **dict.fromkeys(
        [
            "logRetentionDuration",
            "sampleRetentionDuration",
            "checkpointRetentionDuration",
            "dropFeatureTruncateHistory.retentionDuration",
            "deletedFileRetentionDuration",
            "setTransactionRetentionDuration",
        ],
        _INTERVAL,
    ),
    **dict.fromkeys(["redirectReaderWriter-preview", "redirectWriterOnly-preview"], _REDIRECT),
    "coordinatedCommits.commitCoordinator-preview": _TEXT,
    **dict.fromkeys(
        [
            "coordinatedCommits.commitCoordinatorConf-preview",
            "coordinatedCommits.tableConf-preview",
        ],
        _MAP,
    ),
    "minReaderVersion": _number(1, 4),
    "minWriterVersion": _number(1, 8),
    "checkpointInterval": _number(1, _INT),
    "randomPrefixLength": _number(1, _INT),
    "dataSkippingNumIndexedCols": _number(-1, _INT),
    "dataSkippingStringPrefixLength": _number(0, _INT),
    "requireCheckpointProtectionBeforeVersion": _number(0, _LONG),
    "inCommitTimestampEnablementVersion": _number(-_LONG, _LONG),
    "inCommitTimestampEnablementTimestamp": _number(-_LONG, _LONG),
    "columnMapping.maxColumnId": _number(-_LONG, _LONG),
    "columnMapping.mode": _one_of("none", "name", "id", any_case=True),
    # Delta also parses the third value, though no table can be set to it.
    "isolationLevel": _one_of(
        "serializable", "writeserializable", "snapshotisolation", any_case=True
    ),
    "checkpointPolicy": _one_of("classic", "v2"),
    "parquet.format.version": ValueKind("a release such as 1.0.0 or 2.12.0", _is_release),
    "universalFormat.enabledFormats": ValueKind("iceberg, hudi, or both", _are_formats),
    "dataSkippingStatsColumns": ValueKind(
        "a list of columns", lambda text: parse_column_names(text) is not None
    ),
}
"""value kind by property name after `delta.`"""

CANONICAL_NAMES: Mapping[str, str] = {
    f"delta.{name}".lower(): f"delta.{name}" for name in VALUE_KINDS
}
"""the name that Delta stores, by lowercase name"""

FIRST_RELEASES: Mapping[str, str] = {
    f"delta.{name}".lower(): release
    for release, names in {
        "3.1": "enableIcebergCompatV2 autoOptimize.autoCompact autoOptimize.optimizeWrite",
        "3.2": "enableTypeWidening",
        "3.3": "enableInCommitTimestamps inCommitTimestampEnablementVersion "
        "inCommitTimestampEnablementTimestamp requireCheckpointProtectionBeforeVersion "
        "redirectReaderWriter-preview redirectWriterOnly-preview "
        "coordinatedCommits.commitCoordinator-preview "
        "coordinatedCommits.commitCoordinatorConf-preview coordinatedCommits.tableConf-preview",
        "4.0": "enableVariantShredding castIcebergTimeType ignoreIcebergBucketPartition",
        "4.1": "rowTrackingSuspended enableMaterializePartitionColumnsFeature "
        "dataSkippingStringPrefixLength",
        "4.2": "universalFormat.iceberg.atomicConversion.supported",
        "4.3": "enableIcebergCompatV3 parquet.format.version",
        "4.4": "writePartitionColumnsToParquet",
    }.items()
    for name in names.split()
}
"""first Delta Spark release with a property, if later than 3.0, by lowercase name"""


PARSED_ON_EVERY_WRITE = (
    *("delta.deletedFileRetentionDuration", "delta.setTransactionRetentionDuration"),
    *("delta.enableInCommitTimestamps", "delta.checkpoint.writeStatsAsJson"),
    *("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2", "delta.enableIcebergCompatV3"),
    "delta.columnMapping.mode",
    "delta.coordinatedCommits.commitCoordinatorConf-preview",
    "delta.coordinatedCommits.tableConf-preview",
)
"""properties that Delta Spark parses before every table change, even if the change unsets them"""

NEEDED_AFTER = (
    *("delta.appendOnly", "delta.enableDeletionVectors", "delta.enableVariantShredding"),
    *("delta.enableChangeDataCapture", "delta.enableChangeDataFeed", "delta.enableRowTracking"),
    *("delta.enableTypeWidening", "delta.enableMaterializePartitionColumnsFeature"),
    *("delta.compatibility.symlinkFormatManifest.enabled", "delta.checkpointInterval"),
    *("delta.checkpointPolicy", "delta.isolationLevel"),
)
"""properties that Delta Spark parses after every metadata change"""

ON_DATABRICKS: Mapping[str, tuple[str, ...]] = {
    "delta.autoOptimize.autoCompact": ("auto", "legacy"),
}
"""values that Databricks documents and Delta Spark does not accept"""
# Properties that Databricks documents, or for which it accepts more values.
KNOWN_ON_DATABRICKS = (
    "delta.targetfilesize",
    "delta.tunefilesizesforrewrites",
    "delta.parquet.compression.codec",
    "delta.autooptimize.autocompact",
    compatibility_mode.LOCATION.lower(),
    compatibility_mode.INTERVAL.lower(),
)


def suggest_property(key: str) -> str | None:
    """Suggest a name for an unknown `delta.` property; None if the property is known.

    Empty if it is unknown and nothing is similar.
    """
    lower = key.lower()
    known = {**CANONICAL_NAMES, **{each: each for each in KNOWN_ON_DATABRICKS}}
    if not lower.startswith("delta.") or lower in known or lower.startswith(PREFIXES):
        return None
    import difflib

    # The common prefix would make any two names similar.
    names = {each.removeprefix("delta."): name for each, name in known.items()}
    near = difflib.get_close_matches(lower.removeprefix("delta."), names, n=1, cutoff=0.75)
    return names[near[0]] if near else ""


def expected_value(key: str, value: str, *, on_databricks: bool = False) -> str | None:
    """Describe valid values; None if the value is valid or the property is unknown.

    Args:
        key: the property's name as stored by Delta.
        on_databricks: also accept values that only Databricks documents.
    """
    kind = VALUE_KINDS.get(key.removeprefix("delta."))
    if kind is None or kind.takes(value):
        return None
    if on_databricks and value.lower() in ON_DATABRICKS.get(key, ()):
        return None
    if on_databricks and key == FORMATS:
        others = [name for name in parse_formats(value) if name != compatibility_mode.FORMAT]
        copied = len(others) == len(parse_formats(value)) - 1
        return None if copied and _are_formats(",".join(others)) else kind.wanted
    return kind.wanted
