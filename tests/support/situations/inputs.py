"""Tables and inputs that are missing, damaged or unknown to every command."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from deltaproto.tables.storage import local
from tests.support.logs import commit_info, metadata, protocol
from tests.support.situations.world import PLANS, Words, World, situation

READING = ("check", PLANS)


@situation("Standard input is empty", *READING, "discover")
def empty_input(world: World) -> Words:
    world.stdin = "\n"
    return ("-",)


@situation("A saved inspection lists no tables", *READING)
def empty_saved(world: World) -> Words:
    return (world.edited(world.saved(world.table()), tables=[]),)


@situation("The table does not exist", *READING, "discover")
def missing(world: World) -> Words:
    return (str(world.folder / "nowhere"),)


@situation("The folder is not a Delta table", *READING)
def no_table(world: World) -> Words:
    (world.folder / "plain").mkdir()
    return (str(world.folder / "plain"),)


@situation("The table is a broken link", *READING)
def broken_link(world: World) -> Words:
    (world.folder / "link").symlink_to("/nowhere")
    return (str(world.folder / "link"),)


@situation("`_delta_log` is a broken link", *READING, "scan", "discover")
def dangling(world: World) -> Words:
    (world.folder / "lake" / "t").mkdir(parents=True)
    (world.folder / "lake" / "t" / "_delta_log").symlink_to("/nowhere")
    return (str(world.folder / "lake" / ("" if world.section == "scan" else "t")),)


@situation("There is no permission to read the log", *READING, "discover")
def forbidden(world: World) -> Words:
    table = world.table()
    opened = os.open

    def refuse(path: object, *words: object, **named: object) -> int:
        # The tests may run as root, who may read everything.
        if "_delta_log" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *words, **named)  # type: ignore[arg-type]

    world.patch.setattr(local.os, "open", refuse)
    return (table,)


@situation("A commit file is damaged", *READING, "scan", "discover")
def corrupt(world: World) -> Words:
    return (world.corrupt(),)


@situation("A commit file is missing in the log", *READING, "scan", "discover")
def gap(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(2, commit_info())
    return (log.table,)


@situation("A log file is not a regular file", *READING, "scan", "discover")
def irregular(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    os.mkfifo(log.path(1, ".json"))
    return (log.table,)


@situation("The table is managed by a catalog", *READING, "scan", "discover")
def catalog_managed(world: World) -> Words:
    return (world.catalog_managed(),)


@situation("The checkpoint cannot be read, but the commits can", *READING, "scan")
def checkpoint(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(1, commit_info())
    log.raw(1, b"PAR1 no parquet PAR1", ".checkpoint.parquet")
    return (log.table,)


@situation("A log file has a wrong number of digits in its name", *READING, "scan")
def misnamed(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    (log.folder / "1.json").write_text("{}")
    return (log.table,)


@situation("The table has a feature that deltaproto does not know", "check", "scan")
def feature(world: World) -> Words:
    return (world.table("table", protocol(3, 7, ["newThing"], ["newThing"])),)


@situation("deltaproto fails on one table of several", *READING)
def defect(world: World) -> Words:
    from deltaproto.tables.log.reader import LogReader

    good, bad = world.table("good"), world.table("bad")
    read = LogReader.read_from

    def fails(reader: LogReader, location: object, store: object, *rest: object) -> object:
        if "bad" in location.text:  # type: ignore[attr-defined]
            raise RuntimeError("boom")
        return read(reader, location, store, *rest)  # type: ignore[arg-type]

    world.patch.setattr(LogReader, "read_from", fails)
    return (good, bad)


@situation("A table is named by a catalog, and Spark is not installed", *READING, "discover")
def no_spark(world: World) -> Words:
    world.patch.setitem(sys.modules, "pyspark", None)
    return ("main.sales.orders",)


@situation("A saved inspection in jsonl is truncated between two lines", *READING)
def cut(world: World) -> Words:
    file = Path(world.saved(world.table("a"), world.table("b"), format_="jsonl"))
    file.write_text(file.read_text().splitlines(keepends=True)[0])
    return (str(file),)


@situation("The lines of a saved jsonl inspection have no end mark", *READING)
def unmarked(world: World) -> Words:
    file = Path(world.saved(world.table("a"), world.table("b"), format_="jsonl"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        line.pop("part", None)
        line["schema_version"] = "1.0"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return (str(file),)


@situation("Tables that could not be read were removed from a saved inspection", *READING)
def removed(world: World) -> Words:
    file = world.saved(world.table(), world.corrupt("corrupt"))
    tables = json.loads(Path(file).read_text())["tables"]
    return (world.edited(file, tables=[each for each in tables if "error" not in each]),)


@situation("A saved inspection was made with `--version`", *READING)
def older(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata()).commit(1, commit_info())
    return (world.saved(log.table, more=("--version", "0")),)


@situation("A saved inspection is a week old", *READING)
def old_saved(world: World) -> Words:
    return (world.edited(world.saved(world.table()), generated_at="2026-01-01T00:00:00Z"),)


@situation("A saved inspection is dated in the future", *READING)
def future_saved(world: World) -> Words:
    return (world.edited(world.saved(world.table()), generated_at="2999-01-01T00:00:00Z"),)


@situation("A saved inspection has no time", *READING)
def undated_saved(world: World) -> Words:
    return (world.edited(world.saved(world.table()), generated_at=None),)


@situation("A table could not be read when the inspection was saved", *READING)
def unread_saved(world: World) -> Words:
    return (world.saved(world.table("good"), world.corrupt()),)


@situation("A table of the saved inspection is managed by a catalog", *READING)
def managed_saved(world: World) -> Words:
    return (world.saved(world.catalog_managed()),)


@situation("The file is not a saved inspection", *READING)
def no_saved(world: World) -> Words:
    return (world.file("other.json", json.dumps({"command": "scan", "schema_version": "1.0"})),)


@situation("The log is an empty folder", *READING, "scan", "discover")
def empty_log(world: World) -> Words:
    (world.folder / "table" / "_delta_log").mkdir(parents=True)
    return (str(world.folder / "table"),)


@situation("`_delta_log` is a file", *READING, "scan", "discover")
def log_file(world: World) -> Words:
    (world.folder / "table").mkdir()
    (world.folder / "table" / "_delta_log").touch()
    return (str(world.folder / "table"),)


@situation("A saved inspection has a member of the wrong type", *READING)
def wrong_type(world: World) -> Words:
    file = Path(world.saved(world.table()))
    file.write_text(file.read_text().replace('"version": 0,', '"version": "0",'))
    return (str(file),)
