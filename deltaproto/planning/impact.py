"""Determines which clients gain or lose access through a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.clients.model import Verdict
from deltaproto.clients.requirements import (
    HIDDEN_PARTITIONS,
    OF_FILE_WRITERS,
    STORED_PARTITIONS,
    TableRequirements,
)
from deltaproto.clients.verdicts import ClientVerdict
from deltaproto.planning.plan import IN_THE_LOG, ClientChange
from deltaproto.planning.predict.auto_enable import features_of_columns
from deltaproto.planning.predict.bounds import find_bound_hazards
from deltaproto.planning.predict.contents import find_content_change
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import EndState, TableClient, cached_verdicts
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, PropertyIs

_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}


def client_changes(inputs: PlanInput, after: TableRequirements) -> tuple[ClientChange, ...]:
    """Return the client changes that a plan reports."""
    found = compare_clients(inputs.clients, inputs.needs, after)
    if not inputs.everybody:
        return found
    # A plan without steps changes nothing for any client.
    keeps = () if after is inputs.needs else (IN_THE_LOG,)
    return tuple(c for c in found if is_worse(c) or is_better(c) or c.label in keeps)


def compare_clients(
    clients: Iterable[TableClient], before: TableRequirements, after: TableRequirements
) -> tuple[ClientChange, ...]:
    """Return an entry per client, path and access, changed ones first."""
    found: list[ClientChange] = []
    for client in clients:
        for access in client.access:
            pairs = zip(
                cached_verdicts(client.candidate, access, before),
                cached_verdicts(client.candidate, access, after),
                strict=True,
            )
            for (path, was), (_, will) in pairs:
                deciding = will if will.verdict is not Verdict.OK else was
                found.append(
                    ClientChange(
                        client=_client_name(client, path),
                        label=client.label,
                        access=access,
                        before=was.verdict,
                        after=will.verdict,
                        because=deciding.because,
                        reason=deciding.reason,
                    )
                )
    return tuple(sorted(found, key=_sort_key))


def find_losses(
    before: Iterable[tuple[str | None, ClientVerdict]],
    after: Iterable[tuple[str | None, ClientVerdict]],
) -> tuple[ClientChange, ...]:
    """Return lost accesses, from (label, verdict) pairs of the same clients."""
    was = {(label, one.named, one.access): one.verdict for label, one in before}
    changes = (
        ClientChange(
            client=one.named,
            label=label,
            access=one.access,
            before=was[label, one.named, one.access],
            after=one.verdict,
            because=one.because,
            reason=one.reason,
        )
        for label, one in after
    )
    return tuple(sorted(filter(is_worse, changes), key=_sort_key))


def describe_change(change: ClientChange) -> str:
    """Describe a change in one line: client, access, verdicts and the deciding features."""
    label = f" ({change.label})" if change.label else ""
    because = ", ".join(change.because) or change.reason
    return f"{change.client}{label} {change.access}: {change.before} -> {change.after}" + (
        f" because of {because}" if change.because else f" ({because})" if because else ""
    )


def wrong_result_warning(changes: Iterable[ClientChange]) -> Iterator[str]:
    """Yield a warning if clients may return wrong results that did not before, such as refused
    ones.
    """
    newly = [c for c in changes if c.after is Verdict.WRONG and c.before is not Verdict.WRONG]
    if newly:
        names = ", ".join(dict.fromkeys(f"{each.client} ({each.access})" for each in newly))
        features = sorted({feature for each in newly for feature in each.because})
        because = f", because of {', '.join(features)}" if features else ""
        yield (
            f"These clients may silently read or write wrong rows after the plan{because}: "
            f"{names}. Make sure that none of them uses the table."
        )


def lost_evidence_warning(
    clients: Iterable[TableClient], after: TableRequirements
) -> Iterator[str]:
    """Yield a warning if `check` cannot repeat the plan's verdicts after the first commits are
    deleted.

    These commits show who wrote the data files, which the verdicts in `after` still use.
    """
    unknown = OF_FILE_WRITERS
    shown, said = "whether delta-rs wrote data files", "unknown"
    if STORED_PARTITIONS in after.hazards:
        unknown |= {HIDDEN_PARTITIONS}
        shown, said = "who wrote the data files", "unknown or wrong"
    unseen = after._replace(hazards=after.hazards - unknown, unseen=after.unseen | unknown)
    forgotten = [
        f"{_client_name(client, path)} ({access})"
        for client in clients
        for access in client.access
        for (path, known), (_, then) in zip(
            cached_verdicts(client.candidate, access, after),
            cached_verdicts(client.candidate, access, unseen),
            strict=True,
        )
        if then.verdict is not known.verdict
    ]
    if forgotten:
        yield (
            f"The deleted commits show {shown}. Without them, check says {said} "
            f"for {', '.join(dict.fromkeys(forgotten))}; --history keep avoids that."
        )


def is_worse(change: ClientChange) -> bool:
    """Return True if the client loses access."""
    return _RANK[change.after] < _RANK[change.before]


def is_better(change: ClientChange) -> bool:
    """Return True if the client gains access."""
    return _RANK[change.after] > _RANK[change.before]


def _sort_key(change: ClientChange) -> tuple[int, str, str]:
    order = 0 if is_worse(change) else 1 if is_better(change) else 2
    return order, change.client, change.access


def _client_name(client: TableClient, path: str | None) -> str:
    reference = client.candidate.reference
    return str(reference if path is None else reference._replace(path=path))


def end_state_of(after: Table, before: Table) -> EndState:
    """Return the end state of a predicted table that started as `before`."""
    on, off = set(), set()
    for name in after.protocol.supported:
        rule = feature_catalog.feature_record(name).enablement
        used = None
        if isinstance(rule, PropertyIs):
            used = rule.holds(after.configuration.get(rule.key_in(after.configuration)))
        elif name == "checkConstraints":
            used = bool(after.constraints)
        elif name == "clustering":
            used = None if after.clustering is None else bool(after.clustering)
        if used is None:
            continue
        if used:
            on.add(name)
        elif _has_traces(name, after) is False:
            off.add(name)
    unclear = frozenset(_find_unclear(after, before))
    on |= {each for each in unclear if _has_traces(each, after)}
    if after.schema is not None:
        on |= features_of_columns(after.schema, after.protocol) & after.protocol.supported
    mode = after.configuration.get(MAPPING_MODE)
    return EndState(
        after.protocol,
        frozenset(off),
        frozenset(on),
        mode,
        after.absolute_rewritten,
        after.rewritten,
        find_bound_hazards(after),
        find_content_change(before, after),
        after.unpredicted,
        frozenset(_find_cleared(after, before)),
        unclear,
    )


def _find_cleared(after: Table, before: Table) -> Iterator[str]:
    """Yield the features without a switch whose traces the plan removes completely.

    The next write leaves new traces of an enabled feature.
    """
    for name in after.protocol.supported & before.protocol.supported:
        removed = _has_traces(name, before) is not False and _has_traces(name, after) is False
        if removed and feature_catalog.feature_record(name).switchless:
            yield name


def _find_unclear(after: Table, before: Table) -> Iterator[str]:
    """Yield the features for which it is unknown whether the plan adds or removes all traces."""
    for name in after.protocol.supported:
        if _has_traces(name, before) is False and _has_traces(name, after) is not False:
            yield name
    if after.domains is None and "rowTracking" in (
        before.protocol.supported - after.protocol.supported
    ):
        # The drop removes a domain, and it is unknown whether that was the only one.
        yield from {"domainMetadata"} & after.protocol.supported


def _has_traces(name: str, table: Table) -> bool | None:
    """Return whether files, schema or log have traces of a feature; None if unknown."""
    match name:
        case "deletionVectors":
            return table.vectors
        case "typeWidening" | "typeWidening-preview":
            return table.widened
        case "rowTracking":
            return table.row_ids
        case "v2Checkpoint":
            return table.v2_checkpoint
        case "domainMetadata":
            return None if table.domains is None else bool(table.domains)
        case "columnMapping":
            return False
    # As in `layers`: files that were written with such a feature keep its format.
    by_readers = feature_catalog.feature_record(name).kind is FeatureKind.READER_WRITER
    return None if by_readers else False
