"""What only `check` meets: verdicts and baselines."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.support.logs import add, column, commit_info, metadata, protocol, schema_string
from tests.support.situations.world import CHECK, Words, World, situation


@situation("No client, policy or baseline is given", "check")
def nothing(world: World) -> list[Words]:
    return [("check", world.table())]


@situation("A client's version is newer than all known ones", "check")
def newer(world: World) -> list[Words]:
    table = world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))
    return [("check", table, "--client", "trino@9999")]


@situation("A client may misread statistics, and not all of them were read", "check")
def unread_statistics(world: World) -> list[Words]:
    described = metadata(schema=schema_string(column("id"), column("flag", "boolean")))
    files = [add(f"f{number}", stats='{"numRecords":1}') for number in range(101)]
    table = world.table("table", protocol(1, 2), described, *files)
    return [("check", table, "--client", "deltalake/pyarrow@1.6.6", "--access", "read")]


@situation("A client's version is a pre-release", "check")
def beta(world: World) -> list[Words]:
    table = world.table("table", protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    return [("check", table, "--client", "databricks-runtime@18.0-beta")]


@situation("A client is not known", "check")
def unknown(world: World) -> list[Words]:
    return [("check", world.table(), "--client", "trinoo@476")]


@situation("A checksum contradicts the log", "check")
def checksum(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    log.commit(0, commit_info(txnId="a"), protocol(1, 2), metadata())
    log.checksum(0, protocol(1, 2), metadata(), txnId="b")
    return (log.table,)


@situation("One commit has several protocols", "check")
def several(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), protocol(1, 4), metadata())
    return (log.table,)


@situation("A commit cannot be read, and newer commits or a checksum have the protocol", "check")
def broken_commit(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata()).raw(1, b"{garbage")
    log.commit(2, commit_info(), protocol(1, 2), metadata())
    return (log.table,)


@situation("The log has checkpoints and no commit file", "check")
def no_commits(world: World) -> Words:
    log = world.log()
    log.checkpoint(3, protocol(1, 2), metadata(), add())
    return (log.table,)


@situation("The table has no schema", "check")
def no_schema(world: World) -> Words:
    return (world.table("table", protocol(1, 2), metadata(schema="")),)


@situation("A property is stored without a value", "check")
def no_value(world: World) -> Words:
    stored = metadata({"delta.appendOnly": None})
    return (world.table("table", protocol(1, 2), stored),)


@situation("A reader of `--reader all` is not installed", "check")
def reader(world: World) -> Words:
    world.patch.setitem(sys.modules, "pyspark", None)
    return (world.table(), "--reader", "all")


def baseline(world: World, *tables: str) -> Words:
    file = world.saved(*tables)
    Path(file).rename(world.folder / "baseline.json")
    return ("--baseline", str(world.folder / "baseline.json"))


@situation("The baseline contains none of the tables", "check")
def no_match(world: World) -> Words:
    return (world.table("new"), *baseline(world, world.table("old")))


@situation("The baseline does not contain a table", "check")
def not_in_baseline(world: World) -> Words:
    old = world.table("old")
    return (old, world.table("new"), *baseline(world, old))


@situation("A table of the baseline no longer exists", "check")
def gone(world: World) -> Words:
    tables = world.table("old"), world.table("gone")
    given = baseline(world, *tables)
    shutil.rmtree(tables[1])
    return (tables[0], *given)


@situation("A table of the baseline was not checked", "check")
def unchecked(world: World) -> Words:
    tables = world.table("old"), world.table("other")
    return (tables[0], *baseline(world, *tables))


@situation("A table could not be read when the baseline was saved", "check")
def unread_baseline(world: World) -> Words:
    tables = world.table("old"), world.corrupt("other")
    given = baseline(world, *tables)
    os.unlink(f"{tables[1]}/_delta_log/{1:020d}.json")
    return (*tables, *given)


@situation("A baseline in jsonl is truncated between two lines", "check")
def cut_baseline(world: World) -> Words:
    tables = world.table("old"), world.table("other")
    file = Path(world.saved(*tables, format_="jsonl"))
    file.write_text(file.read_text().splitlines(keepends=True)[0])
    return (*tables, "--baseline", str(file))


@situation("The baseline cannot be read", "check")
def no_baseline(world: World) -> Words:
    return (world.table(), "--baseline", str(world.folder / "nowhere.json"))


def known(world: World, *tables: str) -> Words:
    file = str(world.folder / "known.json")
    world.cli("check", *tables, "--format", "json", "--output", file)
    return ("--baseline", file)


@situation("The baseline is a saved check that does not list a table", "check")
def not_known(world: World) -> Words:
    old = world.table("old")
    return (old, world.table("new"), *known(world, old))


@situation("The baseline is the output of another command", "check")
def other_baseline(world: World) -> Words:
    table, file = world.table(), str(world.folder / "history.json")
    world.cli("history", table, "--format", "json", "--output", file)
    return (table, "--baseline", file)


@situation("An inventory is evaluated on Spark, and Spark is not installed", "check")
def no_spark(world: World) -> Words:
    where = world.inventory(world.table())
    world.patch.setitem(sys.modules, "pyspark", None)
    return (where, "--engine", "spark")


@situation("The reader of the output closes the pipe", "check")
def closed(world: World) -> list[Words]:
    reading, writing = os.pipe()
    os.close(reading)
    table = world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))
    return [(*CHECK, table, "--output", f"/dev/fd/{writing}")]


@situation("A property has a value that Delta does not accept", "check")
def not_accepted(world: World) -> Words:
    return (world.table("table", **{"delta.enableDeletionVectors": "yes"}),)
