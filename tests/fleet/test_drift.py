"""What `drift` tells of two scans, held against `inspect` and `history` of the same tables."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.requirements import is_used
from deltaproto.fleet.drift.diff import ChangeKind, ScannedTable, find_differences, unreadable_table
from deltaproto.fleet.scan_history import PastScan, ScanPair
from deltaproto.protocol.protocol import Protocol
from deltaproto.render import schemas
from deltaproto.render.drift import DriftCounts, drift_document
from deltaproto.tables.log.commits import CommitTag
from tests.conftest import Ran
from tests.fleet.moves import move, sound_fleet
from tests.support.contract import documents, validate
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

SCHEMAS = Path(schemas.__file__).parent
Cli = Callable[..., Ran]
Entry = dict[str, Any]


def scan(cli: Cli, root: Path, inventory: Path) -> str:
    ran = cli("scan", str(root), "--inventory", str(inventory), "--format", "json")
    return str(ran.json["scan_id"])


def inspected(cli: Cli, tables: list[Path]) -> dict[str, Entry]:
    here = [str(path) for path in tables if path.exists()]
    told = cli("inspect", *here, "--format", "json").json["tables"] if here else []
    return {entry["table"]: entry for entry in told}


def supported(entry: Entry) -> set[str]:
    return {f["name"] for f in entry["features"] if f["listed"] or f["implied"]}


def in_use(feature: Entry) -> bool | None:
    return is_used(feature["name"], feature["enabled"], feature["present"])


def switched_on(old: Entry, new: Entry) -> set[str]:
    """Features that were disabled and are enabled, if it is unknown whether files had them."""
    maybe = {f["name"] for f in old["features"] if f["enabled"] is False and in_use(f) is None}
    return maybe & {f["name"] for f in new["features"] if f["enabled"]}


def expected(before: dict[str, Entry], now: dict[str, Entry]) -> set[tuple[str, str, str | None]]:
    """Table, kind and feature of each change, from two inspections."""
    found: set[tuple[str, str, str | None]] = set()
    for table in before.keys() | now.keys():
        old, new = before.get(table), now.get(table)
        if new is None:
            if old is not None and "error" not in old:
                found.add((table, "table-gone", None))
        elif "error" in new:
            if old is None or "error" not in old or old["error"]["code"] != new["error"]["code"]:
                found.add((table, "unreadable", None))
        elif old is None:
            found.add((table, "table-new", None))
        elif "error" in old:
            found.add((table, "readable", None))
        else:
            if old["id"] != new["id"]:
                found.add((table, "table-replaced", None))
            had, has = supported(old), supported(new)
            listed = {f["name"] for f in new["features"] if f["listed"]}
            unused_now = {f["name"] for f in new["features"] if in_use(f) is False}
            implied = (has - had - listed) & unused_now
            found |= {(table, "feature-appeared", name) for name in has - had - implied}
            found |= {(table, "feature-implied", name) for name in implied}
            found |= {(table, "feature-disappeared", name) for name in had - has}
            for version in ("minReaderVersion", "minWriterVersion"):
                was, is_ = old["protocol"][version], new["protocol"][version]
                if is_ > was:
                    found.add((table, "protocol-raised", None))
                if is_ < was:
                    found.add((table, "protocol-lowered", None))
            unused = {f["name"] for f in old["features"] if in_use(f) is False}
            enabled = unused & had & has & {f["name"] for f in new["features"] if in_use(f)}
            found |= {(table, "feature-enabled", name) for name in enabled}
            found |= {(table, "feature-enabled", name) for name in switched_on(old, new)}
            found |= {(table, "feature-disabled", name) for name in switched_on(new, old)}
            used = {f["name"] for f in old["features"] if in_use(f)}
            disabled = used & had & has & unused_now
            found |= {(table, "feature-disabled", name) for name in disabled}
            if old["isolation"]["declared"] != new["isolation"]["declared"]:
                found.add((table, "isolation-changed", None))
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_and_no_other(cli: Cli, tmp_path: Path, seed: int) -> None:
    root, inventory = tmp_path / "lake", tmp_path / "i"
    tables = sound_fleet(root, seed, 60)
    move(tables[:5], seed + 10)
    move(missing := tables[5:7], seed)
    aside = tmp_path / "aside"
    shutil.move(tables[8], aside)
    before = inspected(cli, tables)
    scan(cli, root, inventory)
    shutil.move(aside, tables[8])
    move([path for path in tables if path.exists() and path not in missing], seed + 20)
    now = inspected(cli, tables)
    scan(cli, root, inventory)
    ran = cli("drift", str(inventory), "--format", "json")
    validate("drift", ran.json)
    told = ran.json["changes"]
    assert {(c["table"], c["change"], c["feature"]) for c in told} == expected(before, now)
    assert len(told) == len(expected(before, now)) > 40
    assert len({c["change"] for c in told}) >= 7
    assert ran.json["changed_tables"] == len({c["table"] for c in told})
    assert sum(group["tables"] for group in ran.json["counts"]) == len(told)
    _commits_are_right(told, before)


def _commits_are_right(told: list[Entry], before: dict[str, Entry]) -> None:
    named = 0
    for change in told:
        if change["change"] not in ("feature-appeared", "feature-disappeared"):
            continue
        commit, version = change["commit"], change["version_before"] + 1
        if not _commit(change["table"], version).exists():
            # The commits down to the earlier scan are no longer there.
            assert commit is None or commit["version"] > version
            continue
        named += 1
        had, made = supported(before[change["table"]]), None
        while (file := _commit(change["table"], version)).exists():
            for stored in _protocols(file):
                has = set(stored.supported)
                moved = has - had if change["change"] == "feature-appeared" else had - has
                made, had = version if change["feature"] in moved else made, has
            version += 1
        assert commit["version"] == made
        assert commit["operation"].endswith(f"-{made}")
        assert (commit["user"], commit["engine"]) == (f"u{made}", "hand")
    assert named > 10


def _commit(table: str, version: int) -> Path:
    return Path(table) / "_delta_log" / f"{version:020}.json"


def _protocols(file: Path) -> list[Protocol]:
    actions = map(json.loads, file.read_text().splitlines())
    return [Protocol.stored(action["protocol"]) for action in actions if "protocol" in action]


protocols = st.one_of(
    st.sampled_from((Protocol(1, 1), Protocol(1, 2), Protocol(1, 4), Protocol(2, 5))),
    st.sets(st.sampled_from(("deletionVectors", "appendOnly", "rowTracking", "odd"))).map(
        lambda names: Protocol(
            3, 7, frozenset(names - {"appendOnly", "rowTracking"}), frozenset(names)
        )
    ),
)
sights = st.one_of(
    st.none(),
    st.builds(unreadable_table, st.sampled_from(("storage", "not-found")), st.text(max_size=3)),
    st.builds(
        ScannedTable,
        st.integers(0, 3),
        st.sampled_from(("a", "b")),
        protocols,
        st.sampled_from((None, "Serializable")),
        st.none(),
        st.none(),
    ),
)


@given(before=sights, now=sights)
def test_the_way_back_is_the_opposite(
    before: ScannedTable | None, now: ScannedTable | None
) -> None:
    opposite = {
        ChangeKind.FEATURE_APPEARED: ChangeKind.FEATURE_DISAPPEARED,
        ChangeKind.PROTOCOL_RAISED: ChangeKind.PROTOCOL_LOWERED,
        ChangeKind.TABLE_NEW: ChangeKind.TABLE_GONE,
        ChangeKind.TABLE_REPLACED: ChangeKind.TABLE_REPLACED,
        ChangeKind.ISOLATION_CHANGED: ChangeKind.ISOLATION_CHANGED,
    }
    opposite |= {back: there for there, back in opposite.items()}
    there = {
        (c.kind, c.feature) for c in find_differences("l", "t", before, now) if c.kind in opposite
    }
    back = {
        (c.kind, c.feature) for c in find_differences("l", "t", now, before) if c.kind in opposite
    }
    assert {(opposite[kind], feature) for kind, feature in there} == back
    if before == now:
        assert not list(find_differences("l", "t", before, now))


def test_what_could_not_be_looked_into_is_neither_new_nor_gone(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, inventory = tmp_path / "lake", tmp_path / "i"
    sound_fleet(root, 3, 12)
    shut, listed = str(root / "area 1"), os.scandir

    def scandir(path: str) -> Any:
        # Root, as whom the tests may run, is not kept out by permissions.
        if str(path) == shut:
            raise PermissionError(13, "Permission denied", shut)
        return listed(path)

    scan(cli, root, inventory)
    with monkeypatch.context() as closed:
        closed.setattr(os, "scandir", scandir)
        scan(cli, root, inventory)
    scan(cli, root, inventory)
    ids = [row["scan_id"] for row in _scans(inventory)]
    for since, until, kind in ((ids[0], ids[1], "unreadable"), (ids[1], ids[2], "readable")):
        words = ("--since", since, "--until", until, "--format", "json")
        told = cli("drift", str(inventory), *words)
        assert told.code == 3
        kinds = {(c["change"], Path(c["table"]).parent.name) for c in told.json["changes"]}
        assert kinds - {("unreadable", "lake")} == {(kind, "area 1")}


def _scans(inventory: Path) -> list[Entry]:
    rows = DeltaTable(inventory / "scans").to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: str(row["ended_at"]))


def test_other_roots_tell_nothing_of_new_and_gone(cli: Cli, tmp_path: Path) -> None:
    root, inventory = tmp_path / "lake", tmp_path / "i"
    tables = sound_fleet(root, 4, 12)
    first = scan(cli, root / "area 0", inventory)
    move(tables, 5)
    scan(cli, root, inventory)
    alone = cli("drift", str(inventory))
    assert (alone.code, alone.err) == (3, "")
    assert "1 table or place could not be read in this scan: what changes there" in alone.out
    assert ("earlier scan" in alone.out, "later scan" in alone.out) == (False, False)
    assert "is the first scan with its roots and patterns" in " ".join(alone.out.split())
    assert f"--since {first}" in alone.out
    ran = cli("drift", str(inventory), "--since", first, "--format", "json")
    assert ran.json["same_roots"] is False
    assert ran.json["changes"]
    assert not {c["change"] for c in ran.json["changes"]} & {"table-new", "table-gone"}
    assert all("/area 0/" in c["table"] for c in ran.json["changes"])
    assert "different roots" in cli("drift", str(inventory), "--since", first).out


def test_formats_codes_and_times(cli: Cli, tmp_path: Path) -> None:
    root, inventory = tmp_path / "lake", tmp_path / "i"
    tables = sound_fleet(root, 6, 8)
    assert cli("drift", str(inventory)).code == 2
    first = scan(cli, root, inventory)
    alone = cli("drift", str(inventory), "--format", "json")
    assert (alone.code, alone.json["changes"]) == (0, [])
    assert alone.json["notices"] == [
        f"nothing to compare yet: {first} is the first scan with its roots and patterns"
    ]
    second = scan(cli, root, inventory)
    quiet = cli("drift", str(inventory))
    assert quiet.code == 0
    assert "nothing changed" in quiet.out
    shutil.rmtree(tables[0])
    third = scan(cli, root, inventory)
    assert cli("drift", str(inventory)).code == 0
    assert cli("drift", str(inventory), "--fail-on", "warning").code == 1
    assert cli("drift", str(inventory), "--until", second).code == 0
    assert cli("drift", str(inventory), "--since", first, "--until", second[:-1]).code == 0
    lines = documents(cli("drift", str(inventory), "--since", first, "--format", "jsonl"), "drift")
    assert [(d["change"], d["until"]["scan_id"]) for d in lines] == [("table-gone", third)]
    assert "table-gone" in cli("drift", str(inventory), "--format", "markdown").out
    for words in (("--since", third, "--until", "9998-01-01"), ("--since", "9998-01-01")):
        same = cli("drift", str(inventory), *words, "--format", "json", "--fail-on", "warning")
        assert (same.code, same.json["changes"]) == (0, []), words
        assert same.json["notices"] == [
            f"nothing to compare yet: {third} is both the start and the end of the comparison"
        ]
    refused = cli("drift", str(inventory), "--since", third, "--until", first)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(
        f"error: scan {third} is newer than the scan that it is compared with\n"
    )
    for wanted in ("1999-01-01", "nonsense", "2026"):
        assert cli("drift", str(inventory), "--since", wanted).code == 2, wanted
    assert (
        json.loads(cli("drift", str(inventory), "--until", "9998-01-01", "--format", "json").out)[
            "until"
        ]["scan_id"]
        == third
    )


def test_who_made_most_of_a_change_is_named_first(cli: Cli, tmp_path: Path) -> None:
    vectors = ["deletionVectors"]
    engines = [("Databricks-Runtime/16.4", "nightly")] * 5 + [("Apache-Spark/4.2.0", None)] * 2
    logs = [Log(tmp_path / "lake" / f"t{number}") for number in range(len(engines) + 1)]
    for log in logs:
        log.commit(0, commit_info(), protocol(1, 2), metadata())
    scan(cli, tmp_path / "lake", tmp_path / "i")
    for log, (engine, user) in zip(logs, engines, strict=False):
        by = {"engineInfo": engine} | ({"userName": user} if user else {})
        log.commit(1, commit_info("SET TBLPROPERTIES", **by), protocol(3, 7, vectors, vectors))
    scan(cli, tmp_path / "lake", tmp_path / "i")
    for format_ in ("text", "markdown"):
        told = cli("drift", str(tmp_path / "i"), "--format", format_).out
        assert "feature-appeared deletionVectors: 7 tables" in told
        assert "by Databricks-Runtime/16.4, nightly (5); Apache-Spark/4.2.0 (2)" in told


def test_features_that_only_new_versions_imply_are_no_errors(cli: Cli, tmp_path: Path) -> None:
    """The raised versions are the error; a feature that they imply is one only if it is used."""
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    logs = {name: Log(lake / name) for name in ("unused", "used")}
    for log in logs.values():
        log.commit(0, protocol(1, 2), metadata())
    scan(cli, lake, inventory)
    job = {"job": {"jobId": "7", "jobName": "nightly_load"}, "userName": "etl"}
    info = {"commitInfo": {"timestamp": 1, "operation": "SET TBLPROPERTIES", **job}}
    logs["unused"].commit(1, info, protocol(1, 4))
    feed = {"delta.enableChangeDataFeed": "true"}
    logs["used"].commit(1, info, protocol(1, 4), metadata(feed))
    scan(cli, lake, inventory)
    ran = cli("drift", str(inventory), "--format", "json")
    validate("drift", ran.json)
    assert ran.code == 1
    found = {
        (Path(each["table"]).name, each["feature"]): (each["change"], each["severity"])
        for each in ran.json["changes"]
    }
    appeared, implied = ("feature-appeared", "error"), ("feature-implied", "info")
    assert found["used", "changeDataFeed"] == appeared
    assert found["unused", "changeDataFeed"] == implied
    assert found["used", "generatedColumns"] == found["unused", "generatedColumns"] == implied
    assert found["unused", None] == found["used", None] == ("protocol-raised", "error")
    assert {each["commit"]["job"] for each in ran.json["changes"]} == {"nightly_load"}
    assert "by etl, job nightly_load" in " ".join(cli("drift", str(inventory)).out.split())


def test_a_property_that_is_switched_is_a_change(cli: Cli, tmp_path: Path) -> None:
    """The log does not show whether older files have deletion vectors; the property is known."""
    vectors = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
    off, on = (metadata({"delta.enableDeletionVectors": each}) for each in ("false", "true"))
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    logs = {name: Log(lake / name) for name in ("on", "off", "same")}
    for name, log in logs.items():
        log.commit(0, commit_info(), vectors, on if name == "off" else off)
    scan(cli, lake, inventory)
    logs["on"].commit(1, commit_info("SET TBLPROPERTIES"), on)
    logs["off"].commit(1, commit_info("SET TBLPROPERTIES"), off)
    logs["same"].commit(1, commit_info("SET TBLPROPERTIES"), off)
    scan(cli, lake, inventory)
    ran = cli("drift", str(inventory), "--format", "json")
    validate("drift", ran.json)
    assert ran.code == 1
    changes = {Path(each["table"]).name: each for each in ran.json["changes"]}
    assert {name: (c["change"], c["before"], c["after"]) for name, c in changes.items()} == {
        "on": ("feature-enabled", "disabled", "in use"),
        "off": ("feature-disabled", "in use", "disabled"),
    }
    assert {(c["feature"], c["commit"]["version"]) for c in changes.values()} == {
        ("deletionVectors", 1)
    }


def test_a_change_by_a_plan_names_it(cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    logs = [Log(lake / name) for name in ("a", "b")]
    for log in logs:
        log.commit(0, protocol(1, 2), metadata())
    scan(cli, lake, inventory)
    for number, log in enumerate(logs):
        tag = CommitTag(f"{number:016x}", "s1", "run", "alice").text()
        by = commit_info("SET TBLPROPERTIES", engineInfo="Spark", userMetadata=tag)
        log.commit(1, by, protocol(1, 4), metadata({"delta.enableChangeDataFeed": "true"}))
    scan(cli, lake, inventory)
    ran = cli("drift", str(inventory), "--format", "json")
    validate("drift", ran.json)
    plans = {(Path(each["table"]).name, each["commit"]["plan"]) for each in ran.json["changes"]}
    assert plans == {("a", f"{0:016x}"), ("b", f"{1:016x}")}
    shown = " ".join(cli("drift", str(inventory)).out.split())
    assert "by Spark, deltaproto apply (2)" in shown
    assert f"plan {1:016x}" in shown


@pytest.mark.parametrize("name", ["drift", "scan"])
def test_the_schemas_have_every_kind_of_change(name: str) -> None:
    schema = (SCHEMAS / f"{name}.schema.json").read_text()
    assert [kind for kind in ChangeKind if f'"{kind}"' not in schema] == []


def _tables(lake: Path, *names: str) -> dict[str, Log]:
    logs = {name: Log(lake / name) for name in names}
    for name, log in logs.items():
        log.commit(0, commit_info(), protocol(1, 2), metadata(id=f"id of {log.root.name} {name}"))
    return logs


def _changes(cli: Cli, inventory: Path) -> dict[tuple[str, str], list[Entry]]:
    """The changes by the last folders of the table, and the kind."""
    ran = cli("drift", str(inventory), "--format", "json")
    validate("drift", ran.json)
    found: dict[tuple[str, str], list[Entry]] = {}
    for each in ran.json["changes"]:
        short = "/".join(Path(each["table"]).parts[-2:])
        found.setdefault((short, each["change"]), []).append(each)
    return found


def test_a_moved_table_is_neither_gone_nor_new(cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    _tables(lake, "raw/a", "raw/b", "gold/c", "gold/d")
    scan(cli, lake, inventory)
    (lake / "raw").rename(lake / "bronze")
    (lake / "gold/c").rename(lake / "gold/c %")
    moved = Log.__new__(Log)
    moved.root, moved.folder = lake / "bronze/a", lake / "bronze/a/_delta_log"
    vectors = ["deletionVectors"]
    moved.commit(1, commit_info("SET", engineInfo="Spark"), protocol(3, 7, vectors, vectors))
    shown = cli("scan", str(lake), "--inventory", str(inventory)).out
    assert ("table-moved" in shown, "table-gone" in shown, "table-new" in shown) == (True, 0, 0)
    found = _changes(cli, inventory)
    assert {key for key in found if key[1].startswith("table-")} == {
        ("bronze/a", "table-moved"),
        ("bronze/b", "table-moved"),
        ("gold/c %", "table-moved"),
    }
    (entry,) = found["gold/c %", "table-moved"]
    old, new = (f"file://{lake}/gold/c", f"file://{lake}/gold/c%20%25")
    assert (entry["moved_from"], entry["before"], entry["after"]) == (old, old, new)
    assert (entry["location"], entry["severity"]) == (new, "warning")
    (appeared,) = found["bronze/a", "feature-appeared"]
    assert (appeared["severity"], appeared["commit"]["version"]) == ("error", 1)
    assert appeared["moved_from"] == f"file://{lake}/raw/a"
    for format_ in ("text", "markdown"):
        shown = cli("drift", str(inventory), "--format", format_).out
        assert "3 tables changed" in shown
        assert "table-moved: 3 tables" in shown
        told = shown.replace("\\", "")
        assert f"from {lake}/raw to {lake}/bronze (2); {lake}/gold/c to {lake}/gold/c % (1)" in told
        assert f": moved from {lake}/gold/c; version 0" in told
    report = cli("report", str(inventory), "--format", "html").out
    assert "table-moved" in report
    assert "table-gone" not in report


def test_copies_and_restored_tables_are_not_moved(cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    logs = _tables(lake, "x/kept", "x/twice", "x/copied", "x/rolled-back", "x/replaced", "x/pair")
    shutil.copytree(lake / "x/pair", lake / "x/pair2")
    shutil.copytree(lake / "x/rolled-back", tmp_path / "backup")
    logs["x/rolled-back"].commit(1, commit_info())
    scan(cli, lake, inventory)
    shutil.copytree(lake / "x/kept", lake / "y/kept")
    (lake / "x/twice").rename(lake / "y/one")
    shutil.copytree(lake / "y/one", lake / "y/two")
    shutil.rmtree(lake / "x/rolled-back")
    shutil.copytree(tmp_path / "backup", lake / "y/rolled-back")
    (lake / "x/replaced").rename(lake / "y/replaced")
    _tables(lake, "x/replaced")["x/replaced"].commit(1, metadata(id="another"))
    (lake / "x/pair").rename(lake / "y/pair")
    scan(cli, lake, inventory)
    found = _changes(cli, inventory)
    assert {key for key in found if key[1] != "table-new"} == {
        ("x/twice", "table-gone"),
        ("x/rolled-back", "table-gone"),
        ("x/pair", "table-gone"),
        ("x/replaced", "table-replaced"),
    }
    assert {key for key, kind in found if kind == "table-new"} == {
        *("y/kept", "y/one", "y/two", "y/rolled-back", "y/replaced", "y/pair")
    }
    assert {each["moved_from"] for changes in found.values() for each in changes} == {None}


@pytest.mark.parametrize("shut_in", [1, 2])
def test_nothing_is_moved_from_or_to_a_place_that_could_not_be_searched(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shut_in: int
) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    _tables(lake, "a/t", "a/u")
    (lake / "b").mkdir()
    listed = os.scandir

    def scandir(path: str) -> Any:
        if str(path) == shut:
            raise PermissionError(13, "Permission denied", shut)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    shut = str(lake / "b") if shut_in == 1 else ""
    scan(cli, lake, inventory)
    shutil.copytree(lake / "a/t", lake / "b/t")
    shut = str(lake / "a") if shut_in == 2 else ""
    if shut_in == 1:
        shutil.rmtree(lake / "a/t")
    scan(cli, lake, inventory)
    found = _changes(cli, inventory)
    if shut_in == 1:
        assert found.keys() >= {("a/t", "table-gone"), ("b/t", "readable")}
    else:
        assert found.keys() >= {("a/t", "unreadable"), ("b/t", "table-new")}
    assert "table-moved" not in {kind for _, kind in found}


def test_the_times_tell_two_scans_apart() -> None:
    start = datetime(2026, 11, 30, 11, 43, 41, 250_000, UTC)
    scans = [
        PastScan(f"s{number}", start + timedelta(seconds=number / 2), start, 1, 0, ("r",), (), ())
        for number in range(3)
    ]
    now = datetime(2026, 12, 1, tzinfo=UTC)
    shown = drift_document(ScanPair(scans[0], scans[2]), DriftCounts(), now).subtitle
    assert shown == ("2026-11-30 11:43:41Z to 2026-11-30 11:43:42Z",)
    shown = drift_document(ScanPair(scans[0], scans[1]), DriftCounts(), now).subtitle
    assert shown == ("2026-11-30 11:43:41.250000Z to 2026-11-30 11:43:41.750000Z",)
