"""Logs that are listed together are listed as each alone would be, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet import log_listings
from deltaproto.fleet.discovered import DiscoveredTable, FolderSelection, SkippedPlaces
from deltaproto.fleet.log_listings import _PAGE, _Listings, list_logs, lists_in_order
from deltaproto.fleet.object_store import tables_under
from deltaproto.tables.storage.interface import Deadline, FolderEntry
from deltaproto.tables.storage.objects import ObjectLogStore
from tests.fleet.test_scan_objects import BUCKET, Store, opened

Files = list[dict[str, Any]]
LOG = "_delta_log"


def file(key: str, size: int = 7) -> dict[str, Any]:
    return {"path": key, "size": size}


def answers(listings: _Listings, files: Files, page: int = _PAGE) -> None:
    """Let the listings ask until they end, as a store of these files answers."""
    stored = sorted(files, key=lambda each: each["path"].encode())
    for _ in range(len(stored) + 2):
        if listings.offset is None:
            return
        after = listings.offset.encode()
        found = [each for each in stored if each["path"].encode() > after]
        listings.add(found[:page])
    raise AssertionError("it goes on and on")


def entries(files: Files, folder: str) -> set[FolderEntry]:
    """What a listing of one log shows."""
    found = set()
    for each in files:
        if each["path"].startswith(f"{folder}/{LOG}/"):
            name, slash, _ = each["path"][len(f"{folder}/{LOG}/") :].partition("/")
            found.add(FolderEntry(name + slash, None if slash else each["size"]))
    return found


NAMES = st.text("aAz_-.0=", min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
LOG_FILES = st.sampled_from(
    [f"{number:020}.json" for number in range(3)]
    + ["_last_checkpoint", "_sidecars/a.parquet", "_staged_commits/b.json", ".hidden.crc"]
)
TABLES = st.dictionaries(
    NAMES,
    st.tuples(
        st.lists(LOG_FILES, unique=True, max_size=4),
        st.integers(0, 4),
        st.lists(st.sampled_from(["A=1/p", "_delta_lo", "_delta_log2/x", "p", "z/q"]), max_size=3),
    ),
    max_size=12,
)


@given(TABLES, st.sampled_from(["", "lake/"]), st.integers(2, 12), st.data())
def test_what_is_found_is_what_each_listing_alone_shows(
    tables: dict[str, Any], prefix: str, page: int, data: st.DataObject
) -> None:
    files: Files = []
    for name, (log, parts, others) in tables.items():
        files += [file(f"{prefix}{name}/{LOG}/{each}", len(each)) for each in log]
        files += [file(f"{prefix}{name}/part-{number}") for number in range(parts)]
        files += [file(f"{prefix}{name}/{other}") for other in others]
    files = list({each["path"]: each for each in files}.values())
    asked = data.draw(st.lists(st.sampled_from([*tables, "missing"]), unique=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_listings, "_PAGE", page)
        patch.setattr(log_listings, "_WORTHWHILE", data.draw(st.integers(1, 3)))
        listings = _Listings(prefix, asked)
        answers(listings, files, page)
    assert listings.found.keys() <= set(asked)
    for name, found in listings.found.items():
        assert len(found) == len(set(found))
        assert set(found) == entries(files, prefix + name)
    if len(files) < page:
        assert listings.found.keys() == {
            name for name in asked if name in tables and tables[name][0]
        }


def test_all_small_tables_are_found() -> None:
    files = [
        file(f"t{number:04}/{each}")
        for number in range(500)
        for each in (f"{LOG}/{0:020}.json", f"{LOG}/{0:020}.crc", "a", "b", "c")
    ]
    listings = _Listings("", [f"t{number:04}" for number in range(500)])
    answers(listings, files)
    assert len(listings.found) == 500


def test_data_files_of_a_large_table_are_skipped() -> None:
    small = [f"s{number}" for number in range(8)]
    files = [file(f"{name}/{LOG}/{0:020}.json") for name in [*small, "large", "zz"]]
    files += [file(f"large/part-{number:06}") for number in range(5_000)]
    listings = _Listings("", [*small, "large", "zz"])
    pages = 0
    while listings.offset is not None:
        after = listings.offset
        found = sorted(each["path"] for each in files if each["path"] > after)[:_PAGE]
        listings.add([file(key) for key in found])
        pages += 1
    # The first response ends in the data of the large table, and shows too few logs to go on.
    assert (pages, set(listings.found)) == (1, {"large"})


def test_a_store_with_another_order_proves_nothing() -> None:
    keys = [f"t{number}/{LOG}/{0:020}.json" for number in range(9)]
    listings = _Listings("", [f"t{number}" for number in range(9)])
    listings.add([file(key) for key in [*keys[:5], *reversed(keys[5:])]])
    assert (listings.found, listings.offset) == ({}, None)


@pytest.mark.parametrize("odd", ["", "_staged_commits", "_sidecars"])
def test_objects_that_stand_for_folders_are_asked_for_alone(odd: str) -> None:
    """A client shows them without the slash at their end."""
    listings = _Listings("", ["a", "b"])
    answers(
        listings,
        [
            file(f"a/{LOG}/{odd}".rstrip("/"), 0),
            file(f"a/{LOG}/{0:020}.json"),
            file(f"b/{LOG}/{0:020}.json"),
        ],
    )
    assert set(listings.found) == {"b"}


@pytest.mark.parametrize(
    ("uri", "ordered"),
    [
        ("s3://lake/a", True),
        ("S3A://lake", True),
        ("s3://lake--use1-az4--x-s3/a", False),
        ("abfss://c@a.dfs.core.windows.net/a", False),
        ("gs://lake/a", False),
    ],
)
def test_where_listings_are_in_order(uri: str, ordered: bool) -> None:
    assert lists_in_order(uri) is ordered


@pytest.fixture(scope="module")
def lake() -> Iterator[Store]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    log = [f"{LOG}/{0:020}.json", f"{LOG}/{0:020}.crc", f"{LOG}/_staged_commits/x.json"]
    with opened(server) as store:

        def put(name: str, *files: str) -> None:
            for each in files:
                lake = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
                lake.put_object(BUCKET, f"listings/{name}/{each}", b"{}")

        for number in range(120):
            put(f"small/t{number:03}", *log, "part-0", "Region=1/part-0")
        for name in ("a b", "a%20b", "a+b", "ä", "a~b", "t-1", "t.1", "t0", "t"):
            put(f"odd/{name}", *log, "part-0")
        put("odd/no_table", "part-0")
        put("odd/nested/table", *log)
        yield store
    server.stop()


ROOT = f"s3://{BUCKET}/listings"


def tables(root: str, options: dict[str, str]) -> dict[str, DiscoveredTable]:
    found = list(tables_under(root, options, FolderSelection(), 8, skipped=SkippedPlaces()))
    assert all(isinstance(each, DiscoveredTable) for each in found), found
    return {each.location: each for each in found if isinstance(each, DiscoveredTable)}


@pytest.mark.storage
def test_logs_beside_each_other_cost_few_listings(lake: Store) -> None:
    root, options = f"{ROOT}/small", lake.storage_options
    lake.proxy.requests.clear()
    found = tables(root, options)
    # Two for the root, and one for each hundred folders.
    assert [kind for kind, _ in lake.proxy.requests] == ["LIST"] * 4
    assert set(found) == {f"{root}/t{number:03}" for number in range(120)}
    for uri in (f"{root}/t000", f"{root}/t119"):
        assert set(found[uri].listed or ()) == set(ObjectLogStore(uri, options).list())


@pytest.mark.storage
def test_folders_with_any_name_are_found(lake: Store) -> None:
    root, options = f"{ROOT}/odd", lake.storage_options
    names = ("a b", "a%20b", "a+b", "ä", "a~b", "t-1", "t.1", "t0", "t", "nested/table")
    found = tables(root, options)
    assert set(found) == {f"{root}/{name}" for name in names}
    for uri, table in found.items():
        assert set(table.listed or ()) == set(ObjectLogStore(uri, options).list())


@pytest.mark.storage
def test_a_store_that_refuses_common_listings_is_asked_for_each(
    lake: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise TableError(ErrorCode.PERMISSION_DENIED, "access is denied", "ask for it")

    monkeypatch.setattr("deltaproto.fleet.object_store.list_logs", refuse)
    assert len(tables(f"{ROOT}/small", lake.storage_options)) == 120


@pytest.mark.storage
def test_a_deadline_ends_the_listings(lake: Store) -> None:
    names = [f"t{number:03}" for number in range(120)]
    lake.proxy.requests.clear()
    assert list_logs(f"{ROOT}/small", names, lake.storage_options, Deadline(-1)) == {}
    assert lake.proxy.requests == []
