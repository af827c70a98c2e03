"""The results of `features`: documents and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any, assert_never

from deltaproto.counts import any_name, counted
from deltaproto.protocol.feature import (
    EVERY_RUNTIME,
    AlwaysWhenSupported,
    DomainHas,
    Enablement,
    EnablementTrigger,
    Feature,
    FeatureKind,
    FeatureStatus,
    PropertyIs,
    PropertyPrefix,
    SchemaHas,
)
from deltaproto.render import words
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    FactList,
    Line,
    Paragraph,
    Section,
    TableBlock,
)
from deltaproto.render.document.render import write_document
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
        case Format.MARKDOWN | Format.TEXT:
            document = feature_document(features[0]) if detailed else features_document(features)
            write_document(document, format_, file, color=color)
        case _:
            assert_never(format_)


def features_document(features: Iterable[Feature]) -> Document:
    """Return all features, one per row, grouped by status."""
    by_status: dict[FeatureStatus, list[list[Line]]] = {}
    for feature in features:
        by_status.setdefault(feature.status, []).append(_row(feature))
    blocks: list[Block] = [
        Section(
            status, f"{status} features".capitalize(), [TableBlock(_HEADINGS, rows, short=_SHORT)]
        )
        for status, rows in by_status.items()
    ]
    legend = [(text,) for text in (*_LEGEND, *words.DROP_MARKS.values())]
    blocks += [
        Bullets(legend),
        Paragraph((Code("deltaproto features NAME"), " shows all details.")),
    ]
    return Document("Table features", ("Versions and releases that support each feature.",), blocks)


def feature_document(feature: Feature) -> Document:
    """Return all details of one feature."""
    facts = [(label, (text,)) for label, text in _facts(feature)]
    return Document(feature.name, (feature.summary,), [FactList(list(facts))])


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


def _facts(feature: Feature) -> Iterator[tuple[str, str]]:
    """Yield every fact about one feature; a label may repeat."""
    yield "needed by", f"{feature.kind} feature, {feature.status}"
    yield "versions", f"reader {feature.min_reader}, writer {feature.min_writer}{_carried(feature)}"
    yield "since", f"delta-spark: {feature.since.delta_spark or 'no release'}"
    yield "since", f"Databricks Runtime: {_runtime(feature)}"
    for need in feature.requires:
        yield "requires", f"{need.feature} {need.need} ({need.source})"
    yield from (("enabled by", _trigger(trigger)) for trigger in feature.triggers)
    yield "enabled if", _rule(feature.enablement)
    yield "disable with", feature.switch_off or "cannot be disabled"
    yield "drop", _drop(feature)
    yield "drop", f"Databricks Runtime: {feature.drop.databricks or 'none documented'}"
    if feature.drop.preparation:
        yield "drop", f"first commits: {', '.join(feature.drop.preparation)}"
    if feature.drop.note:
        yield "drop", feature.drop.note
    for refusal in feature.drop.refusals:
        yield "drop fails if", f"{refusal.when}: {refusal.error}; {refusal.remedy}"
    if feature.renamed_to:
        yield "renamed to", feature.renamed_to
    if feature.aliases:
        yield "aliases", ", ".join(feature.aliases)
    for dispute in feature.disputes:
        yield "disputed", f"{dispute.about}: OSS: {dispute.oss}"
        yield "disputed", f"Databricks: {dispute.databricks}"
        yield "disputed", f"deltaproto assumes: {dispute.applies}"
    yield from (("note", note) for note in feature.notes)
    yield from (("source", source) for source in feature.sources)


_HEADINGS = ("Feature", "Needed by", "R,W", "Delta", "DBR", "Droppable")
_SHORT = ("Feature", "For", "R,W", "Delta", "DBR", "Drop")
_LEGEND = (
    "R,W = lowest reader and writer version; Delta, DBR = first delta-spark release and first "
    "Databricks Runtime that support the feature (all = all supported runtimes)",
)


def _row(feature: Feature) -> list[Line]:
    runtime = feature.since.databricks or "-"
    return [
        (Code(feature.name),),
        ("writers" if feature.kind is FeatureKind.WRITER else "everyone",),
        (f"{feature.min_reader},{feature.min_writer}",),
        (feature.since.delta_spark or "-",),
        ("all" if runtime == EVERY_RUNTIME else runtime,),
        (words.droppable(feature),),
    ]


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
    act = f"{trigger.act} ({'; '.join(where)})" if where else trigger.act
    return f"{act}. {trigger.note}" if trigger.note else act


def _rule(rule: Enablement) -> str:
    match rule:
        case PropertyIs(key, values):
            return f"{key} is {any_name(values)}"
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
    commits = counted(most, "commit")
    commits = commits if least == most else f"{least} to {commits}"
    parts = [f"delta-spark {drop.delta_spark} or later, {commits}"]
    if drop.rewrites_data:
        parts.append(f"rewrites {drop.rewrites} data files")
    if drop.needs_truncate:
        parts.append("only with TRUNCATE HISTORY")
    elif drop.protects_history:
        parts.append("leaves checkpointProtection behind, or else TRUNCATE HISTORY and a wait")
    return "; ".join(parts)
