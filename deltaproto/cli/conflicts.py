"""`deltaproto conflicts`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.progress import show_waiting
from deltaproto.conflicts import delta_rs, exceptions, operation
from deltaproto.conflicts.matrix import MatrixEngine
from deltaproto.conflicts.operation import ExceptionName, ExceptionRecord, Operation
from deltaproto.conflicts.query import MatrixQuery, PendingStatement, RowLevel
from deltaproto.conflicts.row_level import PREVIEW_SETTING, Compute
from deltaproto.conflicts.suspects import Suspects
from deltaproto.conflicts.table_matrix import build_conflict_report
from deltaproto.errors import ExitCode, UsageError
from deltaproto.inspection import Inspection, ReadRequest, Unreadable, inspect_table, uses_spark
from deltaproto.protocol.databricks_runtime import parse_runtime
from deltaproto.protocol.isolation import DECLARABLE_LEVELS, IsolationLevel
from deltaproto.render.conflicts import write_conflicts


class PhotonChoice(StrEnum):
    """Values of `--photon`."""

    ON = "on"
    OFF = "off"


def run(values: Mapping[str, Any]) -> int:
    """Compute the matrix, or the requested cells, and render it."""
    engine, release = _parse_engine(values["engine"])
    question = MatrixQuery(
        engine=engine,
        release=release,
        isolation=_parse_isolation_level(values["isolation"]),
        row_level=values["row_level_concurrency"],
        compute=_parse_compute(values),
        operation=_parse_operation("--operation", values["operation"]),
        against=_parse_operation("--against", values["against"]),
        exception=_parse_exception(values["exception"]),
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


def _parse_engine(text: str) -> tuple[MatrixEngine, str | None]:
    """Parse `--engine` into the engine and its release.

    Raises:
        UsageError: for an unknown engine, or a version of an engine without a matrix per release.
    """
    name, at, version = text.strip().partition("@")
    known = {str(engine): engine for engine in MatrixEngine}
    if (engine := known.get(name.casefold())) is None:
        import difflib

        near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.5)
        raise UsageError(
            f'--engine: unknown engine "{name}"', _suggestion_hint(tuple(near), MatrixEngine)
        )
    if not at:
        return engine, None
    if engine is not MatrixEngine.DELTA_RS:
        hint = {
            MatrixEngine.DATABRICKS: "give the runtime with --runtime",
            MatrixEngine.DELTA_SPARK: "leave it out: the cells name the first release in which "
            "the operation no longer fails",
        }[engine]
        raise UsageError(f"--engine: {engine} takes no version", hint)
    release = delta_rs.parse_release(version)
    if release is None or release < delta_rs.OLDEST:
        oldest = ".".join(map(str, delta_rs.OLDEST))
        raise UsageError(
            f'--engine: "{version}" is not a version of deltalake from {oldest} on',
            "for example --engine delta-rs@0.25.5",
        )
    return engine, version


def _inspect_table(values: Mapping[str, Any]) -> Inspection | None:
    if (table := values["table"]) is None:
        return None
    request = ReadRequest(
        storage_options=options.parse_pairs(values["storage_option"], "--storage-option"),
        spark=options.spark_settings(values),
    )
    show = not (values["no_progress"] or values["quiet"])
    with show_waiting(f"reading {table} with Spark", show=show and uses_spark(table, request)):
        result = inspect_table(table, request)
    if isinstance(result, Unreadable):
        raise result.error
    return result


def _parse_time(values: Mapping[str, Any]) -> int | None:
    if (text := values["at"]) is None:
        return None
    if values["table"] is None or values["exception"] is None:
        raise UsageError("--at needs a table and --exception", "it searches the table's history")
    return options.parse_milliseconds(text, "--at", "time", "2026-11-01T08:00Z")


def _find_suspects(values: Mapping[str, Any], record: ExceptionRecord, at: int) -> Suspects:
    from deltaproto.conflicts.suspects import find_suspects

    stored = options.parse_pairs(values["storage_option"], "--storage-option")
    spark = options.spark_settings(values)
    return find_suspects(values["table"], stored, spark, record.name, at)


def _classify_statement(values: Mapping[str, Any]) -> PendingStatement | None:
    if (sql := values["sql"]) is None:
        return None
    if values["operation"] is not None:
        raise UsageError(
            "--sql and --operation exclude each other", "--sql already determines the operation"
        )
    from deltaproto.conflicts.classify import classify

    return PendingStatement(sql, classify(sql))


def _parse_operation(flag: str, text: str | None) -> Operation | None:
    if text is None:
        return None
    found, near = operation.find_operation(text)
    if found is None:
        raise UsageError(f'{flag}: unknown operation "{text}"', _suggestion_hint(near, Operation))
    return found


def _parse_compute(values: Mapping[str, Any]) -> Compute:
    photon = None if values["photon"] is None else values["photon"] is PhotonChoice.ON
    setting = options.parse_pairs(values["spark_conf"], "--spark-conf").get(PREVIEW_SETTING)
    preview = None if setting is None else setting.strip().casefold() == "true"
    if (text := values["runtime"]) is None:
        return Compute(None, photon, preview)
    named = parse_runtime(text)
    if named is None:
        raise UsageError(
            f"--runtime: {text} is not a Databricks Runtime", "for example --runtime 14.3"
        )
    if named.photon and photon is False:
        raise UsageError(
            f"--runtime {text} has Photon, which contradicts --photon off", "leave one of them out"
        )
    return Compute(named.runtime, named.photon or photon, preview)


def _parse_exception(text: str | None) -> ExceptionRecord | None:
    if text is None:
        return None
    found, near = exceptions.find_exception(text)
    if found is None and text.rpartition(".")[2] == delta_rs.PYTHON.rpartition(".")[2]:
        raise UsageError(
            f"--exception: deltalake raises {text} for every conflict",
            "pass its message, or one of " + ", ".join(delta_rs.VARIANTS.values()),
        )
    if found is None:
        raise UsageError(
            f"--exception: no conflict raises {text}", _suggestion_hint(near, ExceptionName)
        )
    return found


def _parse_isolation_level(text: str | None) -> IsolationLevel | None:
    if text is None:
        return None
    named = {level.casefold(): level for level in DECLARABLE_LEVELS}
    wanted = "".join(character for character in text.casefold() if character.isalnum())
    if wanted not in named:
        import difflib

        near = difflib.get_close_matches(wanted, named, n=1, cutoff=0.5)
        raise UsageError(
            f"--isolation: a table cannot declare {text}",
            _suggestion_hint(tuple(str(named[key]) for key in near), DECLARABLE_LEVELS),
        )
    return named[wanted]


def _suggestion_hint(near: tuple[str, ...], every: Iterable[str]) -> str:
    return options.did_you_mean(near, f"one of {', '.join(every)}")


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
            str,
            metavar="LEVEL",
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
            str,
            metavar="VERSION",
            panel=Panel.SPARK,
        ),
        Option(
            ("--photon",),
            "Assume that the compute runs Photon, or that it does not.",
            PhotonChoice,
            panel=Panel.SPARK,
        ),
        Option(
            ("--operation",),
            "Explain this operation, which commits last and may fail.",
            str,
            metavar="OP",
            panel=Panel.GOAL,
        ),
        Option(
            ("--against",),
            "Explain conflicts with this operation, which commits first.",
            str,
            metavar="OP",
            panel=Panel.GOAL,
        ),
        Option(("--exception",), "Explain this exception.", str, metavar="NAME", panel=Panel.GOAL),
        Option(
            ("--at",),
            "Find the commits that could have caused the exception raised at this time (default "
            "zone: UTC).",
            str,
            metavar="TIME",
            panel=Panel.GOAL,
        ),
        Option(
            ("--sql",),
            "Classify this SQL statement and explain its conflicts.",
            str,
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
