"""`deltaproto inspect`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel, option_name, switch
from deltaproto.cli.progress import show_waiting, track_items
from deltaproto.errors import ExitCode, UsageError, no_tables_error
from deltaproto.inspection import Inspection, ReadRequest, Unreadable, inspect_ahead, uses_spark
from deltaproto.inspection.interface import ReaderChoice
from deltaproto.policy.finding import FailOn, exit_code
from deltaproto.render.inspection_report import InspectionReport


def run(values: Mapping[str, Any]) -> int:
    """Inspect every table, render each, and return the worst exit code."""
    require_log_reader(values, "--no-crc", "--look-in-files")
    request = ReadRequest(
        reader=values["reader"],
        version=values["version"],
        use_checksums=not values["no_crc"],
        look_in_files=values["look_in_files"],
        activity=values["activity"],
        storage_options=options.storage_options(values),
        spark=options.spark_settings(values),
    )
    names = list(read_table_names(values["tables"], allow_empty=values["allow_empty"]))
    codes = [ExitCode.OK]
    with options.open_output(values["output"]) as file:
        report = InspectionReport(
            values["format"],
            file,
            color=not values["no_color"],
            summary=not values["quiet"],
            total=len(names),
        )
        show = options.shows_progress(values)
        for name, read in track_items(inspect_ahead(names, request), len(names), show=show):
            with show_waiting(
                f"reading {name} with Spark", show=show and uses_spark(name, request)
            ):
                result = read()
            codes.append(_exit_code(result, values["fail_on"]))
            report.add(result)
        report.close()
    return int(ExitCode.worst(codes))


def require_log_reader(values: Mapping[str, Any], *flags: str) -> None:
    """Refuse options of the log reader with another reader.

    Raises:
        UsageError: naming the option.
    """
    reader = values["reader"]
    for flag in flags if reader in (ReaderChoice.DELTA_RS, ReaderChoice.SPARK) else ():
        if values[option_name(flag)]:
            raise UsageError(
                f"{flag} does not apply to --reader {reader}", f"leave out --reader, or {flag}"
            )


def _exit_code(result: Inspection | Unreadable, fail_on: FailOn) -> ExitCode:
    if isinstance(result, Unreadable):
        return ExitCode.UNREADABLE
    if not result.complete:
        # An incomplete result is never compliant.
        return ExitCode.UNREADABLE
    return exit_code(result.findings, fail_on)


def read_table_names(names: Iterable[str], *, allow_empty: bool) -> Iterator[str]:
    """Yield the tables of the command line; `-` stands for the lines of standard input.

    Raises:
        TableError: when standard input is empty, unless `allow_empty`.
    """
    for table in names:
        if table != "-":
            yield table
            continue
        if sys.stdin is None:
            raise UsageError("- reads tables from standard input, which is closed")
        if sys.stdin.isatty():
            raise UsageError("- reads tables from standard input, which is a terminal")
        from deltaproto.location import parse_table_list
        from deltaproto.redaction import redact_address

        empty = not allow_empty
        for name in parse_table_list(sys.stdin):
            empty = False
            yield redact_address(name)
        if empty:
            raise no_tables_error("standard input", "what writes the list")


READER = Option(
    ("--reader",),
    "Use this reader. auto: log for paths and URIs, spark for catalog names. all: "
    "compare the three.",
    ReaderChoice,
    ReaderChoice.AUTO,
    panel=Panel.INPUT,
)
LOOK_IN_FILES = switch(
    "--look-in-files",
    help="Also search every file action for traces of features, and read the statistics of every "
    "data file. Slow on large tables.",
    panel=Panel.INPUT,
)
COMMAND = Command(
    "inspect",
    "Show the protocol, features, isolation level and findings of tables.",
    run,
    Argument(
        "tables",
        "TABLE...",
        "Path, URI or catalog name; - reads one per line from standard input.",
        many=True,
    ),
    (
        READER,
        Option(("--version",), "Read this older version.", int, metavar="N", panel=Panel.INPUT),
        switch("--no-crc", help="Ignore the log's checksum files.", panel=Panel.INPUT),
        LOOK_IN_FILES,
        switch(
            "--activity",
            help="Show recent writers, write frequency and idle windows.",
            panel=Panel.INPUT,
        ),
        options.ALLOW_EMPTY,
        options.PAGE_FORMAT,
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "inspect ./orders s3://lake/gold/customers",
        "inspect main.sales.orders --reader all --format json",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
