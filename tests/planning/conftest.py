"""Records what Spark does, when that is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.planning import recorded


@pytest.fixture(scope="session", autouse=True)
def _recording() -> Iterator[None]:
    yield
    if recorded.RECORDING:
        recorded.write()
