"""Apply plans one at a time, or several in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, TableError
from deltaproto.execution.copy_executor import CopyExecutor
from deltaproto.execution.executor import StepExecutor
from deltaproto.execution.plan_executor import ApplySession, PlanExecutor
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import INTERRUPTED, RUN_AGAIN_HINT, StopReason
from deltaproto.execution.prepare import PreparedPlan, prepare_plan
from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.result import (
    ApplyResult,
    ApplyStatus,
    StepRecord,
    StepStatus,
    with_pending,
)
from deltaproto.execution.run_log import (
    AuditLog,
    Journal,
    JournalError,
    find_append_obstacle,
    lock_path,
)
from deltaproto.identity import current_actor
from deltaproto.interrupts import defer_signals, wait_for_first
from deltaproto.planning.plan import Step, stays_violated_line

Confirm = Callable[[PreparedPlan], str | None]
"""shows the warning and asks for confirmation; returns the reason if it is not given"""


def apply_plans(
    plans: Sequence[LoadedPlan], session: ApplySession, confirm: Confirm, *, ask_all_first: bool
) -> Generator[ApplyResult, None, None]:
    """Yield every plan's result as it finishes.

    With `ask_all_first`, nothing is executed until every plan was inspected and confirmed. If the
    generator is interrupted or closed early, running statements finish and no new ones are sent;
    `session.interrupted` then receives the results of the plans that were begun.
    """
    found: list[LoadedPlan | PreparedPlan | ApplyResult] = [
        _prepare_and_confirm(planned, session, confirm) if ask_all_first else planned
        for planned in plans
    ]

    halt, stopped = threading.Event(), session.limits.halted
    limits = session.limits._replace(halted=lambda: halt.is_set() or stopped())
    session = session._replace(limits=limits)

    def one(each: LoadedPlan | PreparedPlan | ApplyResult) -> ApplyResult:
        planned = each if isinstance(each, LoadedPlan) else each.planned
        return session.around(planned, lambda: run(each))

    def run(each: LoadedPlan | PreparedPlan | ApplyResult) -> ApplyResult:
        if isinstance(each, ApplyResult):
            return each
        try:
            ready = (
                _prepare_and_confirm(each, session, confirm)
                if isinstance(each, LoadedPlan)
                else each
            )
            return ready if isinstance(ready, ApplyResult) else _execute_prepared(ready, session)
        except DeltaprotoError:
            raise
        except Exception as error:
            if len(plans) < 2:
                raise
            # A bug that affects one plan must not hide the results of the others.
            message = f"internal error, {type(error).__name__}: {session.redact(str(error))}"
            planned = each if isinstance(each, LoadedPlan) else each.planned
            return ApplyResult(
                planned, ApplyStatus.UNREADABLE, ExitCode.UNREADABLE, message, _REPORT_BUG_HINT
            )

    if session.parallel < 2 or len(plans) < 2:
        yield from map(one, found)
        return
    pool = ThreadPoolExecutor(session.parallel)
    running: set[Future[ApplyResult]] = set()
    try:
        with defer_signals():
            running |= {pool.submit(one, each) for each in found}
        waiting = set(running)
        while waiting:
            done = wait_for_first(waiting)
            waiting -= done
            for future in done:
                running.discard(future)
                yield future.result()
    except BaseException:
        halt.set()
        session.observer.halts()
        pool.shutdown(cancel_futures=True)
        for future in running:
            if not future.cancelled() and future.exception() is None:
                session.interrupted(future.result())
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare_and_confirm(
    planned: LoadedPlan, session: ApplySession, confirm: Confirm
) -> ApplyResult | PreparedPlan:
    """Return the plan if it may be executed, else the reason as a result."""
    limits = session.limits
    try:
        prepared = prepare_plan(planned, session.context, session.runner, limits.now())
    except DeltaprotoError as error:
        return preparation_failure(planned, error)
    unconfirmed = confirm(prepared)
    refused = prepared.refused
    if refused is not None:
        return _result_before_steps(
            prepared, ApplyStatus.REFUSED, refused.code, refused.message, refused.hint
        )
    if not prepared.left and not (prepared.located.unaudited and not session.dry_run):
        return _already_done_result(prepared)
    if session.dry_run:
        journal = session.context.journal_of(planned)
        places = (
            ("journal", journal),
            ("journal's lock", lock_path(journal)),
            ("audit log", Path(session.audit(planned.path))),
        )
        for name, path in places:
            if (why := find_append_obstacle(path)) is not None:
                message = f"cannot write the {name} {path}: {why}"
                return _result_before_steps(
                    prepared, ApplyStatus.REFUSED, ExitCode.USAGE, message, _WRITABLE_PATH_HINT
                )
        steps = counted(len(prepared.left), "step")
        message = f"every gate passed; {steps} would be executed"
        return _result_before_steps(prepared, ApplyStatus.READY, ExitCode.CHANGES, message)
    if unconfirmed is not None:
        hint = "type the table's name, or pass --yes"
        return _result_before_steps(
            prepared, ApplyStatus.REFUSED, ExitCode.USAGE, unconfirmed, hint
        )
    return prepared


def preparation_failure(planned: LoadedPlan, error: DeltaprotoError) -> ApplyResult:
    """Return the result of a plan whose table could not be inspected."""
    status = ApplyStatus.UNREADABLE if isinstance(error, TableError) else ApplyStatus.REFUSED
    return ApplyResult(planned, status, error.exit_code, error.message, error.hint)


def _execute_prepared(prepared: PreparedPlan, session: ApplySession) -> ApplyResult:
    planned, context = prepared.planned, session.context
    try:
        audit = AuditLog(session.audit(planned.path), session.redact)
    except DeltaprotoError as error:
        return _result_before_steps(
            prepared, ApplyStatus.REFUSED, error.exit_code, error.message, error.hint
        )
    executor: PlanExecutor | None = None
    try:
        with Journal(context.folder(planned.path), planned.id) as journal:
            table = session.redact(planned.plan.table)
            journal.add("begin", session.limits.now(), table=table, **current_actor()._asdict())
            recorder = RunRecorder(planned, journal, audit, prepared.approvals)
            if not prepared.left:
                return _complete_audit_log(prepared, recorder, session)
            executor_type = StepExecutor if prepared.located.copy is None else CopyExecutor
            executor = executor_type(prepared, session, recorder)
            stop = executor.execute(prepared.located.unaudited)
            return _result_after_steps(prepared, executor, stop, str(journal.path))
    except DeltaprotoError as error:
        if executor is None or not executor.executed:
            return _result_before_steps(
                prepared,
                ApplyStatus.REFUSED,
                _exit_code_before_steps(error),
                error.message,
                error.hint,
            )
        stop = StopReason(ExitCode.FAILED, error.message, error.hint or _RESUME_HINT)
        return _result_after_steps(prepared, executor, stop, None)
    except KeyboardInterrupt:
        if executor is not None:
            code = ExitCode.FAILED if executor.executed else ExitCode.STALE
            stop = StopReason(code, INTERRUPTED, RUN_AGAIN_HINT)
            session.interrupted(_result_after_steps(prepared, executor, stop, None))
        raise
    except Exception as error:
        if executor is None or not executor.executed:
            raise
        # A bug must not hide that part of the plan may be applied.
        message = f"internal error, {type(error).__name__}: {session.redact(str(error))}"
        return _result_after_steps(
            prepared, executor, StopReason(ExitCode.FAILED, message, _RESUME_HINT), None
        )
    finally:
        audit.close()


def _complete_audit_log(
    prepared: PreparedPlan, recorder: RunRecorder, session: ApplySession
) -> ApplyResult:
    """Return the result of a plan that only lacks lines in the audit log."""
    recorder.complete(prepared.located.unaudited, prepared.located.watcher, session.limits.now())
    finished = _already_done_result(prepared)
    if recorder.unaudited is None:
        return finished
    message = f"every step was completed earlier, and {recorder.unaudited}"
    return finished._replace(
        status=ApplyStatus.FAILED, code=ExitCode.FAILED, message=message, hint=_RESUME_HINT
    )


_REPORT_BUG_HINT = "this is a bug in deltaproto; apply this plan alone with --debug and report it"
_WRITABLE_PATH_HINT = "pass a writable location with --journal or --audit; nothing was changed"
_RESUME_HINT = "run the same command again: it reads from the table which steps are finished"


def _exit_code_before_steps(error: DeltaprotoError) -> ExitCode:
    return ExitCode.USAGE if isinstance(error, JournalError) else error.exit_code


def _result_after_steps(
    prepared: PreparedPlan,
    executor: PlanExecutor,
    stop: StopReason | None,
    journal: str | None,
) -> ApplyResult:
    steps = with_pending(executor.records, prepared.planned.plan)
    progress = executor.progress
    applied = ApplyResult(
        prepared.planned,
        ApplyStatus.DONE,
        ExitCode.OK,
        "every step is finished, and the table is as predicted",
        steps=steps,
        gates=prepared.gates,
        warning=prepared.warning,
        version=progress.baseline.version,
        protocol=progress.baseline.protocol,
        journal=journal,
        remarks=(*executor.remarks, *_remarks(prepared)),
    )
    if stop is None:
        return applied
    status = ApplyStatus.FAILED
    if stop.earliest is not None:
        status = ApplyStatus.WAITING
    elif stop.code is not ExitCode.FAILED:
        status = ApplyStatus.REFUSED
    return applied._replace(
        status=status, code=stop.code, message=stop.message, hint=stop.hint, earliest=stop.earliest
    )


def _already_done_result(prepared: PreparedPlan) -> ApplyResult:
    steps = prepared.planned.plan.steps
    if not steps:
        message = "nothing to do: the table already meets the goal"
        return _result_before_steps(prepared, ApplyStatus.NOTHING, ExitCode.OK, message)
    message = "every step was completed earlier, and the table is as predicted"
    return _result_before_steps(prepared, ApplyStatus.DONE, ExitCode.OK, message)


def _result_before_steps(
    prepared: PreparedPlan, status: ApplyStatus, code: ExitCode, message: str, hint: str = ""
) -> ApplyResult:
    def record(step: Step, number: int) -> StepRecord:
        done = number < prepared.located.progress.done
        return StepRecord(step.id, StepStatus.EARLIER if done else StepStatus.PENDING)

    steps = prepared.planned.plan.steps
    return ApplyResult(
        prepared.planned,
        status,
        code,
        message,
        hint,
        tuple(record(step, number) for number, step in enumerate(steps)),
        prepared.gates,
        prepared.warning,
        prepared.located.observed.now.version,
        prepared.located.observed.now.protocol,
        remarks=_remarks(prepared),
    )


def _remarks(prepared: PreparedPlan) -> tuple[str, ...]:
    """Return the policy's requirements that the plan's steps do not meet."""
    plan = prepared.planned.plan
    return tuple(map(stays_violated_line, plan.unmet)) if plan.steps else ()
