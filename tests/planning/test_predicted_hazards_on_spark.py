"""What plans say of data files, columns and constraints after Delta Spark's statements."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from deltaproto.clients.requirements import (
    DROPPED_COLUMNS,
    ESCAPED_PATHS,
    EXPONENT_BOUNDS,
    MAPPED_COLLECTIONS,
    MAPPED_PARTITIONS,
    MAPPING_ADDED_LATER,
    NAN_BOUNDS,
    NON_ASCII_PATHS,
    UNBOUNDED_BOOLEANS,
    UNBOUNDED_COLUMNS,
    UNBOUNDED_LATER_COLUMNS,
)
from deltaproto.planning.predict.bounds import OF_BOUNDS
from tests.planning.predicted_needs import load, needs_after
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

pytestmark = needs_delta("4.1", "fast drops")
VECTORS = "'delta.enableDeletionVectors'='true'"
MAPPED = "'delta.columnMapping.mode'='name'"


class Case(NamedTuple):
    """A table, and the statements whose effect is predicted."""

    made: tuple[str, ...]
    planned: tuple[str, ...]
    unknown: frozenset[str] = frozenset()
    """hazards that a plan cannot predict"""
    added: frozenset[str] = frozenset()
    """hazards that the statements add"""


def rows(count: int, names: str = "id") -> str:
    every = {"id": "id", "word": "cast(id as string)", "flag": "id % 2 = 0"}
    every |= {"ratio": "if(id = 1, double('nan'), id)", "cents": "cast(id as decimal(20, 10))"}
    every |= {"nested": "named_struct('x', id, 'y', id)"}
    columns = ", ".join(every[name] for name in names.split())
    return f"insert into {{t}} ({names.replace(' ', ', ')}) select {columns} " + (
        f"from range(0, {count}, 1, 1)"
    )


def created(columns: str, *properties: str) -> str:
    return f"create table {{t}} ({columns}) using delta tblproperties ({', '.join(properties)})"


ALL = "id bigint, word string, flag boolean, ratio double, cents decimal(20, 10)"
NAMES = "id word flag ratio cents"
DROP_VECTORS = "alter table {t} drop feature deletionVectors"
DROP_MAPPING = "alter table {t} drop feature columnMapping"
FIRST = "'delta.dataSkippingNumIndexedCols'='1'"
CLONED = (
    created("id bigint", VECTORS).replace("{t}", "{source}"),
    rows(3).replace("{t}", "{source}"),
    "delete from {source} where id = 1",
    "create table {t} shallow clone {source}",
)
CASES = {
    "fewer columns by name": Case(
        (created(ALL, FIRST), rows(3, NAMES)),
        ("alter table {t} set tblproperties ('delta.dataSkippingStatsColumns'='id')",),
    ),
    "other columns by name": Case(
        (created(ALL, FIRST), rows(3, NAMES)),
        ("alter table {t} set tblproperties ('delta.dataSkippingStatsColumns'='id,ratio')",),
    ),
    "more columns by number": Case(
        (created(ALL, FIRST), rows(3, NAMES)),
        ("alter table {t} set tblproperties ('delta.dataSkippingNumIndexedCols'='32')",),
    ),
    "no columns by number": Case(
        (created(ALL, "'delta.appendOnly'='false'"), rows(3, NAMES)),
        ("alter table {t} set tblproperties ('delta.dataSkippingNumIndexedCols'='0')",),
    ),
    "a new column": Case(
        (created("id bigint", VECTORS), rows(3)),
        ("alter table {t} add column moment timestamp",),
    ),
    "renamed and dropped columns": Case(
        (created(ALL, MAPPED, FIRST), rows(3, NAMES)),
        (
            "alter table {t} rename column ratio to share",
            "alter table {t} drop column flag",
            "alter table {t} set tblproperties ('delta.dataSkippingStatsColumns'='id,share')",
        ),
    ),
    "mapping removed after other columns were indexed": Case(
        (
            created(ALL, MAPPED, FIRST),
            rows(3, NAMES),
            "alter table {t} set tblproperties ('delta.dataSkippingNumIndexedCols'='32')",
        ),
        (DROP_MAPPING,),
        # The old statistics show nothing of the values of these columns.
        frozenset({UNBOUNDED_BOOLEANS, UNBOUNDED_COLUMNS, NAN_BOUNDS, EXPONENT_BOUNDS}),
    ),
    "mapping removed after a column was added": Case(
        (
            created("id bigint, flag boolean", MAPPED),
            rows(3, "id flag"),
            "alter table {t} add column word string",
            rows(3, "id word flag"),
        ),
        (DROP_MAPPING,),
    ),
    "mapping removed with a column behind a struct": Case(
        (
            created("id bigint, nested struct<x: bigint, y: bigint>, word string", MAPPED),
            "alter table {t} set tblproperties ('delta.dataSkippingNumIndexedCols'='3')",
            rows(3, "id nested word"),
        ),
        (DROP_MAPPING,),
        frozenset({UNBOUNDED_LATER_COLUMNS}),
    ),
    "vectors of every file purged": Case(
        (
            created("id bigint", VECTORS),
            rows(3),
            "alter table {t} add column word string",
            "delete from {t} where id = 1",
        ),
        (DROP_VECTORS,),
    ),
    "vectors of one file purged": Case(
        (
            created("id bigint", VECTORS),
            rows(3),
            "alter table {t} add column word string",
            rows(9, "id word"),
            "delete from {t} where id = 7",
        ),
        (DROP_VECTORS,),
    ),
    "a clone with vectors": Case(CLONED, (DROP_VECTORS,)),
    "a clone with vectors, purged": Case(CLONED, ("reorg table {t} apply (purge)",)),
    "a clone with vectors, and files of its own": Case((*CLONED, rows(3)), (DROP_VECTORS,)),
    "a clone with a file that has no vector": Case(
        (*CLONED[:-1], rows(3).replace("{t}", "{source}"), CLONED[-1]), (DROP_VECTORS,)
    ),
    "a dropped column": Case(
        (created("id bigint, word string", MAPPED), rows(3, "id word")),
        ("alter table {t} drop column word",),
        added=frozenset({DROPPED_COLUMNS}),
    ),
    "a dropped field": Case(
        (created("id bigint, nested struct<x: bigint, y: bigint>", MAPPED), rows(3, "id nested")),
        ("alter table {t} drop column nested.x",),
        added=frozenset({DROPPED_COLUMNS}),
    ),
    "a column dropped by replacing columns": Case(
        (created("id bigint, word string", MAPPED), rows(3, "id word")),
        ("alter table {t} replace columns (id bigint)",),
        added=frozenset({DROPPED_COLUMNS}),
    ),
    "a dropped column, and mapping removed": Case(
        (created("id bigint, word string", MAPPED), rows(3, "id word")),
        ("alter table {t} drop column word", DROP_MAPPING),
    ),
    "mapping enabled, and a column dropped": Case(
        (created("id bigint, word string", VECTORS), rows(3, "id word")),
        (f"alter table {{t}} set tblproperties ({MAPPED})", "alter table {t} drop column word"),
        added=frozenset({DROPPED_COLUMNS, MAPPING_ADDED_LATER}),
    ),
    "a renamed partition column": Case(
        (
            created("id bigint, word string", VECTORS) + " partitioned by (word)",
            rows(3, "id word"),
            f"alter table {{t}} set tblproperties ({MAPPED})",
        ),
        ("alter table {t} rename column word to text",),
        added=frozenset({MAPPED_PARTITIONS}),
    ),
    **{
        f"mapping removed from partitions by text: {name}": Case(
            (
                created("id bigint, word string", MAPPED) + " partitioned by (word)",
                f"insert into {{t}} values (1, 'a'), (2, null), {values}",
            ),
            (DROP_MAPPING,),
            added=added,
        )
        for name, values, added in (
            ("plain", "(3, '_-!.~();@&+$,0')", frozenset[str]()),
            ("with a space", "(3, 'a b')", frozenset({ESCAPED_PATHS})),
            ("with a percent sign", "(3, '%20')", frozenset({ESCAPED_PATHS})),
            ("not ASCII", "(3, 'é')", frozenset({NON_ASCII_PATHS})),
        )
    },
    "an array added beside mapping": Case(
        (created("id bigint", MAPPED), rows(3)),
        ("alter table {t} add column list array<bigint>",),
        added=frozenset({MAPPED_COLLECTIONS}),
    ),
    "mapping enabled beside a map": Case(
        (created("id bigint, pairs map<string, bigint>", VECTORS), rows(3)),
        (f"alter table {{t}} set tblproperties ({MAPPED})",),
        added=frozenset({MAPPED_COLLECTIONS, MAPPING_ADDED_LATER}),
    ),
    "a type that few clients know": Case(
        (created("id bigint", VECTORS), rows(3)),
        (
            "alter table {t} add column none void",
            "alter table {t} add column short char(4)",
        ),
        added=frozenset({"type void"}),
    ),
    "a type that few clients know, dropped": Case(
        (created("id bigint, none void", MAPPED), rows(3)),
        ("alter table {t} drop column none",),
        added=frozenset({DROPPED_COLUMNS}),
    ),
    "new constraints": Case(
        (created("id bigint, word string, moment timestamp", VECTORS), rows(3, "id word")),
        (
            "alter table {t} add constraint one check (id >= 0 and id < 9)",
            "alter table {t} add constraint two check (moment is null or year(moment) > 2000)",
            "alter table {t} add constraint three check (moment is null or "
            "cast(moment as date) > '2000-01-01')",
            "alter table {t} add constraint four check (WORD <> 'x')",
        ),
        added=frozenset(
            {"expression year()", "expression cast", "expression cast with a timestamp column"}
        ),
    ),
    "dropped constraints": Case(
        (
            created("id bigint", VECTORS),
            rows(3),
            "alter table {t} add constraint one check (abs(id) < 9)",
            "alter table {t} add constraint two check (id % 2 < 9)",
        ),
        ("alter table {t} drop constraint one",),
    ),
    "replaced columns": Case(
        (created("id bigint, none void", VECTORS), rows(3)),
        ("replace table {t} (id bigint) using delta",),
        frozenset(OF_BOUNDS),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_spark_leaves_the_hazards_that_a_plan_predicts(
    case: Case, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path, source = tmp_path / "t", tmp_path / "source"

    def sql(statement: str) -> str:
        return statement.format(t=f"delta.`{path}`", source=f"delta.`{source}`")

    for statement in case.made:
        delta_spark.sql(sql(statement))
    given = load(path)
    said = needs_after(given, map(sql, case.planned), RUNNING)
    assert said.unseen == given.needs.unseen | case.unknown
    for statement in case.planned:
        delta_spark.sql(sql(statement))
    real = load(path).needs
    assert said.hazards - case.unknown == real.hazards - case.unknown
    assert said.hazards >= case.added
    assert given.needs.hazards.isdisjoint(case.added)
