"""The attacks on the policy gate, on a small fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attacks import DAMAGE, attack


@pytest.mark.slow
@pytest.mark.heavy
def test_nothing_hangs_leaks_is_lost_or_passes_unseen(tmp_path: Path) -> None:
    assert len(DAMAGE) == 12
    campaign = attack(tmp_path, tables=300, kills=2, seed=7)
    assert campaign.wrong == []
    assert campaign.ran > 40
