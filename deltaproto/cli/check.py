"""`deltaproto check`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.baselines import (
    compare_with_baseline,
    load_baseline,
    mark_known_findings,
    save_baseline,
)
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.inspect import READER, read_table_names
from deltaproto.cli.inventories import (
    ENGINE,
    MAX_AGE,
    SCAN,
    EngineChoice,
    open_inventory,
    parse_max_age,
)
from deltaproto.cli.progress import count_steps, show_waiting, warn
from deltaproto.clients.catalog import Catalogue
from deltaproto.clients.model import Client
from deltaproto.clients.resolve import parse_reference
from deltaproto.errors import (
    ErrorCode,
    ExitCode,
    SavedError,
    TableError,
    UsageError,
    no_tables_error,
)
from deltaproto.fleet.inventory_reader import (
    build_scan_notices,
    check_scan,
    describe_scan,
    require_finished,
    select_newest_state,
)
from deltaproto.fleet.schemas import is_inventory, is_on_object_store
from deltaproto.inspection import ReadRequest, Unreadable, inspect_table, uses_spark
from deltaproto.inspection.age import SavedAges
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.inspection.saved import read_saved
from deltaproto.policy.baseline import Baseline
from deltaproto.policy.client_findings import caveats_for
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker, TableCheck, table_exit_code, unreadable_table
from deltaproto.policy.finding import FailOn
from deltaproto.policy.local_catalog import (
    load_local_catalog,
    load_local_policy,
    parse_accesses,
    parse_declared,
)
from deltaproto.render.check import CheckFormat, Style, write_check
from deltaproto.render.interface import NOTICES
from deltaproto.render.usability import UNDECLARED
from deltaproto.tables.engine_errors import contain_table_errors

_EVERY_VERSION = "all"
"""value of --client that selects every client"""
_GROUPED_FORMATS = (CheckFormat.TEXT, CheckFormat.MARKDOWN)
_SURVEY_FORMATS = (CheckFormat.TEXT, CheckFormat.JSON, CheckFormat.JSONL, CheckFormat.MARKDOWN)


def run(values: Mapping[str, Any]) -> int:
    """Check every table, render each, and return the worst exit code."""
    policy = _load_policy(values)
    catalogue = load_local_catalog(values["client_file"], policy)
    declared, survey = _split_clients(values, catalogue)
    undeclared = bool(survey) and not (declared or values["policy"] or values["baseline"])
    adopting = values["write_baseline"] is not None
    if adopting and survey:
        raise UsageError(
            "--write-baseline saves findings on declared clients",
            "give --policy FILE or --client ID@VERSION",
        )
    baseline, saved = load_baseline(values["baseline"])
    checker = Checker(
        policy,
        catalogue,
        asked=map(parse_declared, declared),
        access=parse_accesses(values["access"], "--access"),
        baseline=baseline,
        survey=survey,
    )
    style = Style(
        values["format"],
        color=not values["no_color"],
        fail_on=FailOn.NEVER if undeclared or adopting else values["fail_on"],
        compared=saved is not None,
        every_version=bool(survey and values["client"]),
        show_suppressed=values["show_suppressed"],
        summary=not values["quiet"],
        details=values["details"],
        failing=values["failing"],
        limit=options.require_limit(values["limit"]),
    )
    if (style.failing or style.details) and style.format not in _GROUPED_FORMATS:
        named = "--failing" if style.failing else "--details"
        raise UsageError(f"{named} is for --format text and markdown", f"leave out {named}")
    codes = {ExitCode.OK}
    names = list(read_table_names(values["tables"], allow_empty=values["allow_empty"]))
    read = (*names, *values["policy"], *values["client_file"])
    options.refuse_overwrite(values["output"], (*read, values["baseline"]))
    options.refuse_overwrite(
        values["write_baseline"], (*read, values["output"]), "--write-baseline"
    )
    known = [UNDECLARED] if undeclared else list(caveats_for(checker.clients))
    checks: Iterable[TableCheck] = chain(
        _check_tables(names, values, checker, baseline, known, codes),
        compare_with_baseline(values["baseline"], checker, baseline, codes, style.fail_on),
    )
    if saved is not None:
        checks = mark_known_findings(
            checks, values["baseline"], checker, saved, codes, style.fail_on
        )
    every = checker.with_policy(checks)
    if saved is not None:
        every = (saved.compared(each, checker) if each.of_policy else each for each in every)
    if values["write_baseline"] is not None:
        every = save_baseline(every, values["write_baseline"], known)
    tables = _collect_exit_codes(every, codes, style.fail_on)
    before = len(NOTICES)
    with options.open_output(values["output"]) as file:
        write_check(tables, file, style, known)
    if style.format is CheckFormat.JSONL:
        # The lines written before a notice do not contain it.
        for notice in NOTICES[before:]:
            warn(notice)
    return int(ExitCode.worst(codes))


def _split_clients(
    values: Mapping[str, Any], catalogue: Catalogue
) -> tuple[tuple[str, ...], tuple[Client, ...]]:
    """Return the declared clients, and those to show in all versions: named without a version."""
    given = tuple(dict.fromkeys(values["client"]))
    if _EVERY_VERSION in given and len(given) > 1:
        raise UsageError(
            f"--client {_EVERY_VERSION} excludes other clients", "leave out the other clients"
        )
    declared: list[str] = []
    if given == (_EVERY_VERSION,) or not (given or values["policy"] or values["baseline"]):
        survey = catalogue.clients()
    else:
        found = {}
        for text in given:
            reference = parse_reference(text)
            client = catalogue.get(reference.id)
            if reference.version is None and not reference.path and client.versions != "none":
                found[client.id] = client
            else:
                declared.append(text)
        survey = tuple(found.values())
    if survey and values["format"] not in _SURVEY_FORMATS:
        shown = f"--format {values['format']} shows findings on declared clients"
        raise UsageError(
            f"{survey[0].id} has no version: {shown}"
            if declared or values["policy"] or values["baseline"]
            else f"nothing to check against: {shown}",
            "give --policy FILE or --client ID@VERSION, or --baseline",
        )
    return tuple(declared), survey


def _load_policy(values: Mapping[str, Any]) -> Policy:
    if not values["policy"]:
        return Policy(source="")
    path, *more = _join_environment_path(values["policy"])
    if more:
        raise UsageError("--policy is given twice", "only one policy applies; merge the files")
    return load_local_policy(path)


def _join_environment_path(given: tuple[str, ...]) -> tuple[str, ...]:
    """Join a path with spaces that the environment variable holds, as other commands do."""
    around = os.environ.get("DELTAPROTO_POLICY", "")
    return (around,) if tuple(around.split()) == given else given


def _collect_exit_codes(
    tables: Iterable[TableCheck], codes: set[ExitCode], fail_on: FailOn
) -> Iterator[TableCheck]:
    for checked in tables:
        codes.add(table_exit_code(checked, fail_on))
        yield checked


def _check_tables(
    names: Iterable[str],
    values: Mapping[str, Any],
    checker: Checker,
    baseline: Baseline | None,
    known: list[str],
    codes: set[ExitCode],
) -> Iterator[TableCheck]:
    show = not (values["no_progress"] or values["quiet"])
    first = "checking with Spark" if values["engine"] is EngineChoice.SPARK else ""
    with count_steps("tables checked", first=first, show=show) as seen:
        number = 0
        for name in names:
            before = number
            for found in _check_argument(name, values, checker, known, codes, show):
                number += 1
                seen(number)
                if baseline is not None and found.location is not None:
                    # Spark executors have a copy of the baseline.
                    baseline.find(found.table, found.location, None)
                yield found
            if number == before and not values["allow_empty"]:
                yield unreadable_table(name, no_tables_error(name))


def _check_argument(
    name: str,
    values: Mapping[str, Any],
    checker: Checker,
    known: list[str],
    codes: set[ExitCode],
    show: bool,
) -> Iterator[TableCheck]:
    storage = options.parse_pairs(values["storage_option"], "--storage-option")
    # A table on an object store is read first: its log answers what it is.
    late = is_on_object_store(name) and not uses_spark(name, _read_request(values))
    if values["engine"] is EngineChoice.SPARK or (not late and is_inventory(name, storage)):
        yield from _check_inventory(name, values, checker, known, codes)
        return
    for found in _read_tables(name, values, known, codes, show):
        if not isinstance(found, TableFacts):
            if late and is_inventory(name, storage, found.error):
                yield from _check_inventory(name, values, checker, known, codes)
                return
            yield found
            continue
        try:
            with contain_table_errors():
                result = checker.check(found)
        except TableError as error:
            result = unreadable_table(found.table, error)
        yield result


def _check_inventory(
    name: str,
    values: Mapping[str, Any],
    checker: Checker,
    known: list[str],
    codes: set[ExitCode],
) -> Iterator[TableCheck]:
    storage = options.parse_pairs(values["storage_option"], "--storage-option")
    inventory = open_inventory(name, values)
    state = select_newest_state(inventory, values["scan"])
    now = datetime.now(UTC)
    known.extend(f"{name}: {describe_scan(scan, now)}" for scan in state.contributing)
    notices = build_scan_notices(name, state, now, parse_max_age(values))
    NOTICES.extend(notices.texts)
    if notices.old and values["fail_on"] is FailOn.WARNING:
        codes.add(ExitCode.FINDINGS)
    if not values["scan"]:
        try:
            require_finished(name, state, storage)
        except TableError as error:
            yield unreadable_table(name, error)
    for scan in state.contributing:
        yield from check_scan(name, inventory, scan, state, checker)


def _read_request(values: Mapping[str, Any]) -> ReadRequest:
    return ReadRequest(
        reader=values["reader"],
        storage_options=options.parse_pairs(values["storage_option"], "--storage-option"),
        spark=options.spark_settings(values),
    )


def _read_tables(
    name: str, values: Mapping[str, Any], known: list[str], codes: set[ExitCode], show: bool
) -> Iterator[TableFacts | TableCheck]:
    if os.path.isfile(name):
        ages, older = SavedAges(name, datetime.now(UTC), parse_max_age(values)), False
        try:
            for found in read_saved(name, ages):
                if notices := ages.new():
                    NOTICES.extend(notices)
                    if values["fail_on"] is FailOn.WARNING:
                        codes.add(ExitCode.FINDINGS)
                older = older or (isinstance(found, TableFacts) and found.older)
                yield (
                    unreadable_table(found.table, found) if isinstance(found, SavedError) else found
                )
        except TableError as error:
            yield unreadable_table(name, error)
        if older:
            NOTICES.append(f"{name}: saved with --version, so the newest version is unknown")
        return
    request = _read_request(values)
    with show_waiting(f"reading {name} with Spark", show=show and uses_spark(name, request)):
        result = inspect_table(name, request)
    if isinstance(result, Unreadable):
        yield unreadable_table(result.table, result.error)
        return
    for reader, answer in (result.readers or {}).items():
        # A reader that rejects the table is a finding; a reader that is not installed is not.
        if isinstance(answer, TableError) and answer.code is ErrorCode.ENGINE:
            known.append(f"{name}: not read with {reader}, so incomplete: {answer.message}")
    yield facts_from_inspection(result)


COMMAND = Command(
    "check",
    "Check tables against declared clients, a policy or a baseline. Without any of "
    "them, show which clients can use the tables.",
    run,
    Argument(
        "tables",
        "TABLE...",
        "Path, URI, catalog name, inventory or saved inspection (JSON); - reads names "
        "from standard input.",
        many=True,
    ),
    (
        Option(
            ("--policy",),
            "Check against the clients and rules of this policy.",
            str,
            many=True,
            metavar="FILE",
            panel=Panel.CLIENTS,
        ),
        Option(
            ("--client",),
            "Check this client, as ID@VERSION. ID: show what each version can do. all: show "
            "every client. Repeatable.",
            str,
            many=True,
            metavar="ID@VERSION",
            panel=Panel.CLIENTS,
        ),
        Option(
            ("--access",),
            "Check this access (read, append, dml, maintain, stream) instead of the declared one. "
            "Repeatable.",
            str,
            many=True,
            metavar="ACCESS",
            panel=Panel.CLIENTS,
        ),
        Option(
            ("--baseline",),
            "Compare with a saved inspection (report drift) or a saved check (fail only on "
            "new findings).",
            str,
            metavar="FILE",
            panel=Panel.INPUT,
        ),
        Option(
            ("--write-baseline",),
            "Write the findings to this file, for --baseline, and exit 0 in spite of them.",
            str,
            metavar="FILE",
            panel=Panel.OUTPUT,
        ),
        SCAN,
        MAX_AGE,
        ENGINE,
        Option(
            ("--show-suppressed",), "Also show waived findings.", bool, False, panel=Panel.OUTPUT
        ),
        Option(("--failing",), "Show only tables that fail.", bool, False, panel=Panel.OUTPUT),
        options.DETAILS,
        options.LIMIT,
        options.ALLOW_EMPTY,
        options.CLIENT_FILE,
        READER,
        Option(
            ("--format",),
            "Choose the output format.",
            CheckFormat,
            CheckFormat.TEXT,
            panel=Panel.OUTPUT,
        ),
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "check ./orders --client trino@476 --client deltalake@1.6.6",
        "check /data/_inventory --policy policy.yaml --format sarif -o c.sarif",
    ),
    exits=(ExitCode.OK, ExitCode.FINDINGS, ExitCode.USAGE, ExitCode.UNREADABLE),
)
