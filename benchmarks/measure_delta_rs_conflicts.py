"""What one release of deltalake does when another commit came between, operation by operation.

No race is needed: the loser opens the table, the winner commits through a handle of its own, and
only then the loser runs. What becomes of it is recorded, release by release, in
`tests/conflicts/measured_delta_rs.json`, which the suite compares with the matrix. Run it with the
Python of an environment that has the deltalake to be measured, pyarrow, and nothing else of this
project:

    python benchmarks/measure_delta_rs_conflicts.py
"""

from __future__ import annotations

import inspect
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

RECORDED = Path(__file__).parents[1] / "tests/conflicts/measured_delta_rs.json"
MESSAGES = {
    "concurrent transactions added new data": "ConcurrentAppend",
    "deleted data this operation read": "ConcurrentDeleteRead",
    "deleted the same data": "ConcurrentDeleteDelete",
    "Metadata changed": "MetadataChanged",
    "Protocol changed": "ProtocolChanged",
    "Concurrent transaction failed": "ConcurrentTransaction",
    "already exists": "VersionAlreadyExists",
    "Failed to commit transaction: 0": "MaxCommitAttempts",
    "Cannot cast schema": "refused",
    "Unsupported reader features": "refused",
}
Run = Callable[[DeltaTable], Any]


def rows_of(ids: list[int], part: int = 1) -> pa.Table:
    parts = pa.array([part] * len(ids), pa.int32())
    return pa.table({"id": pa.array(ids, pa.int64()), "p": parts})


def write(table: DeltaTable, data: pa.Table, **options: Any) -> None:
    # Releases before 1.0 have two writers; schema evolution and predicates need this one.
    if "engine" in inspect.signature(write_deltalake).parameters:
        options["engine"] = "rust"
    write_deltalake(table, data, **options)


def stream(table: DeltaTable) -> None:
    from deltalake import CommitProperties, Transaction

    same = CommitProperties(app_transactions=[Transaction("query", 1)])
    write(table, rows_of([100]), mode="append", commit_properties=same)


def merge(table: DeltaTable, id_: int) -> Any:
    matched = table.merge(rows_of([id_]), "t.id = s.id", source_alias="s", target_alias="t")
    return matched.when_matched_update({"p": "9"}).when_not_matched_insert_all().execute()


def evolve(table: DeltaTable) -> None:
    data = rows_of([100]).append_column("z", pa.array(["z"]))
    write(table, data, mode="append", schema_mode="merge")


def add_columns(table: DeltaTable) -> None:
    text = deltalake.schema.PrimitiveType("string")
    table.alter.add_columns([deltalake.Field("z", text)])


def add_feature(name: str) -> Run:
    def run(table: DeltaTable) -> None:
        feature = getattr(deltalake.TableFeatures, name)
        table.alter.add_feature(feature, allow_protocol_versions_increase=True)

    return run


def replace(table: DeltaTable) -> None:
    DeltaTable.create(table.table_uri, schema=table.schema(), mode="overwrite")


OPERATIONS: dict[str, Run] = {
    "append": lambda t: write(t, rows_of([100]), mode="append"),
    "append of a stream": stream,
    "overwrite": lambda t: write(t, rows_of([7]), mode="overwrite"),
    "overwrite where": lambda t: write(t, rows_of([1]), mode="overwrite", predicate="id = 1"),
    "append that evolves the schema": evolve,
    "delete where id = 1": lambda t: t.delete("id = 1"),
    "delete where id = 2": lambda t: t.delete("id = 2"),
    "delete where p = 1": lambda t: t.delete("p = 1"),
    "delete": lambda t: t.delete(),
    "update where id = 1": lambda t: t.update({"p": "9"}, predicate="id = 1"),
    "update": lambda t: t.update({"p": "9"}),
    "merge of id 1": lambda t: merge(t, 1),
    "merge of a new row": lambda t: merge(t, 100),
    "optimize.compact": lambda t: t.optimize.compact(),
    "optimize.z_order": lambda t: t.optimize.z_order(["id"]),
    "restore": lambda t: t.restore(1),
    "set_table_properties": lambda t: t.alter.set_table_properties({"delta.appendOnly": "false"}),
    "add_constraint": lambda t: t.alter.add_constraint({"c": "id >= 0"}),
    "add_columns": add_columns,
    "add_feature of writers": add_feature("ChangeDataFeed"),
    "add_feature of readers": add_feature("DeletionVectors"),
    "create or replace": replace,
}
# Commits of protocol alone, as another engine may make them.
BY_HAND = {
    "protocol 1,3 by hand": {"minReaderVersion": 1, "minWriterVersion": 3},
    "protocol 1,1 by hand": {"minReaderVersion": 1, "minWriterVersion": 1},
    "protocol 2,5 by hand": {"minReaderVersion": 2, "minWriterVersion": 5},
}


def base(path: Path) -> None:
    for ids, part in (([1], 1), ([2], 1), ([3], 2)):
        write_deltalake(str(path), rows_of(ids, part), mode="append")


def contents(path: Path) -> list[tuple[int, int]]:
    found = DeltaTable(str(path)).to_pyarrow_table().to_pydict()
    return sorted(zip(found["id"], found["p"], strict=True))


def commits(path: Path) -> int:
    return len(list((path / "_delta_log").glob("*.json")))


def run(name: str, path: Path, table: DeltaTable) -> None:
    if name not in BY_HAND:
        OPERATIONS[name](table)
        return
    actions = [{"protocol": BY_HAND[name]}, {"commitInfo": {"operation": "UPGRADE PROTOCOL"}}]
    file = path / "_delta_log" / f"{commits(path):020d}.json"
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


def became(base_: Path, folder: Path, loser: str, winner: str) -> str | None:
    """What the loser met: `ok`, `wrong`, or a conflict; None where one of them commits nothing."""
    path = Path(shutil.copytree(base_, folder / "met"))
    try:
        table = DeltaTable(str(path))
        try:
            run(winner, path, DeltaTable(str(path)))
        except Exception:
            return None
        before = commits(path)
        if before == commits(base_):
            return None
        try:
            run(loser, path, table)
        except Exception as error:
            return reason(error)
        if commits(path) == before:
            return None
        try:
            found = contents(path)
        except Exception:
            return "ok"
        in_order = [serial(base_, folder, *order) for order in ((winner, loser), (loser, winner))]
        return "ok" if found in in_order else "wrong"
    finally:
        shutil.rmtree(path)


def serial(base_: Path, folder: Path, *names: str) -> list[tuple[int, int]] | None:
    """The rows after operations that ran one after the other; None where one is refused."""
    path = Path(shutil.copytree(base_, folder / "serial"))
    try:
        for name in names:
            run(name, path, DeltaTable(str(path)))
        return contents(path)
    except Exception:
        return None
    finally:
        shutil.rmtree(path)


def reason(error: Exception) -> str | None:
    if isinstance(error, (AttributeError, ImportError, TypeError)):
        return None
    said = str(error)
    return next((name for text, name in MESSAGES.items() if text in said), f"other: {said[:80]}")


def measure(losers: list[str], winners: list[str]) -> dict[tuple[str, str], str]:
    """What became of each loser beside each winner, with the installed release."""
    folder = Path(tempfile.mkdtemp())
    try:
        base(folder / "base")
        pairs = [(loser, winner) for loser in losers for winner in winners]
        found = {pair: became(folder / "base", folder, *pair) for pair in pairs}
        return {pair: each for pair, each in found.items() if each is not None}
    finally:
        shutil.rmtree(folder)


def main(output: Path = RECORDED) -> None:
    release = deltalake.__version__
    found = measure([*OPERATIONS], [*OPERATIONS, *BY_HAND])
    kept = json.loads(output.read_text()) if output.exists() else []
    by_pair = {(each["loser"], each["winner"]): each["became"] for each in kept}
    for each in by_pair.values():
        each.pop(release, None)
    for pair, said in found.items():
        by_pair.setdefault(pair, {})[release] = said
    lines = [
        json.dumps({"loser": loser, "winner": winner, "became": each})
        for (loser, winner), each in by_pair.items()
        if each
    ]
    output.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
