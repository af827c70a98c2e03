"""Warnings to read before executing a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deltaproto.counts import first_names
from deltaproto.planning.conflict_impact import changes_only_files
from deltaproto.planning.ddl.user_statement import ParsedStatement
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import Step
from deltaproto.planning.predict.coordinated import session_warning
from deltaproto.planning.request import PlanInput
from deltaproto.planning.statement import KEEPS_FILES, Action
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureStatus, PropertyIs
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import SUBSTITUTION, has_variable, split_name

# Enabled by a workspace setting, a runtime's defaults or a pipeline, without an explicit request.
_DATABRICKS_DEFAULTS = {
    "deletionVectors": "the workspace setting for deletion vectors, SQL warehouses, and pipelines",
    "rowTracking": "pipelines and predictive optimization",
    "v2Checkpoint": "liquid clustering on Databricks Runtime 14.1 and later",
    "columnMapping": "UniForm, and pipelines that rename columns",
}
_SHOWN = 8
"""steps that a warning names"""
_SESSION_DEFAULT_PREFIX = "spark.databricks.delta.properties.defaults."


def find_warnings(inputs: PlanInput, steps: Sequence[Step], after: Protocol) -> Iterator[str]:
    """Yield warnings for these steps, most serious first."""
    if not steps:
        return
    before = inputs.table.protocol
    lost = before.supported - after.supported
    yield from dict.fromkeys(text for step in steps for text in step.warnings)
    yield from _writer_warnings(steps)
    yield from session_warning(inputs.table, inputs.engine)
    if any(step.sql is not None and has_variable(step.sql) for step in steps):
        # Quoting does not prevent it (VariableSubstitution).
        yield (
            "Spark replaces ${…} in a statement before it parses it, so it would change another "
            f"table or name. apply turns this off; set {SUBSTITUTION}=false before you run the "
            "statements yourself."
        )
    yield from _truncation_warnings(steps)
    yield from _added_feature_warnings(before, after, steps, inputs.engine)
    for name in sorted(lost):
        yield from reenables_itself(name, inputs.session)
    if inputs.engine.name is EngineName.DATABRICKS:
        yield from _undocumented_warnings(before, after, inputs.engine)
        yield (
            "Predictions for Databricks are based on its documentation; only Delta Spark was "
            "measured."
        )


def _undocumented_warnings(before: Protocol, after: Protocol, engine: Engine) -> Iterator[str]:
    """Yield warnings about added and dropped features of which Databricks documents too little."""
    gained = sorted(after.supported - before.supported)
    unknown = [
        name
        for name in gained
        if engine.knows(feature_catalog.feature_record(name)) is None
        and not feature_catalog.find_dependents(name, gained)
    ]
    if unknown:
        yield (
            f"The documentation of Databricks states no runtime for {', '.join(unknown)}: whether "
            f"{engine} adds {'it' if len(unknown) == 1 else 'them'} is not verified."
        )
    records = map(feature_catalog.feature_record, sorted(before.listed & after.listed))
    unusual = [
        record.name
        for record in records
        if record.status is not FeatureStatus.STABLE and engine.knows(record) is None
    ]
    if unusual:
        yield (
            f"The table has {', '.join(unusual)}, for which the documentation of Databricks states "
            f"no runtime: whether {engine} can change the table is not verified."
        )
    for name in sorted(before.supported - after.supported):
        doubt = feature_catalog.feature_record(name).drop.databricks_doubt
        if doubt:
            yield f"Whether {engine} drops {name} is not verified: {doubt}."


def _writer_warnings(steps: Sequence[Step]) -> Iterator[str]:
    changing = [step.id for step in steps if not changes_only_files(step.operations)]
    files = [step.id for step in steps if step.operations and step.id not in changing]
    if not changing:
        yield (
            "The steps change only data files: pause writers that update, delete or merge rows of "
            "the same partitions."
        )
        return
    what = "Every step changes metadata or the protocol"
    if files:
        verb = "changes" if len(changing) == 1 else "change"
        what = (
            f"{first_names(changing, _SHOWN)} {verb} metadata or the protocol, "
            f"{first_names(files, _SHOWN)} only data files"
        )
    yield f"{what}: stop or pause long-running writers, and streams as described in the steps."


def _truncation_warnings(steps: Sequence[Step]) -> Iterator[str]:
    if any(step.truncates for step in steps):
        yield (
            "History is truncated: time travel, RESTORE and lagging streams lose versions older "
            "than the retention period."
        )


def _added_feature_warnings(
    before: Protocol, after: Protocol, steps: Sequence[Step], engine: Engine
) -> Iterator[str]:
    gained = after.supported - before.supported
    if CHECKPOINT_PROTECTION in gained:
        yield (
            "checkpointProtection is added to the protocol: writers that do not support it are "
            "blocked until it is dropped with TRUNCATE HISTORY."
        )
    requested = sorted(gained - {CHECKPOINT_PROTECTION})
    kept = [name for name in requested if not engine.drops(feature_catalog.feature_record(name))]
    if requested:
        dropped = [name for name in requested if name not in kept]
        it = "it" if len(kept) == 1 else "them"
        parts = (
            (dropped, "in the protocol until dropped."),
            (kept, f"in the protocol: {engine} cannot drop {it}."),
        )
        stay = " ".join(
            f"{', '.join(names)} {'stays' if len(names) == 1 else 'stay'} {how}"
            for names, how in parts
            if names
        )
        yield (
            f"{stay} Disabling the property does not remove a feature. Upgrade clients first, and "
            "test clients other than Databricks and Delta Spark."
        )
    readers = after.min_reader_version > before.min_reader_version
    if requested and (readers or not (after.reader_features or set()) <= before.supported):
        yield "Adds reader features: clients that don't support them can no longer read the table."
    if requested and after.uses_table_features and not before.uses_table_features:
        yield (
            f"Feature lists replace the version numbers {before}: only the listed features are "
            "supported, and clients that check only version numbers are blocked."
        )
    if "columnMapping" in gained:
        yield (
            "Removing columnMapping rewrites every data file and permanently breaks existing "
            "streams; UniForm (icebergCompat) would prevent its removal."
        )
    if any(step.action is Action.RAISE and _adds_features(step) for step in steps):
        yield (
            "Setting versions manually adds every feature that they imply; it neither prevents nor "
            "undoes later upgrades."
        )


def _adds_features(step: Step) -> bool:
    return not step.protocol_after.supported <= step.protocol_before.supported


def reenables_itself(name: str, session: Mapping[str, str]) -> Iterator[str]:
    """Yield defaults of the session or of Databricks that would re-enable a feature."""
    rule = feature_catalog.feature_record(name).enablement
    key = rule.key.removeprefix("delta.") if isinstance(rule, PropertyIs) else ""
    values = {value.lower() for value in rule.values} if isinstance(rule, PropertyIs) else set()
    for default in (f"{_SESSION_DEFAULT_PREFIX}{key}", f"{_SESSION_DEFAULT_PREFIX}feature.{name}"):
        value = session.get(default, "").lower()
        if value and (value in values or default.endswith(name)):
            yield (
                f"{name} is enabled in the next table that this session creates or replaces: "
                f"{default} is {value}. Unset it first."
            )
            return
    source = _DATABRICKS_DEFAULTS.get(name)
    if source is not None:
        yield (
            f"Databricks may re-enable {name} automatically ({source}; "
            f"{_SESSION_DEFAULT_PREFIX}{key} for new "
            "and replaced tables): disable that first."
        )


def may_be_table(target: tuple[str, ...], table: str) -> bool:
    """Return True if a statement's table may be the planned table (`table`, quoted as SQL)."""
    planned = split_name(table)
    if target[0].lower() == "delta" or planned[0].lower() == "delta":
        kinds = {target[0].lower(), planned[0].lower()}
        paths = ([part.rstrip("/") for part in name[1:]] for name in (target, planned))
        return len(kinds) == 1 and next(paths) == next(paths)
    folded = [part.casefold() for part in target]
    return folded == [part.casefold() for part in planned][-len(folded) :]


def is_same_table(target: tuple[str, ...], table: str) -> bool:
    """Return True if a statement's table is this one regardless of the current schema."""
    return len(target) == len(split_name(table)) and may_be_table(target, table)


def describe_user_statement(parsed: ParsedStatement, step: Step) -> str:
    """Describe the effect of a user's SQL statement."""
    before, after = step.protocol_before.supported, step.protocol_after.supported
    gained, lost = sorted(after - before), sorted(before - after)
    effects = [f"adds {', '.join(gained)} to the protocol"] if gained else []
    effects += [f"removes {', '.join(lost)} from the protocol"] if lost else []
    if parsed.operation is not None and not gained and not lost:
        effects.append(f"does not change the protocol; other writers see it as {parsed.operation}")
    kept = "; only OPTIMIZE FULL rewrites existing files" if KEEPS_FILES in step.warnings else ""
    return f"line {parsed.line}: {' and '.join(effects) or 'does not change the protocol'}{kept}"
