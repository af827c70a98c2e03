"""Every course that a step may take, with an engine that commits as planned unless told otherwise.

Each case states what is reported, in the journal, in the audit log and still to be done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from deltaproto.errors import ExitCode
from deltaproto.execution.progress import Progress
from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.execution.run_log import journal_path, read_journal
from deltaproto.execution.verify import (
    VECTORS_LEFT,
    StatementResult,
    cross_check_with_delta_rs,
)
from deltaproto.execution.waits import wait_ends_at, wait_not_needed
from deltaproto.planning.plan import Step
from deltaproto.policy.document import Policy, Position
from deltaproto.policy.document.model import PolicySettings, TableEntry, Window
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.commits import CommitTag
from deltaproto.tables.log.log_retention import LogFile
from tests.execution.scripted import (
    NAMES,
    NOW,
    VECTORS,
    Bench,
    Script,
    ScriptedEngine,
    as_planned,
    leaves_vectors,
)
from tests.support.logs import add, metadata, protocol

HOUR = 3600.0
STANDS = Progress(1, frozenset(), {}, None, None)  # type: ignore[arg-type]
"""progress of which only the number of steps matters"""
CONFLICT = StatementResult("DELTA_METADATA_CHANGED", "somebody was faster")


def answers(result: StatementResult, *, commits: int | None = 0) -> Script:
    """Make so many of the predicted commits (None: all), then give this answer."""

    def script(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
        engine.predicted(step, mark, commits)
        return result

    return script


def after_foreign(*actions: dict[str, Any], result: StatementResult | None = None) -> Script:
    """Another writer commits first; then this answer, or the step as planned."""

    def script(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
        engine.commit("WRITE", *actions)
        return as_planned(engine, step, mark) if result is None else result

    return script


def drops_at_once(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
    engine.commit("UNSET TBLPROPERTIES", metadata(), mark=mark)
    engine.commit("DROP FEATURE", {"protocol": Protocol(1, 2).to_action()}, mark=mark)
    return StatementResult()


def crashes(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
    raise RuntimeError("token=s3cret-of-mine is broken")


def statuses(result: ApplyResult) -> list[str]:
    return [str(record.done) for record in result.steps]


def test_the_course_of_a_plan_that_waits(bench: Bench) -> None:
    first = bench.apply()
    assert (first.status, first.code) == (ApplyStatus.WAITING, ExitCode.CHANGES)
    assert statuses(first) == ["done", "waiting", "pending"]
    assert first.steps[0].versions == (1, 2, 3)
    assert first.steps[0].operations == bench.planned.plan.steps[0].operations
    assert (first.version, first.protocol) == (3, bench.planned.plan.steps[0].protocol_after)
    hours = bench.planned.plan.steps[1].wait_hours
    assert first.earliest == NOW + hours * HOUR
    early = bench.apply()
    assert (early.status, statuses(early)) == (
        ApplyStatus.WAITING,
        ["done-earlier", "waiting", "pending"],
    )
    assert early.earliest == first.earliest
    bench.clock.now = NOW + hours * HOUR - 1
    assert bench.apply().status is ApplyStatus.WAITING
    bench.clock.now += 1
    last = bench.apply()
    assert (last.status, last.code) == (ApplyStatus.DONE, ExitCode.OK)
    assert statuses(last) == ["done-earlier", "done", "done"]
    assert (last.version, last.protocol) == (6, Protocol(1, 2))
    assert last.steps[2].delta_rs == "agrees"
    assert bench.engine.sent == ["s1", "s3"]
    assert [(line["step"], line["outcome"], line["commits"]) for line in bench.audit] == [
        ("s1", "as-predicted", [1, 2, 3]),
        ("s3", "as-predicted", [4, 5, 6]),
    ]
    assert [(line["version_before"], line["version_after"]) for line in bench.audit] == [
        (0, 3),
        (3, 6),
    ]
    assert [line["protocol"] for line in bench.audit] == [
        VECTORS["protocol"],
        Protocol(1, 2).to_action(),
    ]
    events = [(line["event"], line.get("step")) for line in bench.journal]
    started = [("start", "s1"), ("audited", "s1"), ("done", "s1"), ("waiting", "s2")]
    finished = [("done", "s2"), ("start", "s3"), ("audited", "s3"), ("done", "s3")]
    assert [each for each in events if each[0] != "begin"] == [
        *started,
        *[("done", None), ("waiting", "s2")] * 2,
        *[("done", None), *finished],
    ]
    state = read_journal(journal_path(str(bench.folder), bench.planned.id), bench.planned.id)
    assert (state.done, state.early, state.unaudited) == (3, frozenset(), ())
    assert state.baseline is not None
    assert (state.baseline.version, state.baseline.protocol) == (6, Protocol(1, 2))
    again = bench.apply()
    assert (again.status, statuses(again)) == (ApplyStatus.DONE, ["done-earlier"] * 3)
    assert bench.engine.sent == ["s1", "s3"]


def test_one_run_waits_if_told_to(bench: Bench) -> None:
    result = bench.apply(wait=True)
    assert (result.status, statuses(result)) == (ApplyStatus.DONE, ["done"] * 3)
    hours = bench.planned.plan.steps[1].wait_hours
    assert bench.clock.now >= NOW + hours * HOUR
    assert bench.clock.now < NOW + (hours + 1) * HOUR
    assert [line["event"] for line in bench.journal].count("waiting") == 1


WAIT_LONGER = StatementResult("DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", "too young")
LOST = StatementResult("", "connection reset", lost=True)
REFUSED = StatementResult("DELTA_OTHER", "no")


def test_a_refused_step_is_not_sent_again_before_its_time(bench: Bench) -> None:
    bench.apply()
    bench.clock.now += bench.planned.plan.steps[1].wait_hours * HOUR

    def refused(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
        engine.predicted(step, mark, 2)
        return WAIT_LONGER

    bench.engine.script["s3"] = [refused, refused]
    first = bench.apply()
    assert (first.status, first.earliest) == (ApplyStatus.WAITING, bench.clock.now + HOUR)
    # From cron, every ten minutes.
    for _ in range(5):
        bench.clock.now += HOUR / 6
        again = bench.apply()
        assert (again.status, again.code) == (ApplyStatus.WAITING, ExitCode.CHANGES)
        assert again.earliest == first.earliest
        assert bench.engine.sent == ["s1", "s3"]
    bench.clock.now += HOUR / 6
    second = bench.apply()
    assert (second.status, second.earliest) == (ApplyStatus.WAITING, bench.clock.now + HOUR)
    assert bench.engine.sent == ["s1", "s3", "s3"]
    last = bench.apply(wait=True)
    assert last.status is ApplyStatus.DONE
    assert bench.engine.sent == ["s1", "s3", "s3", "s3"]


def test_a_drop_that_leaves_deletion_vectors_fails(bench: Bench) -> None:
    """Delta Spark does not look: readers would return the deleted rows."""
    bench.engine.script["s3"] = [leaves_vectors]
    result = bench.apply(wait=True)
    assert (result.status, statuses(result)) == (ApplyStatus.FAILED, ["done", "done", "failed"])
    assert result.protocol == Protocol(1, 2)
    assert "data files still have deletion vectors" in result.message
    assert "'delta.feature.deletionVectors' = 'supported'" in result.hint
    assert bench.audit[-1]["outcome"] == "unexpected"
    again = bench.apply(wait=True)
    assert (again.status, again.code) == (ApplyStatus.REFUSED, ExitCode.FAILED)
    assert (again.message, again.hint) == (VECTORS_LEFT.message, VECTORS_LEFT.hint)
    assert bench.engine.sent == ["s1", "s3"]


# The script of s1 and of s3, in a run that waits; the result, the statements sent, and the outcomes
# in the audit log.
COURSES: Mapping[str, tuple[dict[str, list[Script]], ApplyStatus, list[str], list[str], str]] = {
    "lost after its commits": (
        {"s1": [answers(LOST, commits=None)], "s3": [answers(LOST, commits=None)]},
        ApplyStatus.DONE,
        ["s1", "s3"],
        ["as-predicted", "as-predicted"],
        "",
    ),
    "lost before its last commit": (
        {"s3": [answers(LOST, commits=2)]},
        ApplyStatus.FAILED,
        ["s1", "s3"],
        ["as-predicted", "lost"],
        "the table has its commits 4 (Deletion Vector Tombstones), 5 (Empty Commit)",
    ),
    "a conflict, then as planned": (
        {"s1": [after_foreign(add("x"), result=CONFLICT)]},
        ApplyStatus.DONE,
        ["s1", "s1", "s3"],
        ["conflict", "as-predicted", "as-predicted"],
        "",
    ),
    "conflicts without end": (
        {"s1": [after_foreign(add("x"), result=CONFLICT)] * 9},
        ApplyStatus.FAILED,
        ["s1"] * 6,
        ["conflict"] * 6,
        "s1 lost 6 times; the last winner is version 6, WRITE",
    ),
    "refused": (
        {"s3": [answers(REFUSED)]},
        ApplyStatus.FAILED,
        ["s1", "s3"],
        ["as-predicted", "refused"],
        "s3 was rejected: no",
    ),
    "the first call is refused otherwise": (
        {"s1": [answers(REFUSED)]},
        ApplyStatus.FAILED,
        ["s1"],
        ["refused"],
        "s1 was rejected: no",
    ),
    "the first call succeeds and changes nothing": (
        {"s1": [answers(StatementResult())]},
        ApplyStatus.FAILED,
        ["s1"],
        ["unexpected"],
        "deletionVectors should not be there",
    ),
    "it succeeds without its commits": (
        {"s3": [answers(StatementResult())]},
        ApplyStatus.FAILED,
        ["s1", "s3"],
        ["as-predicted", "unexpected"],
        "deletionVectors should not be there",
    ),
    "history is too young twice": (
        {"s3": [answers(WAIT_LONGER), answers(WAIT_LONGER)]},
        ApplyStatus.DONE,
        ["s1", "s3", "s3", "s3"],
        ["as-predicted", "wait", "wait", "as-predicted"],
        "",
    ),
    "rows are appended meanwhile": (
        {"s1": [after_foreign(add("x"))], "s3": [after_foreign(add("y"))]},
        ApplyStatus.DONE,
        ["s1", "s3"],
        ["as-predicted", "as-predicted"],
        "",
    ),
    "another writer changes the schema": (
        {"s1": [after_foreign(metadata({"a": "b", "delta.appendOnly": "true"}))]},
        ApplyStatus.FAILED,
        ["s1"],
        ["unexpected"],
        "schema or properties changed meanwhile: version 1",
    ),
    "another writer changes the protocol": (
        {"s1": [after_foreign(protocol(3, 7, ["deletionVectors"], [*NAMES, "rowTracking"]))]},
        ApplyStatus.FAILED,
        ["s1"],
        ["unexpected"],
        "the protocol changed meanwhile: version 1",
    ),
    "a crash": (
        {"s1": [crashes]},
        ApplyStatus.FAILED,
        ["s1"],
        ["unseen"],
        "internal error, RuntimeError",
    ),
}


@pytest.mark.parametrize("course", COURSES)
def test_each_course_is_reported_and_recorded(course: str, bench: Bench) -> None:
    script, status, sent, outcomes, said = COURSES[course]
    bench.engine.script = {name: [*each] for name, each in script.items()}
    result = bench.apply(wait=True)
    assert (result.status, bench.engine.sent) == (status, sent), result.message
    assert [line["outcome"] for line in bench.audit] == outcomes
    assert said in result.message
    assert "s3cret" not in json.dumps([bench.audit, bench.journal, result.message])
    assert (result.code is ExitCode.OK) is (status is ApplyStatus.DONE)
    failed = [line["step"] for line in bench.journal if line["event"] == "failed"]
    assert failed == ([sent[-1]] if status is ApplyStatus.FAILED and course != "a crash" else [])
    sends = [(line["step"]) for line in bench.journal if line["event"] == "start"]
    assert sends == sent
    if status is ApplyStatus.FAILED:
        assert result.hint
        assert statuses(result)[-1 if sent[-1] == "s3" else 0] == "failed"
    else:
        assert result.protocol == Protocol(1, 2)


def test_each_attempt_counts_and_pauses_longer(bench: Bench) -> None:
    lost = [after_foreign(result=CONFLICT)] * 3
    bench.engine.script = {"s1": lost}
    result = bench.apply(retries=3)
    assert result.status is ApplyStatus.WAITING
    assert result.steps[0].attempts == 4
    assert bench.clock.slept == 1 + 2 + 4
    assert [line["version_before"] for line in bench.audit] == [0, 1, 2, 3]


@pytest.mark.parametrize("made", [0, 1, 2, 3])
def test_an_interrupted_step_is_completed_by_the_next_run(made: int, bench: Bench) -> None:
    """Cut off after any number of the commits of either statement, the table ends the same."""
    bench.engine.script = {
        "s1": [answers(LOST, commits=made)],
        "s3": [answers(LOST, commits=made)],
    }
    runs = [bench.apply(wait=True) for _ in range(4)]
    final = runs[-1]
    assert (final.status, final.protocol) == (ApplyStatus.DONE, Protocol(1, 2))
    assert (runs[0].status is ApplyStatus.FAILED) is (made < 3)
    assert [bench.engine.sent.count(step) for step in ("s1", "s3")] == [1 if made == 3 else 2] * 2
    sent = len(bench.engine.sent)
    assert [line["step"] for line in bench.audit] == sorted(bench.engine.sent)
    assert len(bench.audit) == sent


def _own(bench: Bench, step: str, run: str) -> str:
    return CommitTag(bench.planned.id, step, run, "x").text()


@pytest.mark.parametrize("number", [0, 2])
def test_another_run_of_the_same_plan_is_noticed(number: int, bench: Bench) -> None:
    """Whether it commits before or after the statement's commits are read."""

    def between() -> float:
        if bench.engine.version == 3 and number == 2:
            bench.engine.commit("Empty Commit", mark=_own(bench, "s3", "other"))
        return bench.clock.now

    def other_run(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
        engine.predicted(step, mark)
        if number == 0:
            engine.commit("Empty Commit", mark=_own(bench, "s3", "other"))
        return StatementResult(step.expects, "")

    bench.engine.script = {"s1": [other_run]}
    result = bench.apply(wait=True, now=between)
    assert result.status is ApplyStatus.FAILED
    assert "another run is executing this plan: version 4" in result.message
    assert bench.engine.sent == ["s1"]


def test_the_first_of_two_calls_may_be_enough(bench: Bench) -> None:
    first, wait, last = bench.planned.plan.steps
    steps = (first, wait, last._replace(optional=True))
    bench.planned = bench.planned._replace(plan=bench.planned.plan._replace(steps=steps))
    bench.engine.script = {"s1": [drops_at_once]}
    result = bench.apply()
    assert statuses(result) == ["done", "not-needed", "not-needed"]
    assert (result.status, bench.engine.sent) == (ApplyStatus.DONE, ["s1"])
    assert [line["outcome"] for line in bench.audit] == ["early"]
    state = read_journal(journal_path(str(bench.folder), bench.planned.id), bench.planned.id)
    assert (state.done, state.early) == (3, {"deletionVectors"})


def test_a_table_without_a_journal_shows_what_is_done(bench: Bench) -> None:
    assert bench.apply(wait=True).status is ApplyStatus.DONE
    path = journal_path(str(bench.folder), bench.planned.id)
    path.unlink()
    again = bench.apply()
    assert (again.status, statuses(again)) == (ApplyStatus.DONE, ["done-earlier"] * 3)
    assert bench.engine.sent == ["s1", "s3"]


@pytest.mark.parametrize(
    ("after", "status", "code", "sent"),
    [
        (0, ApplyStatus.REFUSED, ExitCode.STALE, []),
        (1, ApplyStatus.FAILED, ExitCode.FAILED, ["s1"]),
        (2, ApplyStatus.DONE, ExitCode.OK, ["s1", "s3"]),
    ],
)
def test_an_interruption_lets_no_further_statement_be_sent(
    after: int, status: ApplyStatus, code: ExitCode, sent: list[str], bench: Bench
) -> None:
    result = bench.apply(wait=True, halted=lambda: len(bench.engine.sent) >= after)
    if after == 1:
        # It is noticed while waiting, or before the next statement.
        assert result.status in (ApplyStatus.WAITING, status)
    else:
        assert (result.status, result.code) == (status, code)
    assert bench.engine.sent == sent


def test_a_window_that_closes_holds_the_next_statement(bench: Bench) -> None:
    # NOW is 03:33 on a Wednesday in UTC; the wait of 24 hours ends within the same hours.
    window = Window((2, 3), 3 * 60, 4 * 60, "UTC", Position(1, 1))

    def passes(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
        bench.clock.now += HOUR
        return as_planned(engine, step, mark)

    bench.engine.script = {"s1": [passes]}
    settings = PolicySettings(maintenance_windows=(window,))
    policy = Policy("p.yaml", tables=(TableEntry("**", settings, Position(1, 1)),))
    first = bench.apply(policy=policy)
    assert (first.status, statuses(first)[0]) == (ApplyStatus.WAITING, "done")
    bench.clock.now = NOW + 25 * HOUR
    shut = bench.apply(policy=policy)
    assert [gate.name for gate in shut.gates if not gate.passed] == ["window"]
    assert bench.engine.sent == ["s1"]
    bench.clock.now = NOW + 7 * 24 * HOUR
    assert bench.apply(policy=policy).status is ApplyStatus.DONE


def test_a_second_reader_that_disagrees_stops_the_plan(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = bench.planned.plan.location
    vectors = Protocol.stored(VECTORS["protocol"])
    assert cross_check_with_delta_rs(location, {}, vectors)[0] is True
    assert cross_check_with_delta_rs(f"{location}/none", {}, vectors)[0] is True
    agrees, said = cross_check_with_delta_rs(location, {}, Protocol(1, 2))
    assert (agrees, said) == (False, f"delta-rs reads {vectors.in_words}")
    monkeypatch.setattr(
        "deltaproto.execution.executor.cross_check_with_delta_rs", lambda *_: (False, "it differs")
    )
    result = bench.apply(wait=True)
    assert (result.status, bench.engine.sent) == (ApplyStatus.FAILED, ["s1"])
    assert "it differs" in result.message
    assert statuses(result) == ["failed", "pending", "pending"]
    state = read_journal(journal_path(str(bench.folder), bench.planned.id), bench.planned.id)
    assert state.done == 0


@pytest.mark.parametrize("script", [answers(WAIT_LONGER), after_foreign(result=CONFLICT)])
def test_no_statement_is_repeated_without_its_audit_line(script: Script, bench: Bench) -> None:
    bench.engine.script = {"s1": [script], "s3": [script]}
    steps = (bench.planned.plan.steps[0]._replace(expects=None), *bench.planned.plan.steps[1:])
    bench.planned = bench.planned._replace(plan=bench.planned.plan._replace(steps=steps))
    result = bench.apply(wait=True, audit="/dev/full")
    assert (result.status, bench.engine.sent) == (ApplyStatus.FAILED, ["s1"])
    assert "/dev/full" in " ".join((result.message, *result.remarks))


def test_when_a_wait_ends(bench: Bench) -> None:
    """From the step before it, or as the plan file states if nobody knows when that was."""
    hours = bench.planned.plan.steps[1].wait_hours
    stands = STANDS
    assert wait_ends_at(bench.planned, stands, NOW) == NOW + hours * HOUR
    assert wait_ends_at(bench.planned, stands, None) == 0.0
    stated = bench.planned._replace(not_before=(None, NOW + 5, None))
    assert wait_ends_at(stated, stands, None) == NOW + 5
    early = stands._replace(early=frozenset({"deletionVectors"}))
    plan = bench.planned.plan
    optional = plan._replace(steps=(*plan.steps[:2], plan.steps[2]._replace(optional=True)))
    assert not wait_not_needed(plan, early)
    assert wait_not_needed(optional, early)
    assert not wait_not_needed(optional, stands)
    assert not wait_not_needed(plan._replace(steps=plan.steps[:2]), early)


@pytest.mark.parametrize("since", [NOW, NOW + 0.001, NOW + 3, NOW + 59.999, NOW + 60])
@pytest.mark.parametrize("minutes", [0, 3, 24 * 60])
def test_a_wait_ends_when_what_the_step_wrote_has_expired(
    bench: Bench, since: float, minutes: int
) -> None:
    """A truncation deletes files older than a cutoff, which it rounds down to a full minute."""
    plan = bench.planned.plan
    wait = plan.steps[1]._replace(wait_hours=minutes / 60)
    planned = bench.planned._replace(plan=plan._replace(steps=(plan.steps[0], wait, plan.steps[2])))
    ends = wait_ends_at(planned, STANDS, since)
    assert (ends - minutes * 60) // 60 * 60 >= since
    # Not later than needed, and when the reader of the log says so.
    assert (ends - 1 - minutes * 60) // 60 * 60 < since
    written = LogFile(3, round(since * 1000))
    assert ends * 1000 == pytest.approx(written.removable_ms(minutes * 60_000), abs=1)


def test_a_bug_in_one_plan_does_not_hide_the_others(bench: Bench) -> None:
    broken = bench.planned._replace(plan=None)  # type: ignore[arg-type]
    bench.apply()
    one, other = bench.apply_all([broken, bench.planned], parallel=1)
    assert (one.status, one.code) == (ApplyStatus.UNREADABLE, ExitCode.UNREADABLE)
    assert "internal error" in one.message
    assert other.status is ApplyStatus.WAITING


def test_without_a_journal_the_wait_starts_at_the_last_commit(bench: Bench) -> None:
    bench.apply()
    journal_path(str(bench.folder), bench.planned.id).unlink()
    bench.engine.commit("WRITE", add("x"))
    again = bench.apply()
    hours = bench.planned.plan.steps[1].wait_hours
    # The third commit is the plan's last one, 3 seconds after NOW; it expires with its minute.
    assert (again.status, again.earliest) == (ApplyStatus.WAITING, NOW + 60 + hours * HOUR)
    assert [line["until"] for line in bench.journal if line["event"] == "waiting"] == [
        again.earliest
    ]
    assert {line["at"] for line in bench.journal if line["event"] == "waiting"} == {NOW}
