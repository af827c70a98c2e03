"""Executes a copy into a new table: fill, compare, catch up, and rename both tables.

A row that is committed to the old table is never lost: the newest version is read again before the
old table is renamed; then a commit to it aborts every transaction that is still open, and what was
committed until then is copied before and after the new table gets the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from deltaproto.counts import counted
from deltaproto.execution.copy_catch_up import count_rows, group_appends, rows_of_commit
from deltaproto.execution.copy_state import (
    CommitEffect,
    CopyStage,
    PendingCommit,
    find_metadata_change,
    pending_commits,
)
from deltaproto.execution.copy_statements import CopyStatements, StoppedError
from deltaproto.execution.copy_verify import (
    CopiedColumns,
    columns_of_copy,
    find_different_definition,
    find_different_rows,
)
from deltaproto.execution.preflight import (
    StopReason,
    check_window_open,
)
from deltaproto.execution.verify import cross_check_with_delta_rs
from deltaproto.planning.from_state import table_from_state
from deltaproto.planning.plan import Step
from deltaproto.planning.search.copy_by_name import COPY_OF, MOST_CATCH_UPS
from deltaproto.planning.statement import Action
from deltaproto.sql.quoting import quote_identifier, quote_literal

_MOST_COPIES = 3
"""copies of the whole table in one run; if more are needed, other writers must be stopped"""
_MOVABLE = ("file", "hdfs", "abfs", "abfss")
"""schemes of file systems that move a folder in one step"""
_STATIC = {"spark.sql.sources.partitionOverwriteMode": "static"}
"""INSERT OVERWRITE then replaces the whole table, not only the partitions of the new rows"""
_APP_ID, _APP_VERSION = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
)
_STOP_WRITERS = "stop the writers of the table, and run the same command again"
_DROP_HINT = "drop {} and delete its folder, then plan again"


class CopyExecutor(CopyStatements):
    """Executes the remaining steps of a plan that makes or undoes a copy."""

    def _execute_remaining(self) -> StopReason | None:
        try:
            if (shut := self._closed_window()) is not None:
                return shut
            if "undo" in self._plan.goal:
                self._put_back(*self._plan.steps)
            else:
                self._replace()
        except StoppedError as stopped:
            return stopped.reason
        return None

    def _closed_window(self) -> StopReason | None:
        """Return why nothing may start now; None between the two renames."""
        if self.state.stage is CopyStage.BETWEEN:
            return None
        return check_window_open(self._prepared.windows, self._limits.now())

    def _replace(self) -> None:
        copy = [step for step in self._plan.steps if step.action is Action.REWRITE]
        rename_old, close_old, rename_new = self._plan.steps[len(copy) :]
        create, *checks, fill = copy
        if self.state.stage is CopyStage.PLANNED:
            self.run_step(create, CopyStage.COPYING)
        if self.state.stage is CopyStage.COPYING:
            self._constrain(checks, fill)
        columns = self._columns(fill)
        if self.state.stage is CopyStage.COPYING:
            self._fill(fill, columns)
            self._require_movable(rename_old)
            self._catch_up(fill, columns)
            if (shut := self._closed_window()) is not None:
                raise StoppedError(shut)
            self.run_step(rename_old, CopyStage.BETWEEN)
        if self.state.stage is CopyStage.BETWEEN:
            # The mark may have been set before the rename, so always set it again.
            self.run_step(close_old, CopyStage.BETWEEN)
            if (found := self._append_pending(fill, columns)) is not None:
                self._take_back(rename_old, close_old, found)
            self.send(rename_new)
            self.reread(rename_new, CopyStage.SWAPPED)
        if (found := self._append_pending(fill, columns)) is not None:
            self.stop(
                rename_new,
                f"the old table was changed after the new one replaced it, by {found}, which is "
                "not in the new table",
                f"repeat the change in {self.state.new_name}, or undo the copy with --undo",
            )
        self.finish(rename_new)

    def _put_back(self, rename_new: Step, rename_old: Step, reopen: Step) -> None:
        """Rename the old table back; the new table is kept."""
        if self.state.stage is CopyStage.SWAPPED:
            self.send(rename_new)
            self.reread(rename_new, CopyStage.BETWEEN)
            if self.state.foreign:
                self.send(rename_new, rename_new.undo)
                self.reread(rename_new, CopyStage.SWAPPED)
                who = self.state.foreign[-1].in_words
                message = f"the new table has commits that the old one lacks: {who}"
                self.stop(rename_new, message, _STOP_WRITERS)
            self.finish(rename_new)
        if self.state.stage is CopyStage.BETWEEN:
            self._require_free_folder(rename_old)
            self.run_step(rename_old, CopyStage.COPYING)
        if self.state.closed:
            self.run_step(reopen, CopyStage.COPYING)
        self.finish(reopen)

    def _constrain(self, checks: Sequence[Step], fill: Step) -> None:
        """Add missing constraints, and compare the definitions of both tables."""
        assert self.state.new is not None
        for step in checks:
            added = table_from_state(self.state.new.state).constraints
            starts = (f" ADD CONSTRAINT {quote_identifier(name)} CHECK (" for name in added)
            if not any(start in (step.sql or "") for start in starts):
                self.run_step(step, CopyStage.COPYING)
            self.finish(step)
        why = find_different_definition(self._plan, self.state.old, self.state.new)
        if why is not None:
            hint = f"check the session's settings; {_DROP_HINT.format(self.state.new_name)}"
            self.stop(fill, f"the new table is not as planned: {why}", hint)

    def _columns(self, fill: Step) -> CopiedColumns:
        assert self.state.new is not None
        columns = columns_of_copy(fill.sql or "", self.state.names, self.state.new)
        if columns is None:
            hint = _DROP_HINT.format(self.state.new_name)
            self.stop(fill, "the columns of the new table differ from the plan", hint)
        return columns

    def _fill(self, fill: Step, columns: CopiedColumns) -> None:
        """Copy all rows, and compare both tables at the copied version."""
        assert self.state.new is not None
        if self.copied is None:
            self._copy_all(fill, columns, overwrite=False)
        self._catch_up(fill, columns)
        source = columns.source(f"{self.state.old_name} VERSION AS OF {self.copied}")
        copied = columns.copied(self.state.new_name)
        why = find_different_rows(self._runner, columns, source, copied)
        if why is not None:
            hint = _DROP_HINT.format(self.state.new_name)
            self.stop(fill, f"{self.state.new_name} is not an exact copy: {why}", hint)
        uri, protocol = self.state.new.opened.location.uri, self.state.new.state.protocol
        agrees, said = cross_check_with_delta_rs(uri, self._options, protocol)
        if not agrees:
            message = f"the log has {protocol.in_words}, and {said}"
            self.stop(fill, message, _DROP_HINT.format(self.state.new_name))
        self.finish(fill, said)

    def _catch_up(self, fill: Step, columns: CopiedColumns) -> None:
        """Copy later commits until there are none; the old table still has its name."""
        copies = 0
        while pending := self._pending():
            if self._append_pending(fill, columns) is None:
                continue
            copies += 1
            if copies > _MOST_COPIES:
                message = f"rows change faster than they are copied; the last was {pending[-1]}"
                self.stop(fill, message, _STOP_WRITERS)
            self._copy_all(fill, columns, overwrite=True)

    def _pending(self) -> list[PendingCommit]:
        """Return the commits that matter after the copied version, or an empty list."""
        assert self.copied is not None
        pending = pending_commits(self.state.old, self.copied, self._owner)
        if all(commit.effect is CommitEffect.NOTHING for commit in pending):
            self.copied = pending[-1].version if pending else self.copied
            return []
        return pending

    def _append_pending(self, fill: Step, columns: CopiedColumns) -> PendingCommit | None:
        """Append the rows of pending commits, group by group, until there are none.

        Return the first commit whose rows cannot be appended.
        """
        usual = (CommitEffect.NOTHING, CommitEffect.APPEND)
        while pending := self._pending():
            found = next((commit for commit in pending if commit.effect not in usual), None)
            if found is not None:
                return found
            for group in group_appends(pending):
                version = group.commits[-1].version
                table = f"{self.state.old_name} VERSION AS OF {version}"
                rows = count_rows(self._runner, table, group)
                if rows is None:
                    return group.commits[0]
                source = columns.source(table, group.condition)
                sql = columns.insert(self.state.new_name, source)
                self._insert(fill, sql, version, rows=rows)
        return None

    def _copy_all(self, fill: Step, columns: CopiedColumns, *, overwrite: bool) -> None:
        self.state = self.state._replace(old=self.state.tables.refresh(self.state.old))
        version = self.state.old.version
        # A copy has the columns and properties that the plan saw.
        if (changed := find_metadata_change(self.state)) is not None:
            hint = _DROP_HINT.format(self.state.new_name)
            self.stop(fill, f"protocol, schema or properties changed: {changed}", hint)
        source = columns.source(f"{self.state.old_name} VERSION AS OF {version}")
        sql = columns.insert(self.state.new_name, source, overwrite=overwrite)
        self._insert(fill, sql, version)
        if self.state.tables.read().copied is None:
            # Copying an empty table makes no commit that could record what was copied.
            value = (
                f"{quote_literal(COPY_OF)} = {quote_literal(self._plan.fingerprint.table_id or '')}"
            )
            sql = f"ALTER TABLE {self.state.new_name} SET TBLPROPERTIES ({value})"
            self.send(fill, sql, copied=version)

    def _insert(self, fill: Step, sql: str, version: int, *, rows: int | None = None) -> None:
        """Send an INSERT that Delta executes only once, even if it is sent repeatedly."""
        self._inserts += 1
        if self._inserts > MOST_CATCH_UPS:
            self.stop(fill, f"{MOST_CATCH_UPS} catch-ups were not enough", _STOP_WRITERS)
        once = {_APP_ID: f"deltaproto-{self._owner}", _APP_VERSION: str(version)}
        self.send(fill, sql, copied=version, conf={**_STATIC, **once})
        self.copied = version
        assert self.state.new is not None
        made = rows_of_commit(self.state.new, self._owner, version)
        if rows is not None and made != rows:
            copied = "an unknown number of rows" if made is None else counted(made, "row")
            message = f"the copy has {copied} up to version {version}, not {rows:,}"
            self.stop(fill, message, _DROP_HINT.format(self.state.new_name))

    def _take_back(self, rename_old: Step, close_old: Step, found: PendingCommit) -> NoReturn:
        self._require_free_folder(rename_old)
        self.send(rename_old, rename_old.undo)
        self.send(close_old, close_old.undo)
        self.reread(rename_old, CopyStage.COPYING)
        self.stop(
            rename_old,
            f"the old table was changed at the last moment, by {found}: it has its name back",
            _STOP_WRITERS,
        )

    def _require_free_folder(self, rename_old: Step) -> None:
        """Refuse to move a managed table back below a folder that a writer left at its place."""
        place = self._plan.location
        moved = self.state.old.opened.location.uri.rstrip("/") != place.rstrip("/")
        if moved and self._runner.exists(place):
            self.stop(
                rename_old,
                f"{self.state.old_name} cannot get its name back: {place} exists, as a writer "
                "left files there",
                f"move {place} away, and run the same command again",
            )

    def _require_movable(self, rename_old: Step) -> None:
        """Refuse a rename that moves files one by one, which a writer could miss."""
        rows, _ = self._runner.query(f"DESCRIBE TABLE EXTENDED {self.state.names.table}")
        kinds = {str(row[1]).upper() for row in rows if row[0] == "Type"}
        scheme = self.state.old.opened.location.uri.partition(":")[0].lower()
        if kinds != {"EXTERNAL"} and scheme not in _MOVABLE:
            self.stop(
                rename_old,
                f"to rename a managed table on {scheme} moves its files one by one",
                "swap the tables manually while nothing writes: the new one is complete",
            )
