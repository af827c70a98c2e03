"""Rehearses a plan on a shallow clone: real statements, none of them on the table itself."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, UsageError
from deltaproto.execution import preflight
from deltaproto.execution.copy_state import is_named_copy
from deltaproto.execution.executor import StepExecutor
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.preflight import GateResult, StopReason
from deltaproto.execution.prepare import (
    LocatedProgress,
    PreparedPlan,
    locate_progress,
)
from deltaproto.execution.progress import TableWatcher, progress_from_commits, without_features
from deltaproto.execution.recorder import RunRecorder
from deltaproto.execution.result import (
    ApplyResult,
    ApplyStatus,
    StepRecord,
    StepStatus,
    with_pending,
)
from deltaproto.execution.run_log import AUDIT_FILE, AuditLog, Journal
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.warning import build_warning
from deltaproto.location import Location, locate
from deltaproto.planning.advice import is_same_table
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.from_state import table_from_state
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.pending import stored_requests
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import quote_literal, sql_table_name
from deltaproto.tables.log.commits import commit_tag_of
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.spark_connect import is_local

_CLONE_COMMENT = "deltaproto: a clone for a rehearsal"
_TABLE, _RECORDS = "clone", "records"


def rehearse_plan(
    planned: LoadedPlan, session: ApplySession, scratch: str | None = None
) -> ApplyResult:
    """Execute the plan's statements on a clone, and compare each with its prediction.

    The clone is always removed, and the source is verified to be unchanged. The journal and the
    audit log are those of the clone, not of the session.

    Args:
        scratch: folder or URI to clone into; None: a local temporary folder.

    Raises:
        UsageError: when the scratch folder cannot be used.
    """
    try:
        source, observed, progress, *_ = locate_progress(planned, session.context)
    except DeltaprotoError as error:
        return _unreadable_result(planned, error, session)
    plan = planned.plan
    passed: tuple[GateResult, ...] = (
        _copy_gate(plan) or preflight.forged_plan_gate(planned, None) or preflight.plan_gate(plan),
        preflight.fingerprint_gate(plan, observed, progress, started=False),
    )
    if plan.steps and not progress.started and preflight.combine_failed_gates(passed) is None:
        # Spark is started last: every gate before it works without Spark.
        try:
            passed = (*passed, preflight.engine_gate(plan.engine, session.runner().facts()))
        except DeltaprotoError as error:
            return _unreadable_result(planned, error, session)
    ended = ApplyResult(
        planned,
        ApplyStatus.REFUSED,
        ExitCode.OK,
        "",
        gates=passed,
        version=observed.now.version,
        protocol=observed.now.protocol,
    )
    failed = preflight.combine_failed_gates(passed)
    if failed is None and progress.started:
        message = "the plan was started"
        failed = GateResult("fingerprint", False, message, preflight.REPLAN_HINT, ExitCode.STALE)
    if failed is not None:
        return ended._replace(code=failed.code, message=failed.message, hint=failed.hint)
    if not plan.steps:
        return ended._replace(status=ApplyStatus.NOTHING, message="there is nothing to rehearse")
    before = _list_files(source)
    folder, local = _create_scratch_folder(plan, session, scratch)
    try:
        result = _execute_on_clone(planned, session, folder, local, ended, source)
    except DeltaprotoError as error:
        message = session.redact(error.message)
        result = ended._replace(
            status=ApplyStatus.FAILED, code=error.exit_code, message=message, hint=error.hint
        )
    finally:
        left = _remove_clone(folder, local, session.runner())
    remarks = [*result.remarks, *([left] if left else [])]
    harm = _find_source_change(planned.id, source, observed.now.version, before)
    if harm is not None:
        return result._replace(status=ApplyStatus.FAILED, code=ExitCode.FAILED, message=harm)
    files = counted(len(before), "file")
    proof = f"the source is unchanged: version {observed.now.version}, {files} as before"
    return result._replace(message=f"{result.message}; {proof}", remarks=tuple(remarks))


def _copy_gate(plan: Plan) -> GateResult | None:
    """Return the failed gate of a plan that replaces the table; None for other plans."""
    if not is_named_copy(plan):
        return None
    return GateResult(
        "plan",
        False,
        "a plan that replaces the table with a copy is not rehearsed: it compares the copy with "
        "the table before it renames them",
        "run `deltaproto apply PLAN --dry-run`",
        ExitCode.USAGE,
    )


def _unreadable_result(
    planned: LoadedPlan, error: DeltaprotoError, session: ApplySession
) -> ApplyResult:
    message = session.redact(error.message)
    return ApplyResult(planned, ApplyStatus.UNREADABLE, error.exit_code, message, error.hint)


def _execute_on_clone(
    planned: LoadedPlan,
    session: ApplySession,
    folder: str,
    local: str,
    ended: ApplyResult,
    source: TableWatcher,
) -> ApplyResult:
    plan = planned.plan
    location = locate(f"{folder.rstrip('/')}/{_TABLE}")
    try:
        on_clone = retarget_plan(plan, location)
    except UsageError as error:
        return ended._replace(code=error.exit_code, message=error.message, hint=error.hint)
    made = session.runner().run(
        f"CREATE TABLE {on_clone.sql_name} SHALLOW CLONE {plan.sql_name}", _CLONE_COMMENT
    )
    if made.error is not None:
        message = f"Spark cannot create a shallow clone of it: {session.redact(made.message)}"
        return ended._replace(code=ExitCode.FAILED, status=ApplyStatus.FAILED, message=message)
    watcher = TableWatcher(on_clone, session.context.storage_options, session.context.spark)
    first = watcher.observe(-1).now
    # Delta Spark's clone of a catalog-managed table commits to its own log.
    own_log = CATALOG_MANAGED - first.protocol.supported
    on_clone = _with_protocols(on_clone, lambda protocol: without_features(protocol, own_log))
    if first.protocol == on_clone.protocol_before.lowest():
        # Delta Spark stores the lowest form of a protocol in a clone.
        on_clone = _with_protocols(on_clone, Protocol.lowest)
    if first.protocol != on_clone.protocol_before:
        message = (
            f"the clone has {first.protocol.in_words}, but the table has "
            f"{plan.fingerprint.protocol.in_words}: the clone cannot stand in for the table"
        )
        return ended._replace(code=ExitCode.FINDINGS, message=message)
    lost = _find_lost_requests(on_clone, source, watcher, session)
    if lost:
        keys = ", ".join(map(quote_literal, lost))
        return ended._replace(
            code=ExitCode.FINDINGS,
            message=f"the table stores {', '.join(lost)}, which the first step applies and a clone "
            "does not have: the clone cannot stand in for the table",
            hint=f"first apply or remove them: ALTER TABLE {plan.sql_name} UNSET TBLPROPERTIES "
            f"({keys}); then plan again",
        )
    on_clone = on_clone._replace(fingerprint=first._replace(table_id=None, metadata=None))
    observed = watcher.observe(first.version)
    progress = progress_from_commits(planned.id, on_clone, 0, frozenset(), observed, first)
    warning = build_warning(on_clone, on_clone.steps, None, None, None, session.limits.now())
    prepared = PreparedPlan(
        planned._replace(plan=on_clone),
        LocatedProgress(watcher, observed, progress, None, ()),
        ended.gates,
        warning,
    )
    audit = AuditLog(os.path.join(local, _RECORDS, AUDIT_FILE), session.redact)
    try:
        with Journal(os.path.join(local, _RECORDS), planned.id) as journal:
            recorder = RunRecorder(prepared.planned, journal, audit)
            executor = StepExecutor(
                prepared, session._replace(limits=session.limits._replace(wait=False)), recorder
            )
            stop = executor.execute()
    finally:
        audit.close()
    return _rehearsal_result(ended, plan, stop, executor.records)


def _find_lost_requests(
    plan: Plan, source: TableWatcher, clone: TableWatcher, session: ApplySession
) -> tuple[str, ...]:
    """Return protocol properties of the source that would change the first step on the clone."""
    reader = LogReader(session.context.storage_options)
    stored = reader.read_from(*source.reached).metadata.configuration
    requests = stored_requests({key: value for key, value in stored.items() if value is not None})
    first = next((step.sql for step in plan.steps if step.sql is not None), None)
    if not requests or first is None:
        return ()
    table = table_from_state(reader.read_from(*clone.reached))
    parsed = parse_script(first)[0]
    alone, asked = (
        predict_statement(parsed.statement, each, plan.engine).table.protocol
        for each in (table, table.with_properties(requests))
    )
    return () if alone == asked else tuple(sorted(requests))


def _rehearsal_result(
    ended: ApplyResult, plan: Plan, stop: StopReason | None, records: list[StepRecord]
) -> ApplyResult:
    done = [each for each in records if each.done in (StepStatus.DONE, StepStatus.SKIPPED)]
    result = ended._replace(steps=with_pending(records, plan))
    if stop is None:
        which = f"all {len(done)} steps" if len(done) > 1 else "the step"
        message = f"{which} went as predicted on a clone"
        return result._replace(status=ApplyStatus.DONE, message=message)
    if stop.earliest is not None:
        rest = [step.id for step in plan.steps[len(done) :]]
        message = (
            f"{', '.join(each.id for each in done) or 'no step'} went as predicted on a clone; "
            f"{', '.join(rest)} cannot be rehearsed: they need expired history"
        )
        return result._replace(status=ApplyStatus.DONE, message=message)
    return result._replace(
        status=ApplyStatus.FAILED, code=ExitCode.FAILED, message=stop.message, hint=stop.hint
    )


def _create_scratch_folder(
    plan: Plan, session: ApplySession, scratch: str | None
) -> tuple[str, str]:
    """Return the clone's location, and a local folder for the records."""
    local = tempfile.mkdtemp(prefix="deltaproto-rehearsal-")
    if scratch is not None:
        where = locate(scratch)
        if where.path is None:
            return f"{scratch.rstrip('/')}/{os.path.basename(local)}", local
        try:
            os.makedirs(where.path, exist_ok=True)
            folder = tempfile.mkdtemp(prefix="deltaproto-rehearsal-", dir=where.path)
        except OSError as error:
            os.rmdir(local)
            raise UsageError(
                f"cannot use {scratch}: {error.strerror}", "pass another --scratch"
            ) from None
        os.rmdir(local)
        return folder, folder
    here = locate(plan.location).path is not None
    if not (here and is_local(session.context.spark.remote)):
        os.rmdir(local)
        raise UsageError(
            "the table is not on this machine, so its clone needs a location writable by Spark",
            "pass --scratch URI",
        )
    return local, local


def _remove_clone(folder: str, local: str, runner: StatementRunner) -> str:
    """Remove the clone. Return a sentence about what could not be removed, or an empty string."""
    shutil.rmtree(local, ignore_errors=True)
    if folder == local or runner.removed(folder):
        return "" if not os.path.exists(local) else f"could not remove all of {local}"
    return f"the clone is still at {folder}: remove it manually"


def _list_files(source: TableWatcher) -> dict[str, tuple[int, ...]]:
    """Return size and modification time of the table's files (object store: of its log)."""
    location, store = source.reached
    if location.path is None:
        return {each.name: (each.size or 0, each.modified_ms or 0) for each in store.list_dated()}
    return dict(_walk_files(location.path))


def _walk_files(path: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            try:
                found = os.stat(full)
            except FileNotFoundError:
                continue
            yield os.path.relpath(full, path), (found.st_size, found.st_mtime_ns)


def _find_source_change(
    plan_id: str, source: TableWatcher, version: int, before: dict[str, tuple[int, ...]]
) -> str | None:
    """Describe what the rehearsal changed in the source, or None; other writers are ignored."""
    after = _list_files(source)
    differing = sorted(name for name, seen in before.items() if after.get(name) != seen)
    if differing:
        return f"files of the source changed or are missing: {', '.join(differing[:3])}"
    for commit in source.observe(version).commits:
        tag = commit_tag_of(commit)
        if tag is not None and tag.plan == plan_id:
            return f"the source has a commit of this plan: {commit.in_words}"
    return None


def retarget_plan(plan: Plan, to: Location) -> Plan:
    """Return the plan with every statement rewritten for the table at `to`.

    Raises:
        UsageError: for a statement that would still change another table.
    """
    name = sql_table_name(to)
    steps = tuple(
        step
        if step.sql is None
        else step._replace(sql=_retarget_sql(step, step.sql, plan.sql_name, name))
        for step in plan.steps
    )
    return plan._replace(table=to.uri, location=to.uri, sql_name=name, steps=steps)


def _with_protocols(plan: Plan, change: Callable[[Protocol], Protocol]) -> Plan:
    """Return the plan for a copy of its table that has other protocols."""
    steps = tuple(
        step._replace(
            protocol_before=change(step.protocol_before), protocol_after=change(step.protocol_after)
        )
        for step in plan.steps
    )
    return plan._replace(
        protocol_before=change(plan.protocol_before),
        protocol_after=change(plan.protocol_after),
        steps=steps,
    )


def _retarget_sql(step: Step, sql: str, before: str, name: str) -> str:
    made = sql.replace(before, name, 1)
    # Users write names in many ways, and more than once: only parsing the statement shows them.
    for parsed in parse_script(made):
        if parsed.target is None or not is_same_table(parsed.target, name):
            raise UsageError(
                f"{step.id} cannot be rehearsed: it does not name the table as {before}",
                "use this name for the table in the SQL, and plan again",
            )
    return made
