"""What only plan-upgrade and plan-downgrade meet."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from tests.support.logs import commit_info, metadata, protocol
from tests.support.situations.world import PLANS, Words, World, situation


def upgrade(world: World, *words: str) -> list[Words]:
    return [("plan-upgrade", world.table(), *words)]


@situation("No goal is given for an upgrade", PLANS)
def no_upgrade(world: World) -> list[Words]:
    return [("plan-upgrade", world.table())]


@situation("No goal is given for a downgrade", PLANS)
def no_downgrade(world: World) -> list[Words]:
    return [("plan-downgrade", world.table())]


@situation("The goal names a feature that is not known", PLANS)
def feature(world: World) -> list[Words]:
    return [
        *upgrade(world, "--enable", "deletionVektors"),
        ("plan-downgrade", world.table("other"), "--drop", "deletionVektors"),
    ]


@situation("The goal sets a Delta property that is not known", PLANS)
def property_(world: World) -> list[Words]:
    return upgrade(world, "--set", "delta.appendOnl=true")


@situation("The goal drops a feature of the table that deltaproto does not know", PLANS)
def drop_unknown(world: World) -> list[Words]:
    table = world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))
    return [("plan-downgrade", table, "--drop", "newThing")]


@situation("The table to upgrade has a feature that deltaproto does not know", PLANS)
def upgrade_unknown(world: World) -> list[Words]:
    table = world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))
    return [("plan-upgrade", table, "--set", "a=b")]


@situation("The table to downgrade has a feature that deltaproto does not know", PLANS)
def downgrade_unknown(world: World) -> list[Words]:
    table = world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))
    return [("plan-downgrade", table, "--lowest")]


@situation("A statement of `--sql` is not understood", PLANS)
def statement(world: World) -> list[Words]:
    table = world.table()
    return [("plan-upgrade", table, "--sql", f"FROBNICATE delta.`{table}`")]


@situation("A statement of `--sql` is on another table", PLANS)
def other_table(world: World) -> list[Words]:
    return upgrade(world, "--sql", "ALTER TABLE elsewhere.t SET TBLPROPERTIES ('a' = 'b')")


@situation("A script leaves out a statement", PLANS)
def script(world: World) -> list[Words]:
    table = world.table("t\x07b")
    return [("plan-upgrade", table, "--set", "a=b", "--script", "sql")]


@situation("The effect on a client is not known", PLANS)
def client(world: World) -> list[Words]:
    return upgrade(world, "--enable", "typeWidening", "--client", "trino@9999")


@situation("The effect on a client of the policy is not known", PLANS)
def policy_client(world: World) -> list[Words]:
    policy = world.policy("clients: [{client: trino@9999, access: [read]}]\n")
    return upgrade(world, "--enable", "typeWidening", "--policy", policy)


@situation("A client that must keep working is not known", PLANS)
def for_client(world: World) -> list[Words]:
    return [
        *upgrade(world, "--set", "a=b", "--for-client", "trinoo@476"),
        ("plan-downgrade", world.table("other"), "--for-client", "trinoo@476"),
    ]


@situation("The engine's version is not known", PLANS)
def engine(world: World) -> list[Words]:
    return upgrade(world, "--set", "a=b", "--engine", "delta-spark@99.0")


@situation("The engine is not known", PLANS)
def no_engine(world: World) -> list[Words]:
    return upgrade(world, "--set", "a=b", "--engine", "flink@1.0")


@situation("In-commit timestamps are ahead of the clock", PLANS)
def clock(world: World) -> list[Words]:
    log = world.log()
    features = ["inCommitTimestamp", "deletionVectors"]
    settings = metadata({"delta.enableInCommitTimestamps": "true"})
    ahead = int(datetime.now(UTC).timestamp() * 1000) + 3 * 86_400_000
    info = commit_info("CREATE TABLE", inCommitTimestamp=ahead)
    stored = protocol(3, 7, ["deletionVectors"], features)
    log.commit(0, info, stored, settings)
    return [("plan-downgrade", log.table, "--drop", "deletionVectors")]


@situation("A file of the log is from the future", PLANS)
def future_file(world: World) -> list[Words]:
    log = world.log()
    features = ["deletionVectors"]
    settings = {"delta.enableDeletionVectors": "true"}
    log.commit(0, protocol(3, 7, features, features), metadata(settings))
    ahead = datetime.now(UTC).timestamp() + 3 * 86_400
    os.utime(log.path(0, ".json"), (ahead, ahead))
    goal = ("--drop", "deletionVectors", "--history", "truncate")
    return [("plan-downgrade", log.table, *goal)]


@situation("The table's protocol breaks the specification", PLANS)
def invalid(world: World) -> Words:
    return (world.table("table", protocol(3, 2)),)


@situation("The log holds only a checkpoint, so its history is not known", PLANS)
def no_history(world: World) -> Words:
    log = world.log()
    log.checkpoint(3, protocol(1, 2), metadata())
    return (log.table,)


@situation("The goal sets a property to several values", PLANS)
def twice(world: World) -> list[Words]:
    return [("plan-upgrade", world.table(), "--set", "a=b", "--set", "a=c")]
