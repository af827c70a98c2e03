"""Execution of a plan."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.app.arguments import NONE, require_texts, spark_settings
from deltaproto.app.result import Result, show_in_notebooks
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError
from deltaproto.execution.plan_file import LoadedPlan, read_plan
from deltaproto.execution.result import ApplyResult as _ApplyResult
from deltaproto.execution.result import ApplyStatus, StepRecord
from deltaproto.planning.plan import Plan, Step

if TYPE_CHECKING:
    from deltaproto.execution.plan_executor import ApplySession
    from deltaproto.execution.prepare import ApplyContext
    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.redaction import Redactor
    from deltaproto.render.document.blocks import Document

_LOG = logging.getLogger("deltaproto.apply")


class ApplyResult(Result, _ApplyResult):
    """The result of applying or rehearsing one plan."""

    @property
    def table(self) -> str:
        """The table as it was named."""
        return self.planned.plan.table

    @property
    def plan_id(self) -> str:
        """The plan's id."""
        return self.planned.id

    def _failure(self) -> DeltaprotoError | None:
        passed = self.code is ExitCode.OK or self.status is ApplyStatus.READY
        if passed:
            return None
        return ResultError(self, self.code, f"{self.table}: {self.message}", self.hint)

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of `results` in the JSON of `apply`."""
        from deltaproto.render.apply import applied_fields

        return applied_fields(self)

    def _document(self) -> Document:
        from deltaproto.render.apply_section import result_section
        from deltaproto.render.document.blocks import Document

        return Document(f"Plan {self.plan_id}", (str(self.status),), [result_section(self)])

    def __repr__(self) -> str:
        return f"<ApplyResult {self.table}: {self.status}, {self.message}>"


class EventKind(StrEnum):
    """What happened while a plan was applied."""

    STARTED = "started"
    """a statement was sent"""
    PROGRESS = "progress"
    """the engine finished some of a statement's tasks"""
    RETRY = "retry"
    """a step lost a conflict, and is tried again"""
    WAITING = "waiting"
    """a step waits until a later time"""
    FINISHED = "finished"
    """a step ended; `record` has the result"""
    INTERRUPTED = "interrupted"
    """no further statement is sent"""


class ApplyEvent(NamedTuple):
    """One event of `apply`, passed to `on_event`."""

    kind: EventKind
    """what happened"""
    message: str
    """the event in one line"""
    step: Step | None = None
    """the step; None if no step is the cause"""
    record: StepRecord | None = None
    """how the step ended, for `finished`"""
    done: int = 0
    """finished tasks of the engine, for `progress`"""
    known: int = 0
    """known tasks of the engine, for `progress`"""

    def __repr__(self) -> str:
        return f"<ApplyEvent {self.kind}: {self.message}>"


show_in_notebooks(ApplyEvent, StepRecord)


class _Events:
    """Passes the executor's callbacks on as events, and logs them.

    An exception in `on_event` must not stop a plan between two steps, so it is only logged.
    """

    def __init__(self, on_event: Callable[[ApplyEvent], object] | None, redact: Redactor) -> None:
        self._on_event, self._redact = on_event, redact

    def began(self, planned: LoadedPlan, step: Step) -> None:
        self._send(EventKind.STARTED, f"{planned.plan.table}: {step.id} {step.why}", step)

    def progress(self, planned: LoadedPlan, step: Step, done: int, known: int) -> None:
        message = f"{planned.plan.table}: {step.id} finished {done} of {known} tasks"
        self._send(EventKind.PROGRESS, message, step, done=done, known=known)

    def retries(self, planned: LoadedPlan, step: Step, winner: str, seconds: float) -> None:
        message = f"{planned.plan.table}: {step.id} lost to {winner}, again in {seconds:.0f} s"
        self._send(EventKind.RETRY, message, step)

    def waits(self, planned: LoadedPlan, step: Step, until: float) -> None:
        from deltaproto.render.interface import stamp

        self._send(EventKind.WAITING, f"{planned.plan.table}: {step.id} until {stamp(until)}", step)

    def finished(self, planned: LoadedPlan, record: StepRecord) -> None:
        step = next((each for each in planned.plan.steps if each.id == record.id), None)
        message = f"{planned.plan.table}: {record.id} {record.done} {record.message}".rstrip()
        self._send(EventKind.FINISHED, message, step, record=record)

    def halts(self) -> None:
        self._send(EventKind.INTERRUPTED, "interrupted: no further statements are sent")

    def _send(
        self,
        kind: EventKind,
        message: str,
        step: Step | None = None,
        *,
        record: StepRecord | None = None,
        done: int = 0,
        known: int = 0,
    ) -> None:
        event = ApplyEvent(kind, self._redact(message), step, record, done, known)
        _LOG.log(logging.DEBUG if kind is EventKind.PROGRESS else logging.INFO, event.message)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            _LOG.exception("on_event failed; the plan continues")


def apply(
    plan: Plan | str | os.PathLike[str],
    *,
    journal: str | os.PathLike[str] = ".deltaproto",
    dry_run: bool = False,
    allow_irreversible: bool = False,
    accept_losses: Sequence[str] = (),
    policy: str | os.PathLike[str] | None = None,
    outside_window: bool = False,
    wait: bool = False,
    retries: int = 5,
    on_event: Callable[[ApplyEvent], object] | None = None,
    client_files: Sequence[str] = (),
    catalogue: Sequence[str] = (),
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> ApplyResult:
    """Apply one plan through Spark, step by step, with checks before and after each step.

    Does not ask for confirmation: calling it is consent. Review the plan first, or `warning` of
    a dry run. Call it again to resume; finished steps are read from the table.

    Args:
        plan: a plan, or a file with one plan.
        journal: the folder for journal and audit log; a plan is saved there as JSON.
        dry_run: evaluate every gate, change nothing.
        allow_irreversible: also execute irreversible steps.
        accept_losses: what a copy into a new table may lose, by the names that the plan lists.
        policy: a YAML file: block the plan if a declared client would lose access, and enforce
            maintenance windows.
        outside_window: apply even outside maintenance windows.
        wait: wait until waiting steps may continue, instead of returning.
        retries: how often to retry a step that lost a conflict.
        on_event: a function that is called with each event; what it raises is only logged.
        client_files: files with custom clients.
        catalogue: the old name of `client_files`.

    Returns:
        The result. Its `ok` is true if every step is finished, there is nothing to do, or a dry
        run passed every gate.

    Raises:
        UsageError: for a file that is not a plan, was changed, or has several plans; for an
            unknown loss.
    """
    from deltaproto.execution.apply import apply_plans
    from deltaproto.execution.prepare_copy import parse_losses
    from deltaproto.redaction import Redactor

    folder = os.fspath(journal)
    spark = spark_settings(spark_remote, spark_conf, storage_options)
    planned = _loaded(plan, folder)
    context = build_context(
        folder,
        storage_options,
        spark.reaching(planned.plan.location),
        policy,
        (*client_files, *catalogue),
    )._replace(
        allow_irreversible=allow_irreversible,
        outside_window=outside_window,
        accepted_losses=parse_losses(accept_losses),
    )
    redact = Redactor(storage_options, spark.conf, spark.hadoop)
    session = build_session(context, redact, on_event, dry_run=dry_run, wait=wait, retries=retries)
    (applied,) = apply_plans([planned], session, lambda _: None, ask_all_first=False)
    return ApplyResult._make(applied)


def rehearse(
    plan: Plan | str | os.PathLike[str],
    *,
    scratch: str | os.PathLike[str] | None = None,
    on_event: Callable[[ApplyEvent], object] | None = None,
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> ApplyResult:
    """Execute a plan's statements on a shallow clone, and compare each with its prediction.

    The table itself is not changed, and the clone is always removed.

    Args:
        plan: a plan, or a file with one plan.
        scratch: the folder or URI to clone into; None: a temporary folder.
        on_event: as for `apply`.

    Raises:
        UsageError: for a file that is not a plan, or a folder that cannot be used.
    """
    import tempfile

    from deltaproto.execution.rehearse import rehearse_plan
    from deltaproto.redaction import Redactor

    spark = spark_settings(spark_remote, spark_conf, storage_options)
    redact = Redactor(storage_options, spark.conf, spark.hadoop)
    with tempfile.TemporaryDirectory(prefix="deltaproto-rehearse-") as folder:
        planned = _loaded(plan, folder)
        spark = spark.reaching(planned.plan.location)
        context = build_context(folder, storage_options, spark, None, ())
        session = build_session(context, redact, on_event)
        where = None if scratch is None else os.fspath(scratch)
        return ApplyResult._make(rehearse_plan(planned, session, where))


def build_session(
    context: ApplyContext,
    redact: Redactor,
    on_event: Callable[[ApplyEvent], object] | None,
    *,
    dry_run: bool = False,
    wait: bool = False,
    retries: int = 5,
) -> ApplySession:
    """Return the inputs of a call of `apply` or `rehearse`; Spark starts on first use."""
    from deltaproto.execution.plan_executor import ApplySession
    from deltaproto.execution.run_log import AUDIT_FILE
    from deltaproto.execution.runner import lazy_runner
    from deltaproto.execution.waits import WaitLimits

    return ApplySession(
        context,
        lazy_runner(context.spark),
        audit=lambda path: os.path.join(context.folder(path), AUDIT_FILE),
        redact=redact,
        observer=_Events(on_event, redact),
        limits=WaitLimits(retries, wait),
        dry_run=dry_run,
    )


def build_context(
    folder: str,
    storage_options: Mapping[str, str],
    spark: SparkSettings,
    policy: str | os.PathLike[str] | None,
    files: Sequence[str],
) -> ApplyContext:
    """Return where tables and records are, and what the policy requires.

    Raises:
        PolicyError: for a policy or a client file with mistakes.
    """
    from deltaproto.execution.prepare import load_context
    from deltaproto.policy.local_catalog import load_local_policy

    rules = None if policy is None else load_local_policy(os.fspath(policy))
    files = require_texts(files, "client_files")
    return load_context(dict(storage_options), spark, lambda _: folder, rules, files)


def _loaded(plan: Plan | str | os.PathLike[str], folder: str) -> LoadedPlan:
    return read_plan(_kept(plan, folder) if isinstance(plan, Plan) else os.fspath(plan))


def _kept(plan: Plan, folder: str) -> str:
    """Return the file of a plan; an existing file keeps the start times of its waits."""
    from deltaproto.planning.plan import plan_id
    from deltaproto.render.plan_json import save_plan_file

    path = os.path.join(folder, f"{plan_id(plan)}.json")
    if not os.path.exists(path):
        save_plan_file(plan, path)
    return path
