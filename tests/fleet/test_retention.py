"""Old scans that an inventory forgets, and the file that says what to scan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.fleet.old_scans import find_outdated
from deltaproto.fleet.scan_history import PastScan
from tests.conftest import Ran
from tests.fleet.moves import sound_fleet

Cli = Callable[..., Ran]
NAMES = ("scans", "tables", "features", "findings", "errors")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def past(age_days: float, root: str) -> PastScan:
    ended = NOW - timedelta(days=age_days)
    scan_id = f"{ended - timedelta(hours=1):%Y%m%dT%H%M%SZ}-{root}{age_days}"
    return PastScan(scan_id, ended, ended, 1, 0, (root,), (), ())


@given(
    scans=st.lists(
        st.builds(past, st.integers(0, 30).map(float), st.sampled_from("ab")),
        unique_by=lambda scan: scan.scan_id,
    ),
    broken=st.lists(st.integers(0, 30), unique=True),
    days=st.integers(1, 30),
)
def test_what_is_forgotten_is_old_and_not_the_last_of_its_roots(
    scans: list[PastScan], broken: list[int], days: int
) -> None:
    scans.sort(key=lambda scan: (scan.ended_at, scan.scan_id))
    died = {f"{NOW - timedelta(days=age):%Y%m%dT%H%M%SZ}-died": age for age in broken}
    gone = set(find_outdated(scans, {*(scan.scan_id for scan in scans), *died}, days, NOW))
    for scan in scans:
        last = max(s.ended_at for s in scans if s.extent == scan.extent)
        old = scan.ended_at < NOW - timedelta(days=days)
        if scan.ended_at < last:
            assert (scan.scan_id in gone) == old
    for root in {scan.roots for scan in scans}:
        assert any(scan.roots == root and scan.scan_id not in gone for scan in scans)
    assert {each for each in gone if each in died} == {
        each for each, age in died.items() if age > days
    }


def stored(inventory: Path) -> dict[str, set[str]]:
    return {
        name: set(DeltaTable(inventory / name).to_pyarrow_table().column("scan_id").to_pylist())
        for name in NAMES
    }


def test_old_scans_go_from_every_table(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "i"
    sound_fleet(lake, 1, 8)
    (lake / "area 0" / "t000" / "_delta_log" / f"{1:020}.json").write_text("{damaged")
    words = ("scan", str(lake), "--inventory", str(inventory), "--format", "json")
    first, second = cli(*words).json["scan_id"], cli(*words).json["scan_id"]
    other = cli("scan", str(lake / "area 1"), *words[2:]).json["scan_id"]
    assert cli(*words, "--keep", "1").json["forgotten"] == []
    later = datetime.now(UTC) + timedelta(days=3)

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return later

    monkeypatch.setattr("deltaproto.fleet.old_scans.datetime", Later)
    done = cli(*words, "--keep", "2").json
    assert done["drift"] is not None
    assert {first, second} < set(done["forgotten"])
    assert other not in done["forgotten"]
    for name, ids in stored(inventory).items():
        assert not ids & set(done["forgotten"]), name
        assert done["scan_id"] in ids or name == "findings"
    assert "nothing to compare yet" in cli("drift", str(inventory)).out
    assert cli("scan", str(lake), "--keep", "2").code == 2
    assert cli(*words, "--keep", "0").code == 2


def test_the_file_says_what_to_scan(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 1, 8)
    (tmp_path / "list.txt").write_text(str(tmp_path / "lake" / "area 3" / "t003") + "\n")
    (tmp_path / "policy.yaml").write_text("policy_version: 1\nclients:\n- polars@2.1.0\n")
    config = tmp_path / "deltaproto.yaml"
    config.write_text(
        "scan:\n  roots: [lake]\n  lists: [list.txt]\n  exclude: ['area 1', 'area 3']\n"
        "  to: kept\n  policy: policy.yaml\n  parallel: 1\n"
        "  storage_options:\n    AWS_SECRET_ACCESS_KEY: ${LAKE_SECRET}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli("scan").code == 2
    monkeypatch.setenv("LAKE_SECRET", "s3cret")
    done = cli("scan", "--format", "json")
    assert done.json["tables"] == 5
    assert done.json["policy"]["verdicts"]
    assert (tmp_path / "kept" / "scans").is_dir()
    # What the command line says wins; its roots replace the file's, which is then not read.
    assert cli("scan", "--exclude", "area 2", "--format", "json").json["tables"] == 6
    named = cli("scan", "lake", "--format", "json").json
    assert (named["tables"], named["inventory"]) == (8, None)
    both = cli("scan", "lake/area 0", "--config", "deltaproto.yaml", "--format", "json").json
    assert (both["tables"], both["inventory"]) == (2, str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path / "lake")
    assert cli("scan").code == 2
    assert cli("scan", "--config", str(config), "--format", "json").json["tables"] == 5


def test_the_command_line_wins_also_with_what_is_usual(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 1, 2)
    config = tmp_path / "deltaproto.yaml"
    config.write_text("scan:\n  roots: [lake]\n  engine: spark\n  parallel: 1\n")
    monkeypatch.chdir(tmp_path)
    refused = cli("scan", "--format", "json")
    assert "--engine spark needs --inventory" in refused.err
    assert cli("scan", "--engine", "local", "--format", "json").json["tables"] == 2
    assert "--parallel 0 is out of range" in cli("scan", "--engine", "local", "--parallel", "0").err


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("scan:\n  root: [x]\n", ":2:3"),
        ("scan:\n  roots: x\n", ":2:10"),
        ("scan:\n  parallel: 0\n", ":2:13"),
        ("scan:\n  engine: flink\n", ":2:11"),
        ("scan:\n  storage_options:\n    A: ${NOT_THERE_AT_ALL}\n", ":3:8"),
        ("other: 1\n", ":1:1"),
        ("", ""),
    ],
)
def test_mistakes_in_the_file_are_told(cli: Cli, tmp_path: Path, text: str, place: str) -> None:
    config = tmp_path / "deltaproto.yaml"
    config.write_text(text)
    done = cli("scan", "--config", str(config))
    assert done.code == 2
    assert f"{config}{place}" in done.err
    assert cli("scan", "--config", str(tmp_path / "none.yaml")).code == 2
