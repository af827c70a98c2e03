"""Finding tables on a disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ErrorCode
from deltaproto.fleet import local_disk
from deltaproto.fleet.discovered import (
    DiscoveredTable,
    FolderSelection,
    SkippedPlaces,
    UnreadablePlace,
)
from deltaproto.fleet.discovery import DiscoverySource, discover_tables
from deltaproto.fleet.local_disk import tables_under

NAMES = st.sampled_from(["a", "b", "c d", "_x", ".h", "k=v", "äé", "%20"])
TREES = st.recursive(
    st.sampled_from(["empty", "table", "outer", "file"]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=25,
)
NOTHING = FolderSelection()


def grow(path: Path, tree: object) -> None:
    if tree == "file":
        path.write_text("x")
        return
    path.mkdir(parents=True, exist_ok=True)
    if tree in ("table", "outer"):
        (path / "_delta_log").mkdir()
        (path / "part=1" / "nested" / "_delta_log").mkdir(parents=True)
    if tree == "outer":
        (path / "part=1").joinpath("file").touch()
        grow(path / "inner", {"deep": "table", "_change_data": {"t": "table"}})
    elif isinstance(tree, dict):
        for name, inner in tree.items():
            grow(path / name, inner)


def expected(path: Path, tree: object) -> list[str]:
    """What the rules say, read off the tree."""
    if tree == "table":
        return [str(path)]
    if tree == "outer":
        return [str(path), str(path / "inner" / "deep")]
    if not isinstance(tree, dict):
        return []
    return [
        found
        for name, inner in tree.items()
        if not name.startswith((".", "_"))
        for found in expected(path / name, inner)
    ]


def found(root: Path, selection: FolderSelection = NOTHING) -> list[str]:
    seen = list(tables_under([str(root)], selection))
    if [each.error.code for each in seen if isinstance(each, UnreadablePlace)] == [
        ErrorCode.NO_TABLES
    ]:
        assert len(seen) == 1
        return []
    assert all(isinstance(each, DiscoveredTable) for each in seen)
    return [each.location for each in seen if isinstance(each, DiscoveredTable)]


@given(tree=TREES)
def test_every_table_and_nothing_else(
    tree: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tree")
    grow(root / "r", {"top": tree})
    assert sorted(found(root / "r")) == sorted(expected(root / "r", {"top": tree}))


def test_a_root_may_be_a_table_or_hidden(tmp_path: Path) -> None:
    grow(tmp_path / "_hidden", {"t": "table"})
    assert found(tmp_path / "_hidden") == [str(tmp_path / "_hidden" / "t")]
    assert found(tmp_path / "_hidden" / "t") == [str(tmp_path / "_hidden" / "t")]


def test_folders_are_let_in_and_left_out(tmp_path: Path) -> None:
    grow(
        tmp_path,
        {
            "gold": {"t": "table", "old": {"t": "table"}},
            "raw": {"t": "table"},
            "_archive": {"t": "table"},
            "tenant=1": {"t": "table"},
        },
    )

    def below(*include: str, exclude: tuple[str, ...] = ()) -> set[str]:
        paths = found(tmp_path, FolderSelection(include, exclude))
        return {str(Path(path).relative_to(tmp_path)) for path in paths}

    assert below() == {"gold/t", "gold/old/t", "raw/t", "tenant=1/t"}
    assert below(exclude=("old",)) == {"gold/t", "raw/t", "tenant=1/t"}
    assert below(exclude=("gold/*", "tenant=1")) == {"raw/t"}
    assert below("gold") == {"gold/t", "gold/old/t"}
    assert below("gold/old") == {"gold/old/t"}
    assert below("_archive") == {"_archive/t"}
    assert below("tenant=*", "raw") == {"tenant=1/t", "raw/t"}
    assert below("gold", exclude=("old",)) == {"gold/t"}


def test_links_are_followed_once(tmp_path: Path) -> None:
    grow(tmp_path / "r", {"a": {"t": "table"}})
    (tmp_path / "r" / "a" / "loop").symlink_to(tmp_path / "r")
    (tmp_path / "r" / "again").symlink_to(tmp_path / "r" / "a")
    grow(tmp_path / "elsewhere", {"t": "table"})
    (tmp_path / "r" / "link").symlink_to(tmp_path / "elsewhere")
    assert sorted(set(found(tmp_path / "r"))) == [
        str(tmp_path / "elsewhere" / "t"),
        str(tmp_path / "r" / "a" / "t"),
    ]
    split = discover_tables(
        DiscoverySource((str(tmp_path / "r"), str(tmp_path / "r" / "again"))), {}, 1
    )
    assert len(list(split.local)) == 2


@given(
    tree=TREES,
    links=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=4),
    roots=st.lists(st.integers(0, 50), min_size=1, max_size=3),
)
def test_roots_in_each_other_and_links_find_each_table_once(
    tree: object,
    links: list[tuple[int, int]],
    roots: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    top = tmp_path_factory.mktemp("tree")
    grow(top / "r", {"top": tree, "b": {"a": "table"}})
    folders = sorted(p for p in (top / "r").rglob("*") if p.is_dir() and "_delta_log" not in str(p))
    for number, (source, target) in enumerate(links):
        place, aim = folders[source % len(folders)], folders[target % len(folders)]
        (place / f"link{number}").symlink_to(aim)
    chosen = [str(folders[root % len(folders)]) for root in roots]
    once = [
        found.location
        for found in tables_under(chosen, NOTHING)
        if isinstance(found, DiscoveredTable)
    ]
    # A pattern with a slash is one that needs memory; this one fits nothing.
    told = {
        found.location
        for found in tables_under(chosen, FolderSelection((), ("no/such",)))
        if isinstance(found, DiscoveredTable)
    }
    assert len(once) == len(set(once))
    assert set(once) == told


def test_a_link_to_itself_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    assert found(tmp_path) == [str(tmp_path / "t")]


def empty_roots(*roots: Path, selection: FolderSelection = NOTHING) -> list[str]:
    seen = tables_under([str(root) for root in roots], selection)
    return [
        each.place
        for each in seen
        if isinstance(each, UnreadablePlace) and each.error.code is ErrorCode.NO_TABLES
    ]


@pytest.mark.parametrize("selection", [NOTHING, FolderSelection(include=("other",))])
def test_a_root_without_tables_is_an_error_whatever_its_links_lead_to(
    tmp_path: Path, selection: FolderSelection
) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    (left / "inner").mkdir(parents=True)
    right.mkdir()
    (left / "self").symlink_to(left)
    (left / "again").symlink_to(left / "inner")
    assert empty_roots(left, selection=selection) == [str(left)]
    (left / "to").symlink_to(right)
    (right / "back").symlink_to(left)
    assert sorted(empty_roots(left, right, selection=selection)) == [str(left), str(right)]
    (right / "other" / "_delta_log").mkdir(parents=True)
    assert empty_roots(left, right, selection=selection) == []


def test_roots_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name in ("file", "nothing"):
        (unseen,) = tables_under([str(tmp_path / name)], NOTHING)
        assert isinstance(unseen, UnreadablePlace)
        assert unseen.error.code is ErrorCode.NOT_FOUND
        assert str(tmp_path / name) in unseen.error.message


def test_a_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(tmp_path, {"a": {"t": "table"}, "b": {"t": "table"}})
    scandir = os.scandir

    # Root may list everything, so that the refusal has to be made up.
    def refuse(path: str) -> Any:
        if path == str(tmp_path / "a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("os.scandir", refuse)
    seen = list(tables_under([str(tmp_path)], NOTHING))
    assert [type(each) for each in seen] == [UnreadablePlace, DiscoveredTable]


def test_a_table_that_may_be_listed_and_not_entered_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(tmp_path / "shut", "table")
    real = os.path.isdir

    def shut(path: str) -> bool:
        return "shut/" not in str(path) and real(path)

    # Root may enter everything, and the tests may run as root.
    if os.geteuid() == 0:
        monkeypatch.setattr(os.path, "isdir", shut)
    else:
        (tmp_path / "shut").chmod(0o444)
    found = list(tables_under([str(tmp_path)], NOTHING))
    (tmp_path / "shut").chmod(0o755)
    assert found == [DiscoveredTable(str(tmp_path / "shut"), str(tmp_path / "shut"))]


def test_a_location_that_means_nothing_is_one_error(tmp_path: Path) -> None:
    grow(tmp_path / "t", "table")
    listed = [
        DiscoveredTable("shop.far", "file://elsewhere/t"),
        DiscoveredTable("shop.near", str(tmp_path / "t")),
    ]
    local = discover_tables(
        DiscoverySource(catalogs=("shop",), from_catalogs=lambda _: listed), {}, 1
    ).local
    far, near = list(local)
    assert isinstance(far, UnreadablePlace)
    assert (far.place, far.error.code) == ("shop.far", ErrorCode.NOT_FOUND)
    assert near == listed[1]


def test_a_root_that_is_a_table_hides_no_table_below_it(tmp_path: Path) -> None:
    grow(
        tmp_path,
        {
            "_delta_log": "empty",
            "region=eu": {"t": "table"},
            "_change_data": {"t": "table"},
            "below": {"t": "table", "deeper": {"k=v": {"t": "table"}}},
            "plain": "file",
        },
    )
    passed = SkippedPlaces()
    seen = list(tables_under([str(tmp_path)], NOTHING, skipped=passed))
    names = [str(Path(each.location).relative_to(tmp_path)) for each in seen]  # type: ignore[union-attr]
    assert names == [".", "below/deeper/k=v/t", "below/t"]
    assert passed.notes() == ()
    assert found(tmp_path, FolderSelection(("region=*",))) == [
        str(tmp_path),
        str(tmp_path / "region=eu" / "t"),
    ]


def test_tables_far_below_a_table(tmp_path: Path) -> None:
    """Only the folders of the table's own partitions are left out."""
    deep = {"archive": {"2024": {"orders": "table", "day=1": {"h=2": {"t": "table"}}}}}
    below = ["", "/archive/2024/day=1/h=2/t", "/archive/2024/orders"]
    grow(tmp_path, {"lake": {**deep, "_delta_log": "empty", "k=v": {"l=w": {"t": "table"}}}})
    for root in (tmp_path / "lake", tmp_path):
        assert noted(root) == ([f"{tmp_path}/lake{each}" for each in below], ())


def test_a_folder_that_is_not_a_partition_of_the_table_around_it_is_counted(
    tmp_path: Path,
) -> None:
    columns = {"a": ["Region"], "b": [], "c": None, "d": ["x y"]}
    for name in columns:
        grow(tmp_path / name, {"_delta_log": "empty", "region=eu": {"t": "table"}})
    grow(tmp_path / "a", {"day=1": "empty", "day=2": "empty", "region=us": "empty"})
    grow(tmp_path / "d", {"x%20y=1": "empty"})
    passed = SkippedPlaces()
    list(tables_under([str(tmp_path)], NOTHING, skipped=passed))
    assert passed.notes() == ()
    passed.check_partitions(
        lambda: [(f"file://{tmp_path}/{name}", known) for name, known in columns.items()]
    )
    (note,) = passed.notes()
    assert note.startswith("5 folders are named like partitions of tables that have no such")
    assert note.endswith(f"first {tmp_path}/a/day=1")


def test_a_table_is_no_partition_of_the_table_around_it(tmp_path: Path) -> None:
    """Whatever its folder is called: it is found, or counted where hidden folders are."""
    grow(
        tmp_path,
        {
            "_delta_log": "empty",
            "region=eu": {"_delta_log": "empty", "below": "table"},
            "k=v": {"part.parquet": "file"},
            "_change_data": {"part.parquet": "file"},
            "_old": {"_delta_log": "empty"},
            ".copy": {"_delta_log": "empty"},
        },
    )
    passed = SkippedPlaces()
    seen = list(tables_under([str(tmp_path)], NOTHING, skipped=passed))
    names = [str(Path(each.location).relative_to(tmp_path)) for each in seen]  # type: ignore[union-attr]
    assert names == [".", "region=eu", "region=eu/below"]
    (note,) = passed.notes()
    assert note.startswith("2 folders whose names start with . or _ were not searched")
    assert found(tmp_path, FolderSelection(exclude=("region=*",))) == [str(tmp_path)]


def test_a_folder_named_like_a_partition_is_searched_outside_of_tables(tmp_path: Path) -> None:
    grow(tmp_path, {"region=eu": {"orders": "table", "day=1": {"t": "table"}}})
    assert sorted(found(tmp_path)) == [
        str(tmp_path / "region=eu" / "day=1" / "t"),
        str(tmp_path / "region=eu" / "orders"),
    ]


@pytest.mark.parametrize("kind", ["link to nothing", "file", "link to itself"])
def test_a_log_that_is_not_a_folder_is_a_table_that_cannot_be_read(
    tmp_path: Path, kind: str
) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.parent.mkdir()
    if kind == "file":
        log.touch()
    else:
        log.symlink_to("nowhere" if kind == "link to nothing" else "_delta_log")
    grow(tmp_path, {"t": {"below": {"x": "table"}}})
    # It hides nothing, neither as a root.
    assert found(tmp_path) == [str(tmp_path / "t"), str(tmp_path / "t" / "below" / "x")]
    assert found(tmp_path / "t") == [str(tmp_path / "t"), str(tmp_path / "t" / "below" / "x")]


def test_what_is_not_searched_is_counted(tmp_path: Path) -> None:
    grow(
        tmp_path,
        {
            "lake": {"_archive": {"t": "table"}, ".old": "empty", ".file": "file", "t": "table"},
            "elsewhere": {"t": "table"},
        },
    )
    lake = tmp_path / "lake"
    (lake / "out").symlink_to(tmp_path / "elsewhere")
    (lake / "gone").symlink_to(tmp_path / "missing")
    (lake / "text").symlink_to(lake / ".file")
    passed = SkippedPlaces()
    assert len(list(tables_under([str(lake)], NOTHING, skipped=passed))) == 2
    hidden, outside, nowhere = passed.notes()
    assert hidden.startswith("2 folders whose names start with . or _ were not searched")
    assert hidden.endswith((f"first {lake}/_archive", f"first {lake}/.old"))
    assert outside == (
        "1 link points outside the roots, and its target was searched: "
        f"{lake}/out -> {tmp_path}/elsewhere"
    )
    assert nowhere == f"1 link is broken; a table may be missing there: {lake}/gone"
    passed = SkippedPlaces()
    list(
        tables_under([str(lake)], FolderSelection((), ("_archive", ".old", "out")), skipped=passed)
    )
    assert passed.notes() == (nowhere,)


def test_the_inventory_of_the_scan_is_not_counted(tmp_path: Path) -> None:
    grow(tmp_path, {"_inventory": {"tables": "table"}, "t": "table"})
    for inventory, count in ((str(tmp_path / "_inventory"), 0), (None, 1)):
        passed = SkippedPlaces()
        source = DiscoverySource((str(tmp_path),), inventory=inventory)
        assert len(list(discover_tables(source, {}, 1, passed).local)) == 1
        assert len(passed.notes()) == count


def noted(*roots: Path, selection: FolderSelection = NOTHING) -> tuple[list[str], tuple[str, ...]]:
    passed = SkippedPlaces()
    seen = list(tables_under(list(map(str, roots)), selection, skipped=passed))
    assert all(isinstance(each, DiscoveredTable) for each in seen)
    return sorted(e.location for e in seen if isinstance(e, DiscoveredTable)), passed.notes()


def test_tables_inside_tables(tmp_path: Path) -> None:
    grow(tmp_path, {"a": "table", "elsewhere": {"t": "table"}})
    grow(tmp_path / "a", {"b": {"c": "outer"}, "_x": {"t": "table"}, "k=v": {"t": "table"}})
    (tmp_path / "a" / "link").symlink_to(tmp_path / "elsewhere")
    below = tmp_path / "a" / "b" / "c"
    every = [str(tmp_path / "a"), str(below), str(below / "inner" / "deep")]
    tables, (hidden,) = noted(tmp_path)
    assert tables == [*every, str(tmp_path / "elsewhere" / "t")]
    assert hidden.endswith(f"{tmp_path}/a/_x")
    assert noted(tmp_path, below) == (tables, (hidden,))
    assert noted(tmp_path, selection=FolderSelection((), ("b",)))[0] == [
        every[0],
        str(tmp_path / "elsewhere" / "t"),
    ]
    assert (
        str(tmp_path / "a" / "k=v" / "t") in noted(tmp_path, selection=FolderSelection(("k=*",)))[0]
    )


@pytest.mark.parametrize(("entries", "folders"), [(10, 100), (1000, 3)])
def test_a_big_table_is_searched_as_far_as_that_is_cheap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int, folders: int
) -> None:
    monkeypatch.setattr(local_disk, "_MOST_ENTRIES", entries)
    monkeypatch.setattr(local_disk, "_MOST_FOLDERS", folders)
    listed: list[str] = []
    scandir = os.scandir

    def counted(path: str) -> Any:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    for name in ("big", "large"):
        # As a table with column mapping, whose partitions have folders of random names.
        grow(tmp_path / name, {f"{number:02}": {"t": "file"} for number in range(50)})
        grow(tmp_path / name, "table")
    grow(tmp_path / "small", "outer")
    tables, notes = noted(tmp_path)
    assert len(tables) == 4
    assert notes == (
        "2 tables' folders were not searched completely for tables inside them; "
        f"name one as a root to search it: first {tmp_path}/big",
    )
    assert len([path for path in listed if path.startswith(f"{tmp_path}/big")]) <= folders
    assert not [path for path in listed if "part=1" in path]
    # As a root, it is searched whatever it takes.
    assert noted(tmp_path / "big") == ([str(tmp_path / "big")], ())


def test_a_folder_of_a_table_that_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(tmp_path, {"a": "table", "t": "table"})
    grow(tmp_path / "a" / "data", {"t": "table"})
    scandir = os.scandir

    def refuses(path: str) -> Any:
        if path.endswith("/data"):
            raise PermissionError(13, "denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    tables, (note,) = noted(tmp_path)
    assert tables == [str(tmp_path / "a"), str(tmp_path / "t")]
    assert note.endswith(f"to search it: {tmp_path}/a")
