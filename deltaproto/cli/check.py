"""`deltaproto check`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deltaproto.checking.check import Checked, Checker, unreadable
from deltaproto.checking.live import facts
from deltaproto.checking.notes import notes, unasked
from deltaproto.checking.saved import SavedError, read_saved
from deltaproto.checking.site import declared, site_catalogue, site_policy
from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.cli.inspect import READER, given_tables
from deltaproto.cli.inventories import ENGINE, SCAN, EngineChoice, chosen, opened_inventory, told
from deltaproto.cli.progress import counting, waiting
from deltaproto.drafting.words import accesses
from deltaproto.errors import ErrorCode, ExitCode, TableError, UsageError
from deltaproto.fleet.schemas import is_inventory
from deltaproto.policy.document import Policy
from deltaproto.policy.facts import Facts
from deltaproto.policy.finding import FailOn, exit_code
from deltaproto.report.check import CheckFormat, Style, write_check
from deltaproto.tables.defect import one_table


def run(values: Mapping[str, Any]) -> int:
    """Check every table, render each, and return the worst exit code."""
    policy = _policy(values)
    asked = tuple(declared(text) for text in dict.fromkeys(values["client"]))
    if not (values["policy"] or asked or values["baseline"]):
        raise UsageError(
            "nothing to check against", "give --policy FILE or --client ID@VERSION, or --baseline"
        )
    checker = Checker(
        policy,
        site_catalogue(values["catalogue"], policy),
        asked=asked,
        access=accesses(values["access"], "--access"),
        baseline=_baseline(values["baseline"]),
    )
    style = Style(
        values["format"],
        color=not values["no_color"],
        fail_on=values["fail_on"],
        show_suppressed=values["show_suppressed"],
        summary=not values["quiet"],
    )
    codes = {ExitCode.OK}
    names = list(given_tables(values["tables"]))
    options.spare(
        values["output"], (*names, *values["policy"], values["baseline"], *values["catalogue"])
    )
    known = list(notes(checker.clients))
    tables = _watched(_checked(names, values, checker, known), codes, style.fail_on, known)
    with options.opened(values["output"]) as file:
        write_check(tables, file, style, known)
    return int(ExitCode.worst(codes))


def _policy(values: Mapping[str, Any]) -> Policy:
    if not values["policy"]:
        return Policy(source="")
    path, *more = values["policy"]
    if more:
        raise UsageError(
            "--policy is given twice", "one policy holds; put everything into one file"
        )
    return site_policy(path)


def _baseline(path: str | None) -> dict[str, Facts] | None:
    if path is None:
        return None
    return {found.location: found for found in read_saved(path) if isinstance(found, Facts)}


def _watched(
    tables: Iterable[Checked], codes: set[ExitCode], fail_on: FailOn, known: list[str]
) -> Iterator[Checked]:
    first, count = "", 0
    for checked in tables:
        if checked.unasked:
            first, count = first or checked.table, count + 1
        if checked.complete:
            codes.add(exit_code(checked.findings, fail_on))
        else:
            # An incomplete answer is never a compliant one.
            codes.add(ExitCode.UNREADABLE)
        yield checked
    if count:
        known.append(unasked(first, count))


def _checked(
    names: Iterable[str], values: Mapping[str, Any], checker: Checker, known: list[str]
) -> Iterator[Checked]:
    show = not (values["no_progress"] or values["quiet"])
    with counting("tables checked", show=show) as seen:
        number = 0
        for name in names:
            for found in _one_or_many(name, values, checker, known, show):
                number += 1
                seen(number)
                yield found


def _one_or_many(
    name: str, values: Mapping[str, Any], checker: Checker, known: list[str], show: bool
) -> Iterator[Checked]:
    if values["engine"] is EngineChoice.SPARK or is_inventory(name):
        inventory = opened_inventory(name, values)
        scan = chosen(inventory, values["scan"])
        known.append(f"{name}: {told(scan)}")
        yield from inventory.checked(scan, checker)
        return
    for found in _read(name, values, known, show):
        if not isinstance(found, Facts):
            yield found
            continue
        try:
            with one_table():
                result = checker.check(found)
        except TableError as error:
            result = unreadable(found.table, error)
        yield result


def _read(
    name: str, values: Mapping[str, Any], known: list[str], show: bool
) -> Iterator[Facts | Checked]:
    if os.path.isfile(name):
        for found in read_saved(name):
            yield unreadable(found.table, found) if isinstance(found, SavedError) else found
        return
    from deltaproto.inspection import Request, Unreadable, inspect_table, uses_spark

    request = Request(
        reader=values["reader"],
        storage_options=options.pairs(values["storage_option"], "--storage-option"),
        spark=options.spark_settings(values),
    )
    with waiting(f"asking Spark about {name}", show=show and uses_spark(name, request)):
        result = inspect_table(name, request)
    if isinstance(result, Unreadable):
        yield unreadable(result.table, result.error)
        return
    for reader, answer in (result.readers or {}).items():
        # A reader that refuses the table is a finding; one that is not there is none.
        if isinstance(answer, TableError) and answer.code is ErrorCode.ENGINE:
            known.append(f"{name}: not asked of {reader}, so not complete: {answer.message}")
    yield facts(result)


COMMAND = Command(
    "check",
    "Check tables against declared clients and a policy, and against a baseline.",
    run,
    Argument(
        "tables",
        "TABLE...",
        "Path, URI, catalog name, inventory, or a file of `inspect --format json`; - reads names.",
        many=True,
    ),
    (
        Option(
            ("--policy",),
            "YAML file with declared clients and rules.",
            str,
            many=True,
            metavar="FILE",
        ),
        Option(
            ("--client",),
            "A client that uses the tables, as ID@VERSION; repeatable.",
            str,
            many=True,
            metavar="ID@VERSION",
        ),
        Option(
            ("--access",),
            "read, append, dml, maintain or stream, instead of what is declared; repeatable.",
            str,
            many=True,
            metavar="ACCESS",
        ),
        Option(
            ("--baseline",), "Saved inspection: report the drift since then.", str, metavar="FILE"
        ),
        SCAN,
        ENGINE,
        Option(("--show-suppressed",), "Show waived findings too.", bool, False),
        options.CATALOGUE,
        READER,
        Option(("--format",), "Output format.", CheckFormat, CheckFormat.TEXT),
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
)
