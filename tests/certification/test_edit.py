"""Logs that Spark would not write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaproto.certification.fixtures.case import load_kit
from deltaproto.certification.fixtures.edit import apply_edit, expire_commits
from deltaproto.certification.fixtures.recipe import Edit
from deltaproto.certification.observe import (
    are_rows_untouched,
    commits_since,
    observe_newest,
    read_live_rows,
)
from deltaproto.certification.scrub import scrub_error
from deltaproto.errors import UsageError
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string


@pytest.fixture
def table(log: Log) -> Path:
    log.commit(0, commit_info(), protocol(1, 2), metadata(schema=schema_string(column("price"))))
    log.commit(1, commit_info(), add("a"))
    log.raw(1, b"{}", ".crc")
    return log.root


def test_a_protocol_is_replaced_wherever_it_stands(table: Path) -> None:
    apply_edit(table, Edit((3, 7), ("deletionVectors",), ("deletionVectors",)))
    seen = observe_newest(table)
    assert seen.protocol["readerFeatures"] == ["deletionVectors"]
    assert (seen.version, seen.files) == (1, frozenset({"a"}))
    assert list((table / "_delta_log").glob("*.crc")) == []


def test_an_invariant_and_a_domain(table: Path) -> None:
    apply_edit(table, Edit(invariant=("price", "price >= 0"), domain=("mine", '{"a":1}')))
    seen = observe_newest(table)
    (field,) = seen.schema["fields"]
    rule = json.loads(field["metadata"]["delta.invariants"])
    assert rule == {"expression": {"expression": "price >= 0"}}
    assert seen.domains == {"mine": '{"a":1}'}
    assert seen.version == 2
    assert [list(action) for action in commits_since(table, 1)[0]] == [
        ["commitInfo"],
        ["domainMetadata"],
    ]


def test_old_commits_go_and_the_checkpoint_stays(log: Log) -> None:
    for version in range(5):
        log.commit(version, commit_info(), protocol(1, 2), metadata())
    log.checkpoint(1, protocol(1, 2), metadata())
    log.checkpoint(3, protocol(1, 2), metadata())
    expire_commits(log.root)
    assert sorted(file.name[17:] for file in log.folder.iterdir()) == [
        "003.checkpoint.parquet",
        "003.json",
        "004.json",
    ]
    assert observe_newest(log.root).version == 4


def test_rows_behind_a_vector_are_not_told_from_files(log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    assert read_live_rows(log.root) == []
    pq.write_table(pa.table({"id": [2, 1], "word": [b"b", None]}), log.root / "a b")
    log.commit(10, add("a%20b"))
    for version in range(1, 10):
        log.commit(version, commit_info())
    assert read_live_rows(log.root) == [{"id": 1, "word": None}, {"id": 2, "word": "b"}]
    log.path(10, ".json").unlink()
    for version in range(1, 10):
        log.path(version, ".json").unlink()
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    log.commit(1, add("a", deletionVector=vector))
    assert read_live_rows(log.root) is None
    log.commit(2, {"remove": {"path": "a", "deletionVector": vector, "dataChange": True}})
    log.commit(3, add("gone"))
    assert read_live_rows(log.root) is None


def _moved(log: Log, tmp_path: Path) -> bool:
    """Whether anything in `log` since version 1 can have touched a row of the copy before it."""
    source = tmp_path / "source"
    before = observe_newest(source)
    since = commits_since(log.root, before.version)
    return not are_rows_untouched(before, observe_newest(log.root), since, source, log.root)


def test_rows_are_untouched_only_where_no_action_and_no_byte_says_otherwise(
    log: Log, tmp_path: Path
) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, add("a%20b"))
    data = log.root / "a b"
    data.write_bytes(b"rows")
    shutil.copytree(log.root, tmp_path / "source")
    assert not _moved(log, tmp_path)
    log.commit(2, commit_info(), metadata(configuration={"delta.appendOnly": "true"}))
    assert not _moved(log, tmp_path)
    data.write_bytes(b"ROWS")
    assert _moved(log, tmp_path)
    data.unlink()
    assert _moved(log, tmp_path)
    data.write_bytes(b"rows")
    assert not _moved(log, tmp_path)
    log.commit(3, add("a%20b"))
    assert _moved(log, tmp_path)


def test_what_a_new_checkpoint_or_a_vector_holds_is_read(log: Log, tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    shutil.copytree(log.root, tmp_path / "source")
    log.checkpoint(0, protocol(1, 2), metadata())
    assert _moved(log, tmp_path)
    log.path(0, ".checkpoint.parquet").unlink()
    assert not _moved(log, tmp_path)
    log.commit(1, add("a", deletionVector=vector))
    (log.root / "a").touch()
    shutil.rmtree(tmp_path / "source")
    shutil.copytree(log.root, tmp_path / "source")
    assert _moved(log, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no kit in"),
        ("{", "is damaged"),
        ("{}", "is damaged"),
        ('{"cases": [], "kit_version": 0, "digest": "", "made_with": {}}', "has version 0"),
    ],
)
def test_a_folder_that_is_no_kit(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "kit.json").write_text(content)
    with pytest.raises(UsageError, match=message) as raised:
        load_kit(tmp_path)
    assert "--make-kit" in raised.value.hint


def test_errors_are_the_same_in_each_run() -> None:
    folder = Path("/some/where")
    one = "Error: /some/where/t/a 6f1c2a34-0000-1111-2222-333344445555 at 0x7f00aa11\n  twice"
    other = "Error: /some/where/t/a 00000000-9999-1111-2222-333344445555 at 0x1111111  twice"
    assert scrub_error(one, [folder]) == scrub_error(other, [folder]) == "Error: …/t/a … at … twice"
    assert len(scrub_error("x" * 1000, [])) == 240
    py4j = "An error occurred while calling o67.collectToPython.\n: java.lang.Error: no"
    assert scrub_error(py4j, []) == "java.lang.Error: no"
