"""Plans as objects that can be read, saved, rehearsed and applied."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from deltaproto.app.arguments import NONE
from deltaproto.app.executing import ApplyEvent, ApplyResult, apply, rehearse
from deltaproto.app.result import Result, show_in_notebooks
from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError
from deltaproto.execution.plan_file import read_plan
from deltaproto.planning.plan import Alternative, Blocked, ClientChange, Step, plan_id
from deltaproto.planning.plan import Plan as _Plan

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document


show_in_notebooks(Alternative, Blocked, ClientChange, Step)


class Plan(Result, _Plan):
    """The steps for one table, and their effects. It changes nothing until it is applied."""

    losses: tuple[ClientChange, ...] = ()
    """accesses that clients of the policy lose without approval, or that clients of `seen` lose;
    empty for a plan from a file"""

    @property
    def id(self) -> str:
        """The plan's id; equal plans have equal ids."""
        return plan_id(self)

    def to_sql(self) -> str:
        """Return the statements, with everything else as comments."""
        from deltaproto.render.plan_script import write_script

        file = io.StringIO()
        write_script(self, file, time.time())
        return file.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file, which `deltaproto apply` and `Plan.load` read.

        Raises:
            UsageError: if the file cannot be written.
        """
        from deltaproto.render.plan_json import save_plan_file

        save_plan_file(self, os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan from a file that `save` or a planning command wrote.

        It has no `alternatives`, which cannot be applied.

        Raises:
            UsageError: for a file that is not a plan, was changed, or has several plans.
        """
        return cls._make(read_plan(os.fspath(path)).plan)

    def apply(
        self,
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
        storage_options: Mapping[str, str] = NONE,
        spark_remote: str | None = None,
        spark_conf: Mapping[str, str] = NONE,
    ) -> ApplyResult:
        """Apply the plan; see `deltaproto.apply`."""
        return apply(
            self,
            journal=journal,
            dry_run=dry_run,
            allow_irreversible=allow_irreversible,
            accept_losses=accept_losses,
            policy=policy,
            outside_window=outside_window,
            wait=wait,
            retries=retries,
            on_event=on_event,
            client_files=client_files,
            storage_options=storage_options,
            spark_remote=spark_remote,
            spark_conf=spark_conf,
        )

    def rehearse(
        self,
        *,
        scratch: str | os.PathLike[str] | None = None,
        on_event: Callable[[ApplyEvent], object] | None = None,
        storage_options: Mapping[str, str] = NONE,
        spark_remote: str | None = None,
        spark_conf: Mapping[str, str] = NONE,
    ) -> ApplyResult:
        """Execute the plan on a shallow clone; see `deltaproto.rehearse`."""
        return rehearse(
            self,
            scratch=scratch,
            on_event=on_event,
            storage_options=storage_options,
            spark_remote=spark_remote,
            spark_conf=spark_conf,
        )

    def _failure(self) -> DeltaprotoError | None:
        if not self.complete:
            message = f"{self.table}: the table was not fully visible, so predictions may be wrong"
            return ResultError(self, ExitCode.UNREADABLE, message, "see `warnings`")
        if self.blocked or self.unmet:
            first = (*self.blocked, *self.unmet)[0]
            what = "the plan is blocked" if self.blocked else "the policy stays violated"
            message = f"{self.table}: {what}: {first.reason}"
            return ResultError(self, ExitCode.FINDINGS, message, first.remedy)
        if self.losses:
            from deltaproto.planning.impact import describe_change

            message = f"{self.table}: a client loses access: {describe_change(self.losses[0])}"
            return ResultError(self, ExitCode.FINDINGS, message, "see `losses` and `warnings`")
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of the planning commands; times are relative to now."""
        from deltaproto.render.plan_json import plan_fields

        return plan_fields(self, time.time())

    def _document(self) -> Document:
        from deltaproto.render.plan_page import plan_document
        from deltaproto.render.plan_words import Summary

        summary = Summary()
        summary.add(self)
        return plan_document([self], (), summary, time.time())

    def __repr__(self) -> str:
        if self.blocked:
            status = "blocked"
        elif self.stays_violated:
            status = "the policy stays violated"
        elif not self.steps:
            status = "nothing to do"
        else:
            status = counted(len(self.steps), "step")
        change = f"{self.protocol_before} to {self.protocol_after}"
        return f"<Plan {self.id} {self.table}: {self.goal_text}; {change}, {status}>"
