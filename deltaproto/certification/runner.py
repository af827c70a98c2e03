"""Runs every operation of a client on every table."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from deltaproto.certification.adapter import Adapter, Reply, ReplyKind
from deltaproto.certification.compare import (
    classify_read,
    classify_unanswered,
    classify_write,
    why_must_fail,
)
from deltaproto.certification.fixtures.case import Kit, ReferenceTable
from deltaproto.certification.observe import ObservedVersion, observe_newest
from deltaproto.certification.operation import AdapterRequest, build_requests, operations_for
from deltaproto.certification.verify_writes import WriteVerifier
from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn
from deltaproto.interrupts import wait_for

MAX_FAILURES = 3
"""after this many consecutive timeouts, a function is not tried again"""
_TABLE_PATIENCE = 2
"""after this many timeouts on one table, nothing more is tried on it"""
CellFilter = Callable[[ReferenceTable, ResultColumn], bool]


def sort_cells(cells: Iterable[MeasurementCell]) -> tuple[MeasurementCell, ...]:
    """Sort the cells by table and operation."""
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
        referee: WriteVerifier | None,
        folder: Path,
        *,
        workers: int = 1,
        wanted: CellFilter = lambda _case, _operation: True,
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
        plan = [
            (case, operations)
            for case in self._kit.cases
            if (operations := self._requested_operations(case))
        ]
        self._total = sum(len(operations) for _, operations in plan)
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

            with ThreadPoolExecutor(self._workers, thread_name_prefix="client") as pool:
                futures = [pool.submit(work) for _ in range(self._workers)]
                try:
                    cells = [cell for future in futures for cell in wait_for(future)]
                    cells += [wait_for(future) for future in pending]
                except BaseException:
                    # The remaining results are not needed.
                    self._stopped = True
                    judging.shutdown(wait=False, cancel_futures=True)
                    raise
        return sort_cells(cells)

    def _requested_operations(self, case: ReferenceTable) -> list[ResultColumn]:
        return [
            operation
            for operation in operations_for(case)
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
        operations: Sequence[ResultColumn],
        judging: ThreadPoolExecutor,
        pending: list[Future[MeasurementCell]],
    ) -> Iterator[MeasurementCell]:
        source = self._kit.table(case)
        before = observe_newest(source)
        reading = self._copy(source, case, "read")
        for operation in operations:
            if self._stopped:
                return
            if operation.reads:
                replies = [
                    self._ask(adapter, case, reading, each)
                    for each in build_requests(case, operation)
                ]
                yield self._report_progress(classify_read(case, operation, replies))
                continue
            table = self._copy(source, case, operation)
            (request,) = build_requests(case, operation)
            reply = self._ask(adapter, case, table, request)
            if reply.kind is ReplyKind.NOT_OFFERED:
                shutil.rmtree(table.parent)
                yield self._report_progress(
                    MeasurementCell(case.name, operation, MeasuredOutcome.NOT_OFFERED)
                )
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
        return self._report_progress(cell)

    def _judged(
        self,
        referee: WriteVerifier,
        case: ReferenceTable,
        operation: ResultColumn,
        before: ObservedVersion,
        table: Path,
        reply: Reply,
    ) -> MeasurementCell:
        failed = classify_unanswered(case, operation, reply)
        if failed is not None:
            # A client killed mid-write may already have committed; do not count that as a failure.
            if failed.outcome is not MeasuredOutcome.TIMED_OUT and referee.committed(before, table):
                why = f"it failed but changed the table: {failed.why}"
                return MeasurementCell(case.name, operation, MeasuredOutcome.WRONG, why)
            return failed
        if "write" in case.must_refuse or why_must_fail(case, operation):
            return classify_write(case, operation, ())
        faults = referee.faults(case, operation, before, table, self._kit.table(case))
        return classify_write(case, operation, faults)

    def _ask(
        self, adapter: Adapter, case: ReferenceTable, table: Path, request: AdapterRequest
    ) -> Reply:
        if adapter.lacks(request.function):
            return Reply(ReplyKind.NOT_OFFERED)
        if self._hung[request.function] >= MAX_FAILURES:
            return Reply(
                ReplyKind.TIMED_OUT, message=f"not tried: {MAX_FAILURES} other requests timed out"
            )
        if self._hung_on[case.name] >= _TABLE_PATIENCE:
            return Reply(
                ReplyKind.TIMED_OUT, message="not tried: other requests on this table timed out"
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

    def _report_progress(self, cell: MeasurementCell) -> MeasurementCell:
        with self._lock:
            self._done += 1
            done = self._done
        if self._progress is not None:
            self._progress(done, self._total)
        return cell
