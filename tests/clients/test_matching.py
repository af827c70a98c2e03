"""The four verdicts: each rule of a gate by hand, and the laws that all of them keep."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.feature_matrix import FeatureAnswer, feature_rows
from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import (
    Access,
    Confidence,
    Handling,
    KnownBad,
    Path,
    PathVerdict,
    ProtocolGate,
    Verdict,
)
from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.clients.verdicts import path_verdicts
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.protocol import Protocol
from tests.clients.made import ALL, ANY_READER, ANY_WRITER, judged, protocol, range_of, table
from tests.protocol.strategies import NAMES, protocols

OK, REFUSED, WRONG, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.WRONG, Verdict.UNKNOWN
READ, APPEND, DML = Access.READ, Access.APPEND, Access.DML
VECTORS, MAPPING, NTZ = "deletionVectors", "columnMapping", "timestampNtz"


def reader(*names: str, **more: Any) -> ProtocolGate:
    return ProtocolGate(
        frozenset({1, 2}), frozenset(names), **{k: _set(v) for k, v in more.items()}
    )


def writer(*names: str, legacy: tuple[int, ...] = (1, 2), **more: Any) -> ProtocolGate:
    return ProtocolGate(
        frozenset(legacy), frozenset(names), **{k: _set(v) for k, v in more.items()}
    )


def _set(value: Any) -> Any:
    return frozenset(value) if isinstance(value, tuple | list) else value


def listed(*names: str) -> Protocol:
    """Reader 3, writer 7, with `names` in the lists where they belong."""
    both = [n for n in names if feature_catalog.feature_record(n).kind is FeatureKind.READER_WRITER]
    return protocol(3, 7, both, names)


def for_readers(*names: str) -> Protocol:
    return protocol(3, 7, names, names)


class Case(NamedTuple):
    name: str
    table: TableRequirements
    verdict: Verdict
    because: tuple[str, ...] = ()
    reason: str = ""
    access: Access = READ
    client: dict[str, Any] = {}  # noqa: RUF012


TAKES_ALL = writer(VECTORS, "appendOnly", legacy=(1, 2, 3, 4, 5, 6))
SLOW_DV = KnownBad(frozenset({VECTORS}), frozenset({READ}), "It returns deleted rows.", "here")
FAILS_DV = SLOW_DV._replace(what="It ends in an error.", fails=True)
ODD = "zzzThing"

CASES = (
    # Legacy versions.
    Case(
        "an-odd-pair-carries-no-column-mapping",
        table(Protocol(2, 4)),
        OK,
        client={"read": reader(unchecked=[MAPPING], unused=[MAPPING])},
    ),
    Case(
        "nor-is-it-what-keeps-a-reader-out",
        table(Protocol(2, 4)),
        REFUSED,
        (),
        "it does not support reader version 2",
        client={"read": ProtocolGate(frozenset({1}))},
    ),
    Case("reader-version-taken", table(Protocol(1, 2)), OK),
    Case("reader-2-taken", table(Protocol(2, 5), mode="name", used=[MAPPING]), OK),
    Case(
        "reader-version-not-taken",
        table(Protocol(2, 5)),
        REFUSED,
        (MAPPING,),
        "it does not support reader version 2",
        client={"read": ProtocolGate(frozenset({1}))},
    ),
    Case(
        "writer-version-taken",
        table(Protocol(1, 4)),
        OK,
        access=APPEND,
        client={"write": ANY_WRITER},
    ),
    Case(
        "writer-version-not-taken",
        table(Protocol(1, 4)),
        REFUSED,
        ("changeDataFeed", "checkConstraints", "generatedColumns"),
        "it does not support writer version 4",
        APPEND,
        {"write": ProtocolGate(frozenset({1, 2}))},
    ),
    Case(
        "of-a-refused-version-only-what-is-not-known-decides",
        table(Protocol(1, 4)),
        REFUSED,
        ("generatedColumns",),
        access=APPEND,
        client={"write": writer("changeDataFeed", "checkConstraints")},
    ),
    Case("a-writers-version-keeps-no-reader-out", table(Protocol(1, 6)), OK),
    Case(
        "writing-takes-the-read-gate-too",
        table(Protocol(2, 5)),
        REFUSED,
        (MAPPING,),
        access=APPEND,
        client={"read": ProtocolGate(frozenset({1})), "write": ANY_WRITER},
    ),
    # Lists.
    Case(
        "lists-are-refused-by-version-only-readers",
        table(for_readers(VECTORS)),
        REFUSED,
        (VECTORS,),
        "it does not support table features, so not reader version 3",
    ),
    Case(
        "even-empty-ones",
        table(protocol(3, 7, [], [])),
        REFUSED,
        reason="not reader version 3",
    ),
    Case(
        "an-empty-list-is-taken-by-those-who-know-lists",
        table(protocol(3, 7, [], [])),
        OK,
        client={"read": reader()},
    ),
    Case(
        "listed-and-known",
        table(for_readers(VECTORS), used=[VECTORS]),
        OK,
        client={"read": reader(VECTORS)},
    ),
    Case(
        "item-16-one-unknown-name-is-enough",
        table(for_readers(VECTORS, NTZ)),
        REFUSED,
        (NTZ,),
        "it does not support timestampNtz",
        client={"read": reader(VECTORS)},
    ),
    Case(
        "every-missing-name-is-said-once",
        table(for_readers(VECTORS, NTZ, "v2Checkpoint")),
        REFUSED,
        (VECTORS, NTZ, "v2Checkpoint"),
        "it does not support deletionVectors, timestampNtz and v2Checkpoint",
        client={"read": reader()},
    ),
    Case(
        "item-11-writer-features-keep-no-reader-out",
        table(listed("rowTracking", ODD)),
        OK,
        client={"read": reader()},
    ),
    Case(
        "but-writers",
        table(listed("rowTracking")),
        REFUSED,
        ("rowTracking",),
        access=APPEND,
        client={"read": reader(), "write": writer("appendOnly")},
    ),
    # Only while unused.
    Case("unused-and-listed", table(for_readers(NTZ)), OK, client={"read": reader(unused=[NTZ])}),
    Case(
        "used",
        table(for_readers(NTZ), used=[NTZ]),
        REFUSED,
        (NTZ,),
        "it supports timestampNtz only while unused",
        client={"read": reader(unused=[NTZ])},
    ),
    Case(
        "use-cannot-be-told",
        table(for_readers(NTZ), unknown=[NTZ]),
        UNKNOWN,
        (NTZ,),
        "it is unknown whether it is used",
        client={"read": reader(unused=[NTZ])},
    ),
    Case(
        "unused-and-implied",
        table(Protocol(1, 2)),
        OK,
        access=APPEND,
        client={"write": writer("appendOnly", unused=["invariants"])},
    ),
    Case(
        "used-and-implied",
        table(Protocol(1, 2), used=["invariants"]),
        REFUSED,
        ("invariants",),
        access=APPEND,
        client={"write": writer("appendOnly", unused=["invariants"])},
    ),
    Case(
        "legacy-unused-and-implied",
        table(Protocol(1, 2)),
        OK,
        access=APPEND,
        client={"write": writer(legacy_unused=["invariants"])},
    ),
    Case(
        "legacy-unused-but-used",
        table(Protocol(1, 2), used=["invariants"]),
        REFUSED,
        ("invariants",),
        access=APPEND,
        client={"write": writer(legacy_unused=["invariants"])},
    ),
    Case(
        "legacy-unused-but-listed",
        table(protocol(1, 7, None, ["invariants"])),
        REFUSED,
        ("invariants",),
        "it does not support invariants",
        APPEND,
        {"write": writer(legacy_unused=["invariants"])},
    ),
    # Unchecked.
    Case(
        "unchecked-and-unused",
        table(for_readers(VECTORS)),
        OK,
        client={"read": reader(unchecked=[VECTORS])},
    ),
    Case(
        "unchecked-and-used",
        table(for_readers(VECTORS), used=[VECTORS]),
        WRONG,
        (VECTORS,),
        "it accepts deletionVectors without supporting it",
        client={"read": reader(unchecked=[VECTORS])},
    ),
    Case(
        "unchecked-and-not-to-be-told",
        table(for_readers(VECTORS), unknown=[VECTORS]),
        WRONG,
        (VECTORS,),
        client={"read": reader(unchecked=[VECTORS])},
    ),
    Case(
        "unchecked-and-implied",
        table(Protocol(2, 5), used=[MAPPING]),
        WRONG,
        (MAPPING,),
        client={"read": reader(unchecked=[MAPPING])},
    ),
    Case(
        "no-check-at-all",
        table(for_readers(VECTORS, NTZ), used=[VECTORS]),
        WRONG,
        (VECTORS,),
        client={"read": ProtocolGate(frozenset(), frozenset({NTZ}), unchecked=None)},
    ),
    Case(
        "no-check-and-nothing-used",
        table(for_readers(VECTORS, NTZ)),
        OK,
        client={"read": ProtocolGate(frozenset(), unchecked=None)},
    ),
    Case(
        "a-refusal-goes-before-wrong-rows",
        table(for_readers(VECTORS, NTZ), used=[VECTORS]),
        REFUSED,
        (NTZ,),
        client={"read": reader(unchecked=[VECTORS])},
    ),
    # Modes.
    Case(
        "a-known-mode",
        table(Protocol(2, 5), used=[MAPPING], mode="NAME"),
        OK,
        client={"read": ProtocolGate(frozenset({1, 2}), modes={MAPPING: frozenset({"name"})})},
    ),
    Case(
        "another-mode",
        table(Protocol(2, 5), used=[MAPPING], mode="id"),
        REFUSED,
        (MAPPING,),
        "it supports columnMapping only by name",
        client={"read": ProtocolGate(frozenset({1, 2}), modes={MAPPING: frozenset({"name"})})},
    ),
    Case(
        "no-mode-set",
        table(Protocol(2, 5)),
        OK,
        client={"read": ProtocolGate(frozenset({1, 2}), modes={MAPPING: frozenset({"name"})})},
    ),
    # Whole protocols.
    Case(
        "required-feature-missing",
        table(listed("rowTracking")),
        REFUSED,
        ("rowTracking",),
        "rowTracking is listed without domainMetadata",
        client={"read": reader(), "write": writer("rowTracking", "domainMetadata"), "whole": True},
    ),
    Case(
        "required-feature-there",
        table(listed("rowTracking", "domainMetadata")),
        OK,
        client={"read": reader(), "write": writer("rowTracking", "domainMetadata"), "whole": True},
    ),
    Case(
        "a-name-it-does-not-know-requires-nothing",
        table(listed("rowTracking")),
        OK,
        client={"read": reader(), "write": writer(), "whole": True},
    ),
    # Catalogs.
    Case(
        "by-path-where-only-a-name-will-do",
        table(for_readers("catalogManaged"), used=["catalogManaged"]),
        REFUSED,
        ("catalogManaged",),
        "accessible only by catalog name",
        client={"read": reader("catalogManaged"), "catalog_only": ["catalogManaged"]},
    ),
    Case(
        "by-name",
        table(for_readers("catalogManaged"), by_name=True),
        OK,
        client={"read": reader("catalogManaged"), "catalog_only": ["catalogManaged"]},
    ),
    # What goes wrong behind the gate.
    Case(
        "known-to-do-wrong",
        table(for_readers(VECTORS), used=[VECTORS]),
        WRONG,
        (VECTORS,),
        "It returns deleted rows",
        client={"read": reader(VECTORS), "known_bad": (SLOW_DV,)},
    ),
    Case(
        "not-where-nothing-uses-it",
        table(for_readers(VECTORS)),
        OK,
        client={"read": reader(VECTORS), "known_bad": (SLOW_DV,)},
    ),
    Case(
        "not-at-another-access",
        table(listed(VECTORS), used=[VECTORS]),
        OK,
        access=APPEND,
        client={"read": reader(VECTORS), "write": TAKES_ALL, "known_bad": (SLOW_DV,)},
    ),
    Case(
        "known-to-fail",
        table(for_readers(VECTORS), used=[VECTORS]),
        REFUSED,
        (VECTORS,),
        "It ends in an error",
        client={"read": reader(VECTORS), "known_bad": (FAILS_DV,)},
    ),
    Case(
        "known-to-fail-if-it-is-used",
        table(for_readers(VECTORS), unknown=[VECTORS]),
        UNKNOWN,
        (VECTORS,),
        "it is unknown whether deletionVectors is used",
        client={"read": reader(VECTORS), "known_bad": (FAILS_DV,)},
    ),
    # What a client offers.
    Case(
        "a-reader-does-not-write",
        table(Protocol(1, 2)),
        REFUSED,
        (),
        "it offers no writing",
        APPEND,
    ),
    Case(
        "not-offered",
        table(Protocol(1, 2)),
        REFUSED,
        (),
        "it offers no UPDATE, DELETE or MERGE",
        DML,
        {"write": ANY_WRITER, "offers": frozenset({READ, APPEND})},
    ),
    Case(
        "a-writer-does-not-read",
        table(Protocol(1, 2)),
        REFUSED,
        (),
        "it offers no reading",
        client={"read": None, "write": ANY_WRITER},
    ),
    Case(
        "a-writer-without-a-read-gate",
        table(for_readers(VECTORS)),
        OK,
        access=APPEND,
        client={"read": None, "write": TAKES_ALL},
    ),
    # Protocols that break the specification.
    Case(
        "invalid",
        table(protocol(3, 7, [VECTORS], [])),
        UNKNOWN,
        (),
        "the protocol violates the spec",
        client={"read": reader(VECTORS)},
    ),
    Case(
        "invalid-and-refused-anyhow",
        table(protocol(3, 7, [VECTORS], [])),
        REFUSED,
        (VECTORS,),
        client={"read": reader()},
    ),
    Case(
        "from-the-future",
        table(protocol(4, 7, None, [])),
        REFUSED,
        (),
        "reader version 4 is not defined",
        client={"read": reader()},
    ),
    Case("below-the-first", table(protocol(0, 2)), REFUSED, (), "reader version 0"),
    # Names that nobody knows, and lists that are not sure.
    Case(
        "a-strange-name-against-a-sure-list",
        table(for_readers(ODD)),
        REFUSED,
        (ODD,),
        "it does not support zzzThing, an unknown feature",
        client={"read": reader()},
    ),
    Case(
        "a-strange-name-against-documents",
        table(for_readers(ODD)),
        UNKNOWN,
        (ODD,),
        client={"read": reader(), "confidence": Confidence.DOCUMENTED},
    ),
    Case(
        "a-known-name-against-documents",
        table(for_readers(VECTORS)),
        REFUSED,
        (VECTORS,),
        client={"read": reader(), "confidence": Confidence.DOCUMENTED},
    ),
    Case(
        "a-known-name-against-an-inference",
        table(for_readers(VECTORS)),
        UNKNOWN,
        (VECTORS,),
        client={"read": reader(), "confidence": Confidence.INFERRED},
    ),
    Case(
        "lists-against-an-inference",
        table(for_readers(VECTORS)),
        UNKNOWN,
        (VECTORS,),
        client={"confidence": Confidence.INFERRED},
    ),
    Case(
        "accepted-by-an-inference",
        table(for_readers(VECTORS)),
        OK,
        client={"read": reader(VECTORS), "confidence": Confidence.INFERRED},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict(case: Case) -> None:
    found = judged(case.table, case.access, **case.client)
    assert (found.verdict, found.because) == (case.verdict, case.because)
    assert case.reason in found.reason
    assert (found.reason == "") is (case.verdict is OK)
    assert "{}" not in found.reason


def test_every_verdict_has_a_case() -> None:
    assert {case.verdict for case in CASES} == set(Verdict)


def test_modes_are_named_in_order() -> None:
    gate = ProtocolGate(frozenset({2}), modes={MAPPING: frozenset({"name", "id"})})
    found = judged(table(Protocol(2, 5), mode="odd"), READ, read=gate)
    assert found.reason == "it supports columnMapping only by id or name"


names = st.frozensets(st.sampled_from(NAMES))
confidences = st.sampled_from(Confidence)


@st.composite
def gates(draw: st.DrawFn, top: int = 2, closed: bool = False) -> ProtocolGate:
    features = draw(st.none() | names)
    return ProtocolGate(
        legacy=draw(st.frozensets(st.integers(1, top))),
        features=features,
        unused=frozenset() if closed else draw(names) - (features or frozenset()),
        legacy_unused=frozenset() if closed else draw(names),
        unchecked=frozenset() if closed else draw(st.none() | names),
        modes={} if closed else draw(st.sampled_from([{}, {MAPPING: frozenset({"name"})}])),
    )


@st.composite
def tables(draw: st.DrawFn) -> TableRequirements:
    wanted = draw(protocols())
    used = draw(st.frozensets(st.sampled_from(sorted(wanted.supported) or ["x"])))
    unknown = draw(st.frozensets(st.sampled_from(sorted(wanted.supported) or ["x"])))
    return table(
        wanted,
        used=used & wanted.supported,
        unknown=(unknown - used) & wanted.supported,
        mode=draw(st.sampled_from([None, "name", "id"])),
    )


@st.composite
def paths(draw: st.DrawFn, closed: bool = False) -> Path:
    read, write = draw(gates(2, closed)), draw(gates(6, closed))
    bad: tuple[KnownBad, ...] = ()
    if not closed and draw(st.booleans()):
        bad = (KnownBad(draw(names), ALL, "It fails.", "here", draw(st.booleans())),)
    return Path(None, read, write, ALL, bad)


accesses = st.sampled_from(Access)


@given(paths(), tables(), accesses, confidences, st.booleans())
def test_only_supported_features_decide(
    path: Path, needs: TableRequirements, access: Access, confidence: Confidence, whole: bool
) -> None:
    found = judge_access(range_of(path, confidence=confidence, whole=whole), path, needs, access)
    assert set(found.because) <= needs.protocol.supported
    assert (found.verdict is OK) == (found == PathVerdict(OK))


@given(paths(), tables())
def test_who_may_append_may_read(path: Path, needs: TableRequirements) -> None:
    # What goes wrong may do so at one access only, so it is left out here.
    path = path._replace(known_bad=())
    if judge_access(range_of(path), path, needs, APPEND).verdict is OK:
        assert judge_access(range_of(path), path, needs, READ).verdict is OK


@given(paths(closed=True), protocols(), st.sampled_from(NAMES), accesses)
def test_one_more_feature_never_opens_a_table(
    path: Path, wanted: Protocol, name: str, access: Access
) -> None:
    # Both as lists: what a legacy number opens is not what a list opens.
    fewer, more = listed(*wanted.supported), listed(*wanted.supported, name)
    before, after = (
        judge_access(range_of(path), path, table(each, used=each.supported), access).verdict
        for each in (fewer, more)
    )
    assert before is not REFUSED or after is not OK
    if after is OK:
        assert before is OK


@given(gates(), tables(), st.sampled_from(NAMES))
def test_writer_features_never_keep_readers_out(
    gate: ProtocolGate, needs: TableRequirements, name: str
) -> None:
    if (
        feature_catalog.feature_record(name).kind is not FeatureKind.WRITER
        or needs.protocol.writer_features is None
    ):
        return
    listed = needs.protocol.writer_features | {name, ODD}
    richer = needs._replace(protocol=needs.protocol._replace(writer_features=listed))
    if gate.unchecked is not None:
        assert judged(needs, READ, read=gate) == judged(richer, READ, read=gate)


@given(paths(), tables(), accesses, names, st.frozensets(st.integers(1, 6)), st.booleans())
def test_a_bigger_gate_never_refuses_more(
    path: Path,
    needs: TableRequirements,
    access: Access,
    more: frozenset[str],
    legacy: frozenset[int],
    at_reading: bool,
) -> None:
    gate = path.read if at_reading else path.write
    assert gate is not None
    features = more if gate.features is None else gate.features | more
    # What is only taken while unused stays so; a feature that is understood has left that set.
    bigger = gate._replace(legacy=gate.legacy | legacy, features=features - gate.unused)
    larger = path._replace(read=bigger) if at_reading else path._replace(write=bigger)
    before = judge_access(range_of(path), path, needs, access).verdict
    after = judge_access(range_of(larger), larger, needs, access).verdict
    if before is OK:
        assert after is OK
    if after is REFUSED:
        assert before is REFUSED


@given(paths(), st.sampled_from(NAMES), st.booleans())
def test_the_matrix_agrees_with_the_verdict_on_a_table_that_lists_the_feature(
    path: Path, name: str, writing: bool
) -> None:
    path = path._replace(known_bad=())
    (row,) = [row for row in feature_rows(path) if row.feature == name]
    answer = row.write if writing else row.read
    reader_feature = row.kind is FeatureKind.READER_WRITER
    wanted = protocol(3, 7, [name], [name]) if reader_feature else protocol(1, 7, None, [name])
    takes_1 = path.read is not None and (path.read.unchecked is None or 1 in path.read.legacy)
    if not reader_feature and not takes_1:
        return
    access = APPEND if writing else READ
    used, unused = (
        judge_access(range_of(path), path, table(wanted, used=u), access).verdict
        for u in ([name], [])
    )
    assert {
        FeatureAnswer.YES: (OK, OK),
        FeatureAnswer.UNUSED: (REFUSED, OK),
        FeatureAnswer.UNCHECKED: (WRONG, OK),
        FeatureAnswer.NO: (REFUSED, REFUSED),
    }[answer or FeatureAnswer.NO] == (used, unused)


class TestHazards:
    """What a table's layout and contents show, beside its protocol."""

    PLAIN = protocol(1, 2)

    def judged(self, hazard: str, access: Access, *handled: Any, **more: Any) -> PathVerdict:
        shown = {"hazards": [hazard]} | more
        needed = table_requirements(self.PLAIN, {}, {}, **shown)
        known = dict(handled)
        path = Path(None, ANY_READER, ANY_WRITER, ALL, hazards=known)
        return judge_access(range_of(path), path, needed, access)

    def test_what_was_not_measured_is_unknown(self) -> None:
        found = self.judged("absolute-paths", Access.READ)
        assert found.verdict is Verdict.UNKNOWN
        assert "absolute paths" in found.reason
        assert "not measured" in found.reason

    def test_what_was_measured_decides(self) -> None:
        for verdict in Verdict:
            handling = Handling(verdict, "it does so")
            key = ("absolute-paths", Access.APPEND)
            found = self.judged("absolute-paths", Access.APPEND, (key, handling))
            assert found.verdict is verdict
            assert ("it does so" in found.reason) == (verdict is not Verdict.OK)

    def test_a_type_falls_back_to_any_other_type(self) -> None:
        handling = Handling(Verdict.REFUSED, "no")
        found = self.judged("type time", Access.READ, (("type *", Access.READ), handling))
        assert found.verdict is Verdict.REFUSED

    def test_streams_read(self) -> None:
        key = ("type void", Access.READ)
        found = self.judged("type void", Access.STREAM, (key, Handling(Verdict.OK)))
        assert found.verdict is Verdict.OK

    def test_constraints_concern_writers_only(self) -> None:
        assert self.judged("expression size()", Access.READ).verdict is Verdict.OK
        assert self.judged("expression size()", Access.MAINTAIN).verdict is Verdict.OK
        assert self.judged("expression size()", Access.APPEND).verdict is Verdict.UNKNOWN

    def test_nobody_removes_rows_of_an_append_only_table(self) -> None:
        assert self.judged("append-only", Access.APPEND).verdict is Verdict.OK
        found = self.judged("append-only", Access.DML)
        assert found.verdict is Verdict.REFUSED
        assert "delta.appendOnly is true" in found.reason

    def test_who_lets_append_only_through_stays_wrong(self) -> None:
        held = table_requirements(protocol(1, 2), {"appendOnly": True}, {}, hazards=["append-only"])
        path = Path(
            None, ANY_READER, ProtocolGate(frozenset({2}), unchecked=frozenset({"appendOnly"})), ALL
        )
        found = judge_access(range_of(path), path, held, Access.DML)
        assert found.verdict is Verdict.WRONG

    def test_what_nobody_looked_for_is_not_ok_where_it_is_known_to_fail(self) -> None:
        key = ("absolute-paths", Access.READ)
        asked = {"hazards": [], "unseen": ["absolute-paths"]}
        for verdict in (Verdict.REFUSED, Verdict.WRONG, Verdict.UNKNOWN):
            found = self.judged("", Access.READ, (key, Handling(verdict)), **asked)
            assert found.verdict is Verdict.UNKNOWN
            assert "it is unknown whether" in found.reason
        assert self.judged("", Access.READ, (key, Handling(Verdict.OK)), **asked).verdict is (
            Verdict.OK
        )
        assert self.judged("", Access.READ, **asked).verdict is Verdict.OK

    def test_deletion_vectors_on_special_paths_are_a_hazard_of_their_own(self) -> None:
        word = "deletion-vectors-on-special-paths"
        listed = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
        for path in ("escaped-paths", "non-ascii-paths"):
            assert word in table_requirements(listed, {}, {}, hazards=[path]).hazards
            assert word in table_requirements(listed, {}, {}, unseen=[path]).unseen
            for asked, more in ((self.PLAIN, {}), (listed, {"absent": ["deletionVectors"]})):
                needed = table_requirements(asked, {}, {}, hazards=[path], unseen=[path], **more)
                assert word not in needed.hazards | needed.unseen
        assert not table_requirements(listed, {}, {}, hazards=["hive-location"]).unseen

    @pytest.mark.parametrize("version", ["1.40.0", "2.0.0", "2.1.0"])
    def test_polars_misses_deletion_vectors_on_special_paths(self, version: str) -> None:
        listed = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
        needed = table_requirements(
            listed, {"deletionVectors": True}, {}, hazards=["escaped-paths"]
        )
        for _, found in path_verdicts(
            ClientCatalog().resolve(f"polars@{version}"), Access.READ, needed
        ):
            assert found.verdict is Verdict.WRONG
            assert found.because == ("deletionVectors",)
        plain = table_requirements(listed, {"deletionVectors": True}, {})
        for _, found in path_verdicts(
            ClientCatalog().resolve(f"polars@{version}"), Access.READ, plain
        ):
            assert found.verdict is Verdict.OK

    @pytest.mark.parametrize("version", ["0.7.16", "0.7.26"])
    @pytest.mark.parametrize(
        ("hazard", "verdict"),
        [("mapped-collections", Verdict.WRONG), ("dropped-columns", Verdict.UNKNOWN)],
    )
    def test_daft_looks_for_column_ids(self, version: str, hazard: str, verdict: Verdict) -> None:
        mapped = protocol(3, 7, ["columnMapping"], ["columnMapping"])
        mode = {"delta.columnMapping.mode": "name"}
        for words, expected in (([hazard], verdict), ([], Verdict.OK)):
            needed = table_requirements(mapped, {"columnMapping": True}, mode, hazards=words)
            candidate = ClientCatalog().resolve(f"daft@{version}")
            ((_, found),) = path_verdicts(candidate, Access.READ, needed)
            assert found.verdict is expected

    def test_a_refusal_by_a_gate_goes_first(self) -> None:
        needed = table_requirements(
            protocol(1, 7, None, ["clustering"]), {}, {}, hazards=["type void"]
        )
        path = Path(None, ANY_READER, ANY_WRITER, ALL)
        found = judge_access(range_of(path), path, needed, Access.APPEND)
        assert found.verdict is Verdict.REFUSED
        assert "void" not in found.reason


def test_a_writer_may_take_more_of_the_readers_side_than_it_reads() -> None:
    mapped = table(protocol(3, 7, ["columnMapping"], ["columnMapping"]), used=["columnMapping"])
    write = ProtocolGate(frozenset({1, 2}), frozenset({"columnMapping"}))
    reads_not = ProtocolGate(frozenset({1}), frozenset())
    assert judged(mapped, Access.APPEND, read=reads_not, write=write).verdict is Verdict.REFUSED
    other = write._replace(reader_features=frozenset({"columnMapping"}))
    assert judged(mapped, Access.APPEND, read=reads_not, write=other).verdict is Verdict.OK
    assert judged(mapped, Access.READ, read=reads_not, write=other).verdict is Verdict.REFUSED
