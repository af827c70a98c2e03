"""Small files of a log on an object store are kept, and commits fetched before they are read."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.seen.log_files import _Bucket
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.storage import read_ahead
from deltaproto.tables.storage.objects import ObjectLogStore
from deltaproto.tables.storage.read_ahead import ListedFile, SmallFiles
from tests.conftest import Ran
from tests.support.lakes import Lake, s3_lake
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]


def commit(version: int) -> str:
    return f"{version:020d}.json"


class Folder:
    """Files in memory that count how often each is fetched."""

    def __init__(self, *names: str) -> None:
        self.files = {name: name.encode() for name in names}
        self.fetched: Counter[str] = Counter()

    def fetch(self, name: str) -> bytes:
        self.fetched[name] += 1
        if name not in self.files:
            raise TableError(ErrorCode.CORRUPT_LOG, f"{name} is gone", "")
        return self.files[name]

    def listing(self) -> dict[str, ListedFile]:
        return {name: ListedFile(len(data), data.hex()) for name, data in self.files.items()}

    def opened(self) -> SmallFiles:
        small = SmallFiles(self.fetch)
        small.listed(self.listing())
        return small


@pytest.mark.parametrize("order", [1, -1])
def test_commits_are_fetched_once_and_in_advance(order: int) -> None:
    folder = Folder(*map(commit, range(50)))
    small = folder.opened()
    versions = list(range(50))[::order]
    for version in [*versions, *versions]:
        assert small.read(commit(version)) == commit(version).encode()
    assert folder.fetched == Counter(map(commit, range(50)))


def test_two_commits_in_a_row_fetch_those_that_follow() -> None:
    folder = Folder(*map(commit, range(100)))
    small, waiting = folder.opened(), threading.Barrier(3)
    small.read(commit(99))
    assert list(folder.fetched) == [commit(99)]

    def fetch(name: str) -> bytes:
        # Two are fetched beside each other while the second is read, or this never ends.
        waiting.wait(60)
        return folder.fetch(name)

    small._fetch = fetch
    small.read(commit(98))
    assert {commit(97), commit(96)} <= folder.fetched.keys() | small._coming.keys()
    for future in small._coming.values():
        future.result()
    assert folder.fetched == Counter(map(commit, (99, 98, 97, 96)))


def test_nothing_below_the_checkpoint_is_fetched_in_advance() -> None:
    folder = Folder(*map(commit, range(50)), f"{40:020d}.checkpoint.parquet")
    small = folder.opened()
    for version in range(49, 40, -1):
        small.read(commit(version))
    assert set(folder.fetched) == {commit(v) for v in range(41, 50)}
    small.read(commit(40))
    small.read(commit(39))
    assert commit(38) in folder.fetched.keys() | small._coming.keys()


def test_large_files_and_those_without_a_tag_are_not_kept() -> None:
    small = Folder().opened()
    small.listed({"a": ListedFile((1 << 20) + 1, "1"), "b": ListedFile(1, None)})
    assert [small.read(name) for name in ("a", "b", "unlisted")] == [None, None, None]


def test_a_commit_that_is_never_read_may_be_unreadable() -> None:
    folder = Folder(*map(commit, range(5)))
    small = folder.opened()
    del folder.files[commit(2)]
    for version in (4, 3):
        small.read(commit(version))
    with pytest.raises(TableError, match="is gone"):
        small.read(commit(2))


def test_no_more_than_a_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_KEPT_BYTES", 100)
    folder = Folder("a", "b", "c")
    folder.files = {name: name.encode() * 60 for name in folder.files}
    small = folder.opened()
    for name in ("a", "b", "b", "c", "a"):
        assert small.read(name) == name.encode() * 60
    assert folder.fetched == {"a": 2, "b": 1, "c": 1}


steps = st.lists(
    st.tuples(st.just("read"), st.integers(0, 12))
    | st.tuples(st.just("write"), st.integers(0, 12))
    | st.tuples(st.just("delete"), st.integers(0, 12))
    | st.tuples(st.just("list"), st.just(0)),
    max_size=40,
)


@given(steps=steps)
def test_after_a_listing_the_contents_are_those_of_the_listing(
    steps: list[tuple[str, int]],
) -> None:
    folder = Folder(*map(commit, range(13)))
    small = folder.opened()
    current = True
    for number, (action, version) in enumerate(steps):
        name = commit(version)
        if action == "write":
            folder.files[name], current = f"{name} {number}".encode(), False
        elif action == "delete":
            folder.files.pop(name, None)
            current = False
        elif action == "list":
            for future in small._coming.values():
                future.exception()
            small.listed(folder.listing())
            current = True
        elif current:
            assert small.read(name) == folder.files.get(name)


@pytest.fixture(scope="module")
def lake() -> Iterator[Lake]:
    with s3_lake() as found:
        yield found


def table(root: Path, *, commits: int) -> Path:
    log = Log(root)
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
    for version in range(1, commits):
        log.commit(version, commit_info("WRITE"), add(f"part-{version}.parquet"))
    return root


@pytest.mark.storage
def test_a_plan_fetches_each_file_once(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = table(tmp_path / "t", commits=30)
    uri = lake.upload(local, "once/t")
    fetched: Counter[str] = Counter()
    fetch = ObjectLogStore._get

    def counting(store: ObjectLogStore, name: str) -> bytes:
        fetched[name] += 1
        return fetch(store, name)

    monkeypatch.setattr(ObjectLogStore, "_get", counting)
    now = time.time()
    found = load_plan_input(uri, lake.options, SparkSettings(), now)
    assert fetched == Counter(map(commit, range(30)))
    expected = load_plan_input(str(local), {}, SparkSettings(), now)
    assert found.table._replace(hours_left={}) == expected.table._replace(hours_left={})
    assert found.files == expected.files
    assert found.engines == expected.engines


def read_together(monkeypatch: pytest.MonkeyPatch, method: str, *uris: str) -> None:
    """Fail unless these tables are listed at the same time: each waits for all others."""
    together, listed = threading.Barrier(len(uris)), getattr(ObjectLogStore, method)
    left = set(uris)

    def listing(store: ObjectLogStore) -> object:
        if store._uri in left:
            left.remove(store._uri)
            together.wait(60)
        return listed(store)

    monkeypatch.setattr(ObjectLogStore, method, listing)


def scan(cli: Cli, lake: Lake, folder: Path, prefix: str) -> tuple[str, str, str]:
    """Three tables in the store. Return their root, an inventory and a policy."""
    for name in ("a", "b", "c"):
        uri = lake.upload(table(folder / "lake" / name, commits=2), f"{prefix}/{name}")
    root, inventory, policy = uri.rpartition("/")[0], folder / "inventory", folder / "policy.yaml"
    scanned = cli("scan", root, "--inventory", str(inventory), *lake.words())
    assert scanned.code == 0, scanned.out + scanned.err
    policy.write_text(
        "policy_version: 1\ntables:\n  '**':\n    require_features: [deletionVectors]\n"
        "rollout: {waves: [100%], soak: 1h}\n"
    )
    return root, str(inventory), str(policy)


@pytest.mark.storage
@pytest.mark.parametrize(
    "command", ["inspect", "check", "plan-downgrade --lowest --details"], ids=lambda text: text[:5]
)
def test_named_tables_are_read_at_the_same_time_and_shown_in_their_order(
    cli: Cli, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    local = table(tmp_path / "local", commits=2)
    uris = [lake.upload(local, f"named-{command[:5]}/{name}") for name in "ab"]
    names = [uris[0], str(local), f"{uris[0]}/none", uris[1]]
    verb, *words = command.split()
    read_together(monkeypatch, "list", *uris, names[2])
    done = cli(verb, *names, *words, "--format", "json", *lake.words())
    assert done.code == 3, done.out + done.err
    if verb == "check":
        found = {each["table"]: "error" in each for each in done.json["errors"]}
        found |= {each["table"]: False for each in done.json["tables"]}
        assert found == {name: name.endswith("none") for name in names}
        return
    entries = done.json["plans" if verb.startswith("plan") else "tables"]
    assert [(each["table"], "error" in each) for each in entries] == [
        (name, name.endswith("none")) for name in names
    ]


@pytest.mark.storage
def test_tables_of_an_inventory_are_read_again_at_the_same_time(
    cli: Cli, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, inventory, policy = scan(cli, lake, tmp_path, "fresh")
    goal = ("plan", inventory, "--policy", policy, "--fresh", "--format", "json")
    read_together(monkeypatch, "list_dated", *(f"{root}/{name}" for name in "abc"))
    planned = cli(*goal, *lake.words())
    assert planned.code == 0, planned.out + planned.err
    assert [plan["table"] for plan in planned.json["plans"]] == [f"{root}/{n}" for n in "abc"]
    assert all(plan["fingerprint"]["metadata"] for plan in planned.json["plans"])


@pytest.mark.storage
def test_tables_of_a_rollout_are_read_at_the_same_time(
    cli: Cli, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, inventory, policy = scan(cli, lake, tmp_path, "rollout")
    plans, tables = str(tmp_path / "plans"), [f"{root}/{name}" for name in "abc"]
    with monkeypatch.context() as patch:
        read_together(patch, "list_dated", *tables)
        planned = cli("plan", inventory, "--policy", policy, "--out", plans, *lake.words())
    assert planned.code == 0, planned.out + planned.err
    read_together(monkeypatch, "list", *tables)
    status = cli("status", plans, "--format", "json", *lake.words())
    assert status.code == 0, status.out + status.err
    (wave,) = status.json["rollout"]["waves"]
    assert [(each["table"], each["status"]) for each in wave["tables"]] == [
        (name, "ready") for name in tables
    ]


ACCESS = (
    "owner lake [29/Nov/2026:10:00:00 +0000] 10.0.0.1 ann ABC REST.GET.OBJECT "
    '{key} "GET /{key} HTTP/1.1" 200 - 1 1 1 1 "-" "deltalake-python/1.0" - x= SigV4 TLS '
    "AuthHeader lake.s3.amazonaws.com TLSv1.3 - -\n"
)


@pytest.mark.storage
def test_small_files_of_an_access_log_are_fetched_at_the_same_time(
    cli: Cli, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = lake.upload(table(tmp_path / "t", commits=2), "seen/t")
    line = ACCESS.format(key=f"seen/t/_delta_log/{commit(0)}")
    for name, lines in (("a", 2), ("b", 3), ("large", 10_000), ("z", 5)):
        lake.put(f"access/{name}", (line * lines).encode())
    together, fetch = threading.Barrier(3), _Bucket._fetch

    def fetching(bucket: _Bucket, root: str, path: str, start: int, end: int) -> bytes:
        if not path.endswith("large"):
            together.wait(60)
        return fetch(bucket, root, path, start, end)

    monkeypatch.setattr(_Bucket, "_fetch", fetching)
    words = ("discover", uri, "--no-store", "--access-log", uri.replace("seen/t", "access"))
    done = cli(*words, "--format", "json", *lake.words())
    assert done.code == 0, done.out + done.err
    (source,) = (each for each in done.json["sources"] if each["name"] != "table logs")
    assert source["lines"] == source["matched"] == 10_010
