"""Folders, lists and links in which `scan` finds nothing, or does not look."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from deltaproto.fleet import local_disk, local_engine, workers
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.scan_table import TableScanner
from tests.support.situations.world import Words, World, situation


@situation("A root has no tables", "scan", "discover")
def empty(world: World) -> Words:
    (world.folder / "barren").mkdir()
    return (str(world.folder / "barren"),)


@situation("One root of several has no tables", "scan")
def one_empty(world: World) -> Words:
    (world.folder / "barren").mkdir()
    return (world.table(), str(world.folder / "barren"))


@situation("No table matches `--include`", "scan")
def include(world: World) -> Words:
    return (str(world.lake()), "--include", "nothere")


@situation("`--exclude` leaves no table", "scan")
def exclude(world: World) -> Words:
    return (str(world.lake()), "--exclude", "a", "--exclude", "b")


@situation("A `--list` file names no table", "scan")
def empty_list(world: World) -> Words:
    return ("--list", world.file("names.txt", "# none\n\n"))


@situation("A line of a `--list` file names nothing that exists", "scan")
def wrong_list(world: World) -> Words:
    return ("--list", world.file("names.txt", f"{world.table()}\n/nowhere/table\n"))


@situation("A line of a `--list` file is too long for a name", "scan")
def long_line_in_list(world: World) -> Words:
    return ("--list", world.file("names.txt", "x" * 100_000))


@situation("A line of a `--list` file is a catalog name", "scan")
def name_in_list(world: World) -> Words:
    return ("--list", world.file("names.txt", f"{world.table()}\nsales.orders\n"))


@situation("A `--list` file does not exist", "scan")
def no_list(world: World) -> Words:
    return ("--list", str(world.folder / "names.txt"))


@situation("A root does not exist", "scan")
def no_root(world: World) -> Words:
    return (str(world.folder / "nowhere"),)


@situation("A root is a file", "scan")
def file_root(world: World) -> Words:
    return (world.file("file", ""),)


@situation("A folder cannot be listed", "scan")
def shut(world: World) -> Words:
    lake, scandir = world.lake(), os.scandir

    def refuse(path: str) -> object:
        # The tests may run as root, who may list everything.
        if str(path) == str(lake / "a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    world.patch.setattr(os, "scandir", refuse)
    return (str(lake),)


@situation("Reading a table takes longer than `--timeout`", "scan")
def slow(world: World) -> Words:
    from deltaproto.tables.log.reader import LogReader

    def computes(*_: object) -> None:
        while True:
            pass

    world.patch.setattr(LogReader, "read_from", computes)
    return (world.table(), "--timeout", "1")


@situation("The process that reads a table is killed", "scan")
def killed(world: World) -> Words:
    # Few tables are enough for processes, which inherit what is patched here.
    world.patch.setattr(local_engine, "_FEW", 2)
    world.patch.setattr(workers, "_THREADED", ())
    world.patch.setattr("threading.active_count", lambda: 1)
    one = TableScanner._one

    def dies(looker: TableScanner, found: DiscoveredTable, *rest: object) -> None:
        if found.table.endswith("two"):
            os.kill(os.getpid(), signal.SIGKILL)
        one(looker, found, *rest)  # type: ignore[arg-type]

    world.patch.setattr(TableScanner, "_one", dies)
    return (str(world.lake()), "--parallel", "2")


@situation("deltaproto fails on one table", "scan")
def defect(world: World) -> Words:
    from deltaproto.tables.log.reader import LogReader

    def fails(*_: object) -> None:
        raise RuntimeError("boom")

    world.patch.setattr(LogReader, "read_from", fails)
    return (world.table(),)


@situation("A folder is not searched because of its name", "scan")
def hidden(world: World) -> Words:
    world.table("lake/_archive/old")
    return (str(world.lake()),)


@situation("A table's folder has too many entries to search it for tables", "scan")
def inside(world: World) -> Words:
    lake = world.lake()
    world.patch.setattr(local_disk, "_MOST_ENTRIES", 3)
    for number in range(5):
        (lake / "a" / "one" / f"file{number}").touch()
    return (str(lake),)


@situation("A folder in a table is named like a partition, and is not one", "scan")
def not_a_partition(world: World) -> Words:
    world.table("lake/a/one/region=eu/orders")
    return (str(world.lake()),)


@situation("A link leads out of the roots", "scan")
def outside(world: World) -> Words:
    lake = world.lake()
    (lake / "link").symlink_to(Path(world.table("elsewhere/t")).parent)
    return (str(lake),)


@situation("A link leads to nothing", "scan")
def nowhere(world: World) -> Words:
    lake = world.lake()
    (lake / "link").symlink_to("/nowhere")
    return (str(lake),)


@situation("A root holds only the inventory itself", "scan")
def only_inventory(world: World) -> Words:
    (world.folder / "own").mkdir()
    return (str(world.folder / "own"), "--inventory", str(world.folder / "own" / "inventory"))


@situation("There is no unfinished scan to resume", "scan")
def nothing_to_resume(world: World) -> Words:
    return (world.table(), "--inventory", str(world.folder / "inventory"), "--resume")


@situation("A catalog is scanned, and Spark is not installed", "scan")
def no_spark(world: World) -> Words:
    world.patch.setitem(sys.modules, "pyspark", None)
    return ("--catalog", "sales")


@situation("The settings file has a key that is not known", "scan")
def settings(world: World) -> Words:
    table = world.table()
    return ("--config", world.file("deltaproto.yaml", f"roots: ['{table}']\nrots: ['/b']\n"))


@situation("A table no longer exists since the last scan", "scan")
def gone(world: World) -> Words:
    import shutil

    where = world.inventory(str(world.lake()))
    shutil.rmtree(world.folder / "lake" / "a" / "one")
    return (str(world.folder / "lake"), "--inventory", where)


@situation("The folder for the inventory is a Delta table", "scan")
def in_a_table(world: World) -> Words:
    return (str(world.lake()), "--inventory", world.table())
