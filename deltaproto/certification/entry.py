"""Creates a catalog entry from a measurement.

First the gates, from the tables that only list a feature. Then the failures on tables in use that
the gates do not explain. The rest, which an entry cannot express, is reported as left over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from deltaproto.certification.fixtures.case import Kit, ReferenceTable
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.certification.gates import (
    accepted_reader_versions,
    is_for_readers,
    read_gate,
    write_gate,
)
from deltaproto.certification.outcomes import (
    LONGEST_REASON,
    KnownTable,
    ObservedAccess,
    build_hazards,
    collect_outcomes,
    judge_protocol,
)
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.entry import parse_client
from deltaproto.clients.matching import judge_access
from deltaproto.clients.measurement import MeasuredOutcome, Measurement
from deltaproto.clients.model import MEASURED_REFERENCE, Access, AppliesTo, Path, Range, Verdict
from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.clients.resolve import ClientReference
from deltaproto.counts import shorten
from deltaproto.errors import UsageError
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.protocol.protocol import Protocol

_PAIR = re.compile(r"protocol\.([12])-([1-6])")
_FIRST = "protocol.1-2"
_PLAIN, _EVERY = "plain", ""
"""failures on the plainest table occur on every table"""
_WRITES = (Access.APPEND, Access.DML, Access.MAINTAIN)


class Discrepancy(NamedTuple):
    """A table on which the entry and the measurement differ."""

    case: str
    access: Access
    verdict: Verdict
    outcome: MeasuredOutcome
    why: str

    @property
    def looser(self) -> bool:
        """True if the entry claims more than the client can do; otherwise it is too cautious."""
        if self.verdict is Verdict.OK:
            return True
        return self.verdict is Verdict.REFUSED and self.outcome is MeasuredOutcome.WRONG


def build_entry(measured: Measurement, tables: Iterable[KnownTable]) -> dict[str, Any]:
    """Return the member `measured` of a catalog entry, as plain data."""
    known = {each.case.name: each for each in tables}
    cases = [each.case for each in known.values()]
    found = collect_outcomes(measured.cells)
    # Without the tables that are about a protocol alone, the gate is unknown.
    offered = [access for access in Access if (_FIRST, access) in found]
    plain: dict[str, Any] = {"version": measured.version} if measured.version else {}
    if measured.path is not None:
        plain["path"] = measured.path
    if Access.READ in offered:
        plain["read"] = read_gate(cases, lambda case: _passes(found, case, Access.READ))
    if any(access in offered for access in _WRITES):
        plain["write"] = write_gate(
            cases, lambda case: any(_passes(found, case, access) for access in _WRITES)
        )
    plain["access"] = [str(access) for access in offered]
    plain["evidence"] = [
        {
            "kind": "measured",
            "reference": f"{measured.tool}, certify, kit {measured.kit_version} "
            f"({measured.kit_digest}), with {_measured_with(measured)}",
            "date": measured.date,
        }
    ]
    _writers_reading(plain, found)
    # A declared failure can mask a wrong result elsewhere, hence the second pass.
    for _ in range(2):
        bad = _known_bad(plain, measured, found, known)
        if bad:
            plain["known_bad"] = [*plain.get("known_bad", ()), *bad]
    if hazards := build_hazards(_parse_range(plain, measured), measured, found, known):
        plain["hazards"] = hazards
    return plain


def _writers_reading(
    plain: dict[str, Any], found: Mapping[tuple[str, Access], ObservedAccess]
) -> None:
    """Add the reader features that the writer accepts, if reader and writer are other libraries."""
    read, write = plain.get("read"), plain.get("write")
    if not read or not write or "features" not in read or "features" not in write:
        return
    names = [name for name in write["features"] if is_for_readers(name)]
    if set(names) <= set(read["features"]):
        return
    write["reader_features"] = names
    write["readers"] = accepted_reader_versions(
        lambda case: any(_passes(found, case, access) for access in _WRITES)
    )


def _passes(found: Mapping[tuple[str, Access], ObservedAccess], case: str, access: Access) -> bool:
    was = found.get((case, access))
    return was is not None and was.outcome is not MeasuredOutcome.REFUSED


def find_entry_discrepancies(
    plain: Mapping[str, Any], measured: Measurement, tables: Iterable[KnownTable]
) -> list[Discrepancy]:
    """Return the differences between the entry and the measurement."""
    each = _parse_range(plain, measured)
    return find_discrepancies(each, each.paths[0], measured, tables)


def find_discrepancies(
    each: Range, path: Path, measured: Measurement, tables: Iterable[KnownTable]
) -> list[Discrepancy]:
    """Return the differences between a range of the catalog and the measurement of one path."""
    known = {table.case.name: table for table in tables}
    found = collect_outcomes(measured.cells)
    return [
        Discrepancy(case, access, verdict, was.outcome, was.why)
        for (case, access), was in found.items()
        if (_FIRST, access) in found
        and (verdict := judge_access(each, path, known[case].needs, access).verdict)
        not in _agreeing_verdicts(known[case].case, access, was.outcome)
    ]


def _agreeing_verdicts(
    case: ReferenceTable, access: Access, outcome: MeasuredOutcome
) -> tuple[Verdict, ...]:
    # Refusing to remove rows of an append-only table is correct.
    if case.append_only and access is Access.DML and outcome is MeasuredOutcome.RIGHT:
        return (*_AGREES[outcome], Verdict.REFUSED)
    return _AGREES[outcome]


_AGREES: Mapping[MeasuredOutcome, tuple[Verdict, ...]] = {
    MeasuredOutcome.RIGHT: (Verdict.OK, Verdict.UNKNOWN),
    MeasuredOutcome.REFUSED: (Verdict.REFUSED, Verdict.UNKNOWN),
    MeasuredOutcome.WRONG: (Verdict.WRONG, Verdict.UNKNOWN),
}
"""verdicts that agree with an outcome; UNKNOWN makes no claim, so it contradicts nothing"""


def _parse_range(plain: Mapping[str, Any], measured: Measurement) -> Range:
    versions = "none" if measured.version is None else "dotted"
    client = {"id": measured.client, "versions": versions, "measured": [plain]}
    return parse_client(client, measured.client).measured[0]


def _known_bad(
    plain: Mapping[str, Any],
    measured: Measurement,
    found: Mapping[tuple[str, Access], ObservedAccess],
    known: Mapping[str, KnownTable],
) -> list[dict[str, Any]]:
    """Return what the gates do not explain, one item for each feature, reach and failure."""
    each = _parse_range(plain, measured)
    items: dict[tuple[str, str, bool, bool], dict[str, Any]] = {}
    for (name, access), was in found.items():
        case = known[name].case
        if case.hazard is not None:
            continue
        verdict = judge_protocol(each, known[name], access)
        feature = case.feature or (_EVERY if case.name == _PLAIN else None)
        if (
            feature is None
            or was.outcome is MeasuredOutcome.RIGHT
            or verdict in _AGREES[was.outcome]
        ):
            continue
        if access not in each.paths[0].access:
            continue
        # A refusal by the gates takes precedence, unless the entry revokes it.
        ungated = verdict is Verdict.REFUSED
        where = _applies_to(case, known[name].needs) if case.feature else AppliesTo.SUPPORTED.value
        fails = was.outcome is MeasuredOutcome.REFUSED
        item = items.setdefault(
            (feature, where, fails, ungated),
            {
                "features": "all" if feature is _EVERY else [feature],
                "access": [],
                "what": shorten(was.why, LONGEST_REASON),
                "reference": f"{MEASURED_REFERENCE}{name}",
                "where": where,
                **({"fails": True} if fails else {}),
                **({"ungated": True} if ungated else {}),
            },
        )
        item["access"] = sorted({*item["access"], str(access)})
    return [*(items[key] for key in sorted(items)), *_bad_pairs(each, found, known)]


def _bad_pairs(
    each: Range, found: Mapping[tuple[str, Access], ObservedAccess], known: Mapping[str, KnownTable]
) -> list[dict[str, Any]]:
    """Return legacy pairs whose outcome differs from that of both versions separately."""
    items: dict[tuple[Access, MeasuredOutcome], dict[str, Any]] = {}
    for (name, access), was in sorted(found.items()):
        pair = _PAIR.fullmatch(name)
        if (
            pair is None
            or was.outcome is MeasuredOutcome.RIGHT
            or access not in each.paths[0].access
        ):
            continue
        if judge_access(each, each.paths[0], known[name].needs, access).verdict is not Verdict.OK:
            continue
        fails = was.outcome is MeasuredOutcome.REFUSED
        item = items.setdefault(
            (access, was.outcome),
            {
                "features": "all",
                "pairs": [],
                "access": [str(access)],
                "what": shorten(was.why, LONGEST_REASON),
                "reference": f"{MEASURED_REFERENCE}{name}",
                "where": AppliesTo.SUPPORTED.value,
                **({"fails": True} if fails else {}),
            },
        )
        item["pairs"].append([int(pair[1]), int(pair[2])])
    return list(items.values())


def _applies_to(case: ReferenceTable, table: TableRequirements) -> str:
    """Return the narrowest group of tables with this one that it happens to."""
    assert case.feature is not None
    if case.state is FeatureEvidence.LISTED:
        return AppliesTo.SUPPORTED.value
    if case.state is FeatureEvidence.PRESENT and table.holds(case.feature):
        return AppliesTo.PRESENT.value
    return AppliesTo.USED.value


def _measured_with(measured: Measurement) -> str:
    own = {f"{measured.client}=={measured.version}"}
    others = [package for package in measured.packages if package not in own]
    wanted = ("deltalake", "pyarrow", "pyspark", "pandas")
    shown = [each for each in others if each.split("==")[0] in wanted]
    return ", ".join([f"Python {measured.python}", *shown])


def find_contradictions(
    catalog: ClientCatalog, measured: Measurement, tables: Iterable[KnownTable]
) -> list[Discrepancy]:
    """List contradictions between documentation and measurement; empty for an undocumented client.

    Ignores what the catalog took from measurements of this version, which would agree with itself.
    """
    try:
        named = str(ClientReference(measured.client, None, measured.version))
        candidate = catalog.resolve(named)
    except UsageError:
        return []
    below = candidate.documented or candidate.range
    if below is None or below in candidate.client.measured:
        return []
    paths = [path for path in below.paths if path.name in (measured.path, None)]
    return find_discrepancies(below, paths[0], measured, tables) if paths else []


def known_tables(kit: Kit) -> tuple[KnownTable, ...]:
    """Return every table with its requirements, from its log and its files."""
    found = []
    for case in kit.cases:
        inspection = inspect_table(str(kit.table(case)), ReadRequest(look_in_files=True))
        if isinstance(inspection, Inspection):
            needs = facts_from_inspection(inspection).needs
            if case.folder != kit.table(case).name and case.hazard is not None:
                # Only a copy has the name that clients see.
                needs = needs._replace(hazards=needs.hazards | {case.hazard})
            found.append(KnownTable(case, needs))
        else:
            # Tables with future versions, which the readers reject as well.
            found.append(
                KnownTable(case, table_requirements(Protocol.stored(case.protocol), {}, {}))
            )
    return tuple(found)
