"""`deltaproto inspect` of one table against its peers: a small one, and how time grows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks import single_tables as tables
from benchmarks.growth import Growth, grown
from benchmarks.page import Figure, Section, row
from benchmarks.pairs import Cost, Side, in_turns
from benchmarks.peers import Peers, bare, deltaproto
from benchmarks.scale import Scale

_DELTALAKE, _KERNEL, _SPARK = "deltalake", "delta-kernel-rs", "Spark, warm session"
_WHOLE = """
Counted are whole processes, from their start to their end, with the start of Python and all
imports. `deltalake` is a script of three lines, `print(DeltaTable(path).protocol())`.
`delta-kernel-rs` is `kernel_inspect/`, a native program that prints protocol and metadata as that
project's own `inspect-table` example does; it judges nothing. Spark is `DESCRIBE DETAIL` in a
session that has started and has answered before, with Delta's cache of tables emptied.
"""


def small(folder: Path, scale: Scale, peers: Peers) -> Section:
    """A table of three commits."""
    root = folder / "small"
    tables.apart(tables.make_small, root)
    costs = in_turns({**_sides(root, peers), "text": partial(_inspect, root, "text")}, scale.small)
    json, text, script = costs["deltaproto"], costs["text"], costs[_DELTALAKE]
    bound = (None, None) if scale.quick else (1.5, 2.0)
    rows = [
        row("inspect --format json / deltalake", json, script, at_most=bound[0]),
        row("inspect --format text / deltalake", text, script, at_most=bound[1]),
        row("inspect --format json / deltalake", json, script, "processor"),
        row("inspect --format json / deltalake", json, script, "peak memory"),
    ]
    if _KERNEL in costs:
        rows.append(row("inspect --format json / delta-kernel-rs", json, costs[_KERNEL]))
    if _SPARK in costs:
        rows.append(row("inspect --format json / Spark", json, costs[_SPARK]))
    figures = []
    if peers.spark:
        name = "Spark: start of a process until it has a session, in no ratio"
        figures.append(Figure(name, peers.spark.start, "s"))
    absent = "".join(f"\n{name} is missing: {why}.\n" for name, why in peers.missing.items())
    told = f"A table of three commits, without checkpoint and checksums.\n{_WHOLE}{absent}"
    return Section("Inspect a small table", told, rows, figures)


def by_commits(folder: Path, scale: Scale, peers: Peers) -> Section:
    """Time against commits since the checkpoint."""

    def sides(root: Path, _: int) -> Mapping[str, Side]:
        whole = {"deltaproto --no-crc": partial(_inspect, root, "json", "--no-crc")}
        return {**_sides(root, peers), **whole}

    told = """
A checkpoint at version 0, then commits with their checksum files, as Delta Spark leaves them.
With `--no-crc` deltaproto reads all commits instead of the newest checksum.
"""
    growth = Growth(
        file="inspect-by-commits.svg",
        title="Time of inspect by commits since the checkpoint",
        told=told,
        across="commits since the checkpoint",
        short="commits",
        up="time of one answer",
        sides=sides,
        make=lambda root, size: tables.apart(tables.make_with_commits, root, size),
    )
    return grown(folder, growth, scale.commits, scale.rounds, scale.slow)


def by_files(folder: Path, scale: Scale, peers: Peers) -> Section:
    """Time against the number of files that a checkpoint names."""
    told = """
A checkpoint with statistics of twenty columns, one commit after it, and no checksum file that would
spare reading the checkpoint.
"""
    bounds = {(_DELTALAKE, "time"): 1 / 8, (_DELTALAKE, "peak memory"): 0.2}
    growth = Growth(
        file="inspect-by-files.svg",
        title="Time of inspect by files in the checkpoint",
        told=told,
        across="files in the checkpoint",
        short="files",
        up="time of one answer",
        sides=lambda root, _: _sides(root, peers),
        make=lambda root, size: tables.apart(tables.make_with_files, root, size),
        at_most={} if scale.quick else bounds,
    )
    return grown(folder, growth, scale.files, scale.rounds, scale.slow)


def _sides(root: Path, peers: Peers) -> dict[str, Side]:
    sides: dict[str, Side] = {
        "deltaproto": partial(_inspect, root, "json"),
        _DELTALAKE: partial(bare, root),
    }
    if peers.kernel:
        sides[_KERNEL] = partial(peers.kernel.inspect, root)
    if peers.spark:
        sides[_SPARK] = partial(peers.spark.detail, root)
    return sides


def _inspect(root: Path, format_: str, *words: str) -> Cost:
    return deltaproto("inspect", root, "--format", format_, *words)
