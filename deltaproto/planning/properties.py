"""Table properties as people write them: their names, and the values that they take.

Source: Delta Spark 4.4's `DeltaConfigs`, which knows its own in any case, and refuses others that
begin with `delta.`; Spark's reserved properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from deltaproto.planning.engine import DEFAULT, Engine, EngineName
from deltaproto.planning.outcome import Refusal, elsewhere
from deltaproto.planning.retention import parse_interval
from deltaproto.planning.table import MODE
from deltaproto.protocol import compatibility_mode

_BOOLEANS = """
ignoreProtocolDefaults enableExpiredLogCleanup enableFullRetentionRollback randomizeFilePrefixes
appendOnly enableDeletionVectors enableVariantShredding autoOptimize
compatibility.symlinkFormatManifest.enabled checkpoint.writeStatsAsJson
checkpoint.writeStatsAsStruct enableChangeDataCapture enableChangeDataFeed enableRowTracking
rowTrackingSuspended universalFormat.iceberg.atomicConversion.supported castIcebergTimeType
ignoreIcebergBucketPartition autoOptimize.optimizeWrite enableTypeWidening enableInCommitTimestamps
enableMaterializePartitionColumnsFeature writePartitionColumnsToParquet enableIcebergCompatV1
enableIcebergCompatV2 enableIcebergCompatV3 autoOptimize.autoCompact
"""
_INTERVALS = """
logRetentionDuration sampleRetentionDuration checkpointRetentionDuration
dropFeatureTruncateHistory.retentionDuration deletedFileRetentionDuration
setTransactionRetentionDuration
"""
_INT, _LONG = 2**31, 2**63
_NUMBERS = {
    "checkpointInterval": range(1, _INT),
    "randomPrefixLength": range(1, _INT),
    "dataSkippingNumIndexedCols": range(-1, _INT),
    "dataSkippingStringPrefixLength": range(_INT),
    "requireCheckpointProtectionBeforeVersion": range(_LONG),
    "inCommitTimestampEnablementVersion": range(-_LONG, _LONG),
    "inCommitTimestampEnablementTimestamp": range(-_LONG, _LONG),
}
_WORDS = {
    "checkpointPolicy": ("classic", "v2"),
    "parquet.format.version": ("1.0.0", "2.12.0"),
}
_OTHERS = """
minReaderVersion minWriterVersion redirectReaderWriter-preview redirectWriterOnly-preview
dataSkippingStatsColumns columnMapping.mode columnMapping.maxColumnId
isolationLevel universalFormat.enabledFormats coordinatedCommits.commitCoordinator-preview
coordinatedCommits.commitCoordinatorConf-preview coordinatedCommits.tableConf-preview
"""
_KIND: dict[str, str] = {
    **dict.fromkeys(_BOOLEANS.split(), "boolean"),
    **dict.fromkeys(_INTERVALS.split(), "interval"),
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(_WORDS, "word"),
    **dict.fromkeys(_OTHERS.split(), "other"),
}
_CANONICAL = {f"delta.{key}".lower(): f"delta.{key}" for key in _KIND}
_PREFIXES = ("delta.feature.", "delta.constraints.", "delta.universalformat.config.")
_RESERVED = ("location", "provider", "owner", "external")
# Those that Databricks documents, or takes more values for.
_ON_DATABRICKS = (
    "delta.targetfilesize",
    "delta.tunefilesizesforrewrites",
    "delta.parquet.compression.codec",
    "delta.autooptimize.autocompact",
    compatibility_mode.LOCATION.lower(),
    compatibility_mode.INTERVAL.lower(),
)
_OF_COPIES = {
    key.lower(): key for key in (compatibility_mode.LOCATION, compatibility_mode.INTERVAL)
}
# With the release that came to know them, where that was after 3.0 (`DeltaConfigs` of each).
_SINCE = {
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
# Those that Delta alone sets.
_FIXED = ("delta.columnmapping.maxcolumnid", "clusteringcolumns")
_LOG, _FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_DEFAULTS = {_LOG: "30 days", _FILES: "1 week"}
_ORDERED_SINCE = "4.1"
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")


def canonical(key: str) -> str:
    """The name that Delta stores for a property."""
    lower = key.lower()
    return _CANONICAL.get(lower) or _OF_COPIES.get(lower, key)


def suggestion(key: str) -> str | None:
    """What a `delta.` property that Delta does not know was probably meant to be; None if known.

    Empty when it is not known, and nothing is similar.
    """
    lower = key.lower()
    known = {**_CANONICAL, **{each: each for each in _ON_DATABRICKS}}
    if not lower.startswith("delta.") or lower in known or lower.startswith(_PREFIXES):
        return None
    import difflib

    near = difflib.get_close_matches(lower, known, n=1, cutoff=0.8)
    return known[near[0]] if near else ""


def meant(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties that somebody asks for, as Delta wants them written."""
    found = {canonical(key): value for key, value in properties.items()}
    if MODE in found:
        # In capitals Delta Spark 4.4 takes 'NONE' without rewriting the files (`mapping.MISREAD`).
        found[MODE] = found[MODE].lower()
    return found


def unsettable(properties: Mapping[str, str], engine: Engine = DEFAULT) -> Refusal | None:
    """The refusal of properties that cannot be set at all, or not to these values."""
    there = engine.name is EngineName.DATABRICKS
    for key, value in properties.items():
        if there and key.lower() in _ON_DATABRICKS:
            continue
        found = _unknown(key, engine) or _unfit(key, value, engine)
        if found is not None:
            return elsewhere(found) if there else found
    ordered = not there and engine.at_least(_ORDERED_SINCE)
    return _too_short(properties, engine) if ordered else None


def _unknown(key: str, engine: Engine) -> Refusal | None:
    lower = key.lower()
    if lower in _RESERVED:
        error, why = "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY", f"{key} is a reserved property"
        return Refusal(error, why, "leave it out")
    if lower in _FIXED:
        error, why = "DELTA_CANNOT_MODIFY_TABLE_PROPERTY", f"Delta sets {key} itself"
        return Refusal(error, why, "leave it out")
    unknown = lower.startswith("delta.") and lower not in _CANONICAL
    since = _SINCE.get(lower)
    if since is not None and engine.name is EngineName.DELTA_SPARK and not engine.at_least(since):
        return Refusal(
            "DELTA_UNKNOWN_CONFIGURATION",
            f"{engine} knows no property {canonical(key)}",
            f"delta-spark@{since} or later does",
        )
    if unknown and not lower.startswith(_PREFIXES):
        return Refusal(
            "DELTA_UNKNOWN_CONFIGURATION",
            f"Delta knows no property {key}",
            "look for a slip of the pen, or begin its name otherwise",
        )
    return None


def _unfit(key: str, value: str, engine: Engine) -> Refusal | None:
    name = canonical(key).removeprefix("delta.")
    error, wanted = engine.bad_value, ""
    kind = _KIND.get(name)
    if kind == "boolean" and value.lower() not in ("true", "false"):
        wanted = "true or false"
    elif kind == "number" and not (_WHOLE.fullmatch(value) and int(value) in _NUMBERS[name]):
        least = _NUMBERS[name].start
        wanted = f"a whole number from {least} on" if least >= -1 else "a whole number"
    elif kind == "word" and value not in _WORDS[name]:
        wanted = " or ".join(_WORDS[name])
    elif kind == "interval":
        parsed = parse_interval(value)
        error = error if parsed is not None else "DELTA_INVALID_INTERVAL"
        if parsed is None or parsed.months or parsed.hours < 0:
            wanted = "an interval such as '30 days', without months and years"
    elif name == "universalFormat.enabledFormats":
        found = compatibility_mode.formats({f"delta.{name}": value})
        there = engine.name is EngineName.DATABRICKS
        known = {"iceberg", "hudi", *([compatibility_mode.FORMAT] if there else [])}
        if len({*found}) < len(found) or not {*found} <= known:
            wanted = "iceberg, hudi, or both"
            if compatibility_mode.FORMAT in found and len({*found}) == len(found):
                wanted += ": Compatibility Mode is a service of Databricks (--engine databricks)"
    if not wanted:
        return None
    return Refusal(error, f"delta.{name} cannot be {value or 'empty'}", f"write {wanted}")


def _too_short(properties: Mapping[str, str], engine: Engine) -> Refusal | None:
    """Delta compares what one statement sets, and where it sets only one of both, the default."""
    if not {_LOG, _FILES} & {*properties}:
        return None
    log, files = (parse_interval(properties.get(key, _DEFAULTS[key])) for key in (_LOG, _FILES))
    if log is None or files is None or log.hours >= files.hours:
        return None
    return Refusal(
        engine.bad_value,
        f"{_LOG} would be shorter than {_FILES}, as this statement sets them",
        "set both in one statement",
    )
