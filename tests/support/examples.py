"""How many examples a test gets that asks for a number of them."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "deltaproto")


def examples(count: int) -> int:
    """A tenth of them where every mutant runs the test again."""
    return max(count // 10, 10) if PROFILE == "mutation" else count
