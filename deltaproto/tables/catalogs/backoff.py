"""Retries of requests to a catalog, at the rate that it demands."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from deltaproto.errors import TableError
from deltaproto.tables.catalogs.interface import CatalogCounts, Clock, Tally

TRIES, UNREACHABLE = 7, 3
"""maximum numbers of attempts: in general, and if the server does not answer at all"""
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 20.0
_LONGEST_DEMAND = 120.0
"""seconds; a catalog that demands a longer pause is treated as unavailable"""
T = TypeVar("T")


class TransientError(Exception):
    """A request that may succeed later.

    Args:
        error: what to report if it never does.
        throttled: whether the catalog limits the rate of requests.
        pause: seconds that the catalog demands before the next request; None: no demand.
        tries: the maximum number of attempts.
    """

    def __init__(
        self,
        error: TableError,
        *,
        throttled: bool = False,
        pause: float | None = None,
        tries: int = TRIES,
    ) -> None:
        super().__init__(error.message)
        self.error, self.throttled, self.pause, self.tries = error, throttled, pause, tries


def with_backoff(send: Callable[[], T], counts: CatalogCounts, clock: Clock) -> T:
    """Return the result of `send`, repeated with growing pauses while its error is transient.

    Raises:
        TableError: the error of the last attempt.
    """
    for tried in range(TRIES):
        counts.add(Tally.REQUESTS)
        try:
            return send()
        except TransientError as failed:
            demand = failed.pause or 0.0
            if tried + 1 >= failed.tries or demand > _LONGEST_DEMAND:
                raise failed.error from None
            counts.add(Tally.THROTTLED if failed.throttled else Tally.RETRIES)
            # Random: clients that were refused together must not return together.
            pause = min(_FIRST_PAUSE * 2**tried, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
            clock.sleep(max(demand, pause))
    raise AssertionError


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date; None if it is neither."""
    if not value:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(value).timestamp() - now, 0.0)
    except (ValueError, TypeError):
        return None
