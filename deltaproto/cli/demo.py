"""`deltaproto demo`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command
from deltaproto.errors import ExitCode, UsageError


def run(values: Mapping[str, Any]) -> int:
    """Write the example tables, and print their paths."""
    from deltaproto.cli.demo_tables import DEMO_TABLES, RECIPES

    folder = Path(values["folder"])
    found = next((name for name in DEMO_TABLES if (folder / name).exists()), None)
    if found is not None:
        raise UsageError(f"{folder / found} already exists", "name a new folder")
    try:
        for name, recipe in DEMO_TABLES.items():
            RECIPES[recipe](folder / name)
    except OSError as error:
        raise UsageError(
            f"cannot write {folder}: {error.strerror}", "name a folder that you can write"
        ) from None
    for name in DEMO_TABLES:
        print(folder / name)
    return int(ExitCode.OK)


COMMAND = Command(
    "demo",
    "Write example tables to try the other commands on: their logs only, without data files. "
    "It needs neither Java nor Spark.",
    run,
    Argument("folder", "DIR", "Write the tables into this folder."),
    (options.DEBUG,),
    examples=("demo lake", "demo /data/examples"),
    exits=(ExitCode.OK, ExitCode.USAGE),
)
