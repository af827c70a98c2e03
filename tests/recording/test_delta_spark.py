"""Replaying recorded results of Spark: exactly what was recorded, or a failure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.recording.delta_spark import (
    Action,
    LiveDeltaSpark,
    NotRecorded,
    Recording,
    ReplayedDeltaSpark,
    StatementError,
)


class Rows:
    def collect(self) -> list[Any]:
        return []


class Session:
    """Writes a commit for each statement, and refuses those that say so."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "t" / "_delta_log"

    def sql(self, statement: str) -> Rows:
        if "refuse" in statement:
            raise ValueError("[DELTA_REFUSED.BECAUSE] no")
        self.log.mkdir(parents=True, exist_ok=True)
        number = len(list(self.log.iterdir()))
        (self.log / f"{number:020d}.json").write_text(f"{statement}\n")
        return Rows()


def live(folder: Path) -> LiveDeltaSpark:
    return LiveDeltaSpark(Session(folder), folder)  # type: ignore[arg-type]


def replayed(recording: Recording, folder: Path, times: list[float]) -> ReplayedDeltaSpark:
    return ReplayedDeltaSpark(recording, folder, times.append)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {f.relative_to(folder).as_posix(): (f.read_bytes(), f.stat().st_mtime_ns) for f in files}


def test_a_replay_restores_files_results_errors_and_times(tmp_path: Path) -> None:
    old, new, times = tmp_path / "old", tmp_path / "new", list[float]()
    old.mkdir()
    new.mkdir()
    recorder = live(old)

    def change(_: object) -> dict[str, str]:
        (old / "t/_delta_log/binary").write_bytes(b"\xff\0")
        (old / "t/_delta_log/.hidden.crc").write_bytes(b"\xff\0")
        (old / "t/outside").touch()
        (old / "t/_delta_log/00000000000000000000.json").unlink()
        return {"path": f"{old}/t"}

    recorder.sql(f"create delta.`{old}/t`")
    assert recorder.run("change", change) == {"path": f"{old}/t"}
    with pytest.raises(StatementError, match=r"DELTA_REFUSED\.BECAUSE"):
        recorder.sql("refuse")
    again = replayed(recorder.recording, new, times)
    assert again.sql(f"create delta.`{new}/t`") == []
    assert list(contents(new)) == ["t/_delta_log/00000000000000000000.json"]
    assert again.run("change", change) == {"path": f"{new}/t"}
    with pytest.raises(StatementError) as refused:
        again.sql("refuse")
    assert refused.value.error_class == "DELTA_REFUSED.BECAUSE"
    again.finish()
    assert again.replayed == 3
    assert contents(new) == {"t/_delta_log/binary": contents(old)["t/_delta_log/binary"]}
    assert times == sorted(times)
    assert len(times) == 4
    assert abs(times[-1] - time.time()) < 3600


def action(text: str) -> Action:
    return Action(text=text, error=None, result=[], files={}, time=2.0)


class TestWhatWasNotRecorded:
    RECORDING = Recording(start=1.0, actions=[action("a {folder}/t"), action("b")])

    def test_another_statement_fails(self, tmp_path: Path) -> None:
        engine = replayed(self.RECORDING, tmp_path, [])
        with pytest.raises(NotRecorded, match="run make record"):
            engine.sql("a /elsewhere/t")

    def test_another_order_fails(self, tmp_path: Path) -> None:
        engine = replayed(self.RECORDING, tmp_path, [])
        with pytest.raises(NotRecorded, match="run make record"):
            engine.sql("b")

    def test_one_statement_more_fails(self, tmp_path: Path) -> None:
        engine = replayed(self.RECORDING, tmp_path, [])
        engine.sql(f"a {tmp_path}/t")
        engine.sql("b")
        with pytest.raises(NotRecorded, match=r"run make record\n  statement: c"):
            engine.sql("c")

    def test_one_statement_less_fails(self, tmp_path: Path) -> None:
        engine = replayed(self.RECORDING, tmp_path, [])
        engine.sql(f"a {tmp_path}/t")
        with pytest.raises(NotRecorded, match=r"run make record\n  missing: b"):
            engine.finish()
