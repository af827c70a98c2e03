"""Certifies one client, from its name to its measurement."""

from __future__ import annotations

import datetime
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deltaproto import __version__
from deltaproto.certification.adapter import Adapter, CommandAdapter, ServedAdapter
from deltaproto.certification.client import ClientUnderTest, create_environment, list_installed
from deltaproto.certification.fixtures.case import Kit
from deltaproto.certification.process import ProcessLimits
from deltaproto.certification.runner import CellFilter, ClientRun
from deltaproto.certification.scrub import scrub_error
from deltaproto.certification.verify_writes import WriteVerifier
from deltaproto.clients.measurement import Measurement


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
    folders = (folder, kit.folder, python.parent.parent, *map(Path, needed.values()), Path.home())
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
