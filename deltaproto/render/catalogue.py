"""The feature catalog in each format."""

from __future__ import annotations

from typing import IO, Any, assert_never

from deltaproto.protocol.feature import (
    EVERY_RUNTIME,
    AlwaysWhenSupported,
    DomainHas,
    Enablement,
    EnablementTrigger,
    Feature,
    PropertyIs,
    PropertyPrefix,
    SchemaHas,
)
from deltaproto.render import words
from deltaproto.render.inspection_json import drop_fields
from deltaproto.render.interface import Format, json_text


def write_features(
    features: tuple[Feature, ...], format_: Format, file: IO[str], *, color: bool, detailed: bool
) -> None:
    """Write the list of features, or all details of one feature."""
    match format_:
        case Format.JSON:
            payload = {"features": [feature_record(feature) for feature in features]}
            file.write(json_text("features", payload, line=False))
        case Format.JSONL:
            for feature in features:
                file.write(
                    json_text("features", {"features": [feature_record(feature)]}, line=True)
                )
        case Format.MARKDOWN:
            from deltaproto.render.markdown import escape, table

            if detailed:
                feature = features[0]
                file.write(f"# {escape(feature.name)}\n\n{escape(feature.summary)}\n\n")
                file.write(table(("", ""), facts(feature)) + "\n")
            else:
                file.write(table(_HEADINGS, [_row(feature) for feature in features]) + "\n")
        case Format.TEXT:
            from deltaproto.render.catalogue_text import print_feature, print_features
            from deltaproto.render.console import DataConsole

            console = DataConsole(file, color=color)
            if detailed:
                print_feature(console, features[0], facts(features[0]))
            else:
                print_features(console, features)
        case _:
            assert_never(format_)


def feature_record(feature: Feature) -> dict[str, Any]:
    """Return one catalog entry as JSON."""
    return {
        "name": feature.name,
        "kind": str(feature.kind),
        "status": str(feature.status),
        "summary": feature.summary,
        "min_reader_version": feature.min_reader,
        "min_writer_version": feature.min_writer,
        "legacy": feature.legacy,
        "since": {
            "delta_spark": feature.since.delta_spark,
            "databricks": feature.since.databricks,
            "databricks_note": feature.since.databricks_note or None,
        },
        "requires": [
            {"need": str(need.need), "feature": need.feature, "source": need.source}
            for need in feature.requires
        ],
        "enabled_by": [
            {
                "act": trigger.act,
                "by": trigger.by,
                "new_tables": trigger.new_tables,
                "existing_tables": trigger.existing_tables,
                "note": trigger.note or None,
            }
            for trigger in feature.triggers
        ],
        "switch_off": feature.switch_off or None,
        "droppable": {
            **drop_fields(feature.drop),
            "rewrites": feature.drop.rewrites,
            "preparation": list(feature.drop.preparation),
            "truncate_history_only": feature.drop.needs_truncate,
            "refusals": [
                {"when": refusal.when, "error": refusal.error, "remedy": refusal.remedy}
                for refusal in feature.drop.refusals
            ],
            "note": feature.drop.note or None,
        },
        "renamed_to": feature.renamed_to,
        "aliases": list(feature.aliases),
        "disputes": [
            {
                "about": dispute.about,
                "oss": dispute.oss,
                "databricks": dispute.databricks,
                "applies": dispute.applies,
            }
            for dispute in feature.disputes
        ],
        "notes": list(feature.notes),
        "sources": list(feature.sources),
    }


def facts(feature: Feature) -> list[tuple[str, str]]:
    """Return every fact about one feature as (label, text); a label may repeat."""
    drop = feature.drop
    rows = [
        ("needed by", f"{feature.kind} feature, {feature.status}"),
        (
            "versions",
            f"reader {feature.min_reader}, writer {feature.min_writer}{_carried(feature)}",
        ),
        ("known since", f"delta-spark {feature.since.delta_spark or 'no release'}"),
        ("", f"Databricks Runtime: {_runtime(feature)}"),
    ]
    rows += [
        ("requires", f"{need.feature} {need.need} ({need.source})") for need in feature.requires
    ]
    rows += [("enabled by", _trigger(trigger)) for trigger in feature.triggers]
    rows.append(("seen as enabled", _rule(feature.enablement)))
    rows.append(("switch off", feature.switch_off or "there is no switch"))
    rows.append(("drop", _drop(feature)))
    rows.append(("", f"Databricks Runtime: {drop.databricks or 'none documented'}"))
    if drop.preparation:
        rows.append(("", f"first commits: {', '.join(drop.preparation)}"))
    rows += [
        ("drop refused", f"{refusal.when}: {refusal.error}; {refusal.remedy}")
        for refusal in drop.refusals
    ]
    if drop.note:
        rows.append(("", drop.note))
    if feature.renamed_to:
        rows.append(("renamed to", feature.renamed_to))
    if feature.aliases:
        rows.append(("also called", ", ".join(feature.aliases)))
    for dispute in feature.disputes:
        rows.append(("disputed", f"{dispute.about}: OSS: {dispute.oss}"))
        rows.append(("", f"Databricks: {dispute.databricks}"))
        rows.append(("", f"which applies: {dispute.applies}"))
    rows += [("note", note) for note in feature.notes]
    rows += [("source", source) for source in feature.sources]
    return rows


_HEADINGS = ("feature", "kind", "R,W", "since delta-spark", "since DBR", "droppable")


def _row(feature: Feature) -> tuple[str, ...]:
    return (
        feature.name,
        str(feature.kind) if feature.status == "stable" else f"{feature.kind}, {feature.status}",
        f"{feature.min_reader},{feature.min_writer}",
        feature.since.delta_spark or "-",
        feature.since.databricks or "-",
        words.droppable(feature),
    )


def _carried(feature: Feature) -> str:
    if feature.legacy:
        return " (implied by these version numbers and higher legacy ones)"
    return " (only as a listed table feature)"


def _runtime(feature: Feature) -> str:
    note = f" ({feature.since.databricks_note})" if feature.since.databricks_note else ""
    runtime = feature.since.databricks
    shown = "none documented" if runtime is None else runtime
    if runtime == EVERY_RUNTIME:
        shown = "all supported versions"
    return f"{shown}{note}"


def _trigger(trigger: EnablementTrigger) -> str:
    where = []
    if not trigger.new_tables:
        where.append("not on new tables")
    if not trigger.existing_tables:
        where.append("not on existing tables")
    detail = "; ".join([*where, *([trigger.note] if trigger.note else [])])
    return f"{trigger.act} ({detail})" if detail else trigger.act


def _rule(rule: Enablement) -> str:
    match rule:
        case PropertyIs(key, values):
            return f"{key} is {' or '.join(values)}"
        case PropertyPrefix(prefix):
            return f"any property {prefix}…"
        case SchemaHas(trait):
            return f"the schema has {trait}"
        case DomainHas(domain, key):
            return f"metadata domain {domain} has {key}"
        case AlwaysWhenSupported():
            return "whenever it is supported"


def _drop(feature: Feature) -> str:
    drop = feature.drop
    if drop.delta_spark is None:
        return "no delta-spark release can drop it"
    least, most = drop.commits
    commits = f"{least} commits" if least == most else f"{least} to {most} commits"
    commits = "1 commit" if (least, most) == (1, 1) else commits
    parts = [f"delta-spark {drop.delta_spark} or later, {commits}"]
    if drop.rewrites_data:
        parts.append(f"rewrites {drop.rewrites} data files")
    if drop.needs_truncate:
        parts.append("only with TRUNCATE HISTORY")
    elif drop.protects_history:
        parts.append("leaves checkpointProtection behind, or else TRUNCATE HISTORY and a wait")
    return "; ".join(parts)
