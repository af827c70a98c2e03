"""Entries of the catalog: what each form means, and what each mistake is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.entry import parse_client
from deltaproto.clients.members import EntryError
from deltaproto.clients.model import Access, Client, Confidence

Plain = dict[str, Any]


def entry(**changed: Any) -> Plain:
    """A good entry with one range, and what is changed of it; None takes a member away."""
    own: Plain = {
        "id": "made",
        "versions": "dotted",
        "ranges": [{"from": "1.0", "read": {"legacy": [1]}}],
    }
    return {key: value for key, value in (own | changed).items() if value is not None}


def ranged(**changed: Any) -> Plain:
    own: Plain = {"from": "1.0", "read": {"legacy": [1]}}
    member = {key: value for key, value in (own | changed).items() if value is not None}
    return entry(ranges=[member])


def gated(**members: Any) -> Plain:
    return ranged(read={"legacy": [1], **members})


def pair(first: Plain, second: Plain) -> Plain:
    gate = {"read": {"legacy": [1]}}
    return entry(ranges=[first | gate, second | gate])


class Mistake(NamedTuple):
    name: str
    plain: Any
    where: str
    hint: str = ""


MISTAKES = (
    Mistake("no-mapping", ["trino"], "file: not a mapping", "id, measured, name, ranges"),
    Mistake("no-id", entry(id=None), "file: id must be text"),
    Mistake("blank-id", entry(id="  "), "file: id must be text"),
    Mistake("id-of-two-parts", entry(id="a/b"), 'file: id: "a/b"', "without @ and /"),
    Mistake("alias-with-version", entry(aliases=["a@1"]), 'file: aliases: "a@1"'),
    Mistake("alias-empty", entry(aliases=[" "]), "file: aliases"),
    Mistake("aliases-no-list", entry(aliases="a"), "file: aliases must be a list"),
    Mistake("name-no-text", entry(name=7), "file: name must be text"),
    Mistake("key", entry(rangs=[]), "file: unknown key rangs", "did you mean ranges?"),
    Mistake(
        "key-unlike-any",
        entry(zzz=1),
        "file: unknown key zzz",
        "one of aliases, decodes_paths, hazards, id",
    ),
    Mistake("key-no-text", entry() | {None: 1}, "file: unknown key None"),
    Mistake("scheme", entry(versions="semver"), "file: versions: semver", "dotted"),
    Mistake("no-ranges", entry(ranges=None), "file: ranges are missing"),
    Mistake("ranges-empty", entry(ranges=[]), "file: ranges are missing"),
    Mistake("ranges-no-list", entry(ranges={}), "file: ranges must be a list"),
    Mistake("range-no-mapping", entry(ranges=["1.0"]), "file: ranges[0]: not a mapping"),
    Mistake("range-key", ranged(befor="2.0"), "ranges[0]: unknown key befor", "before?"),
    Mistake("no-gate", ranged(read=None), "ranges[0]: neither read nor write"),
    Mistake("gate-key", gated(featurs=[]), "ranges[0]: read: unknown key featurs", "features?"),
    Mistake("gate-no-mapping", ranged(read=[1]), "ranges[0]: read: not a mapping"),
    Mistake("legacy-text", gated(legacy=["1"]), "ranges[0]: read: legacy", "[1, 2]"),
    Mistake("legacy-truth", gated(legacy=[True]), "ranges[0]: read: legacy"),
    Mistake(
        "legacy-list-version", gated(legacy=[1, 3]), "legacy must be version numbers from 1 to 2"
    ),
    Mistake(
        "legacy-writer-7",
        ranged(write={"legacy": [7]}),
        "ranges[0]: write: legacy must be version numbers from 1 to 6",
        "the key features",
    ),
    Mistake("features-null", gated(features=None), "ranges[0]: read: features must be a list"),
    Mistake("features-numbers", gated(features=[1]), "ranges[0]: read: features must be a list"),
    Mistake("unchecked-word", gated(unchecked="some"), "ranges[0]: read: unchecked"),
    Mistake("modes-list", gated(modes=["name"]), "ranges[0]: read: modes must be a mapping"),
    Mistake(
        "modes-text", gated(modes={"columnMapping": "name"}), "read: modes: columnMapping must be"
    ),
    Mistake("access", ranged(access=["write"]), "ranges[0]: access: write", "append"),
    Mistake("confidence", ranged(confidence="sure"), "ranges[0]: confidence: sure", "measured"),
    Mistake("flag", ranged(whole="yes"), "ranges[0]: whole must be true or false"),
    Mistake(
        "modes-of-a-slip",
        gated(modes={"columnMaping": ["name"]}),
        "read: modes: unknown feature columnMaping",
        "columnMapping",
    ),
    Mistake(
        "catalog-only-slip",
        ranged(catalog_only=["catalogManged"]),
        "catalog_only: unknown feature catalogManged",
        "catalogManaged",
    ),
    Mistake("evidence-key", ranged(evidence=[{"ref": "x"}]), "evidence[0]: unknown key ref"),
    Mistake("evidence-kind", ranged(evidence=[{"kind": "hearsay"}]), "kind: hearsay", "source"),
    Mistake("evidence-bare", ranged(evidence=[{"kind": "source"}]), "reference must be text"),
    Mistake(
        "evidence-date",
        ranged(evidence=[{"kind": "source", "reference": "x", "date": 2026}]),
        "evidence[0]: date: 2026",
        "YYYY-MM-DD",
    ),
    Mistake(
        "known-bad-of-nothing",
        ranged(known_bad=[{"access": ["read"], "what": "loses rows"}]),
        "known_bad[0]: features is missing",
    ),
    Mistake(
        "known-bad-at-nothing",
        ranged(known_bad=[{"features": ["deletionVectors"], "what": "loses rows"}]),
        "known_bad[0]: access is missing",
    ),
    Mistake(
        "known-bad-silent",
        ranged(known_bad=[{"features": ["deletionVectors"], "access": ["read"]}]),
        "known_bad[0]: what must be text",
    ),
    Mistake("path-unnamed", ranged(paths=[{"read": {}}], path="own"), "paths[0]: name"),
    Mistake(
        "own-path-unnamed", ranged(paths=[{"name": "b", "read": {}}]), "the first one needs a name"
    ),
    Mistake(
        "paths-of-one-name",
        ranged(path="a", paths=[{"name": "a", "read": {}}]),
        "ranges[0]: two paths have the same name",
    ),
    Mistake("path-no-name", ranged(path="a/b"), 'ranges[0]: path: "a/b"'),
    Mistake("unquoted", ranged(**{"from": 1.1}), "ranges[0]: from: 1.1 is not in quotes", "'1.1'"),
    Mistake("unquoted-number", ranged(before=476), "ranges[0]: before: 476 is not", "'476'"),
    Mistake("no-version", ranged(**{"from": "new"}), "from: new is not a dotted version", "1.6.3"),
    Mistake(
        "version-of-a-service",
        entry(versions="none"),
        "ranges[0]: from: 1.0, but the client has no versions",
        "versions: dotted",
    ),
    Mistake("backwards", ranged(before="0.9"), "ranges[0] is empty"),
    Mistake("empty", ranged(before="1.0.0"), "ranges[0] is empty"),
    Mistake("overlap", pair({"before": "2.0"}, {"from": "1.9"}), "ranges[1] overlaps"),
    Mistake("out-of-order", pair({"from": "2.0", "before": "3.0"}, {"before": "2.0"}), "ranges[1]"),
    Mistake("after-the-open-end", pair({"from": "1.0"}, {"from": "2.0"}), "ranges[1] overlaps"),
    Mistake(
        "second-from-nowhere", pair({"before": "2.0"}, {"before": "3.0"}), "ranges[1] overlaps"
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named_with_its_place(mistake: Mistake) -> None:
    with pytest.raises(EntryError) as refused:
        parse_client(mistake.plain, "file")
    assert refused.value.message.startswith("file: ")
    assert mistake.where in refused.value.message
    assert mistake.hint in refused.value.hint


def test_the_least_entry() -> None:
    made = parse_client({"id": "made", "ranges": [{"read": {"legacy": [1]}}]}, "file")
    (only,) = made.ranges
    (path,) = only.paths
    assert (made.id, made.name, made.aliases, made.versions) == ("made", "made", (), "none")
    assert (only.start, only.end, only.confidence) == (None, None, Confidence.DOCUMENTED)
    assert path.read is not None
    assert (path.read.legacy, path.read.features) == ({1}, None)
    assert (path.write, path.name) == (None, None)


def test_a_fuller_entry() -> None:
    gate = {"legacy": [1, 2], "features": ["a"], "unused": ["b"], "legacy_unused": ["c"]}
    bad = {"features": ["a"], "access": ["dml"], "what": "loses rows", "fails": True}
    plain = ranged(
        path="engine",
        read=gate | {"unchecked": ["d"], "modes": {"columnMapping": ["name", "id"]}},
        write={"legacy": [1, 2, 3, 4, 5, 6], "features": [], "unchecked": "all"},
        access=["read", "append", "dml"],
        known_bad=[bad],
        paths=[{"name": "other", "read": {"features": []}}],
        whole=True,
        catalog_only=["catalogManaged"],
        confidence="measured",
        evidence=[{"kind": "measured", "reference": "here", "date": "2026-11-01"}],
    )
    (only,) = parse_client(plain, "file").ranges
    engine, other = only.paths
    assert engine.read is not None
    assert engine.write is not None
    assert engine.read.unused == {"b"}
    assert engine.read.legacy_unused == {"c"}
    assert engine.read.unchecked == {"d"}
    assert engine.read.modes == {"columnMapping": {"name", "id"}}
    assert (engine.write.features, engine.write.unchecked) == (frozenset(), None)
    assert engine.access == {Access.READ, Access.APPEND, Access.DML}
    assert [(b.features, b.access, b.what, b.fails) for b in engine.known_bad] == [
        ({"a"}, {Access.DML}, "loses rows", True)
    ]
    assert (other.name, other.access) == ("other", {Access.READ})
    assert (only.whole, only.catalog_only) == (True, {"catalogManaged"})
    assert only.evidence[0].date == "2026-11-01"


@pytest.mark.parametrize(
    ("gates", "offered"),
    [
        (("read",), {Access.READ}),
        (("read", "write"), {Access.READ, Access.APPEND}),
        (("write",), {Access.APPEND}),
    ],
    ids=["reader", "both", "writer"],
)
def test_without_access_it_offers_what_it_has_gates_for(
    gates: tuple[str, ...], offered: set[Access]
) -> None:
    plain = entry(ranges=[{side: {"legacy": [1]} for side in gates}])
    assert parse_client(plain, "file").ranges[0].paths[0].access == offered


def test_gaps_between_ranges_are_allowed() -> None:
    made = parse_client(pair({"before": "2.0"}, {"from": "2.1"}), "file")
    assert [(each.start, each.end) for each in made.ranges] == [(None, "2.0"), ("2.1", None)]


KEYS = [
    "id",
    "name",
    "aliases",
    "versions",
    "ranges",
    "from",
    "before",
    "path",
    "paths",
    "read",
    "write",
    "access",
    "known_bad",
    "whole",
    "catalog_only",
    "confidence",
    "evidence",
    "note",
    "legacy",
    "features",
    "unused",
    "legacy_unused",
    "unchecked",
    "modes",
    "kind",
    "reference",
    "date",
    "what",
    "fails",
]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.floats(allow_nan=False),
    st.dates(),
    st.text(max_size=4),
    st.sampled_from(["1.0", "2.0", "dotted", "read", "all", "source", "a/b", "columnMapping"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4),
    ),
    max_leaves=12,
)


def succeeds(parse: Callable[[], Client]) -> bool:
    try:
        return isinstance(parse(), Client)
    except EntryError as error:
        return error.message.startswith("file")


@given(values)
def test_any_value_is_a_client_or_an_error_that_says_where(plain: Any) -> None:
    assert succeeds(lambda: parse_client(plain, "file"))


@given(st.sampled_from(KEYS), values, st.sampled_from(["client", "range", "gate", "path", "bad"]))
def test_any_member_spoils_an_entry_with_an_error_only(key: str, value: Any, level: str) -> None:
    plain = {
        "client": entry() | {key: value},
        "range": ranged() if key == "ranges" else entry(ranges=[{"read": {}, key: value}]),
        "gate": gated(**{key: value}),
        "path": ranged(path="a", paths=[{"name": "b", "read": {}, key: value}]),
        "bad": ranged(
            known_bad=[{"features": ["a"], "access": ["read"], "what": "x", key: value}],
            evidence=[{"kind": "source", "reference": "x", key: value}],
        ),
    }[level]
    assert succeeds(lambda: parse_client(plain, "file"))
