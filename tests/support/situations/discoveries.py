"""Logs of tables and stores that do not show who used the tables."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.support.logs import metadata, protocol
from tests.support.situations.world import Words, World, situation


def request(bucket: str, key: str) -> str:
    """One line of an S3 server access log."""
    return (
        f"{'0f' * 32} {bucket} [24/Nov/2026:17:00:38 +0000] 192.0.2.3 "
        "arn:aws:iam::123456789012:user/ada 3E57427F3EXAMPLE REST.GET.OBJECT "
        f'{key} "GET /{key} HTTP/1.1" 200 - 26 26 7 6 "-" "object_store/0.12.5" - '
        "q= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader s3.amazonaws.com TLSv1.2 - -\n"
    )


def with_log(world: World, text: str) -> Words:
    """A table, and an access log with this text."""
    return (world.table(), "--access-log", world.file("access.log", text))


@situation("An access log does not exist", "discover")
def missing(world: World) -> Words:
    return (world.table(), "--access-log", str(world.folder / "nowhere.log"))


@situation("A folder of access logs is empty", "discover")
def empty_folder(world: World) -> Words:
    (world.folder / "logs").mkdir()
    return (world.table(), "--access-log", str(world.folder / "logs"))


@situation("An access log has no lines", "discover")
def no_lines(world: World) -> Words:
    return with_log(world, "")


@situation("No access log has a request to the tables", "discover")
def foreign(world: World) -> Words:
    return with_log(world, request("other-bucket", "gold/orders/part-0.parquet"))


@situation("No line of an access log has a known format", "discover")
def no_access_log(world: World) -> Words:
    return with_log(world, "nothing\nof the kind\n")


@situation("A line of an access log is damaged", "discover")
def damaged_line(world: World) -> Words:
    return with_log(world, request("b", "k") + "nothing of the kind\n")


@situation("A compressed access log is cut", "discover")
def cut(world: World) -> Words:
    lines = "".join(request("b", f"k{number}") for number in range(5000))
    file = world.folder / "access.log.gz"
    file.write_bytes(gzip.compress(lines.encode())[:-2000])
    return (world.table(), "--access-log", str(file))


@situation("A commit does not name its writer", "discover")
def unsigned(world: World) -> Words:
    log = world.log()
    log.commit(0, protocol(1, 2), metadata())
    return (log.table,)


@situation("An inventory's table no longer exists", "discover")
def gone(world: World) -> Words:
    table = Path(world.table("lake/gone"))
    world.table("lake/kept")
    where = world.inventory(str(world.folder / "lake"))
    for file in (table / "_delta_log").iterdir():
        file.unlink()
    (table / "_delta_log").rmdir()
    return (where,)
