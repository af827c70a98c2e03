"""What became of a step, from what the engine said and what the table shows."""

from __future__ import annotations

from deltaproto.execution.progress import without_features
from deltaproto.execution.verify import StatementResult, StepVerdict, find_error_class, verify_step
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Step
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import carrying, given

WAIT = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
YOUNG = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
NOT_PRESENT = "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
BEFORE, AFTER = carrying("deletionVectors"), Protocol(1, 2)


def two_calls() -> tuple[Step, Step, Step]:
    table = given(BEFORE, {"delta.enableDeletionVectors": "true"}, vectors=True, traced=None)
    plan = plan_downgrade(table, DowngradeRequest(lowest=True, include_enabled=True))
    first, wait, second = plan.steps
    assert first.expects == WAIT
    assert wait.sql is None
    return first, wait, second


FIRST, _, SECOND = two_calls()


def verdict(
    step: Step, answer: StatementResult, now: Protocol, early: frozenset[str] = frozenset()
) -> StepVerdict:
    return verify_step(step, answer, step.operations, now, early).verdict


def test_the_first_call_is_to_be_told_to_wait() -> None:
    assert verdict(FIRST, StatementResult(WAIT), BEFORE) is StepVerdict.AS_PREDICTED


def test_delta_may_name_another_reason_to_wait() -> None:
    assert verdict(FIRST, StatementResult(YOUNG), BEFORE) is StepVerdict.AS_PREDICTED


def test_the_first_call_may_be_enough() -> None:
    assert verdict(FIRST, StatementResult(), AFTER) is StepVerdict.EARLY


def test_a_first_call_that_succeeds_and_leaves_the_feature_is_not_as_predicted() -> None:
    assert verdict(FIRST, StatementResult(), BEFORE) is StepVerdict.UNEXPECTED


def test_the_second_call_may_have_to_wait_again() -> None:
    assert verdict(SECOND, StatementResult(YOUNG), BEFORE) is StepVerdict.WAIT


def test_the_second_call_is_not_needed_where_the_first_was_enough() -> None:
    step = SECOND._replace(optional=True)
    early = frozenset({"deletionVectors"})
    assert verdict(step, StatementResult(NOT_PRESENT), AFTER, early) is StepVerdict.NOT_NEEDED
    assert verdict(step, StatementResult(NOT_PRESENT), AFTER) is StepVerdict.REFUSED


def test_success_with_another_protocol_is_not_as_predicted() -> None:
    found = verify_step(
        SECOND, StatementResult(), SECOND.operations, carrying("rowTracking"), frozenset()
    )
    assert found.verdict is StepVerdict.UNEXPECTED
    assert "rowTracking should not be there" in found.message


def test_a_refusal_that_was_not_predicted() -> None:
    assert verdict(SECOND, StatementResult("DELTA_FOO"), BEFORE) is StepVerdict.REFUSED
    assert verdict(SECOND, StatementResult(""), BEFORE) is StepVerdict.REFUSED


def test_a_lost_race_is_told_from_a_refusal() -> None:
    for answer in (
        StatementResult("DELTA_METADATA_CHANGED", "x"),
        StatementResult("DELTA_CONCURRENT_APPEND.WITHOUT_HINT", "x"),
        StatementResult("DELTA_MAX_COMMIT_RETRIES_EXCEEDED", "x"),
        StatementResult("", "io.delta.exceptions.ConcurrentWriteException: a commit came"),
    ):
        assert verdict(SECOND, answer, BEFORE) is StepVerdict.CONFLICT
    assert not StatementResult(None, "ProtocolChangedException").conflict


def test_a_lost_engine_says_nothing_of_the_step() -> None:
    assert verdict(SECOND, StatementResult("", "gone", lost=True), AFTER) is StepVerdict.LOST


def test_another_number_of_commits_is_a_remark() -> None:
    found = verify_step(SECOND, StatementResult(), ["DROP FEATURE"] * 9, AFTER, frozenset())
    assert found.verdict is StepVerdict.AS_PREDICTED
    assert found.remarks


def test_error_classes() -> None:
    assert find_error_class("x: [DELTA_A_B.C] text [NOT] more") == "DELTA_A_B.C"
    assert find_error_class("no class") == ""


def test_a_protocol_without_what_went_early() -> None:
    assert without_features(BEFORE, frozenset({"deletionVectors", "rowTracking"})) == AFTER
