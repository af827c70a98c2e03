"""What several tests of fleets use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.unity_server import UnityServer, unity_server


@pytest.fixture
def unity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[UnityServer]:
    """A Unity Catalog that wants no token and returns four entries at a time."""
    for name in ("UC_TOKEN", "UC_TOKEN_FILE", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "no-profiles"))
    with unity_server(page=4) as running:
        yield running
