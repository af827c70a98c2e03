"""Phrases that the text and Markdown renderers share."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.usability import Usability
from deltaproto.counts import first_names
from deltaproto.inspection import Inspection
from deltaproto.inspection.facts import ENGINES
from deltaproto.protocol.feature import Feature, FeatureStatus
from deltaproto.protocol.isolation import Isolation, WriterEngine
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

DROP_MARKS = {
    " R": "R = dropping it rewrites data files",
    " H": "H = dropping it adds checkpointProtection or truncates history",
    "DBR": "DBR = only Databricks Runtime can drop it, from this release on",
}
_MOST_NAMES = 12
YES_NO = {True: "yes", False: "no", None: "?"}


def scheme(protocol: Protocol) -> str:
    """Return whether the protocol is a legacy pair or has feature lists, and which lists exist."""
    if not protocol.uses_table_features:
        return "legacy version numbers, no feature lists"
    if protocol.reader_features is None:
        return "table features, listed for writers only (no readerFeatures)"
    return "table features, listed for readers and writers"


def lowest(inspection: Inspection) -> str:
    """Return the lowest equivalent protocol, and whether normalization alone would lower it."""
    low = inspection.subject.lowest
    protocol = inspection.state.protocol
    if low is None:
        return "not defined: the protocol breaks the spec"
    if low == protocol:
        return f"{low}: this is already the lowest for these features"
    added = sorted(low.supported - protocol.supported)
    if added:
        return f"{low}: normalization would add {', '.join(added)}, which other features require"
    return f"{low}: normalization alone would lower it, no feature dropped"


def source(state: FeatureState) -> str:
    """Return how the feature is supported: listed or implied."""
    return "listed" if state.listed else "implied"


def droppable(feature: Feature, kept_by: tuple[str, ...] = ()) -> str:
    """Return the first release that can drop the feature, with a mark for each cost.

    That is a release of Delta Spark, or of Databricks Runtime if no Delta Spark can.

    Args:
        kept_by: features of the table that prevent the drop.
    """
    drop = feature.drop
    if feature.status is FeatureStatus.UNKNOWN:
        return "?"
    since = drop.delta_spark
    if since is None and drop.databricks is not None:
        since = f"DBR {drop.databricks.removesuffix(' LTS')}"
    if since is None or kept_by:
        return "never"
    marks = (" R" if drop.rewrites_data else "") + (
        " H" if drop.protects_history or drop.needs_truncate else ""
    )
    return f"{since}+{marks}"


def isolation(found: Isolation) -> str:
    """Return the declared level and its effect in each engine."""
    levels: dict[str, list[str]] = {}
    for engine in WriterEngine:
        level = found.effective[engine]
        shown = "an error" if level is None else str(level)
        levels.setdefault(shown, []).append(str(engine))
    declared = found.declared
    effective = "; ".join(f"{level} on {', '.join(names)}" for level, names in levels.items())
    return f"{declared if declared is not None else 'not set'}: {effective}"


def at_least(found: Iterable[Usability], access: Access) -> str:
    """Return the versions that an access requires, for each engine."""
    since, every, never, unknown = [], [], [], []
    for each in found:
        name, last = ENGINES[each.client.id], each.newest
        if each.access is not access:
            continue
        if last.verdict is not Verdict.OK:
            because = (
                f" because of {first_names(last.because, _MOST_NAMES)}" if last.because else ""
            )
            if last.verdict is Verdict.UNKNOWN:
                unknown.append(f"{name}{because}")
            else:
                never.append(f"not the newest {name} ({last.verdict}{because})")
        elif each.since is None:
            every.append(f"any known {name}")
        else:
            since.append(f"{name} {each.since}")
    least = [f"requires at least {', '.join(since)}"] if since else []
    unclear = [f"unknown for {', '.join(unknown)}"] if unknown else []
    return "; ".join([*least, *every, *never, *unclear])


def columns(names: tuple[str, ...] | None) -> str:
    """Return column names, `none`, or `?` if the reader could not determine them."""
    if names is None:
        return "?"
    return ", ".join(names) or "none"
