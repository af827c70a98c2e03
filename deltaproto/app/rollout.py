"""The rollout of a folder of plans: its progress, the plans that may run, and decisions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaproto.app.arguments import NONE, spark_settings
from deltaproto.app.executing import ApplyEvent, ApplyResult, build_context, build_session
from deltaproto.app.result import Result, show_in_notebooks
from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError
from deltaproto.execution.plan_file import LoadedPlan, load_plans
from deltaproto.execution.rollout_file import load_rollout, require_policy
from deltaproto.execution.rollout_log import RolloutAction, RolloutLog
from deltaproto.execution.rollout_state import RolloutProgress as _RolloutProgress
from deltaproto.execution.rollout_state import (
    TableProgress,
    WaveProgress,
    match_plans,
    read_progress,
)
from deltaproto.execution.run_log import AUDIT_FILE, default_journal_dir
from deltaproto.planning.rollout import RolloutTable
from deltaproto.redaction import Redactor

if TYPE_CHECKING:
    from deltaproto.execution.prepare import ApplyContext
    from deltaproto.render.document.blocks import Document

show_in_notebooks(RolloutTable, TableProgress, WaveProgress)


class RolloutProgress(Result, _RolloutProgress):
    """The progress of a rollout. It is ok while steps are pending and nothing blocks them."""

    unplanned: tuple[str, ...] = ()
    """tables of the folder that could not be planned"""

    def _failure(self) -> DeltaprotoError | None:
        file = self.rollout.path
        if self.unplanned or not self.complete:
            unread = [t.table.table for wave in self.waves for t in wave.tables if t.unread]
            first = (*unread, *self.unplanned)[0]
            message = f"{file}: {first} could not be {'read' if unread else 'planned'}"
            return ResultError(self, ExitCode.UNREADABLE, message, "see `waves` and `unplanned`")
        if self.code is not ExitCode.FINDINGS:
            return None
        failed = [t for wave in self.waves for t in wave.tables if t.status == "failed"]
        cause = f"{failed[0].table.table}: {failed[0].message}" if failed else self.message
        message = f"{file}: {self.status}: {cause}"
        return ResultError(self, ExitCode.FINDINGS, message, "see `waves`; `resume` continues")

    def to_dict(self) -> dict[str, Any]:
        """Return `rollout` in the JSON of `status`."""
        from deltaproto.render.rollout import rollout_fields

        return rollout_fields(self)

    def _document(self) -> Document:
        from deltaproto.render.rollout import rollout_document

        return rollout_document(self)

    def __repr__(self) -> str:
        waves = ", ".join(f"{wave.name} {wave.status}" for wave in self.waves[:3])
        more = ", …" if len(self.waves) > 3 else ""
        return f"<RolloutProgress {self.status}: {waves}{more}>"


class Rollout:
    """A folder of plans with a rollout, which `deltaproto plan --out` made.

    Args:
        folder: the folder of the plans.
        policy: a YAML file: block plans that take access from a declared client, plan tables that
            changed again, and enforce maintenance windows.
        journal: the folder for journals and the audit log; default: `.deltaproto` in the folder.
        client_files: files with custom clients.

    Raises:
        UsageError: if the folder has no rollout, or its files were changed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        policy: str | os.PathLike[str] | None = None,
        journal: str | os.PathLike[str] | None = None,
        client_files: Sequence[str] = (),
        storage_options: Mapping[str, str] = NONE,
        spark_remote: str | None = None,
        spark_conf: Mapping[str, str] = NONE,
    ) -> None:
        self._folder = os.fspath(folder)
        self._rollout = load_rollout(self._folder)
        self._policy, self._files = policy, tuple(client_files)
        self._storage = dict(storage_options)
        self._spark = spark_settings(spark_remote, spark_conf, storage_options)
        self._redact = Redactor(storage_options, self._spark.conf, self._spark.hadoop)
        self._journal = (
            default_journal_dir(self._rollout.path) if journal is None else os.fspath(journal)
        )

    def status(self) -> RolloutProgress:
        """Return the progress of the rollout. Changes nothing.

        Raises:
            UsageError: if the plans are not those of the rollout, or a journal cannot be read.
        """
        plans, unplanned = load_plans([self._folder])
        log, context = self._log(), self._context(plans)
        found = read_progress(log, match_plans(log, plans), context, time.time())
        progress = RolloutProgress._make(found)
        progress.unplanned = tuple(each.table for each in unplanned)
        return progress

    def apply(
        self,
        *,
        dry_run: bool = False,
        allow_irreversible: bool = False,
        outside_window: bool = False,
        wait: bool = False,
        retries: int = 5,
        parallel: int | None = None,
        hooks: str | os.PathLike[str] | None = None,
        skip_rehearsal: bool = False,
        scratch: str | os.PathLike[str] | None = None,
        on_event: Callable[[ApplyEvent], object] | None = None,
    ) -> tuple[ApplyResult, ...]:
        """Execute the steps that may run now, wave after wave.

        Does not ask for confirmation: calling it is consent. Call it again at
        `status().next_at`.

        Args:
            dry_run: evaluate every gate, change nothing.
            allow_irreversible: also execute irreversible steps.
            outside_window: apply even outside maintenance windows.
            wait: wait until all steps are done, instead of returning.
            retries: how often to retry a step that lost a conflict.
            parallel: the number of tables at a time; default: as in the policy.
            hooks: a folder of programs to run before and after tables and waves.
            skip_rehearsal: execute plans without the rehearsals that the policy requires.
            scratch: the folder or URI in which rehearsals clone tables; None: a temporary folder.
            on_event: as for `apply`.

        Returns:
            The results of the plans with executed or refused steps.

        Raises:
            UsageError: if the plans are not those of the rollout, the policy is missing, or journal
                or audit log cannot be written.
        """
        from deltaproto.execution.hooks import open_hooks
        from deltaproto.execution.rollout import RolloutRun
        from deltaproto.render.plan_json import save_plan_file

        if self._policy is None and not outside_window:
            require_policy(self._rollout, hint="pass policy=, or outside_window=True")
        plans, _ = load_plans([self._folder])
        context = self._context(plans)._replace(
            allow_irreversible=allow_irreversible, outside_window=outside_window
        )
        session = build_session(
            context, self._redact, on_event, dry_run=dry_run, wait=wait, retries=retries
        )._replace(parallel=parallel or self._rollout.parallel)
        minutes = self._rollout.hook_minutes
        run = RolloutRun(
            self._rollout,
            plans,
            session,
            save_plan_file,
            hooks=None if hooks is None else open_hooks(os.fspath(hooks), minutes * 60),
            client_files=self._files,
            rehearse=self._rollout.rehearse and not skip_rehearsal,
            scratch=None if scratch is None else os.fspath(scratch),
        )
        results = run.apply(lambda _: None, ask_all_first=False)
        return tuple(ApplyResult._make(each) for each in results)

    def pause(self, reason: str = "") -> None:
        """Start no more tables until `resume`; running tables finish."""
        self._decide(RolloutAction.PAUSE, reason)

    def resume(self, reason: str = "") -> None:
        """Continue, and try failed tables again."""
        self._decide(RolloutAction.RESUME, reason)

    def abort(self, reason: str = "") -> None:
        """Send no more statements; running ones finish. This cannot be reverted."""
        self._decide(RolloutAction.ABORT, reason)

    def skip(self, table: str, reason: str) -> None:
        """Exclude a table, unless its journal shows that it is done.

        Raises:
            UsageError: without a reason, or if no table or several have this name.
        """
        self._decide(RolloutAction.SKIP, reason, table)

    def __repr__(self) -> str:
        return f"<Rollout {self._folder}: {counted(len(self._rollout.tables), 'table')}>"

    def _context(self, plans: Sequence[LoadedPlan]) -> ApplyContext:
        spark = self._spark.reaching(*(each.plan.location for each in plans))
        return build_context(self._journal, self._storage, spark, self._policy, self._files)

    def _log(self) -> RolloutLog:
        audit = os.path.join(self._journal, AUDIT_FILE)
        return RolloutLog(self._rollout, self._journal, audit, self._redact)

    def _decide(self, action: RolloutAction, reason: str, table: str = "") -> None:
        self._log().record(action, time.time(), table=table, reason=reason.strip())
