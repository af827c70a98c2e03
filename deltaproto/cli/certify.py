"""`deltaproto certify`."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaproto.certification.client import (
    ClientUnderTest,
    certify,
    create_environment,
    load_roster,
    select_client,
)
from deltaproto.certification.entry import build_entry, find_contradictions, known_tables
from deltaproto.certification.fixtures.case import Kit, ReferenceTable, load_kit
from deltaproto.certification.fixtures.make import make_kit, require_new_folder
from deltaproto.certification.fixtures.recipes import KIT_VERSION
from deltaproto.certification.operation import operations_for as of_case
from deltaproto.certification.process import ProcessLimits
from deltaproto.certification.runner import CellFilter
from deltaproto.cli import completion, options
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.progress import show_rate, show_waiting
from deltaproto.clients.catalog import load_shipped_client, shipped_client_ids
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    ResultColumn,
    measurement_to_json,
)
from deltaproto.clients.resolve import parse_reference
from deltaproto.counts import counted
from deltaproto.errors import EngineError, ErrorCode, ExitCode, TableError, UsageError
from deltaproto.identity import user_cache_folder
from deltaproto.policy.finding import FailOn
from deltaproto.policy.local_catalog import load_local_catalog
from deltaproto.render.certification import Certified, write_certified
from deltaproto.render.terminal import single_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAX_TIMEOUT_SECONDS = 86_400
"""seconds"""


def run(values: Mapping[str, Any]) -> int:
    """Create the reference tables, or measure a client on them and render the results."""
    show = options.shows_progress(values)
    options.require_range(values["timeout"], "--timeout", _MAX_TIMEOUT_SECONDS)
    if values["make_kit"] is not None:
        require_new_folder(Path(values["make_kit"]))
        if values["client"] is None:
            _refuse_options_of_clients(values)
            _create_kit(Path(values["make_kit"]), values, show=show)
            return int(ExitCode.OK)
    for name in ("entry", "results", "output"):
        options.refuse_overwrite(values[name], (values["adapter"],), f"--{name}")
        options.require_writable(values[name], f"--{name}")
    chosen = _select_client(values)
    operations = _select_operations(values["operation"])
    clients = _cache_folder() / "clients"
    if values["command"] is None:
        # A wrong version fails here, before the reference tables are created, which takes minutes.
        with show_waiting(f"installing {chosen.reference}", show=show):
            create_environment(chosen.requires, clients)
    kit = _open_kit(values, show=show)
    wanted = _build_filter(kit, values["only"], operations)
    is_requested = any(wanted(case, each) for case in kit.cases for each in of_case(case))
    if not is_requested and not values["allow_empty"]:
        raise _nothing_to_measure_error(
            "no reference table of the kit has one of the requested operations"
        )
    referee = None
    if any(not operation.reads for operation in operations):
        from deltaproto.certification.verify_writes import WriteVerifier

        referee = WriteVerifier(
            _start_spark(values, "starting Spark to verify what was written", show)
        )
    with show_rate("cells", show=show) as step:
        measured = certify(
            chosen,
            kit,
            referee,
            clients,
            command=values["command"],
            limits=ProcessLimits(seconds=values["timeout"]),
            wanted=wanted,
            progress=lambda done, _total: step(done),
        )
    tables = known_tables(kit)
    if values["results"] is not None:
        with options.open_output(values["results"], flag="--results") as file:
            file.write(measurement_to_json(measured))
    if values["entry"] is not None:
        with options.open_output(values["entry"], flag="--entry") as file:
            file.write(_format_entry(measured, build_entry(measured, tables)))
    certified = Certified(
        measured,
        {case.name: case for case in kit.cases},
        _command_arguments(values),
        tuple(find_contradictions(load_local_catalog(()), measured, tables)),
    )
    with options.open_output(values["output"]) as file:
        write_certified(certified, values["format"], file, color=not values["no_color"])
    if not has_measurements(measured) and not values["allow_empty"]:
        raise _nothing_to_measure_error(
            f"{values['client']} supports none of the requested operations"
        )
    return int(_exit_code(measured, values["fail_on"]))


def _refuse_options_of_clients(values: Mapping[str, Any]) -> None:
    for name in ("kit", "adapter", "command", "only", "operation", "entry", "results"):
        if values[name]:
            hint = f"pass CLIENT@VERSION, or leave out --{name}"
            raise UsageError(f"--{name} needs a client", hint)


def has_measurements(measured: Measurement) -> bool:
    """Return True if the client supports at least one of the requested operations."""
    return any(cell.outcome is not MeasuredOutcome.NOT_OFFERED for cell in measured.cells)


def _nothing_to_measure_error(why: str) -> TableError:
    return TableError(
        ErrorCode.NO_TABLES,
        f"nothing to measure: {why}",
        "check --kit, --only and --operation; pass --allow-empty if an empty result is expected",
    )


def _select_client(values: Mapping[str, Any]) -> ClientUnderTest:
    if values["client"] is None:
        known = ", ".join(f"{each}@{each.versions[-1]}" for each in load_roster())
        raise UsageError("no client given", f"for example one of {known}")
    if values["command"] is not None:
        if values["adapter"] is not None:
            raise UsageError(
                "--adapter and --command cannot be used together",
                "choose one way to call the client",
            )
        reference = parse_reference(values["client"])
        _require_program(values["command"])
        return ClientUnderTest(reference, Path(), (), 1)
    adapter = values["adapter"]
    return select_client(values["client"], None if adapter is None else Path(adapter))


def _require_program(command: str) -> None:
    """Check the command before the reference tables are created, which takes minutes."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--command: {str(error).lower()}", "quote it as in a shell") from None
    if not words or shutil.which(words[0]) is None:
        raise EngineError(
            f"cannot start {words[0] if words else 'an empty command'}: not a program",
            "check --command",
        )


def _select_operations(names: tuple[str, ...]) -> tuple[ResultColumn, ...]:
    known = {str(operation): operation for operation in ResultColumn}
    for name in names:
        if name not in known:
            raise UsageError(f'unknown operation "{name}"', f"one of {', '.join(known)}")
    return tuple(known[name] for name in names) or tuple(ResultColumn)


def _build_filter(
    kit: Kit, patterns: tuple[str, ...], operations: tuple[ResultColumn, ...]
) -> CellFilter:
    names = [case.name for case in kit.cases]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f'unknown reference table "{pattern}"',
                "for example deletionVectors.present, or 'columnMapping.*'",
            )

    def wanted(case: ReferenceTable, operation: ResultColumn) -> bool:
        named = not patterns or any(fnmatchcase(case.name, pattern) for pattern in patterns)
        return named and operation in operations

    return wanted


def _open_kit(values: Mapping[str, Any], *, show: bool) -> Kit:
    if values["make_kit"] is not None:
        return _create_kit(Path(values["make_kit"]), values, show=show)
    if values["kit"] is not None:
        return load_kit(Path(values["kit"]))
    folder = _cache_folder() / f"kit-{KIT_VERSION}"
    return load_kit(folder) if folder.exists() else _create_kit(folder, values, show=show)


def _create_kit(folder: Path, values: Mapping[str, Any], *, show: bool) -> Kit:
    require_new_folder(folder)
    spark = _start_spark(values, "starting Spark", show)
    with show_rate("reference tables", show=show) as step:
        kit = make_kit(spark, folder.absolute(), lambda _name, number, _all: step(number))
    if not values["quiet"]:
        created = counted(len(kit.cases), "reference table")
        print(f"created {created} in {single_line(str(folder))}", file=sys.stderr)
    return kit


def _start_spark(values: Mapping[str, Any], message: str, show: bool) -> SparkSession:
    from deltaproto.certification.verify_writes import SPARK
    from deltaproto.tables.session import spark_session

    settings = options.spark_settings({**values, "spark_remote": None})
    with show_waiting(message, show=show):
        return spark_session(settings._replace(conf={**SPARK, **settings.conf}))


def _cache_folder() -> Path:
    return Path(user_cache_folder())


def _format_entry(measured: Measurement, plain: Mapping[str, Any]) -> str:
    import yaml

    known = measured.client in shipped_client_ids()
    versions = load_shipped_client(measured.client).versions if known else "dotted"
    document = {
        "id": measured.client,
        "versions": versions if measured.version else "none",
        "measured": [plain],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def _command_arguments(values: Mapping[str, Any]) -> tuple[str, ...]:
    arguments = [values["client"]]
    for flag in ("adapter", "command", "kit"):
        if values[flag] is not None:
            arguments += [f"--{flag}", values[flag]]
    if values["make_kit"] is not None:
        arguments += ["--kit", values["make_kit"]]
    return tuple(arguments)


def _exit_code(measured: Measurement, fail_on: FailOn) -> ExitCode:
    found = {cell.outcome for cell in measured.cells}
    worst: dict[FailOn, set[MeasuredOutcome]] = {
        FailOn.ERROR: {MeasuredOutcome.WRONG},
        FailOn.WARNING: {MeasuredOutcome.WRONG, MeasuredOutcome.CRASHED, MeasuredOutcome.TIMED_OUT},
        FailOn.NEVER: set(),
    }
    return ExitCode.FINDINGS if found & worst[fail_on] else ExitCode.OK


COMMAND = Command(
    "certify",
    "Measure what a real client does with each feature, on tables with known contents.",
    run,
    Argument(
        "client",
        "[CLIENT]",
        "ID@VERSION or ID/PATH@VERSION; with --adapter or --command: any name.",
        required=False,
        words=completion.clients,
    ),
    (
        Option(
            ("--make-kit",),
            "Create the reference tables in this folder.",
            metavar="DIR",
            panel=Panel.INPUT,
        ),
        Option(
            ("--kit",),
            "Use the reference tables in this folder. Default: one in the user's cache, created if "
            "missing.",
            metavar="DIR",
            panel=Panel.INPUT,
        ),
        Option(
            ("--adapter",),
            "Call the client with this Python file.",
            metavar="FILE",
            panel=Panel.INPUT,
        ),
        Option(
            ("--command",),
            "Call the client with this command, as CMD OPERATION TABLE.",
            metavar="CMD",
            panel=Panel.INPUT,
        ),
        Option(
            ("--only",),
            "Use only this reference table (name or pattern). Repeatable.",
            many=True,
            metavar="NAME",
            panel=Panel.INPUT,
        ),
        Option(
            ("--operation",),
            "Try only this operation. Repeatable.",
            many=True,
            metavar="NAME",
            panel=Panel.GOAL,
        ),
        Option(
            ("--timeout",),
            "Stop a request after this many seconds.",
            int,
            30,
            metavar="SECONDS",
            panel=Panel.SAFETY,
        ),
        Option(
            ("--entry",),
            "Write a client file for --client-file.",
            metavar="FILE",
            panel=Panel.OUTPUT,
        ),
        Option(
            ("--results",), "Write every result as JSON.", str, metavar="FILE", panel=Panel.OUTPUT
        ),
        options.ALLOW_EMPTY,
        options.PAGE_FORMAT,
        options.OUTPUT,
        options.FAIL_ON,
        # Clients write their tables on this machine, so Spark must run here too.
        *(each for each in options.READING if each is not options.SPARK_REMOTE),
    ),
    examples=(
        "certify deltalake/engine@1.6.6 --entry deltalake.yaml",
        "certify mine@1.0 --adapter adapter.py --results cells.json",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
