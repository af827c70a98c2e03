"""Rehearsals and rollbacks with the scripted engine: results, and what must be noticed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.rehearse import rehearse_plan
from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.execution.undo import StalePlanError, plan_undo
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.plan import Step
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from tests.execution.scripted import ON, VECTORS, Bench, ScriptedEngine, SilentObserver
from tests.support.logs import Log, add, commit_info, metadata

CLONE = re.compile(r"CREATE TABLE delta\.`(.*)` SHALLOW CLONE (.*)")


class CloningEngine(ScriptedEngine):
    """Makes a clone with this protocol; its statements are on the clone."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.engine.log, bench.planned)
        self.source, self.planned = bench.engine.log, bench.planned
        self.protocol, self.answer = VECTORS, StatementResult()
        self.clone: Path | None = None

    def run(self, sql: str, mark: str, progress: object = None) -> StatementResult:
        created = CLONE.fullmatch(sql)
        if created is None:
            assert self.clone is not None
            step = next(step for step in self.planned.plan.steps if f'"{step.id}"' in mark)
            assert sql == (step.sql or "").replace(self.planned.plan.location[7:], str(self.clone))
            self.steps[step.id] = step._replace(sql=sql)
            return super().run(sql, mark, progress)
        assert created[2] == self.planned.plan.sql_name
        if self.answer.error is None:
            self.clone = Path(created[1])
            self.log = Log(self.clone)
            self.log.commit(0, commit_info("CLONE"), self.protocol, ON)
        return self.answer


@pytest.fixture
def engine(bench: Bench) -> CloningEngine:
    return CloningEngine(bench)


def rehearse(bench: Bench, engine: CloningEngine, scratch: str | None = None) -> ApplyResult:
    context = ApplyContext({}, SparkSettings(), lambda _: str(bench.folder))
    session = ApplySession(
        context,
        lambda: engine,  # type: ignore[arg-type, return-value]
        lambda _: str(bench.folder / "audit.jsonl"),
        Redactor(),
        SilentObserver(),  # type: ignore[arg-type]
        WaitLimits(now=lambda: bench.clock.now, sleep=bench.clock.sleep),
    )
    result = rehearse_plan(bench.planned, session, scratch)
    assert engine.clone is None or not engine.clone.parent.exists()
    return result


def test_what_can_be_rehearsed_is_and_leaves_nothing(bench: Bench, engine: CloningEngine) -> None:
    result = rehearse(bench, engine)
    assert (result.status, result.code) == (ApplyStatus.DONE, ExitCode.OK)
    assert "s1 went as predicted on a clone; s2, s3 cannot be rehearsed" in result.message
    assert "the source is unchanged: version 0, 1 file as before" in result.message
    assert [str(each.done) for each in result.steps] == ["done", "waiting", "pending"]
    assert engine.sent == ["s1"]
    assert not bench.folder.exists()
    steps = bench.planned.plan.steps[:1]
    short = bench.planned.plan._replace(steps=steps, protocol_after=steps[0].protocol_after)
    bench.planned = bench.planned._replace(plan=short)
    engine.planned, engine.version = bench.planned, 0
    assert rehearse(bench, engine).status is not ApplyStatus.UNREADABLE


def test_a_scratch_folder_holds_the_clone_and_stays_empty(
    bench: Bench, engine: CloningEngine, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    assert rehearse(bench, engine, str(scratch)).status is ApplyStatus.DONE
    assert engine.clone is not None
    assert engine.clone.parent.parent == scratch
    assert [*scratch.iterdir()] == []
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot use .*file/x: Not a directory") as caught:
        rehearse(bench, engine, str(tmp_path / "file" / "x"))
    assert "--scratch" in caught.value.hint


def _touch_source(engine: CloningEngine) -> None:
    os.utime(engine.source.path(0, ".json"), (1, 1))


def _commit_to_source(engine: CloningEngine, mark: str) -> None:
    engine.source.commit(1, commit_info("SET TBLPROPERTIES", userMetadata=mark))


def _append_to_source(engine: CloningEngine, _: str) -> None:
    engine.source.commit(1, commit_info("WRITE"), add("x"))


@pytest.mark.parametrize(
    ("during", "status", "said"),
    [
        (
            lambda engine, _: _touch_source(engine),
            ApplyStatus.FAILED,
            "files of the source changed",
        ),
        (_commit_to_source, ApplyStatus.FAILED, "the source has a commit of this plan: version 1"),
        (_append_to_source, ApplyStatus.DONE, "the source is unchanged: version 0"),
    ],
)
def test_what_happens_to_the_source_is_noticed(
    during: Callable[[CloningEngine, str], None],
    status: ApplyStatus,
    said: str,
    bench: Bench,
    engine: CloningEngine,
) -> None:
    def script(made: ScriptedEngine, step: Step, mark: str) -> StatementResult:
        during(engine, mark)
        made.predicted(step, mark)
        return StatementResult(step.expects, "")

    engine.script = {"s1": [script]}
    result = rehearse(bench, engine)
    assert (result.status, said in result.message) == (status, True), result.message
    assert result.code is (ExitCode.OK if status is ApplyStatus.DONE else ExitCode.FAILED)


def _refuse_clone(engine: CloningEngine) -> None:
    engine.answer = StatementResult("X", "[X] no clone")


def _other_protocol(engine: CloningEngine) -> None:
    engine.protocol = {"protocol": Protocol(1, 2).to_action()}


def _refuse_step(engine: CloningEngine) -> None:
    engine.script = {"s1": [lambda *_: StatementResult("Y", "[Y] no")]}


@pytest.mark.parametrize(
    ("change", "status", "code", "said"),
    [
        (_refuse_clone, ApplyStatus.FAILED, ExitCode.FAILED, "cannot create a shallow clone"),
        (_other_protocol, ApplyStatus.REFUSED, ExitCode.FINDINGS, "cannot stand in for the table"),
        (_refuse_step, ApplyStatus.FAILED, ExitCode.FAILED, "s1 was rejected: [Y] no"),
    ],
)
def test_what_fails_on_the_clone_is_reported(
    change: Callable[[CloningEngine], None],
    status: ApplyStatus,
    code: ExitCode,
    said: str,
    bench: Bench,
    engine: CloningEngine,
) -> None:
    change(engine)
    result = rehearse(bench, engine)
    assert (result.status, result.code) == (status, code)
    assert said in result.message
    assert "the source is unchanged" in result.message


def test_a_plan_that_was_started_or_is_stale_is_not_rehearsed(
    bench: Bench, engine: CloningEngine
) -> None:
    assert bench.apply().status is ApplyStatus.WAITING
    result = rehearse(bench, engine)
    assert (result.status, result.code) == (ApplyStatus.REFUSED, ExitCode.STALE)
    assert engine.clone is None
    bench.engine.commit("SET TBLPROPERTIES", metadata({"delta.appendOnly": "true"}))
    changed = rehearse(bench, engine)
    assert (changed.status, changed.code) == (ApplyStatus.REFUSED, ExitCode.STALE)
    assert "changed since" in changed.message


def undo(bench: Bench) -> Any:
    context = ApplyContext({}, SparkSettings(), lambda _: str(bench.folder))
    return plan_undo(bench.planned, context, bench.clock.now)


def test_what_was_applied_is_rolled_back_in_reverse(bench: Bench) -> None:
    plan = bench.planned.plan
    nothing = undo(bench)
    assert (nothing.steps, nothing.goal) == ((), {"kind": "upgrade", "undo": bench.planned.id})
    bench.apply()
    partly = undo(bench)
    assert [step.sql for step in partly.steps] == [plan.steps[0].undo]
    assert partly.protocol_before == plan.steps[0].protocol_after
    assert not [each for each in partly.warnings if "history that it deleted" in each]
    bench.clock.now += 30 * 24 * 3600
    assert bench.apply().status is ApplyStatus.DONE
    whole = undo(bench)
    assert (whole.table, whole.sql_name, whole.engine) == (plan.table, plan.sql_name, plan.engine)
    assert whole.goal_text == f"undo plan {bench.planned.id}"
    assert whole.protocol_before == Protocol(1, 2)
    assert whole.protocol_after.supported >= {"deletionVectors"}
    assert "RESTORE removes no features from the protocol." in whole.warnings
    assert "s3: the history that it deleted cannot be restored." in whole.warnings
    assert not [each for each in whole.warnings if each.startswith("s1")]


def test_a_table_that_another_writer_changed_is_not_rolled_back(bench: Bench) -> None:
    bench.apply()
    bench.engine.commit("WRITE", add("x"))
    assert undo(bench).steps
    bench.engine.commit("SET TBLPROPERTIES", metadata({"delta.appendOnly": "true"}))
    with pytest.raises(StalePlanError) as caught:
        undo(bench)
    assert caught.value.exit_code is ExitCode.STALE
    assert "plan-upgrade" in caught.value.hint
