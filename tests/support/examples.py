"""How many examples a test gets that asks for a number of them."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "deltaproto")


def examples(count: int) -> int:
    """A tenth of them where tests run under coverage, or once for each mutant; a third, otherwise
    chosen each time, in `make test`.
    """
    share = {"few": 10, "quick": 3}.get(PROFILE, 1)
    return count if share == 1 else max(count // share, 10)
