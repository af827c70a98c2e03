"""Object stores on this machine, one of each kind for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.emulators import Missing
from tests.support.lakes import Lake, azure_lake, google_lake, s3_lake

_LAKES = {"s3": s3_lake, "azure": azure_lake, "google": google_lake}


@pytest.fixture(scope="session", params=sorted(_LAKES))
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    """Each store in turn; one that cannot be had is left out, unless NEEDS_STORES names it."""
    needed = os.environ.get("NEEDS_STORES", "").split()
    with ExitStack() as running:
        try:
            opened = running.enter_context(_LAKES[request.param]())
        except Missing as missing:
            refuse = pytest.fail if request.param in needed else pytest.skip
            refuse(f"no store of {request.param} on this machine: {missing}")
        yield opened


@pytest.fixture
def no_cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Nothing of this machine's clouds is seen."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{tmp_path}/no-credentials")
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/no-config")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
