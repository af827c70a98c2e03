"""What a clean-up deletes, told from a log's runs: for holding these against Delta's own."""

from __future__ import annotations

from deltaproto.tables.log.log_retention import LogAging


def deleted(aging: LogAging, cutoff_ms: int, *, checkpoint_first: bool = True) -> range:
    """The versions whose commits a truncation of what is not newer deletes.

    It stops at the first run that is not old. Of the very first one it does not: Delta asks its
    iterator twice before it begins (`cleanUpExpiredLogs`), and so may leave a gap behind it.
    """
    old = [
        run.last.modified_ms <= cutoff_ms and (run.checkpoint is not None or checkpoint_first)
        for run in aging.runs
    ]
    start = next((at for at, each in enumerate(old[:2]) if each), None)
    if start is None:
        return range(0)
    last = start
    while last + 1 < len(old) and old[last + 1]:
        last += 1
    before = aging.runs[start - 1].checkpoint if start else 0
    end = aging.runs[last]
    return range(before or 0, end.last.version + 1 if end.checkpoint is None else end.checkpoint)


def first_left(aging: LogAging, cutoff_ms: int, *, checkpoint_first: bool = True) -> int:
    """The oldest version that can be rebuilt after a truncation of what is not newer.

    One more than `newest` is the empty commit of the statement itself.
    """
    gone = deleted(aging, cutoff_ms, checkpoint_first=checkpoint_first)
    return gone.stop if gone and gone.start <= aging.oldest else aging.oldest
