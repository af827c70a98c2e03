"""Making the kit with Spark, and writing its answers down."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaproto.certification.host import plain
from deltaproto.certification.kit import edit
from deltaproto.certification.kit.case import (
    FILTERS,
    INDEX,
    TABLES,
    Case,
    Filter,
    Kit,
    Past,
    by_id,
    case_fields,
)
from deltaproto.certification.kit.recipe import Recipe, State
from deltaproto.certification.kit.recipes import KIT_VERSION, recipes
from deltaproto.certification.observe import protocol_of
from deltaproto.errors import EngineError, UsageError
from deltaproto.tables.engine_text import spark_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_LOG = (State.LISTED, State.PROTOCOL, State.HAZARD, State.LAYOUT)
_BASE = (("id", "bigint"), ("word", "string"), ("price", "double"))
_VALUES = ("id", "if(id = 7, null, concat('w', id))", "cast(id * 0.5 as double)")
_FIRST = 10
"""rows of version 1; as many come with version 2"""


def make_kit(
    spark: SparkSession,
    folder: Path,
    progress: Callable[[str, int, int], None] | None = None,
    only: Collection[str] | None = None,
) -> Kit:
    """Make every reference table, or `only` some, below `folder`, which must be empty or missing.

    Each table is made elsewhere first: Spark knows the finished one from reading it only. What
    Spark reads is held against what the recipe must give. A difference is an error, never an
    answer.

    Raises:
        UsageError: when the folder holds anything.
        EngineError: when Spark cannot make a table, or reads another one than the recipe says.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", "name a folder that is new or empty")
    # Under another name until it is whole: a run that is cut off leaves no kit.
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    (unfinished / TABLES).mkdir(parents=True)
    wanted = [recipe for recipe in recipes() if only is None or recipe.name in only]
    cases = []
    with tempfile.TemporaryDirectory() as scratch:
        plain_table = Path(scratch) / "plain"
        base = _made(spark, _by_name("plain"), plain_table)
        for number, recipe in enumerate(wanted):
            if progress is not None:
                progress(recipe.name, number, len(wanted))
            cases.append(
                _case(spark, recipe, (unfinished, folder), Path(scratch), plain_table, base)
            )
    answers = [case_fields(case) for case in cases]
    digest = hashlib.sha256(_canonical([KIT_VERSION, answers]).encode()).hexdigest()[:16]
    made_with = _made_with(spark)
    index = {
        "kit_version": KIT_VERSION,
        "digest": digest,
        "made_with": made_with,
        "cases": answers,
    }
    (unfinished / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    if folder.exists():
        folder.rmdir()
    unfinished.rename(folder)
    return Kit(folder, KIT_VERSION, digest, made_with, tuple(cases))


def _case(
    spark: SparkSession,
    recipe: Recipe,
    folders: tuple[Path, Path],
    scratch: Path,
    plain_table: Path,
    base: Case,
) -> Case:
    """One table below the first of the folders, which will get the name of the second."""
    # What only the log tells apart needs no Spark.
    copied = recipe.edit is not None and recipe.state in _OF_LOG
    if recipe.name == "plain" or copied:
        made, case = plain_table, base
    else:
        made = scratch / recipe.name
        case = _made(spark, recipe, made)
    target, final = (folder / TABLES / recipe.name for folder in folders)
    # Hadoop's checksums stand beside its files, and are wrong once somebody else rewrites one.
    shutil.copytree(made, target, ignore=shutil.ignore_patterns(".*.crc"))
    if recipe.edit is not None:
        edit.edit(target, recipe.edit, final)
    if recipe.expire:
        edit.expire(target)
        _same(recipe, "after its old commits are gone", spark_rows(spark, target), list(case.rows))
    whole = recipe.state is State.LAYOUT
    if copied:
        case = _added(case, recipe)
    return case._replace(
        name=recipe.name,
        feature=recipe.feature,
        state=recipe.state,
        about=recipe.about,
        protocol=protocol_of(target),
        filters=() if copied and not whole else case.filters,
        past=None if copied or recipe.expire else case.past,
        violating=dict(recipe.violating),
        must_refuse=recipe.must_refuse,
        hazard=recipe.hazard,
        unwritten=recipe.unwritten,
        folder=recipe.folder,
    )


def _added(case: Case, recipe: Recipe) -> Case:
    """The case with the column that an edit gives to the schema, in which nothing is stored."""
    if recipe.edit is None or recipe.edit.column is None:
        return case
    name, kind = recipe.edit.column
    rows = [{**row, name: None} for row in case.rows]
    filters = [
        each._replace(rows=tuple({**row, name: None} for row in each.rows)) for each in case.filters
    ]
    columns = (*case.schema, (name, _type(kind)))
    return case._replace(schema=columns, rows=tuple(rows), filters=tuple(filters))


def _made(spark: SparkSession, recipe: Recipe, path: Path) -> Case:
    table = f"delta.`{path}`"
    columns = ", ".join(
        [*(f"{name} {kind}" for name, kind in _BASE), *(f"{n} {d}" for n, d, _ in recipe.columns)]
    )
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in recipe.properties.items())
    clause = f"{recipe.clause} " + (f"tblproperties ({properties})" if properties else "")
    filled = [(name, value) for name, _, value in recipe.columns if value is not None]
    names = ", ".join([*(name for name, _ in _BASE), *(name for name, _ in filled)])
    values = ", ".join([*_VALUES, *(value for _, value in filled)])
    try:
        with _settings(spark, recipe):
            spark.sql(f"create table {table} ({columns}) using delta {clause}")
            for start in (0, _FIRST):
                rows = f"select {values} from range({start}, {start + _FIRST}, 1, 1)"
                spark.sql(f"insert into {table} ({names}) {rows}")
            for statement in recipe.then:
                spark.sql(statement.format(t=table))
            if recipe.delta_rs is not None:
                from deltalake import DeltaTable

                DeltaTable(str(path)).delete(recipe.delta_rs)
        return _answers(spark, recipe, path)
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(
            f"Spark cannot make the reference table {recipe.name}: {spark_reason(error)}",
            "the kit is made with pyspark 4.2 and delta-spark 4.4",
        ) from None


def _answers(spark: SparkSession, recipe: Recipe, path: Path) -> Case:
    table = f"delta.`{path}`"
    rows = spark_rows(spark, path)
    _same(
        recipe,
        "by its recipe",
        [row["id"] for row in rows if row["id"] < 20],
        [number for number in range(2 * _FIRST) if number not in recipe.lost],
    )
    filters = []
    for column, op, value in (*FILTERS, *recipe.where):
        said = f"'{value}'" if isinstance(value, str) else value
        found = spark_rows(spark, path, f"where {column} {op} {said}")
        _same(
            recipe,
            f"where {column} {op} {said}",
            found,
            [row for row in rows if row[column] is not None and _holds(row[column], op, value)],
        )
        filters.append(Filter(column, op, value, tuple(found)))
    past = tuple(spark_rows(spark, path, "version as of 1"))
    _same(recipe, "at version 1", [row["id"] for row in past], list(range(_FIRST)))
    schema = json.loads(spark.table(table).schema.json())["fields"]
    return Case(
        name=recipe.name,
        feature=recipe.feature,
        state=recipe.state,
        about=recipe.about,
        protocol={},
        schema=tuple((field["name"], _type(field["type"])) for field in schema),
        rows=tuple(rows),
        filters=tuple(filters),
        past=Past(1, past),
        fill=dict(recipe.fill),
        violating=dict(recipe.violating),
        omitted=dict(recipe.omitted),
        must_refuse=(),
        append_only=recipe.append_only,
    )


def spark_rows(spark: SparkSession, path: Path, clause: str = "") -> list[dict[str, Any]]:
    """The rows of a table by `id`, as Spark reads them, with values as JSON holds them."""
    found = spark.sql(f"select * from delta.`{path}` {clause}").collect()
    rows = [{name: _plain(value) for name, value in row.asDict().items()} for row in found]
    return by_id(rows)


def _plain(value: Any) -> Any:
    # VariantVal: JSON for clients that show it, and its bytes for those that hand them out.
    if hasattr(value, "toJson") and hasattr(value, "metadata"):
        return {
            "json": value.toJson(),
            "metadata": plain(bytes(value.metadata)),
            "value": plain(bytes(value.value)),
        }
    return plain(value)


def _type(found: Any) -> str:
    return found if isinstance(found, str) else str(found["type"])


def _holds(found: Any, op: str, value: Any) -> bool:
    return bool({"=": found == value, ">=": found >= value, "<": found < value}[op])


def _same(recipe: Recipe, when: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise EngineError(
            f"the reference table {recipe.name} is not what it should be {when}: {found}, "
            f"where {wanted} was expected",
            "another Spark than pyspark 4.2 with delta-spark 4.4 may be at work",
        )


def _by_name(name: str) -> Recipe:
    return next(recipe for recipe in recipes() if recipe.name == name)


@contextmanager
def _settings(spark: SparkSession, recipe: Recipe) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in recipe.conf}
    for key, value in recipe.conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _made_with(spark: SparkSession) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        delta = version("delta-spark")
    except PackageNotFoundError:
        delta = "unknown"
    return {"spark": spark.version, "delta-spark": delta}


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
