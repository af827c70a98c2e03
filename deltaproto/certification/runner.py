"""Runs every operation of a client on every table."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from deltaproto.certification.adapter import Adapter, Reply, ReplyKind
from deltaproto.certification.fixtures.case import Kit, ReferenceTable
from deltaproto.certification.observe import ObservedVersion, observe
from deltaproto.certification.operation import AdapterRequest, operations, requests
from deltaproto.certification.outcome import (
    judge_read,
    judge_write,
    must_fail,
    without_answer,
)
from deltaproto.certification.verify_writes import Referee
from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn

PATIENCE = 3
"""after this many consecutive timeouts, a function is not tried again"""
_TABLE_PATIENCE = 2
"""after this many timeouts on one table, nothing more is tried on it"""
Wanted = Callable[[ReferenceTable, ResultColumn], bool]


def in_order(cells: Iterable[MeasurementCell]) -> tuple[MeasurementCell, ...]:
    """Cells by table and operation."""
    order = list(ResultColumn)
    return tuple(sorted(cells, key=lambda cell: (cell.case, order.index(cell.operation))))


class ClientRun:
    """One run of one client.

    Args:
        start: returns an adapter; called once per worker.
        referee: verifies writes; None: only run reads.
        folder: an empty folder for copies of the tables.
    """

    def __init__(
        self,
        kit: Kit,
        start: Callable[[], Adapter],
        referee: Referee | None,
        folder: Path,
        *,
        workers: int = 1,
        wanted: Wanted = lambda _case, _operation: True,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._kit, self._start, self._referee, self._folder = kit, start, referee, folder
        self._workers, self._wanted, self._progress = workers, wanted, progress
        self._hung: Counter[str] = Counter()
        self._hung_on: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._done = 0
        self._stopped = False

    def cells(self) -> tuple[MeasurementCell, ...]:
        """Return every cell, by table and operation."""
        plan = [(case, asked) for case in self._kit.cases if (asked := self._asked(case))]
        self._total = sum(len(asked) for _, asked in plan)
        rest = iter(plan)
        with ThreadPoolExecutor(2, thread_name_prefix="referee") as judging:
            pending: list[Future[MeasurementCell]] = []

            def work() -> list[MeasurementCell]:
                adapter = self._start()
                found: list[MeasurementCell] = []
                try:
                    while (item := self._next(rest)) is not None:
                        found += self._case(adapter, *item, judging, pending)
                finally:
                    adapter.close()
                return found

            with ThreadPoolExecutor(self._workers, thread_name_prefix="client") as asking:
                futures = [asking.submit(work) for _ in range(self._workers)]
                try:
                    cells = [cell for future in futures for cell in future.result()]
                    cells += [future.result() for future in pending]
                except BaseException:
                    # The remaining results are not needed.
                    self._stopped = True
                    judging.shutdown(wait=False, cancel_futures=True)
                    raise
        return in_order(cells)

    def _asked(self, case: ReferenceTable) -> list[ResultColumn]:
        return [
            operation
            for operation in operations(case)
            if self._wanted(case, operation) and (operation.reads or self._referee is not None)
        ]

    def _next(
        self, rest: Iterator[tuple[ReferenceTable, list[ResultColumn]]]
    ) -> tuple[ReferenceTable, list[ResultColumn]] | None:
        with self._lock:
            return None if self._stopped else next(rest, None)

    def _case(
        self,
        adapter: Adapter,
        case: ReferenceTable,
        asked: Sequence[ResultColumn],
        judging: ThreadPoolExecutor,
        pending: list[Future[MeasurementCell]],
    ) -> Iterator[MeasurementCell]:
        source = self._kit.table(case)
        before = observe(source)
        reading = self._copy(source, case, "read")
        for operation in asked:
            if self._stopped:
                return
            if operation.reads:
                replies = [
                    self._ask(adapter, case, reading, each) for each in requests(case, operation)
                ]
                yield self._told(judge_read(case, operation, replies))
                continue
            table = self._copy(source, case, operation)
            (request,) = requests(case, operation)
            reply = self._ask(adapter, case, table, request)
            if reply.kind is ReplyKind.NOT_OFFERED:
                shutil.rmtree(table.parent)
                yield self._told(MeasurementCell(case.name, operation, MeasuredOutcome.NOT_OFFERED))
                continue
            pending.append(judging.submit(self._judge, case, operation, before, table, reply))

    def _judge(
        self,
        case: ReferenceTable,
        operation: ResultColumn,
        before: ObservedVersion,
        table: Path,
        reply: Reply,
    ) -> MeasurementCell:
        assert self._referee is not None
        try:
            cell = self._judged(self._referee, case, operation, before, table, reply)
        finally:
            shutil.rmtree(table.parent, ignore_errors=True)
        return self._told(cell)

    def _judged(
        self,
        referee: Referee,
        case: ReferenceTable,
        operation: ResultColumn,
        before: ObservedVersion,
        table: Path,
        reply: Reply,
    ) -> MeasurementCell:
        failed = without_answer(case, operation, reply)
        if failed is not None:
            # A client killed mid-write may already have committed; do not count that as a failure.
            if failed.outcome is not MeasuredOutcome.TIMED_OUT and referee.committed(before, table):
                why = f"it failed, and changed the table all the same: {failed.why}"
                return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, why)
            return failed
        if "write" in case.must_refuse or must_fail(case, operation):
            return judge_write(case, operation, ())
        faults = referee.faults(case, operation, before, table, self._kit.table(case))
        return judge_write(case, operation, faults)

    def _ask(
        self, adapter: Adapter, case: ReferenceTable, table: Path, request: AdapterRequest
    ) -> Reply:
        if adapter.lacks(request.function):
            return Reply(ReplyKind.NOT_OFFERED)
        if self._hung[request.function] >= PATIENCE:
            return Reply(ReplyKind.TIMED_OUT, message=f"not tried: {PATIENCE} others took too long")
        if self._hung_on[case.name] >= _TABLE_PATIENCE:
            return Reply(
                ReplyKind.TIMED_OUT, message="not tried: others on this table took too long"
            )
        reply = adapter.ask(table, request)
        with self._lock:
            if reply.kind is ReplyKind.TIMED_OUT:
                self._hung[request.function] += 1
                self._hung_on[case.name] += 1
            elif reply.kind is not ReplyKind.NOT_OFFERED:
                self._hung[request.function] = 0
        return reply

    def _copy(self, source: Path, case: ReferenceTable, purpose: str) -> Path:
        target = self._folder / case.name / purpose / case.folder
        shutil.copytree(source, target)
        return target

    def _told(self, cell: MeasurementCell) -> MeasurementCell:
        with self._lock:
            self._done += 1
            done = self._done
        if self._progress is not None:
            self._progress(done, self._total)
        return cell
