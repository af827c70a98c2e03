"""How many examples a test gets that asks for a number of them."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "deltaproto")


def examples(count: int) -> int:
    """A tenth of them where tests run under coverage, or once for each mutant."""
    return max(count // 10, 10) if PROFILE == "few" else count
