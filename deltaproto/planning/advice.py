"""What to warn of before a plan is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deltaproto.planning.ddl.user_statement import Parsed
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import Step
from deltaproto.planning.request import PlanInput
from deltaproto.planning.statement import KEEPS_FILES, Action
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import SUBSTITUTION, has_variable, name_parts

# Switched on by a workspace setting, a runtime's defaults or a pipeline, without being asked for.
_BY_DEFAULT = {
    "deletionVectors": "the workspace setting for deletion vectors, SQL warehouses, and pipelines",
    "rowTracking": "pipelines and predictive optimisation",
    "v2Checkpoint": "liquid clustering on Databricks Runtime 14.1 and later",
    "columnMapping": "UniForm, and pipelines that rename columns",
}
_DEFAULTS = "spark.databricks.delta.properties.defaults."


def advice(given: PlanInput, steps: Sequence[Step], after: Protocol) -> Iterator[str]:
    """Warnings for these steps, the gravest first."""
    if not steps:
        return
    before = given.table.protocol
    lost = before.supported - after.supported
    yield from dict.fromkeys(text for step in steps for text in step.warnings)
    yield (
        "Every step is a change of metadata or protocol: stop or pause writers that run longer "
        "than a moment, and streams as the steps say."
    )
    if any(step.sql is not None and has_variable(step.sql) for step in steps):
        # No quotes keep Spark from it (VariableSubstitution).
        yield (
            "Spark replaces ${…} in a statement before it parses it, so it would change another "
            f"table or name. apply turns this off; set {SUBSTITUTION}=false before you run the "
            "statements yourself."
        )
    yield from _truncation(steps)
    yield from _gained(before, after, steps)
    for name in sorted(lost):
        yield from reenables_itself(name, given.session)
    if given.engine.name is EngineName.DATABRICKS:
        yield (
            "Predictions for Databricks follow its documentation; they are measured with Delta "
            "Spark only."
        )


def _truncation(steps: Sequence[Step]) -> Iterator[str]:
    if any(step.truncates for step in steps):
        yield (
            "History is truncated: time travel, RESTORE and streams that lag behind lose what is "
            "older than the retention."
        )


def _gained(before: Protocol, after: Protocol, steps: Sequence[Step]) -> Iterator[str]:
    gained = after.supported - before.supported
    if CHECKPOINT_PROTECTION in gained:
        yield (
            "checkpointProtection joins the protocol: writers that do not know it are shut out "
            "until it is dropped with TRUNCATE HISTORY."
        )
    asked = sorted(gained - {CHECKPOINT_PROTECTION})
    if asked:
        yield (
            f"{', '.join(asked)} {'joins' if len(asked) == 1 else 'join'} for good unless dropped: "
            "no feature leaves by itself, and switching it off leaves it in the protocol. Raise "
            "the clients first, and test those that are neither Databricks nor Delta Spark."
        )
    readers = after.min_reader_version > before.min_reader_version
    if asked and (readers or not (after.reader_features or set()) <= before.supported):
        yield "Reader features join: whoever does not know them can no longer read the table."
    if asked and after.uses_table_features and not before.uses_table_features:
        yield (
            f"Feature lists take the place of the version numbers {before}: only what is named "
            "joins, and clients that know version numbers alone are shut out."
        )
    if "columnMapping" in gained:
        yield (
            "columnMapping is taken back only by rewriting every file, which ends streams for "
            "good; and UniForm (icebergCompat) would keep it for ever."
        )
    if any(step.action is Action.RAISE for step in steps):
        yield (
            "Versions set by hand bring every feature that they imply; they neither prevent nor "
            "undo later upgrades."
        )


def reenables_itself(name: str, session: Mapping[str, str]) -> Iterator[str]:
    """What would bring a feature back: defaults of the session that writes, or of Databricks."""
    rule = feature_catalog.record(name).enablement
    key = rule.key.removeprefix("delta.") if isinstance(rule, PropertyIs) else ""
    values = {value.lower() for value in rule.values} if isinstance(rule, PropertyIs) else set()
    for default in (f"{_DEFAULTS}{key}", f"{_DEFAULTS}feature.{name}"):
        value = session.get(default, "").lower()
        if value and (value in values or default.endswith(name)):
            yield (
                f"{name} comes back with the next table that this session creates or replaces: "
                f"{default} is {value}. Unset it first."
            )
            return
    source = _BY_DEFAULT.get(name)
    if source is not None:
        yield (
            f"{name} may come back by itself on Databricks ({source}; {_DEFAULTS}{key} for new "
            "and replaced tables): switch that off first."
        )


_SHOWN = 80


def names_it(target: tuple[str, ...], table: str) -> bool:
    """Whether a statement's table can be the one that is planned for, which is written as SQL."""
    planned = name_parts(table)
    if target[0].lower() == "delta" or planned[0].lower() == "delta":
        kinds = {target[0].lower(), planned[0].lower()}
        paths = ([part.rstrip("/") for part in name[1:]] for name in (target, planned))
        return len(kinds) == 1 and next(paths) == next(paths)
    folded = [part.casefold() for part in target]
    return folded == [part.casefold() for part in planned][-len(folded) :]


def is_it(target: tuple[str, ...], table: str) -> bool:
    """Whether a statement's table is this one whatever the session's current schema is."""
    return len(target) == len(name_parts(table)) and names_it(target, table)


def short(text: str) -> str:
    """The beginning of a statement, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"


def what_it_does(parsed: Parsed, step: Step) -> str:
    """What a statement of the user's own does."""
    before, after = step.protocol_before.supported, step.protocol_after.supported
    gained, lost = sorted(after - before), sorted(before - after)
    said = [f"{', '.join(gained)} joins the protocol"] if gained else []
    said += [f"{', '.join(lost)} leaves the protocol"] if lost else []
    if parsed.operation is not None and not gained and not lost:
        said.append(f"the protocol stays; for other writers it is {parsed.operation}")
    kept = "; only OPTIMIZE FULL rewrites existing files" if KEEPS_FILES in step.warnings else ""
    return f"line {parsed.line}: {' and '.join(said) or 'the protocol stays'}{kept}"
