"""Files of recordings: bound to their content and to engine versions."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.recording import files
from tests.recording.delta_spark import Action, File, Recording
from tests.recording.plugin import State, state_of

COMMIT = json.dumps(
    {
        "commitInfo": {
            "timestamp": 1790000000000,
            "operation": "WRITE",
            "operationMetrics": {"numFiles": "1", "executionTimeMs": "700"},
            "txnId": "0f0e3b5c-0000-4000-8000-000000000001",
        }
    },
    separators=(",", ":"),
)


def recording() -> Recording:
    log = "t/_delta_log/00000000000000000001.json"
    action = Action(
        text="insert into {folder}/t",
        error=None,
        result=[{"n": 1}],
        files={log: File(text=COMMIT + "\n", mtime_ns=1), "t/_delta_log/old": None},
        time=1790000000.5,
    )
    return Recording(start=1790000000.0, actions=[action])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = files.path_of("tests/planning/test_x.py", tmp_path)
    files.save(path, files.pinned(), "2026-01-01", {"test_one": recording()})
    return path


def test_what_is_saved_is_loaded_and_has_equal_bytes(path: Path) -> None:
    loaded = files.load(path)
    assert loaded.tests == {"test_one": recording()}
    assert loaded.header["recorded"] == "2026-01-01"
    before = path.read_bytes()
    files.save(path, files.pinned(), "2026-01-01", loaded.tests)
    assert path.read_bytes() == before


def test_no_file_holds_no_recordings(tmp_path: Path) -> None:
    assert files.load(tmp_path / "none.json.gz").tests == {}


def test_an_edited_recording_is_refused(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    for old, new in (("WRITE", "MERGE"), ('"error":null', '"error":"X"'), ("insert", "delete")):
        assert old in text
        path.write_bytes(gzip.compress(text.replace(old, new).encode()))
        with pytest.raises(files.RecordingError, match=r"edited by hand.*run make record"):
            files.load(path)


@pytest.mark.parametrize("name", ["delta-spark", "pyspark", "java"])
def test_a_recording_of_another_version_is_refused(name: str, path: Path) -> None:
    files.save(path, {**files.pinned(), name: "3.9.9"}, "2026-01-01", {"test_one": recording()})
    with pytest.raises(files.RecordingError, match=rf"recorded with {name} 3\.9\.9.*make record"):
        files.load(path)


def test_a_damaged_file_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(files.RecordingError, match=r"damaged.*run make record"):
        files.load(path)


def test_all_versions_are_pinned() -> None:
    assert all(files.pinned().values()), files.pinned()


class TestDifferences:
    def changed(self, change: Callable[[Any], None]) -> str | None:
        new = copy.deepcopy(recording())
        change(new)
        return files.difference(recording(), new)

    def content(self, new: Any, old_text: str, new_text: str) -> None:
        (file,) = (f for f in new["actions"][0]["files"].values() if f)
        assert old_text in file["text"]
        file["text"] = file["text"].replace(old_text, new_text)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("1790000000000", "1790000099999"),
            ('"700"', '"9"'),
            ("000000000001", "0000000000ff"),
        ],
    )
    def test_times_and_random_names_do_not_count(self, old: str, new: str) -> None:
        assert self.changed(lambda recording: self.content(recording, old, new)) is None

    def test_sizes_in_the_metrics_of_a_rewrite_do_not_count(self) -> None:
        def rewrite(size: int, count: int = 1) -> Any:
            sizes = {"min": size, "max": size, "avg": size, "totalFiles": count, "totalSize": size}
            found = copy.deepcopy(recording())
            found["actions"][0]["result"] = [{"filesAdded": sizes, "other": {"min": count}}]
            return found

        assert files.difference(rewrite(1425), rewrite(1427)) is None
        assert files.difference(rewrite(1425), rewrite(1425, count=2)) is not None

    def test_what_spark_does_counts(self) -> None:
        def each(action: Any) -> Any:
            return lambda recording: action(recording["actions"][0])

        changes: dict[str, Callable[[Any], None]] = {
            "action 1": each(lambda a: a.update(error="X")),
            "error differs": each(lambda a: a.update(error="X")),
            "result differs": each(lambda a: a.update(result=[])),
            "text differs": each(lambda a: a.update(text="other")),
            "files differs": each(lambda a: a["files"].update(new=None)),
            "0 actions were recorded|1 actions were recorded": lambda r: r["actions"].clear(),
        }
        for expected, change in changes.items():
            found = self.changed(change)
            assert found is not None
            assert any(text in found for text in expected.split("|")), found
        found = self.changed(lambda recording: self.content(recording, "WRITE", "MERGE"))
        assert found is not None
        assert "MERGE" in found

    def test_only_changed_recordings_are_replaced(self) -> None:
        old, same, other = recording(), recording(), recording()
        same["start"] = 5.0
        other["actions"][0]["error"] = "X"
        assert files.merged({"a": old}, {"a": same}) == {"a": old}
        assert files.merged({"a": old}, {"a": other, "b": same}) == {"a": other, "b": same}


class TestCommitted:
    """The recordings of this checkout."""

    def test_each_belongs_to_a_module(self) -> None:
        root = Path(__file__).parents[2]
        modules = (p.relative_to(root).as_posix() for p in (root / "tests").rglob("test_*.py"))
        expected = {files.path_of(module, files.DATA).name for module in modules}
        committed = {path.name for path in files.DATA.glob("*")}
        assert committed
        assert committed <= expected

    def test_each_can_be_used(self) -> None:
        for path in files.DATA.glob("*"):
            assert files.load(path).tests, path.name

    def test_none_is_left_of_a_removed_test(self, pytestconfig: pytest.Config) -> None:
        state: State = state_of(pytestconfig)
        assert state.unused() == []

    def test_refusals_and_successes_are_among_them(self) -> None:
        recorded = (files.load(path).tests.values() for path in files.DATA.glob("*"))
        actions = [a for tests in recorded for test in tests for a in test["actions"]]
        assert len(actions) > 900
        assert sum(action["error"] is not None for action in actions) > 200
