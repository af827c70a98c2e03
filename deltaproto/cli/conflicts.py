"""`deltaproto conflicts`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from deltaproto.cli import completion, options
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.progress import show_waiting
from deltaproto.conflicts.matrix import PREVIEW_SETTING, Compute, MatrixEngine
from deltaproto.conflicts.operation import ExceptionRecord
from deltaproto.conflicts.query import (
    MatrixQuery,
    PendingStatement,
    RowLevel,
    parse_compute,
    parse_engine,
    parse_exception,
    parse_isolation_level,
    parse_operation,
)
from deltaproto.conflicts.suspects import Suspects
from deltaproto.conflicts.table_matrix import build_conflict_report
from deltaproto.errors import ExitCode, UsageError
from deltaproto.inspection import Inspection, ReadRequest, Unreadable, inspect_table, uses_spark
from deltaproto.plan_inputs.parse_goal import is_sql_file_name
from deltaproto.render.conflicts import write_conflicts


class PhotonChoice(StrEnum):
    """Values of `--photon`."""

    ON = "on"
    OFF = "off"


def run(values: Mapping[str, Any]) -> int:
    """Compute the matrix, or the requested cells, and render it."""
    engine, release = parse_engine(values["engine"], "--engine")
    question = MatrixQuery(
        engine=engine,
        release=release,
        isolation=parse_isolation_level(values["isolation"], "--isolation"),
        row_level=values["row_level_concurrency"],
        compute=_parse_compute(values),
        operation=parse_operation(values["operation"], "--operation"),
        against=parse_operation(values["against"], "--against"),
        exception=parse_exception(values["exception"], "--exception"),
        statement=_classify_statement(values),
    )
    at = _parse_time(values)
    inspection = _inspect_table(values)
    answer = build_conflict_report(question, inspection)
    if at is not None and inspection is not None and question.exception is not None:
        found = _find_suspects(values, question.exception, at)
        answer = answer._replace(suspects=found, complete=answer.complete and found.complete)
    with options.open_output(values["output"]) as file:
        write_conflicts(answer, values["format"], file, color=not values["no_color"])
    return int(ExitCode.OK if answer.complete else ExitCode.UNREADABLE)


def _inspect_table(values: Mapping[str, Any]) -> Inspection | None:
    if (table := values["table"]) is None:
        return None
    request = ReadRequest(
        storage_options=options.storage_options(values),
        spark=options.spark_settings(values),
    )
    show = options.shows_progress(values)
    with show_waiting(f"reading {table} with Spark", show=show and uses_spark(table, request)):
        result = inspect_table(table, request)
    if isinstance(result, Unreadable):
        raise result.error
    return result


def _parse_time(values: Mapping[str, Any]) -> int | None:
    if (text := values["at"]) is None:
        return None
    if values["table"] is None or values["exception"] is None:
        raise UsageError(
            "--at needs a table and --exception", "pass both: it searches the table's history"
        )
    return options.parse_milliseconds(text, "--at", "time", "2026-11-01T08:00Z")


def _find_suspects(values: Mapping[str, Any], record: ExceptionRecord, at: int) -> Suspects:
    from deltaproto.conflicts.suspects import find_suspects

    stored = options.storage_options(values)
    spark = options.spark_settings(values)
    return find_suspects(values["table"], stored, spark, record.name, at)


def _classify_statement(values: Mapping[str, Any]) -> PendingStatement | None:
    if (sql := values["sql"]) is None:
        return None
    if values["operation"] is not None:
        raise UsageError(
            "--sql and --operation cannot be used together",
            "leave out --operation: --sql determines it",
        )
    if is_sql_file_name(sql):
        raise UsageError("--sql takes a statement, not a file", "pass the text of one statement")
    from deltaproto.conflicts.classify import classify

    return PendingStatement(sql, classify(sql))


def _parse_compute(values: Mapping[str, Any]) -> Compute:
    photon = None if values["photon"] is None else values["photon"] is PhotonChoice.ON
    setting = options.parse_pairs(values["spark_conf"], "--spark-conf").get(PREVIEW_SETTING)
    preview = None if setting is None else setting.strip().casefold() == "true"
    return parse_compute(values["runtime"], photon, preview, "--runtime")


COMMAND = Command(
    "conflicts",
    "Show which concurrent operations conflict, for a table or an engine, and how to "
    "avoid the conflicts.",
    run,
    Argument("table", "[TABLE]", "Path, URI or catalog name. Default: any table.", required=False),
    (
        Option(
            ("--engine",),
            f"Show the rules of {', '.join(MatrixEngine)}, or delta-rs@VERSION.",
            str,
            str(MatrixEngine.DATABRICKS),
            metavar="ENGINE",
            panel=Panel.SPARK,
        ),
        Option(
            ("--isolation",),
            "Assume this isolation level. Default: the table's, else the engine's.",
            metavar="LEVEL",
            words=completion.isolation_levels,
            panel=Panel.GOAL,
        ),
        Option(
            ("--row-level-concurrency",),
            "Assume row-level concurrency on or off. auto: as set on the table; off without a "
            "table.",
            RowLevel,
            RowLevel.AUTO,
            panel=Panel.SPARK,
        ),
        Option(
            ("--runtime",),
            "Assume a write by this Databricks Runtime. Default: 14.2 or later.",
            metavar="VERSION",
            panel=Panel.SPARK,
        ),
        Option(
            ("--photon",),
            "Assume compute with or without Photon.",
            PhotonChoice,
            panel=Panel.SPARK,
        ),
        Option(
            ("--operation",),
            "Explain this operation, which commits last and may fail.",
            metavar="OP",
            panel=Panel.GOAL,
        ),
        Option(
            ("--against",),
            "Explain conflicts with this operation, which commits first.",
            metavar="OP",
            panel=Panel.GOAL,
        ),
        Option(
            ("--exception",),
            "Explain this exception.",
            metavar="NAME",
            words=completion.exceptions,
            panel=Panel.GOAL,
        ),
        Option(
            ("--at",),
            "Find the commits that could have caused the exception raised at this time (default "
            "zone: UTC).",
            metavar="TIME",
            panel=Panel.GOAL,
        ),
        Option(
            ("--sql",),
            "Classify this SQL statement and explain its conflicts.",
            metavar="STATEMENT",
            panel=Panel.GOAL,
        ),
        options.FORMAT,
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "conflicts ./orders --sql \"DELETE FROM orders WHERE day = '2026-11-01'\"",
        "conflicts --engine delta-spark --operation MERGE",
    ),
)
