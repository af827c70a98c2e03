"""Random columns of a table, with rows for them and what may be done to them later."""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

ROWS = 5
"""rows of one INSERT"""


class _Kind(NamedTuple):
    """One column that a table may have."""

    name: str
    declared: str
    """type and what follows it in CREATE TABLE"""
    value: str = ""
    """an expression of `id`; empty for what the engine fills itself"""
    widening: str = ""
    """what ALTER COLUMN takes to widen it"""
    renamed: str = ""
    """its name after a renaming"""


_BASE = (
    _Kind("id", "bigint", "id"),
    _Kind("word", "string", "cast(id as string)"),
)
_PLAIN = (
    _Kind("small", "int", "cast(id as int)", "small type bigint"),
    _Kind("tiny", "tinyint", "cast(id as tinyint)", "tiny type int"),
    _Kind("ratio", "float", "cast(id as float)", "ratio type double"),
    _Kind(
        "pair",
        "struct<a: int, b: string>",
        "named_struct('a', cast(id as int), 'b', 'x')",
        "pair.a type bigint",
    ),
    _Kind("spare", "string", "'spare'", renamed="left_over"),
    _Kind("moment", "timestamp", "timestamp'2026-01-01 00:00:00'"),
    _Kind("listed", "array<int>", "array(cast(id as int))", "listed.element type bigint"),
    _Kind("lookup", "map<string, int>", "map('k', cast(id as int))", "lookup.value type bigint"),
)
_TELLING = (
    _Kind("must", "string not null", "'here'"),
    _Kind("twice", "bigint generated always as (id * 2)"),
    _Kind("counted", "bigint generated always as identity"),
    _Kind("filled", "string default 'x'", "'y'"),
    _Kind("at", "timestamp_ntz", "timestamp_ntz'2026-01-01 00:00:00'", renamed="at_noon"),
    _Kind("loose", "variant", "parse_json('{\"a\": 1}')"),
)
_ODD = _Kind("odd name", "string", "'odd'")
_UNUSUAL = {
    "interval": _Kind("span", "interval day to second"),
    "void": _Kind("nothing", "void"),
}
UNUSUAL = (*_UNUSUAL,)
"""types beyond the specification; Delta takes intervals only while it does not check types"""


class Columns:
    """The columns that a table has now."""

    def __init__(
        self,
        kinds: list[_Kind],
        partition: str,
        clustered: tuple[str, ...],
        *,
        drops: bool,
        iceberg: bool,
    ) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self.partitioned = bool(partition)
        self.defaults = any(" default " in kind.declared for kind in kinds)
        self.declared = ", ".join(f"`{kind.name}` {kind.declared}" for kind in kinds)
        self.layout = f"partitioned by ({partition})" if partition else ""
        if clustered:
            self.layout = f"cluster by ({', '.join(clustered)})"
        fixed = {partition}
        self.widenings = [
            f"alter table {{t}} alter column {kind.widening}"
            for kind in kinds
            if kind.widening and kind.name not in fixed
        ]
        self.renamings = [
            f"alter table {{t}} rename column {kind.name} to {kind.renamed}"
            for kind in kinds
            if kind.renamed and not (iceberg and kind.name == partition)
        ]
        if "spare" in self._kinds and "spare" not in (partition, *clustered) and drops:
            self.renamings = [text for text in self.renamings if " spare " not in text]
            self.renamings.append("alter table {t} drop column spare")

    @property
    def plain(self) -> bool:
        """Parquet files alone can hold the columns."""
        kinds = self._kinds.values()
        telling = {kind.name for kind in (*_TELLING, *_UNUSUAL.values())}
        return not self.layout and not {kind.name for kind in kinds} & telling

    def files(self, folder: str = "{path}") -> str:
        """Parquet files with a few rows."""
        values = ", ".join(f"{kind.value} as `{kind.name}`" for kind in self._kinds.values())
        return (
            f"insert overwrite directory '{folder}' using parquet "
            f"select {values} from range(0, {ROWS}, 1, 2)"
        )

    def insert(self, start: int, files: int) -> str:
        """INSERT of a few rows whose `id` begins with `start`."""
        given = {name: kind.value for name, kind in self._kinds.items() if kind.value}
        names = ", ".join(f"`{name}`" for name in given)
        return (
            f"insert into {{t}} ({names}) select {', '.join(given.values())} "
            f"from range({start}, {start + ROWS}, 1, {files})"
        )

    def follow(self, statements: list[str]) -> None:
        """Take over what statements did to names."""
        for text in statements:
            renamed = re.search(r"rename column (\w+) to (\w+)", text)
            dropped = re.search(r"drop column (\w+)", text)
            if renamed:
                self._kinds = {
                    renamed[2] if name == renamed[1] else name: kind
                    for name, kind in self._kinds.items()
                }
            if dropped:
                self._kinds.pop(dropped[1])


def random_columns(
    random: Random, dense: float, *, mapped: bool, iceberg: bool, unusual: str = ""
) -> Columns:
    """Columns whose declarations are legal together.

    Args:
        dense: the share of columns that tell of a feature.
        mapped: column mapping is on from the beginning.
        iceberg: the table is to be readable as an Iceberg one.
        unusual: the type of a further column, one of UNUSUAL.
    """
    kinds = [*_BASE, *(kind for kind in _PLAIN if random.random() < 0.3)]
    kinds += [kind for kind in _TELLING if random.random() < dense * 0.7]
    if mapped and random.random() < 0.15:
        kinds.append(_ODD)
    if iceberg:
        kinds = [kind for kind in kinds if kind.name not in ("loose", "listed", "lookup", "tiny")]
    names = {kind.name for kind in kinds}
    kinds += [_UNUSUAL[unusual]] if unusual else []
    partition = ""
    clustered: tuple[str, ...] = ()
    if random.random() < 0.15:
        (partition,) = random.sample(sorted(names & {"word", "small", "spare", "at"}), 1)
    elif random.random() < dense:
        candidates = sorted(names & {"id", "small", "spare", "at"}) + (
            ["pair.a"] if "pair" in names else []
        )
        clustered = tuple(random.sample(candidates, random.choice((1, 1, min(2, len(candidates))))))
    drops = random.random() < 0.5
    return Columns(kinds, partition, clustered, drops=drops, iceberg=iceberg)
