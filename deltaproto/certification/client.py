"""Certifies one client: its adapter, its environment and its measurement."""

from __future__ import annotations

import datetime
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from deltaproto import __version__
from deltaproto.certification.adapter import Adapter, CommandAdapter, ServedAdapter
from deltaproto.certification.fixtures.case import Kit
from deltaproto.certification.process import ProcessLimits
from deltaproto.certification.runner import CellFilter, ClientRun
from deltaproto.certification.scrub import scrub_error
from deltaproto.certification.verify_writes import WriteVerifier
from deltaproto.clients.measurement import Measurement
from deltaproto.clients.resolve import ClientReference, parse_reference
from deltaproto.errors import EngineError, UsageError
from deltaproto.input_file import require_input

_FOLDER = Path(__file__).parent / "adapters"
_BLOCK = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
_NO_SUCH_VERSION = re.compile(
    r"satisfies the requirement (?P<requirement>\S+) .*\(from versions: (?P<found>[^)]*)\)"
)
_SHOWN_VERSIONS = 3
_READY = ".ready"
_VERSION = "{version}"


class RosterEntry(NamedTuple):
    """One path of a client that the package can measure."""

    client: str
    path: str | None
    file: Path
    versions: tuple[str, ...]
    """versions that `make certify` measures, oldest first"""
    pins: tuple[tuple[str, tuple[str, ...]], ...]
    """additional requirements by version specifier"""
    workers: int
    """number of parallel processes"""
    needs: tuple[str, ...] = ()
    """environment variables with the location of something that no registry has"""

    def __str__(self) -> str:
        return str(ClientReference(self.client, self.path, None))


class ClientUnderTest(NamedTuple):
    """A client at a version, and how to run it."""

    reference: ClientReference
    file: Path
    requires: tuple[str, ...]
    workers: int
    needs: tuple[str, ...] = ()


@cache
def load_roster() -> tuple[RosterEntry, ...]:
    """Return all client paths with an adapter in the package."""
    import yaml

    plain = yaml.safe_load((_FOLDER / "roster.yaml").read_text(encoding="utf-8"))
    return tuple(
        RosterEntry(
            each["client"],
            each.get("path"),
            _FOLDER / each["adapter"],
            tuple(each["versions"]),
            tuple((span, tuple(pins)) for span, pins in (each.get("pins") or {}).items()),
            each.get("workers", 2),
            tuple(each.get("needs", ())),
        )
        for each in plain
    )


def select_client(text: str, adapter: Path | None = None) -> ClientUnderTest:
    """Resolve `text`: a client of the roster, or any name if a custom adapter is given.

    Raises:
        UsageError: for a client without adapter, an ambiguous path, or a missing version.
    """
    reference = parse_reference(text)
    if adapter is not None:
        if not adapter.is_file():
            raise UsageError(f"no adapter at {adapter}", "pass a Python file")
        requires = _fill_version(adapter, read_requirements(adapter), reference)
        return ClientUnderTest(reference, adapter.absolute(), requires, 1)
    paths = [each for each in load_roster() if each.client == reference.id]
    if not paths:
        known = list(dict.fromkeys(each.client for each in load_roster()))
        near = difflib.get_close_matches(reference.id, known, n=1)
        meant = f'did you mean "{near[0]}"? Or ' if near else ""
        hint = f"{meant}pass one with --adapter or --command; the package has {', '.join(known)}"
        raise UsageError(f"no adapter for {reference.id}", hint)
    named = [each for each in paths if each.path == reference.path]
    if not named:
        ways = ", ".join(f"{each}@{reference.version or each.versions[-1]}" for each in paths)
        raise UsageError(
            f"{reference.id} has several paths"
            if reference.path is None
            else f"{reference.id} has no path {reference.path}",
            f"choose one of {ways}",
        )
    (entry,) = named
    if reference.version is None:
        raise UsageError(
            f"{reference.id} needs a version", f"for example {entry}@{entry.versions[-1]}"
        )
    for variable in entry.needs:
        if not os.environ.get(variable):
            raise UsageError(
                f"{entry} needs {variable}", f"set it as described at the top of {entry.file}"
            )
    return ClientUnderTest(
        reference, entry.file, _pin_requirements(entry, reference), entry.workers, entry.needs
    )


def read_requirements(file: Path) -> tuple[str, ...]:
    """Return the dependencies in an adapter's script block; empty without one.

    Raises:
        UsageError: when the file cannot be read, or the block is not TOML.
    """
    with require_input(str(file)) as source:
        match = _BLOCK.search(source.read().decode("utf-8", "replace").replace("\r\n", "\n"))
    if match is None:
        return ()
    content = "".join(
        line[2:] if line.startswith("# ") else line[1:]
        for line in match["content"].splitlines(keepends=True)
    )
    try:
        return tuple(tomllib.loads(content).get("dependencies", ()))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{file}: its script block is not TOML: {error}", "see PEP 723 for the format"
        ) from None


def _home() -> tuple[Path, ...]:
    """Return the user's home folder; none if it is unknown or the root of the file system."""
    folder = Path(os.path.expanduser("~"))
    return (folder,) if folder.is_absolute() and folder.parent != folder else ()


def create_environment(requires: Sequence[str], folder: Path) -> Path:
    """Return the Python of a virtual environment with these requirements, created once.

    Raises:
        EngineError: when they cannot be installed.
        UsageError: when the folder cannot be written.
    """
    if not requires:
        return Path(sys.executable)
    from filelock import FileLock

    marked = json.dumps([sys.version, *sorted(requires)]).encode()
    home = folder / hashlib.sha256(marked).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{home}.lock").acquire()
    except OSError as error:
        raise UsageError(
            f"cannot write {folder}: {error.strerror}",
            "set XDG_CACHE_HOME to a folder that you can write",
        ) from None
    python = home / "bin" / "python"
    with lock:
        if (home / _READY).exists():
            return python
        shutil.rmtree(home, ignore_errors=True)
        if failed := _run([sys.executable, "-m", "venv", str(home)]):
            raise EngineError("cannot create a virtual environment", failed)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if failed := _run([*install, *requires]):
            raise _install_error(requires, failed)
        (home / _READY).touch()
    return python


def list_installed(python: Path) -> tuple[str, ...]:
    """List the packages of an environment as NAME==VERSION."""
    listing = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=False,
    )
    tools = ("pip==", "setuptools==", "wheel==")
    return tuple(line for line in listing.stdout.splitlines() if not line.startswith(tools))


def _pin_requirements(entry: RosterEntry, reference: ClientReference) -> tuple[str, ...]:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    assert reference.version is not None
    base = _fill_version(entry.file, read_requirements(entry.file), reference)
    pins = [
        pin
        for span, each in entry.pins
        if Version(reference.version) in SpecifierSet(span)
        for pin in each
    ]
    replaced = {re.split(r"[^\w.-]", pin)[0].lower() for pin in pins}
    kept = [each for each in base if re.split(r"[^\w.-]", each)[0].lower() not in replaced]
    return (*kept, *pins)


def _fill_version(
    file: Path, requires: Sequence[str], reference: ClientReference
) -> tuple[str, ...]:
    if any(_VERSION in each for each in requires) and reference.version is None:
        raise UsageError(
            f"{file.name} needs a version of {reference.id}", f"use {reference.id}@VERSION"
        )
    return tuple(each.replace(_VERSION, reference.version or "") for each in requires)


def _run(command: Sequence[str]) -> str:
    """Run a command. Return the first line that says why it failed; empty if it succeeded."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    return (errors or ["no reason was reported"])[0]


def _install_error(requires: Sequence[str], failed: str) -> EngineError:
    """Return the error for requirements that pip cannot install, from the line that says why."""
    missing = _NO_SUCH_VERSION.search(failed)
    if missing is None or missing["found"] == "none":
        return EngineError(f"cannot install {', '.join(requires)}", failed)
    newest = ", ".join(missing["found"].split(", ")[-_SHOWN_VERSIONS:])
    return EngineError(
        f"cannot install {missing['requirement']}: there is no such version for this Python",
        f"the newest versions are {newest}",
    )


def certify(
    subject: ClientUnderTest,
    kit: Kit,
    referee: WriteVerifier | None,
    cache: Path,
    *,
    command: str | None = None,
    limits: ProcessLimits = ProcessLimits(),
    wanted: CellFilter = lambda _case, _operation: True,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure a client on the reference tables.

    Args:
        cache: folder for client environments.
        command: program to call instead of a Python adapter.

    Raises:
        EngineError: when its environment cannot be created, or it fails to start.
    """
    python = create_environment(() if command else subject.requires, cache)
    needed = {name: os.environ[name] for name in subject.needs if name in os.environ}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="certify-") as made:
        folder = Path(made)
        home = folder / "home"
        home.mkdir()
        seen: list[ServedAdapter | CommandAdapter] = []

        def start() -> Adapter:
            adapter: ServedAdapter | CommandAdapter
            if command is not None:
                adapter = CommandAdapter(command, Path.cwd(), limits)
            else:
                adapter = ServedAdapter(python, subject.file, home, limits, needed)
                adapter.start()
            seen.append(adapter)
            return adapter

        tables = folder / "tables"
        tables.mkdir()
        runner = ClientRun(
            kit,
            start,
            referee,
            tables,
            workers=subject.workers,
            wanted=wanted,
            progress=progress,
        )
        cells = runner.cells()
    folders = (folder, kit.folder, python.parent.parent, *map(Path, needed.values()), *_home())
    reference = subject.reference
    return Measurement(
        client=reference.id,
        path=reference.path,
        version=reference.version,
        release=seen[0].release,
        kit_version=kit.version,
        kit_digest=kit.digest,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        tool=f"deltaproto {__version__}",
        python=seen[0].python,
        packages=list_installed(python) if subject.requires and not command else (),
        processors=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        seconds=round(time.monotonic() - began, 1),
        cells=tuple(cell._replace(why=scrub_error(cell.why, folders)) for cell in cells),
    )
