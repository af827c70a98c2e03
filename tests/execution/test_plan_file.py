"""Plan files: what was written is what is read, and nothing else is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from deltaproto.errors import UsageError
from deltaproto.execution.plan_file import FailedPlan, LoadedPlan, find_plan_files, read_plans
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.plan import Plan, plan_id
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.interface import dump_json, envelope
from deltaproto.render.plan_json import plan_fields, save_plan_file
from tests.conftest import Ran
from tests.execution.files import changed, written
from tests.planning.test_classics import carrying, given
from tests.support.logs import Log, commit_info, metadata, protocol

NOW = 1_800_000_000.0
PLANS = [
    plan_downgrade(given(Protocol(2, 5)), DowngradeRequest(lowest=True)),
    plan_downgrade(given(Protocol(1, 2)), DowngradeRequest(lowest=True)),
    plan_downgrade(
        given(
            carrying("deletionVectors", "v2Checkpoint"),
            {"delta.enableDeletionVectors": "true"},
            vectors=True,
            traced=None,
        ),
        DowngradeRequest(lowest=True, include_enabled=True),
    ),
    plan_downgrade(given(carrying("clustering")), DowngradeRequest(drop=("clustering",))),
    plan_upgrade(
        given(Protocol(1, 2)),
        UpgradeRequest(
            enable=(FeatureToEnable("deletionVectors"), FeatureToEnable("columnMapping"))
        ),
    ),
]


def _read(path: str) -> LoadedPlan:
    (found,) = read_plans(path)
    assert isinstance(found, LoadedPlan)
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_what_was_written_is_read(plan: Plan, tmp_path: Path) -> None:
    found = _read(written(plan, tmp_path / "p.json", NOW))
    assert found.plan == plan._replace(alternatives=())
    assert found.id == plan_id(plan)
    assert len(found.not_before) == len(plan.steps)


def test_equal_members_of_plans_are_one_object(tmp_path: Path) -> None:
    plan = PLANS[2]._replace(warnings=("Take care.",))
    other = plan._replace(table="u", location="file:///u", warnings=("Take more care.",))
    one = _read(written(plan, tmp_path / "one.json", NOW)).plan
    two = _read(written(other, tmp_path / "two.json", NOW)).plan
    assert (one.table, two.table) == ("t", "u")
    assert (one.warnings, two.warnings) == (("Take care.",), ("Take more care.",))
    assert any(step.clashes for step in one.steps)
    for mine, theirs in zip(one.steps, two.steps, strict=True):
        assert mine.clashes is theirs.clashes
        assert mine.warnings is theirs.warnings


def test_a_plan_is_kept_as_a_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "p.json"
    save_plan_file(PLANS[0], str(path))
    assert _read(str(path)).id == plan_id(PLANS[0])

    def full(*_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    other = path.with_name("q.json")
    with pytest.raises(UsageError, match="No space left"):
        save_plan_file(PLANS[0], str(other))
    assert [each.name for each in path.parent.iterdir()] == ["p.json"]


def test_what_is_kept_beside_plans_is_none(tmp_path: Path) -> None:
    path = written(PLANS[0], tmp_path / "p.json", NOW)
    for name in ("p.journal.jsonl", "p.journal.jsonl.lock", "audit.jsonl", "p.undo.json"):
        (tmp_path / name).write_text("{}\n")
    assert find_plan_files([str(tmp_path)]) == [path]


def test_several_plans_and_tables_without_one(tmp_path: Path) -> None:
    entries = [plan_fields(plan, NOW) for plan in PLANS[:2]]
    broken = {"table": "gone", "error": {"code": "not-found", "message": "no table", "hint": ""}}
    document = envelope("plan-downgrade", {"plans": [*entries, broken], "summary": {}})
    path = tmp_path / "many.json"
    path.write_text(dump_json(document))
    *plans, last = read_plans(str(path))
    assert [each.plan.table for each in plans if isinstance(each, LoadedPlan)] == ["t", "t"]
    assert last == FailedPlan("gone", str(path), "no table")


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.12"])
def test_every_minor_version_of_the_format_is_taken(version: str, tmp_path: Path) -> None:
    path = written(PLANS[2], tmp_path / "p.json")
    assert json.loads(Path(path).read_text())["schema_version"] == "1.1"
    changed(path, schema_version=version)
    (found,) = read_plans(path)
    assert isinstance(found, LoadedPlan)


def test_a_plan_a_line(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    lines = [
        dump_json(envelope(plan.command, plan_fields(plan, NOW)), indent=None) for plan in PLANS[:3]
    ]
    path.write_text("\n".join(lines) + "\n")
    assert len(read_plans(str(path))) == 3


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"location": "file:///other"}, "was changed after it was made"),
        ({"steps": []}, "was changed after it was made"),
        ({"seal": "0" * 64}, "was changed after it was made"),
        ({"schema_version": "2.0"}, "format version 2.0"),
        ({"schema_version": "10.1"}, "format version 10.1"),
        ({"schema_version": 1}, "is not a plan"),
        ({"command": "inspect"}, "output of inspect"),
        ({"plans": {}}, "not a list"),
    ],
)
def test_what_was_changed_or_is_foreign_is_refused(
    members: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = written(PLANS[2], tmp_path / "p.json")
    changed(path, **members)
    with pytest.raises(UsageError, match=said):
        read_plans(path)


@pytest.mark.parametrize(
    "members",
    [
        {"steps": [{}]},
        {"steps": "x"},
        {"fingerprint": None},
        {"engine": {"name": "nobody", "version": "1"}},
        {"cost": {"x": 1}},
        {"clients": [{"client": 3}]},
        {"table": None},
        {"protocol_after": {"minReaderVersion": "x"}},
    ],
)
def test_what_is_sealed_and_yet_wrong_is_refused(members: dict[str, Any], tmp_path: Path) -> None:
    path = written(PLANS[2], tmp_path / "p.json")
    changed(path, sealed=True, **members)
    with pytest.raises(UsageError, match="is not a plan"):
        read_plans(path)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"steps": [{}]}, "it lacks 'wait'"),
        ({"engine": {"name": "flink", "version": "1"}}, '"flink" is not known'),
        ({"fingerprint": None}, "a member has the wrong type or value"),
    ],
)
def test_a_plan_of_another_release_is_named(
    members: dict[str, Any], why: str, tmp_path: Path
) -> None:
    path = written(PLANS[2], tmp_path / "p.json")
    changed(path, sealed=True, **members)
    with pytest.raises(UsageError) as own:
        read_plans(path)
    changed(path, tool={"name": "deltaproto", "version": "9.1"})
    with pytest.raises(UsageError) as other:
        read_plans(path)
    assert own.value.message == f"{path} is not a plan: {why}"
    assert other.value.message == (
        f"{path} was written by deltaproto 9.1, and this version cannot read it: {why}"
    )


PYTHON = re.compile(
    r"internal error|NoneType|object is not|has no attribute|is not a valid|argument|literal"
    r"|unsupported|unhashable|'(?:str|int|dict|list|float|bool)'"
)
VALUES = (None, [[1]], 2**70)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of a document, and of the first entry of each list."""
    members = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, member in members:
        yield (*path, key)
        if isinstance(member, dict | list):
            yield from places(member, (*path, key))


def test_no_message_about_a_sealed_plan_is_in_the_words_of_python(
    cli: Callable[..., Ran], tmp_path: Path
) -> None:
    path = Path(written(PLANS[4], tmp_path / "p.json", NOW))
    whole, said = path.read_text(), set()
    for *outer, name in places(json.loads(whole)):
        for value in VALUES:
            document = json.loads(whole)
            place = document
            for key in outer:
                place = place[key]
            place[name] = value
            path.write_text(json.dumps(document))
            changed(str(path), sealed=True)
            try:
                read_plans(str(path))
                shown = "".join(cli("runbook", str(path))[1:])
            except UsageError as error:
                shown = error.message
            lines = shown.splitlines()
            said |= {f"{[*outer, name]}: {line}" for line in lines if PYTHON.search(line)}
    assert said == set()


@examples(data=st.data())
def test_no_damage_is_an_error_of_ours_or_goes_unseen(data: st.DataObject, tmp_path: Path) -> None:
    path = Path(written(PLANS[2], tmp_path / "p.json", NOW))
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(0, 40))
    damaged = whole[:start] + data.draw(st.binary(max_size=8)) + whole[start + length :]
    path.write_bytes(damaged)
    try:
        (found,) = read_plans(str(path))
    except UsageError:
        return
    # Only what stands around the plan, or white space, can have been damaged.
    assert isinstance(found, LoadedPlan)
    assert found.plan == PLANS[2]._replace(alternatives=(), command=found.plan.command)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "[" * 100_000, '{"a": 1}\n{"a": 2}', "x"])
def test_what_is_no_plan_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a plan"):
        read_plans(str(path))


def test_a_folder_stands_for_its_plans(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "notes.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / ".deltaproto").mkdir()
    assert find_plan_files([str(tmp_path)]) == [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    with pytest.raises(UsageError, match="contains no plan"):
        find_plan_files([str(tmp_path / ".deltaproto")])


def test_a_plan_of_before_the_seal_is_to_be_made_again(tmp_path: Path) -> None:
    path = Path(written(PLANS[0], tmp_path / "p.json"))
    document = json.loads(path.read_text())
    del document["seal"]
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="has no checksum"):
        read_plans(str(path))


@pytest.mark.parametrize(
    ("interval", "hours", "ends"),
    [
        ("interval 1000000 weeks", 168e6, "9999-12-31T23:59:59Z"),
        ("interval 9223372036854775807 microseconds", 2**63 / 3.6e9, "9999-12-31T23:59:59Z"),
        ("interval 2147483647 days", 298651767.69569, "9999-12-31T23:59:59Z"),
        ("interval 0 hours", 0, None),
        ("interval -2147483648 days", 0, None),
    ],
)
def test_a_plan_can_be_read_whatever_the_table_retains(
    interval: str,
    hours: float,
    ends: str | None,
    log: Log,
    cli: Callable[..., Ran],
    tmp_path: Path,
) -> None:
    keys = ("delta.dropFeatureTruncateHistory.retentionDuration", "delta.logRetentionDuration")
    stored = {"delta.enableDeletionVectors": "true", **dict.fromkeys(keys, interval)}
    vectors = ["deletionVectors"]
    log.commit(0, commit_info(), protocol(3, 7, vectors, vectors), metadata(stored))
    path = str(tmp_path / "p.json")
    words = ("--drop", *vectors, "--history", "truncate", "--format", "json", "-o", path)
    planned = cli("plan-downgrade", log.table, *words)
    assert planned.code == 0, planned
    (wait,) = (step for step in _read(path).plan.steps if step.sql is None)
    assert wait.wait_hours == pytest.approx(hours)
    (told,) = (step for step in json.loads(Path(path).read_text())["steps"] if not step["sql"])
    assert told["not_before"] == ends
    assert cli("runbook", path).code == 0
