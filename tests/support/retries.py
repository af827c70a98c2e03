"""Retries without pauses: every attempt is made, and no test waits for the time between two."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deltaproto.fleet import workers
from deltaproto.tables.catalogs.interface import Clock
from deltaproto.tables.storage import opening

DELTA_RS_AT_ONCE = {"backoff_config.init_backoff": "1ms", "backoff_config.max_backoff": "2ms"}
"""storage options of deltalake; the log reader ignores them"""
_AT_ONCE = {"base": 2, "init_backoff": timedelta(milliseconds=1)}


def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pauses between the attempts of scans and of the log reader in this process."""
    monkeypatch.setattr(workers, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setitem(opening._RETRIES, "backoff", _AT_ONCE)
    # Stores opened earlier keep the pauses they were opened with.
    opening._cached_store.cache_clear()


class FakeClock:
    """A clock that sleeps in no time."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.sleep)
