"""The steps of a copy: create the new table, then swap it with the old one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from deltaproto.planning.given import Given
from deltaproto.planning.outcome import Rewrite
from deltaproto.planning.plan import Effect, Rewrites, Step, Stream
from deltaproto.planning.statement import Action, assignments
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.sql import column_name, identifier, name_parts

_NEW, _OLD = "__new", "__before"


class Copy(NamedTuple):
    """The table to be."""

    protocol: Protocol
    properties: Mapping[str, str]
    clustering: tuple[str, ...]
    selected: tuple[str, ...]
    """an expression for each column"""
    losses: tuple[str, ...]


def copied(given: Given, new: Copy) -> Iterator[Step]:
    """The steps that put the copy into the table's place."""
    parts = name_parts(given.sql)
    by_path = parts[0].lower() == "delta"
    fresh = _named(parts, _NEW)
    clauses = ["USING delta"]
    if given.table.partition_columns:
        names = ", ".join(map(identifier, given.table.partition_columns))
        clauses.append(f"PARTITIONED BY ({names})")
    if new.clustering:
        names = ", ".join(map(column_name, new.clustering))
        clauses.append(f"CLUSTER BY ({names})")
    if new.properties:
        clauses.append(f"TBLPROPERTIES ({assignments(new.properties)})")
    # Every name in it is quoted.
    select = f"SELECT {', '.join(new.selected)} FROM {given.sql}"  # noqa: S608
    yield _step(
        given,
        "s1",
        Action.REWRITE,
        f"CREATE TABLE {fresh} {' '.join(clauses)} AS {select}",
        "the rows are copied into a new table; this one stays as it is. Stop writers first: what "
        "they write from here on is not copied",
        given.table.protocol,
        undo=f"DROP TABLE {fresh}" if not by_path else None,
        rewrites=Rewrites(Rewrite.ALL, given.files.files, given.files.bytes),
    )
    if by_path:
        yield _step(
            given,
            "s2",
            Action.SWAP,
            None,
            f"compare the row counts, then move {parts[-1]} away and "
            f"{parts[-1].rstrip('/')}{_NEW} into its place, with the means of the storage",
            new.protocol,
            losses=new.losses,
        )
        return
    old = _named(parts, _OLD)
    yield _step(
        given,
        "s2",
        Action.SWAP,
        f"ALTER TABLE {given.sql} RENAME TO {old}",
        "compare the row counts, then the old table is set aside",
        given.table.protocol,
        undo=f"ALTER TABLE {old} RENAME TO {given.sql}",
    )
    yield _step(
        given,
        "s3",
        Action.SWAP,
        f"ALTER TABLE {fresh} RENAME TO {given.sql}",
        "the new table takes its place",
        new.protocol,
        losses=new.losses,
        undo=f"ALTER TABLE {given.sql} RENAME TO {fresh}",
    )


def _named(parts: list[str], suffix: str) -> str:
    last = parts[-1].rstrip("/") + suffix
    first = ["delta"] if parts[0].lower() == "delta" else [*map(identifier, parts[:-1])]
    return ".".join([*first, identifier(last)])


def _step(
    given: Given,
    id_: str,
    action: Action,
    sql: str | None,
    why: str,
    after: Protocol,
    *,
    losses: tuple[str, ...] = (),
    undo: str | None = None,
    rewrites: Rewrites = Rewrites(Rewrite.NONE, 0, 0),
) -> Step:
    commits = (1, 1) if action is Action.REWRITE else (0, 0)
    ends = Stream("every stream", Effect.ENDS, "another table takes the place of the one it reads")
    return Step(
        id=id_,
        action=action,
        sql=sql,
        feature=None,
        why=why,
        operations=("CREATE TABLE AS SELECT",) if action is Action.REWRITE else (),
        protocol_before=given.table.protocol,
        protocol_after=after,
        commits=commits,
        rewrites=rewrites,
        expects=None,
        truncates=False,
        retention_hours=None,
        wait_hours=0,
        setting=None,
        clashes=(),
        streams=(ends,) if losses else (),
        losses=losses,
        undo=undo,
        warnings=(),
    )
