"""ClientCatalog entries that follow from measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.certification.entry import build_entry, find_entry_discrepancies
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.certification.outcomes import KnownTable, collect_outcomes
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
)
from deltaproto.clients.model import Access
from deltaproto.clients.requirements import table_requirements
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.protocol import Protocol
from tests.certification.made import case

FEATURES = ("deletionVectors", "timestampNtz", "domainMetadata", "rowTracking", "columnMapping")
STRANGE = "nobodyKnowsThisFeature"


def _known(
    name: str, protocol: Mapping[str, Any], state: FeatureEvidence, feature: str | None
) -> KnownTable:
    stored = Protocol.stored(protocol)
    used = dict.fromkeys(stored.supported, False)
    absent = set(stored.supported)
    if feature is not None and state is not FeatureEvidence.LISTED:
        used[feature] = True
        if state is FeatureEvidence.PRESENT:
            absent.discard(feature)
    if STRANGE in used:
        used[STRANGE] = True
    table = case(name, feature=feature, state=state)
    mode = {"delta.columnMapping.mode": "name"} if feature == "columnMapping" else {}
    return KnownTable(table, table_requirements(stored, used, mode, absent=absent))


def _lists(*names: str) -> dict[str, Any]:
    whole = sorted(feature_catalog.with_required_features(names))
    readers = [
        n for n in whole if feature_catalog.feature_record(n).kind is FeatureKind.READER_WRITER
    ]
    found = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    return {**found, "writerFeatures": whole, **({"readerFeatures": readers} if readers else {})}


def tables() -> Iterable[KnownTable]:
    for reader in (1, 2):
        for writer in range(1, 7):
            pair = {"minReaderVersion": reader, "minWriterVersion": writer}
            yield _known(f"protocol.{reader}-{writer}", pair, FeatureEvidence.PROTOCOL, None)
    for name, readers, writers in (
        ("1-7", None, []),
        ("3-7-empty", [], []),
        ("unknown-writer", None, [STRANGE]),
        ("unknown-reader", [STRANGE], [STRANGE]),
    ):
        versions = {"minReaderVersion": 1 if readers is None else 3, "minWriterVersion": 7}
        lists = {"writerFeatures": writers} | (
            {} if readers is None else {"readerFeatures": readers}
        )
        yield _known(f"protocol.{name}", versions | lists, FeatureEvidence.PROTOCOL, None)
    for feature in FEATURES:
        yield _known(f"{feature}.listed", _lists(feature), FeatureEvidence.LISTED, feature)
        yield _known(f"{feature}.enabled", _lists(feature), FeatureEvidence.ENABLED, feature)
        yield _known(f"{feature}.present", _lists(feature), FeatureEvidence.PRESENT, feature)


TABLES = tuple(tables())
Does = Callable[[KnownTable, ResultColumn], MeasuredOutcome]


def measured(does: Does) -> Measurement:
    """A client that does this."""
    asked = (ResultColumn.ROWS, ResultColumn.APPEND, ResultColumn.DELETE)
    cells = [
        MeasurementCell(known.case.name, operation, does(known, operation), f"it does, {operation}")
        for known in TABLES
        for operation in asked
    ]
    return Measurement(
        "made", None, "1.2.3", "1.2.3", 1, "d", "2026-11-22", "deltaproto", "3.11", (), 2, 1.0,
        tuple(cells),
    )  # fmt: skip


def strict(understood: Iterable[str], legacy: int = 6) -> Does:
    """A client that knows these features and those legacy versions, and refuses the rest."""

    def does(known: KnownTable, operation: ResultColumn) -> MeasuredOutcome:
        protocol = known.needs.protocol
        listed = protocol.writer_features if not operation.reads else protocol.reader_features
        if protocol.min_reader_version == 2 or protocol.min_writer_version < 7:
            fine = operation.reads or protocol.min_writer_version <= legacy
            fine &= protocol.min_reader_version == 1 or legacy >= 5
        else:
            fine = set(listed or ()) <= set(understood)
            fine &= set(protocol.reader_features or ()) <= set(understood)
        return MeasuredOutcome.RIGHT if fine else MeasuredOutcome.REFUSED

    return does


def test_a_strict_client_needs_gates_only() -> None:
    understood = ("deletionVectors", "columnMapping")
    found = measured(strict(understood))
    plain = build_entry(found, TABLES)
    assert plain["read"] == {"legacy": [1, 2], "features": ["columnMapping", "deletionVectors"]}
    assert plain["write"]["features"] == ["columnMapping", "deletionVectors"]
    assert plain["write"]["legacy"] == [1, 2, 3, 4, 5, 6]
    assert plain["access"] == ["read", "append", "dml"]
    assert "known_bad" not in plain
    assert find_entry_discrepancies(plain, found, TABLES) == []
    (proof,) = plain["evidence"]
    assert (proof["kind"], proof["date"]) == ("measured", "2026-11-22")
    assert "deltaproto" in proof["reference"]


def test_a_client_that_goes_by_versions_has_no_features() -> None:
    plain = build_entry(measured(strict((), legacy=2)), TABLES)
    assert plain["read"] == {"legacy": [1], "features": []}
    assert plain["write"]["legacy"] == [1, 2]
    assert plain["write"]["readers"] == [1]


def test_who_only_vacuums_has_no_gate_for_writing() -> None:
    found = measured(strict(FEATURES))
    cells = [c for c in found.cells if c.operation.reads]
    cells += [
        MeasurementCell("deletionVectors.present", ResultColumn.VACUUM, MeasuredOutcome.RIGHT)
    ]
    found = found._replace(cells=tuple(cells))
    plain = build_entry(found, TABLES)
    assert plain["access"] == ["read"]
    assert "write" not in plain
    assert find_entry_discrepancies(plain, found, TABLES) == []


def test_who_ignores_a_feature_is_wrong_where_its_traces_are() -> None:
    honest = strict(FEATURES)

    def does(known: KnownTable, operation: ResultColumn) -> MeasuredOutcome:
        if known.case.name == "deletionVectors.present":
            return MeasuredOutcome.WRONG
        return honest(known, operation)

    found = measured(does)
    plain = build_entry(found, TABLES)
    assert plain["known_bad"] == [
        {
            "features": ["deletionVectors"],
            "access": ["append", "dml", "read"],
            "what": "rows: it does, rows",
            "reference": "certify, deletionVectors.present",
            "where": "present",
        }
    ]
    assert find_entry_discrepancies(plain, found, TABLES) == []


def test_who_checks_nothing_has_no_gate() -> None:
    found = measured(
        lambda known, _: (
            MeasuredOutcome.WRONG if "unknown" in known.case.name else MeasuredOutcome.RIGHT
        )
    )
    plain = build_entry(found, (*TABLES, *_future()))
    assert "unchecked" in plain["read"]
    assert "unchecked" in plain["write"]


def _future() -> Iterable[KnownTable]:
    for name, versions in (("4-7", (4, 7)), ("1-8", (1, 8))):
        protocol = {"minReaderVersion": versions[0], "minWriterVersion": versions[1]}
        yield _known(f"protocol.{name}", protocol, FeatureEvidence.PROTOCOL, None)


def test_the_worst_operation_decides_and_a_schema_or_an_older_version_does_not() -> None:
    cells = [
        MeasurementCell("a", ResultColumn.ROWS, MeasuredOutcome.RIGHT),
        MeasurementCell("a", ResultColumn.COUNT, MeasuredOutcome.WRONG, "10 instead of 20"),
        MeasurementCell("a", ResultColumn.TOTAL, MeasuredOutcome.REFUSED),
        MeasurementCell("b", ResultColumn.ROWS, MeasuredOutcome.CRASHED, "gone"),
        MeasurementCell("c", ResultColumn.SCHEMA, MeasuredOutcome.WRONG),
        MeasurementCell("c", ResultColumn.TIME_TRAVEL, MeasuredOutcome.WRONG),
        MeasurementCell("c", ResultColumn.ROWS, MeasuredOutcome.RIGHT),
        MeasurementCell("d", ResultColumn.APPEND, MeasuredOutcome.NOT_OFFERED),
    ]
    found = collect_outcomes(cells)
    assert found["a", Access.READ] == (MeasuredOutcome.WRONG, "count: 10 instead of 20")
    assert found["b", Access.READ].outcome is MeasuredOutcome.REFUSED
    assert found["c", Access.READ].outcome is MeasuredOutcome.RIGHT
    assert ("d", Access.APPEND) not in found


@given(st.sets(st.sampled_from(FEATURES)), st.integers(1, 6), st.booleans())
def test_an_entry_never_promises_more_than_was_measured(
    understood: set[str], legacy: int, careless: bool
) -> None:
    knows = understood | ({"domainMetadata"} if "rowTracking" in understood else set())
    honest = strict(knows, legacy)

    def does(known: KnownTable, operation: ResultColumn) -> MeasuredOutcome:
        outcome = honest(known, operation)
        used = known.case.state in (FeatureEvidence.ENABLED, FeatureEvidence.PRESENT)
        if careless and used and outcome is MeasuredOutcome.RIGHT and not operation.reads:
            return MeasuredOutcome.WRONG
        return outcome

    found = measured(does)
    assert [
        each
        for each in find_entry_discrepancies(build_entry(found, TABLES), found, TABLES)
        if each.looser
    ] == []


@pytest.mark.parametrize("operation", [ResultColumn.ROWS, ResultColumn.APPEND])
def test_a_refusal_that_gates_do_not_explain_is_kept(operation: ResultColumn) -> None:
    honest = strict(FEATURES)

    def does(known: KnownTable, asked: ResultColumn) -> MeasuredOutcome:
        hit = known.case.feature == "timestampNtz" and known.case.state is FeatureEvidence.PRESENT
        return MeasuredOutcome.REFUSED if hit and asked is operation else honest(known, asked)

    found = measured(does)
    plain = build_entry(found, TABLES)
    (bad,) = plain["known_bad"]
    assert bad["fails"] is True
    assert bad["access"] == [str(operation.access)]
    assert find_entry_discrepancies(plain, found, TABLES) == []


class TestHazards:
    """Tables whose layout or contents go beyond their protocol."""

    HAZARDS = ("absolute-paths", "type void")

    def tables(self) -> tuple[KnownTable, ...]:
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        made = []
        for hazard in self.HAZARDS:
            table = case(f"layout.{hazard}", state=FeatureEvidence.LAYOUT, hazard=hazard)
            asked = table_requirements(Protocol.stored(protocol), {}, {}, hazards=[hazard])
            made.append(KnownTable(table, asked))
        return (*TABLES, *made)

    def measured(self, outcomes: Mapping[tuple[str, ResultColumn], MeasuredOutcome]) -> Measurement:
        found = measured(strict(()))
        cells = [
            MeasurementCell(f"layout.{hazard}", operation, outcome, "it does so")
            for (hazard, operation), outcome in outcomes.items()
        ]
        return found._replace(cells=(*found.cells, *cells))

    def test_each_says_what_becomes_of_each_access(self) -> None:
        found = self.measured(
            {
                ("absolute-paths", ResultColumn.ROWS): MeasuredOutcome.REFUSED,
                ("absolute-paths", ResultColumn.APPEND): MeasuredOutcome.RIGHT,
                ("type void", ResultColumn.ROWS): MeasuredOutcome.WRONG,
                ("type void", ResultColumn.APPEND): MeasuredOutcome.RIGHT,
            }
        )
        plain = build_entry(found, self.tables())
        assert "known_bad" not in plain
        verdicts = {
            (hazard, access): item["verdict"]
            for item in plain["hazards"]
            for hazard in item["hazards"]
            for access in item["access"]
        }
        assert verdicts == {
            ("absolute-paths", "read"): "refused",
            ("absolute-paths", "append"): "ok",
            ("type void", "read"): "wrong",
            ("type void", "append"): "ok",
        }
        assert find_entry_discrepancies(plain, found, self.tables()) == []

    def test_what_the_gates_refuse_says_nothing_of_a_hazard(self) -> None:
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering"]}
        asked = table_requirements(Protocol.stored(protocol), {}, {}, hazards=["absolute-paths"])
        table = case("layout.made", state=FeatureEvidence.LAYOUT, hazard="absolute-paths")
        cells = (
            *measured(strict(())).cells,
            MeasurementCell("layout.made", ResultColumn.APPEND, MeasuredOutcome.REFUSED),
        )
        found = measured(strict(()))._replace(cells=cells)
        assert "hazards" not in build_entry(found, [*TABLES, KnownTable(table, asked)])


def test_a_writer_that_takes_more_than_its_reader_is_told_apart() -> None:
    def does(known: KnownTable, operation: ResultColumn) -> MeasuredOutcome:
        return strict(() if operation.reads else ("columnMapping",))(known, operation)

    found = measured(does)
    plain = build_entry(found, TABLES)
    assert plain["read"]["features"] == []
    assert plain["write"]["reader_features"] == ["columnMapping"]
    assert find_entry_discrepancies(plain, found, TABLES) == []


def test_who_refuses_to_remove_rows_of_an_append_only_table_agrees() -> None:
    protocol = Protocol.stored({"minReaderVersion": 1, "minWriterVersion": 2})
    asked = table_requirements(protocol, {"appendOnly": True}, {}, hazards=["append-only"])
    table = case(
        "appendOnly.enabled", feature="appendOnly", state=FeatureEvidence.ENABLED, append_only=True
    )
    cells = (
        *measured(strict(())).cells,
        MeasurementCell("appendOnly.enabled", ResultColumn.APPEND, MeasuredOutcome.RIGHT),
        MeasurementCell("appendOnly.enabled", ResultColumn.DELETE, MeasuredOutcome.RIGHT),
    )
    found = measured(strict(()))._replace(cells=cells)
    tables = [*TABLES, KnownTable(table, asked)]
    plain = build_entry(found, tables)
    assert "known_bad" not in plain
    assert find_entry_discrepancies(plain, found, tables) == []
