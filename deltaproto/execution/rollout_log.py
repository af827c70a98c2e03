"""The decisions and failures of a rollout: in its journal and audit log, and next to its plans."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.plan_file import LoadedPlan, read_plan
from deltaproto.execution.replan import load_replanned
from deltaproto.execution.rollout_file import Rollout
from deltaproto.execution.run_log import (
    JOURNAL_SUFFIX,
    AuditLog,
    Journal,
    JournalError,
    LineFile,
    PlanLockedError,
    journal_path,
    read_events,
    read_journal,
)
from deltaproto.identity import current_actor
from deltaproto.planning.rollout import RolloutTable
from deltaproto.redaction import Redactor

_MODE, _DECISIONS_MODE = 0o600, 0o644
DECISIONS_FILE = f"rollout{JOURNAL_SUFFIX}"
"""the file next to the plans that repeats the decisions of the journal"""
_HIDE_SECRETS = Redactor()


class RolloutAction(StrEnum):
    """A user's decision about a rollout."""

    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"
    SKIP = "skip"


class Decisions(NamedTuple):
    """The decisions and failures so far. Tables are named by the ids of their plans."""

    paused: str | None = None
    """the reason, if the rollout is paused"""
    aborted: str | None = None
    skipped: Mapping[str, str] = {}
    """the reason by table"""
    failed: Mapping[str, tuple[str, float]] = {}
    """the cause and the time by table; empty after `resume`"""
    replanned: Mapping[str, str] = {}
    """the id of the new plan by table"""
    begun: frozenset[str] = frozenset()
    """the waves whose hook before-wave has passed"""
    rehearsed: frozenset[str] = frozenset()
    """the groups (`group_id`) with a plan whose rehearsal on a clone went as predicted"""


class RolloutLog:
    """Records decisions and failures. Several processes may append to one log.

    Decisions are also written next to the plans, so that they still apply where the journal is
    missing: after its folder was deleted, on another machine, or with another `--journal`.

    Args:
        folder: the folder of the journals.
        audit: path of the audit log; not needed to read decisions.
        redact: removes credentials from texts.
    """

    def __init__(
        self,
        rollout: Rollout,
        folder: str,
        audit: str = "",
        redact: Callable[[str], str] = _HIDE_SECRETS,
    ) -> None:
        self.path: Path = journal_path(folder, rollout.id)
        self.decisions_path = Path(rollout.path).with_name(DECISIONS_FILE)
        self.rollout, self.folder, self._audit, self._redact = rollout, folder, audit, redact

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the rollout: one process at a time starts tables.

        Raises:
            PlanLockedError: when another process holds it.
            UsageError: when the journal cannot be written.
        """
        try:
            journal = Journal(self.folder, self.rollout.id)
        except PlanLockedError as error:
            raise PlanLockedError(
                error.message.replace("this plan", "this rollout"), error.hint
            ) from None
        with journal:
            journal.add("begin", time.time(), **current_actor()._asdict())
            yield

    def decisions(self) -> Decisions:
        """Read the decisions and failures.

        Raises:
            UsageError: when the journal cannot be read, or belongs to another rollout.
        """
        found = Decisions()
        events = [*read_events(self.path)]
        if any(event.get("plan") != self.rollout.id for event in events):
            raise UsageError(
                f"{self.path} is not the journal of this rollout",
                "pass another folder with --journal",
            )
        try:
            # An earlier rollout may have left its decisions in the folder.
            lost = [
                event
                for event in self._copied_decisions()
                if event.get("plan") == self.rollout.id and event not in events
            ]
            if lost:
                events = sorted([*events, *lost], key=lambda event: float(event["at"]))
            for event in events:
                found = _with_event(found, event)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UsageError(
                f"{self.path} or {self.decisions_path} is damaged",
                "move the damaged file away: what is finished is then read from the tables, and "
                "failures and decisions that only this file has are forgotten",
            ) from None
        return found

    def _copied_decisions(self) -> list[Mapping[str, Any]]:
        try:
            return [*read_events(self.decisions_path)]
        except UsageError as error:
            hint = "make the file readable: it has the decisions about the rollout"
            raise UsageError(error.message, hint) from None

    def record(
        self, action: RolloutAction, now: float, *, table: str = "", reason: str = ""
    ) -> str | None:
        """Record a decision. Return None, or why it changes nothing and was not recorded.

        Args:
            table: the table to skip, as in the plan or by the last part of its name.

        Raises:
            UsageError: when the rollout was aborted, the table is not found, a skip has no reason,
                or a plan, the journal or the audit log cannot be used.
        """
        decisions = self.decisions()
        if decisions.aborted is not None:
            raise UsageError("the rollout was aborted", "plan again into a new folder")
        if action is RolloutAction.SKIP and not reason:
            raise UsageError("skipping a table needs a reason", "state it, with --reason TEXT")
        if action is RolloutAction.RESUME and decisions.paused is None and not decisions.failed:
            return "the rollout is not paused, and no table failed"
        name, shown = "", f"by {current_actor().actor}{': ' + reason if reason else ''}"
        recorded = self._redact(shown)
        paused = decisions.paused
        if (
            action is RolloutAction.PAUSE
            and paused is not None
            and (not reason or paused == recorded)
        ):
            return f"the rollout is paused already, {paused}"
        if action is RolloutAction.SKIP:
            found = self._find_table(table)
            name = found.plan_id
            if self._is_done(found, decisions):
                return f"{table} is done already: not skipped"
            if decisions.skipped.get(name) == recorded and name not in decisions.failed:
                return f"{table} is skipped already, {recorded}"
        self.decide(action, now, name=name, reason=reason, shown=shown)
        return None

    def _find_table(self, name: str) -> RolloutTable:
        tables = self.rollout.tables
        found = [
            each for each in tables if name in (each.table, each.location, each.plan_id, each.file)
        ] or [each for each in tables if each.location.rstrip("/").rpartition("/")[2] == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                f"{counted(len(found), 'table')} are called {name}", "name one as `status` does"
            )
        raise UsageError(f"{name} is not in {self.rollout.path}", "name a table as `status` does")

    def _is_done(self, table: RolloutTable, decisions: Decisions) -> bool:
        """Whether a table's journal has every step of its current plan."""
        planned = read_plan(os.path.join(os.path.dirname(self.rollout.path), table.file))
        current = load_replanned({planned.id: planned}, decisions.replanned, self.folder)
        return self.ended_at(current[planned.id]) is not None

    def ended_at(self, planned: LoadedPlan) -> float | None:
        """Return when the last step of a plan ended, in seconds since the epoch, by its journal.

        None while a step is left; 0 for a plan without steps.

        Raises:
            UsageError: when the journal cannot be read.
        """
        journal = read_journal(journal_path(self.folder, planned.id), planned.id)
        return journal.since or 0 if journal.done >= len(planned.plan.steps) else None

    def decide(
        self, event: str, now: float, *, name: str = "", reason: str = "", shown: str = ""
    ) -> None:
        """Record an event such as `pause`, `skip` or `replan` in the audit log and the journal.

        Args:
            name: the id of the plan that was skipped, replaced or rehearsed.
            shown: what the journal has instead of the reason.

        Raises:
            UsageError: when the audit log cannot be written; nothing is decided then.
            JournalError: when the journal cannot be written.
        """
        audit = AuditLog(self._audit, self._redact)
        try:
            problem = audit.add(
                at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
                rollout=self.rollout.id,
                action=event,
                plan=name or None,
                reason=reason or None,
            )
        finally:
            audit.close()
        if problem is not None:
            hint = "pass a writable file with --audit; the decision was not recorded"
            raise UsageError(problem, hint)
        self.add(event, now, name=name, reason=shown or reason)

    def add(self, event: str, now: float, *, name: str = "", reason: str = "") -> None:
        """Append one line to the journal, which is on disk when this returns.

        Args:
            name: the id of a plan, or the name of a wave.

        Raises:
            JournalError: when it cannot be written.
        """
        begin = {"event": event, "at": now, "plan": self.rollout.id}
        line = {**begin, "name": name, "reason": self._redact(reason)}
        try:
            _append(self.path, _MODE, line)
        except OSError as error:
            failed = JournalError(
                f"cannot write the journal {self.path}: {error.strerror}",
                "pass a writable folder with --journal",
            )
            failed.exit_code = ExitCode.USAGE
            raise failed from None
        if event in {*RolloutAction}:
            # The folder of plans may be read-only. Then only the journal has the decision.
            with suppress(OSError):
                _append(self.decisions_path, _DECISIONS_MODE, line)


def _append(path: Path, mode: int, line: Mapping[str, Any]) -> None:
    file = LineFile(path, mode)
    try:
        file.add(line)
    finally:
        file.close()


def _with_event(found: Decisions, event: Mapping[str, Any]) -> Decisions:
    name, reason = str(event.get("name", "")), str(event.get("reason", ""))
    match event["event"]:
        case "pause":
            return found._replace(paused=reason)
        case "resume":
            return found._replace(paused=None, failed={})
        case "abort":
            return found._replace(aborted=reason)
        case "skip":
            failed = {each: why for each, why in found.failed.items() if each != name}
            return found._replace(skipped={**found.skipped, name: reason}, failed=failed)
        case "failed":
            return found._replace(failed={**found.failed, name: (reason, float(event["at"]))})
        case "replan":
            return found._replace(replanned={**found.replanned, name: reason})
        case "rehearse":
            return found._replace(rehearsed=found.rehearsed | {reason})
        case "wave":
            return found._replace(begun=found.begun | {name})
    return found
