"""The inputs of a check: tables, inventories, saved inspections, and baselines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.inventories import (
    EngineChoice,
    open_inventory,
    parse_max_age,
    read_seen,
)
from deltaproto.cli.progress import count_steps, show_waiting
from deltaproto.cli.signals import was_interrupted
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.counts import counted, tables_such_as
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
    check_state,
    describe_scan,
    select_newest_state,
)
from deltaproto.fleet.schemas import is_inventory
from deltaproto.inspection import (
    Inspection,
    ReadRequest,
    Unreadable,
    inspect_ahead,
    inspect_table,
    uses_spark,
)
from deltaproto.inspection.age import SavedAges
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.inspection.known_findings import KnownFindings, require_comparable, saved_command
from deltaproto.inspection.saved import read_saved
from deltaproto.location import is_remote
from deltaproto.policy.baseline import Baseline
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import FailOn
from deltaproto.policy.table_check import TableCheck, unreadable_input, unreadable_table
from deltaproto.render.interface import NOTICES
from deltaproto.tables.engine_errors import contain_table_errors

_Read = Callable[[], Inspection | Unreadable]


def check_tables(
    names: Iterable[str],
    values: Mapping[str, Any],
    checker: Checker,
    baseline: Baseline | None,
    known: list[str],
    codes: set[ExitCode],
) -> Iterator[TableCheck]:
    """Yield the check of every table that `names` mean.

    Args:
        known: notes on the whole check; limits of the result are added.
        codes: exit codes; those for old or incomplete input are added.
    """
    show = options.shows_progress(values)
    first = "checking with Spark" if values["engine"] is EngineChoice.SPARK else ""
    with count_steps("tables checked", first=first, show=show) as seen:
        number = 0
        for name, read in _inspect(names, values):
            before = number
            for found in _check_argument(name, read, values, checker, known, codes, show):
                number += 1
                seen(number)
                if baseline is not None and found.location is not None:
                    # Spark executors have a copy of the baseline.
                    baseline.find(found.table, found.location, None)
                yield found
            if number == before and not values["allow_empty"]:
                yield unreadable_input(name, no_tables_error(name))


def require_inventory(names: Iterable[str], values: Mapping[str, Any]) -> None:
    """Refuse --scan if none of the names is an inventory.

    Raises:
        UsageError: naming the option.
    """
    if not values["scan"] or values["engine"] is EngineChoice.SPARK:
        return
    storage = options.storage_options(values)
    if not any(is_inventory(name, storage) for name in names):
        raise UsageError("--scan applies to inventories", "pass an inventory, or leave out --scan")


def _inspect(names: Iterable[str], values: Mapping[str, Any]) -> Iterator[tuple[str, _Read]]:
    """Yield each name with a function that inspects the table of that name."""
    request = _read_request(values)
    if values["engine"] is EngineChoice.SPARK:
        return ((name, partial(inspect_table, name, request)) for name in names)
    return inspect_ahead(names, request)


def _check_argument(
    name: str,
    read: _Read,
    values: Mapping[str, Any],
    checker: Checker,
    known: list[str],
    codes: set[ExitCode],
    show: bool,
) -> Iterator[TableCheck]:
    storage = options.storage_options(values)
    # Read a remote table first: its log shows what it is.
    read_first = is_remote(name) and not uses_spark(name, _read_request(values))
    if values["engine"] is EngineChoice.SPARK or (not read_first and is_inventory(name, storage)):
        yield from _check_inventory(name, values, checker, known, codes)
        return
    for found in _read_tables(name, read, values, known, codes, show):
        if isinstance(found, Unreadable):
            if read_first and is_inventory(name, storage, found.error):
                yield from _check_inventory(name, values, checker, known, codes)
                return
            of_file = os.path.isfile(name) and not isinstance(found.error, SavedError)
            failed = checker.check_unreadable(found.table, found.error, found.findings)
            yield failed._replace(of_input=of_file)
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
    try:
        yield from _check_scans(name, values, checker, known, codes)
    except TableError as error:
        if was_interrupted():
            raise
        yield unreadable_input(name, error)


def _check_scans(
    name: str,
    values: Mapping[str, Any],
    checker: Checker,
    known: list[str],
    codes: set[ExitCode],
) -> Iterator[TableCheck]:
    inventory = open_inventory(name, values)
    state = select_newest_state(inventory, values["scan"])
    now = datetime.now(UTC)
    known.extend(f"{name}: {describe_scan(scan, now)}" for scan in state.contributing)
    notices = build_scan_notices(name, state, now, parse_max_age(values))
    NOTICES.extend(notices.texts)
    if values["look_in_files"]:
        NOTICES.append(f"{name}: --look-in-files does not apply to inventories")
    if notices.doubtful and values["fail_on"] is FailOn.WARNING:
        codes.add(ExitCode.FINDINGS)
    storage = options.storage_options(values)
    yield from check_state(name, inventory, state, values["scan"], storage, checker)


def _read_request(values: Mapping[str, Any]) -> ReadRequest:
    return ReadRequest(
        reader=values["reader"],
        look_in_files=values["look_in_files"],
        storage_options=options.storage_options(values),
        spark=options.spark_settings(values),
    )


def _read_tables(
    name: str,
    read: _Read,
    values: Mapping[str, Any],
    known: list[str],
    codes: set[ExitCode],
    show: bool,
) -> Iterator[TableFacts | Unreadable]:
    if os.path.isfile(name):
        ages, older = SavedAges(name, datetime.now(UTC), parse_max_age(values)), False
        try:
            for found in read_saved(name, ages):
                if notices := ages.new():
                    NOTICES.extend(notices)
                    if values["fail_on"] is FailOn.WARNING:
                        codes.add(ExitCode.FINDINGS)
                older = older or (isinstance(found, TableFacts) and found.older)
                yield Unreadable(found.table, found) if isinstance(found, SavedError) else found
        except TableError as error:
            yield Unreadable(name, error)
        if older:
            NOTICES.append(f"{name}: saved with --version, so the newest version is unknown")
        return
    by_spark = show and uses_spark(name, _read_request(values))
    with show_waiting(f"reading {name} with Spark", show=by_spark):
        result = read()
    if isinstance(result, Unreadable):
        yield result
        return
    for reader, answer in (result.readers or {}).items():
        # A reader that rejects the table is a finding; a reader that is not installed is not.
        if isinstance(answer, TableError) and answer.code is ErrorCode.ENGINE:
            known.append(f"{name}: not read with {reader}, so incomplete: {answer.message}")
    yield facts_from_inspection(result)


def compare_with_seen(
    tables: Iterable[TableCheck],
    values: Mapping[str, Any],
    policy: Policy,
    catalog: ClientCatalog,
    checker: Checker,
    codes: set[ExitCode],
) -> Iterator[TableCheck]:
    """Add to each check the findings about clients that `discover` counted.

    Args:
        codes: exit codes; those for old input are added.

    Raises:
        UsageError: when there is no inventory, or `discover` never counted in it.
        TableError: corrupt-log, when the inventory is damaged.
    """
    from deltaproto.fleet.seen.seen_findings import SeenChecks

    recent, old = read_seen(values)
    notices = [] if old is None else [old]
    compared = SeenChecks(recent, policy, catalog, checker)

    def checks() -> Iterator[TableCheck]:
        yield from compared.checked(tables)
        if missing := compared.uncounted:
            uncounted = tables_such_as(len(missing), missing[0])
            notices.append(
                f"{values['seen']}: discover has not counted {uncounted}; others than the "
                f"declared clients may use {'it' if len(missing) == 1 else 'them'}"
            )
        NOTICES.extend(notices)
        if notices and values["fail_on"] is FailOn.WARNING:
            codes.add(ExitCode.FINDINGS)

    return checks()


def save_baseline(
    tables: Iterable[TableCheck], path: str, notes: Iterable[str]
) -> Iterator[TableCheck]:
    """Yield the tables, then write their checks to `path`, in the format of `--format json`.

    An interrupted check keeps the old file.

    Raises:
        UsageError: when the file cannot be written.
    """
    from deltaproto.render.check_json import CheckDocument

    with options.open_output(path, flag="--write-baseline") as file:
        document = CheckDocument(file)
        for checked in tables:
            document.add(checked)
            yield checked
        document.close(notes)


def load_baseline(path: str | None) -> tuple[Baseline | None, KnownFindings | None]:
    """Load the baseline: a saved inspection or a saved check."""
    if path is None:
        return None, None
    command = saved_command(path)
    require_comparable(path, command)
    if command == "check":
        return None, KnownFindings(path)
    return Baseline(read_saved(path)), None


def compare_with_baseline(
    path: str | None,
    checker: Checker,
    baseline: Baseline | None,
    codes: set[ExitCode],
    fail_on: FailOn,
) -> Iterator[TableCheck]:
    """Yield an error for each baseline entry that no table matched."""
    if baseline is None:
        return
    if (error := baseline.unmatched()) is not None:
        yield unreadable_input(str(path), error)
        return
    for error in baseline.unread():
        yield unreadable_table(error.table, error)
    missing, unchecked = baseline.remaining()
    yield from map(checker.check_missing, missing)
    _notice_unchecked([each.table for each in unchecked], codes, fail_on)


def _notice_unchecked(tables: list[str], codes: set[ExitCode], fail_on: FailOn) -> None:
    if not tables:
        return
    many, was = counted(len(tables), "table"), "was" if len(tables) == 1 else "were"
    NOTICES.append(f"{many} of the baseline {was} not checked: {', '.join(tables)}")
    if fail_on is FailOn.WARNING:
        codes.add(ExitCode.FINDINGS)


def mark_known_findings(
    tables: Iterable[TableCheck],
    path: str,
    checker: Checker,
    saved: KnownFindings,
    codes: set[ExitCode],
    fail_on: FailOn,
) -> Iterator[TableCheck]:
    """Mark the findings of each table that the saved check already has."""
    for checked in tables:
        yield saved.compared(checked, checker)
    if (error := saved.unmatched()) is not None:
        yield unreadable_input(path, error)
        return
    _notice_unchecked(saved.unchecked(), codes, fail_on)
