"""Lines of commits, against a plain reading of the same lines."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import TableError
from deltaproto.tables.log import files
from deltaproto.tables.log.add_flaws import flaws_of_add, flaws_of_remove
from deltaproto.tables.log.files import build_listing, commit_info, read_actions

MARK = b"\xef\xbb\xbf"
INFO = {"commitInfo": {"operation": "WRITE"}}
VECTOR = {"storageType": "u", "pathOrInlineDv": "x"}

paths = st.sampled_from(["a", "b/c=1/d", "s3://x/y", "%20ä", '"q"', "back\\slash", "a/b"])
actions = st.one_of(
    st.builds(
        lambda kind, path, vector: {kind: {"path": path, "deletionVector": vector}},
        st.sampled_from(["add", "remove", "cdc"]),
        paths,
        st.sampled_from([None, VECTOR]),
    ),
    st.builds(lambda name: {"commitInfo": {"operation": name}}, st.sampled_from(["A", "B"])),
    st.sampled_from([{"commitInfo": None}, {"commitInfo": 3}, {"txn": {"appId": "add"}}, {}]),
)


def read(text: bytes, **options: Any) -> tuple[list[dict[str, Any]], Any]:
    """The yielded actions, and what `seen` got."""
    told: list[Any] = []

    def seen(info: Mapping[str, Any], found: list[tuple[str, str]], mark: bool) -> None:
        told.append((dict(info), found, mark))

    yielded = list(read_actions("0.json", io.BytesIO(text), seen=seen, **options))
    assert len(told) == 1
    assert yielded == list(read_actions("0.json", io.BytesIO(text), **options))
    return yielded, told[0]


@given(
    st.lists(actions, max_size=6),
    st.sampled_from([b"", MARK]),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.sampled_from([{}, {"files": True}, {"files": True, "holding": b'"deletionVector":{'}]),
    st.sampled_from([0, 60, files._PARSE_ALL_BYTES]),
)
def test_every_action_is_read_or_left_out_as_requested(
    wanted: list[dict[str, Any]],
    mark: bytes,
    end: bytes,
    options: dict[str, Any],
    parsed: int,
) -> None:
    lines = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in wanted]
    text = mark + b"".join(line.encode() + end for line in lines)
    plain = [{key: value for key, value in each.items() if value is not None} for each in wanted]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_PARSE_ALL_BYTES", parsed)
        found, (info, named, marked) = read(text, **options)
    on_file = [bool({"add", "remove", "cdc"} & each.keys()) for each in plain]
    if not options:
        assert found == [each for each, skipped in zip(plain, on_file, strict=True) if not skipped]
    elif "holding" not in options:
        assert found == plain
    else:
        kept = [b'"deletionVector":{' in line.encode() for line in lines]
        assert found == [
            each for each, it, keep in zip(plain, on_file, kept, strict=True) if keep or not it
        ]
    infos = [each["commitInfo"] for each in plain if isinstance(each.get("commitInfo"), dict)]
    assert info == (infos[0] if infos else {})
    assert marked is bool(mark)
    moved = [
        (
            kind,
            each[kind]["path"],
            each[kind].get("partitionValues"),
            tuple((flaws_of_add if kind == "add" else flaws_of_remove)(each[kind])),
            None,
            kind == "add" and each[kind].get("baseRowId") is not None,
            kind == "add" and each[kind].get("deletionVector") is not None,
        )
        for each in plain
        for kind in ("add", "remove")
        if kind in each
    ]
    # The path of an action that is not parsed is found without parsing it, unless it is escaped.
    escaped = any('"q"' in path or "\\" in path for _, path, *_ in moved)
    if not escaped:
        assert named == moved


def test_the_first_commit_info_is_the_commits() -> None:
    """As in `DeltaLog.getChanges`, which takes the first one; both routes agree."""
    first, second = {"operation": "A", "engineInfo": "x"}, {"operation": "B"}
    lines = [{"add": {"path": "p"}}, {"commitInfo": first}, {"commitInfo": second}]
    text = b"\n".join(json.dumps(each).encode() for each in lines)
    _, (info, named, _) = read(text)
    flaws = tuple(flaws_of_add({"path": "p"}))
    assert (info, named) == (first, [("add", "p", None, flaws, None, False, False)])
    assert commit_info(read_actions("0.json", io.BytesIO(text))) == first
    assert commit_info([{"commitInfo": None}, {"commitInfo": 3}, {"commitInfo": second}]) == second
    assert commit_info([{"add": {}}]) == {}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"add":{"path":"a"', "the JSON is truncated"),
        (b'{"add":{"path":"a"}', "the JSON is truncated"),
        (b'{"txn":{"appId":"a"}', "the JSON is truncated"),
        (b'{"txn":{"appId" "a"}}', "malformed JSON"),
        (b"[1]", "a JSON list instead of an action"),
        (b'{"txn":"\xff"}', "not UTF-8"),
    ],
)
@pytest.mark.parametrize("parsed", [0, files._PARSE_ALL_BYTES])
def test_a_damaged_line_is_named_whether_it_is_parsed_or_not(
    line: bytes, why: str, parsed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PARSE_ALL_BYTES", parsed)
    with pytest.raises(TableError) as caught:
        read(b'{"txn":{}}\n\n' + line)
    assert caught.value.message.startswith("0.json line 3: ")
    assert why in caught.value.message


UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize(
    ("names", "commits", "checkpoints", "newest"),
    [
        (["0.json", "2.json"], [0, 2], {}, 2),
        (["3.checkpoint.parquet", "1.json"], [1], {3: [(False, 1)]}, 3),
        (["3.checkpoint." + UUID + ".json"], [], {3: [(True, 1)]}, 3),
        (["3.checkpoint." + UUID + ".parquet"], [], {3: [(True, 1)]}, 3),
        (["3.checkpoint.short.json"], [], {}, None),
        (
            ["3.checkpoint.0000000001.0000000002.parquet",
             "3.checkpoint.0000000002.0000000002.parquet"],
            [], {3: [(False, 2)]}, 3,
        ),
        (["3.checkpoint.0000000002.0000000002.parquet"], [], {}, None),
        (
            ["3.checkpoint.0000000000.0000000002.parquet",
             "3.checkpoint.0000000001.0000000002.parquet"],
            [], {}, None,
        ),
        (["3.checkpoint.0000000001.1.parquet", "3.json.tmp", "x3.json"], [], {}, None),
        (
            ["3.checkpoint.parquet", "3.checkpoint." + UUID + ".json", "4.json"],
            [4], {3: [(True, 1), (False, 1)]}, 4,
        ),
    ],
)  # fmt: skip
def test_what_the_files_of_a_log_are(
    names: list[str],
    commits: list[int],
    checkpoints: dict[int, list[tuple[bool, int]]],
    newest: int | None,
) -> None:
    split = [name.partition(".") for name in names]
    listing = build_listing(
        (f"{version:0>20}.{rest}" if version.isdigit() else f"{version}.{rest}", 9, 0.0)
        for version, _, rest in split
    )
    assert sorted(listing.commits) == commits
    assert {
        version: sorted((each.v2_name, len(each.files)) for each in found)[::-1]
        for version, found in listing.checkpoints.items()
    } == checkpoints
    assert listing.newest == newest
    assert [*listing.checkpoints_up_to(2)] == []
    assert len(listing.checkpoints_up_to(3)) == len(listing.last_checkpoints(3))


def test_a_missing_commit_is_the_newest_missing_one() -> None:
    listing = build_listing((f"{version:020}.json", 9, 0.0) for version in (0, 1, 3, 5, 6))
    found = [listing.missing(base, version) for base, version in ((-1, 6), (4, 6), (3, 5), (1, 3))]
    assert found == [4, None, 4, 2]
    assert listing.missing(0, 1) is None
    assert listing.missing(6, 7) == 7
    assert listing.missing(0, 0) is None
