"""`deltaproto check`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from deltaproto.cli import completion, options
from deltaproto.cli.check_inputs import (
    check_tables,
    compare_with_baseline,
    compare_with_seen,
    load_baseline,
    mark_known_findings,
    require_inventory,
    save_baseline,
)
from deltaproto.cli.declare import Argument, Command, Option, Panel, switch
from deltaproto.cli.inspect import (
    LOOK_IN_FILES,
    READER,
    read_table_names,
    require_log_reader,
)
from deltaproto.cli.inventories import (
    ENGINE,
    MAX_AGE,
    SCAN,
    SEEN,
    SEEN_DAYS,
)
from deltaproto.cli.progress import warn
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Client
from deltaproto.clients.resolve import parse_reference
from deltaproto.errors import (
    ExitCode,
    UsageError,
)
from deltaproto.policy.client_findings import caveats_for
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import FailOn
from deltaproto.policy.local_catalog import (
    load_local_catalog,
    load_local_policy,
    parse_accesses,
    parse_declared,
)
from deltaproto.policy.table_check import TableCheck, table_exit_code
from deltaproto.policy.usage import describe_overridden
from deltaproto.render.check import CheckFormat, Style, write_check
from deltaproto.render.interface import NOTICES
from deltaproto.render.usability import UNDECLARED

_EVERY_VERSION = "all"
"""value of --client that selects every client"""
_GROUPED_FORMATS = (CheckFormat.TEXT, CheckFormat.MARKDOWN)
_SURVEY_FORMATS = (CheckFormat.TEXT, CheckFormat.JSON, CheckFormat.JSONL, CheckFormat.MARKDOWN)


def run(values: Mapping[str, Any]) -> int:
    """Check every table, render each, and return the worst exit code."""
    path = values["policy"]
    policy = Policy(source="") if path is None else load_local_policy(path)
    catalog = load_local_catalog(values["client_file"], policy)
    declared, survey = _split_clients(values, catalog)
    undeclared = bool(survey) and not (declared or values["policy"] or values["baseline"])
    adopting = values["write_baseline"] is not None
    if adopting and survey:
        raise UsageError(
            "--write-baseline saves findings on declared clients",
            "give --policy FILE or --client ID@VERSION",
        )
    _refuse_unused_options(values)
    baseline, saved = load_baseline(values["baseline"])
    checker = _checker_type(values, catalog, undeclared=undeclared)(
        policy,
        catalog,
        named=map(parse_declared, declared),
        access=parse_accesses(values["access"], "--access"),
        baseline=baseline,
        survey=survey,
    )
    _notice_overridden(policy, checker)
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
    codes = {ExitCode.OK}
    names = list(read_table_names(values["tables"], allow_empty=values["allow_empty"]))
    require_inventory(names, values)
    read = (*names, path, *values["client_file"])
    options.refuse_overwrite(values["output"], (*read, values["baseline"]))
    options.refuse_overwrite(
        values["write_baseline"], (*read, values["output"]), "--write-baseline"
    )
    known = [UNDECLARED] if undeclared else list(caveats_for(checker.clients))
    known += _after_notes(values, checker)
    tables = check_tables(names, values, checker, baseline, known, codes)
    if values["seen"] is not None:
        if undeclared:
            raise UsageError(
                "--seen compares with declared clients", "give --policy FILE or --client ID@VERSION"
            )
        tables = compare_with_seen(tables, values, policy, catalog, checker, codes)
    checks: Iterable[TableCheck] = chain(
        tables,
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
    before = len(NOTICES)
    with options.open_output(values["output"]) as file:
        write_check(_collect_exit_codes(every, codes, style.fail_on), file, style, known)
    if style.format is CheckFormat.JSONL:
        # Lines that were written before a notice appeared do not contain it.
        for notice in NOTICES[before:]:
            warn(notice)
    return int(ExitCode.worst(codes))


def _refuse_unused_options(values: Mapping[str, Any]) -> None:
    options.require_partner(values, "--seen-days", "--seen")
    require_log_reader(values, "--look-in-files")
    if (values["failing"] or values["details"]) and values["format"] not in _GROUPED_FORMATS:
        named = "--failing" if values["failing"] else "--details"
        raise UsageError(f"{named} is for --format text and markdown", f"leave out {named}")


def _checker_type(
    values: Mapping[str, Any], catalog: ClientCatalog, *, undeclared: bool
) -> Callable[..., Checker]:
    """Return the constructor of the checker, which is special if --after is given."""
    if values["after"] is None:
        return Checker
    if undeclared:
        raise UsageError(
            "--after compares with declared clients", "give --policy FILE or --client ID@VERSION"
        )
    from deltaproto.fleet.forecast.after import UpgradeChecker

    return partial(UpgradeChecker, catalog.resolve(values["after"]))


def _after_notes(values: Mapping[str, Any], checker: Checker) -> list[str]:
    """Return the limitations of the findings of --after."""
    if values["after"] is None:
        return []
    from deltaproto.fleet.forecast.after import describe_limits

    return describe_limits(values["after"], checker)


def _notice_overridden(policy: Policy, checker: Checker) -> None:
    """Show definitions of clients that the catalog knows; with a policy, they are findings."""
    for client in () if policy.source else checker.overridden:
        NOTICES.append(describe_overridden(client))
        warn(NOTICES[-1])


def _split_clients(
    values: Mapping[str, Any], catalog: ClientCatalog
) -> tuple[tuple[str, ...], tuple[Client, ...]]:
    """Return the declared clients, and those to show in all versions: named without a version."""
    # Client names are case-insensitive.
    given = (each.lower() if each.lower() == _EVERY_VERSION else each for each in values["client"])
    names = tuple(dict.fromkeys(given))
    if _EVERY_VERSION in names and len(names) > 1:
        raise UsageError(
            f"--client {_EVERY_VERSION} excludes other clients", "leave out the other clients"
        )
    declared: list[str] = []
    if names == (_EVERY_VERSION,) or not (names or values["policy"] or values["baseline"]):
        survey = catalog.clients()
    else:
        found = {}
        for text in names:
            reference = parse_reference(text)
            client = catalog.get(reference.id)
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


def _collect_exit_codes(
    tables: Iterable[TableCheck], codes: set[ExitCode], fail_on: FailOn
) -> Iterator[TableCheck]:
    for checked in tables:
        codes.add(table_exit_code(checked, fail_on))
        yield checked


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
        setting="inventory",
    ),
    (
        Option(
            ("--policy",),
            "Check against the clients and rules of this policy.",
            metavar="FILE",
            panel=Panel.CLIENTS,
            setting="policy",
            unless=("client",),
        ),
        Option(
            ("--client",),
            "Check this client (ID@VERSION). Only ID: show what each version can do. all: show "
            "every client. Repeatable.",
            many=True,
            metavar="ID@VERSION",
            words=completion.clients,
            panel=Panel.CLIENTS,
        ),
        Option(
            ("--access",),
            "Check this access (read, append, dml, maintain, stream) instead of the declared one. "
            "Repeatable.",
            many=True,
            metavar="ACCESS",
            panel=Panel.CLIENTS,
        ),
        Option(
            ("--baseline",),
            "Compare with a saved inspection (report drift) or a saved check (fail only on "
            "new findings).",
            metavar="FILE",
            panel=Panel.INPUT,
            setting="baseline",
            unless=("tables", "client", "write_baseline"),
        ),
        Option(
            ("--write-baseline",),
            "Accept today's findings: write them to this file, for --baseline, and exit 0.",
            metavar="FILE",
            panel=Panel.OUTPUT,
        ),
        SEEN,
        SEEN_DAYS,
        Option(
            ("--after",),
            "Show what changes when this client is upgraded to this version. For a Databricks "
            "Runtime: also which automatic upgrades it no longer delays.",
            metavar="ID@VERSION",
            words=completion.clients,
            panel=Panel.CLIENTS,
        ),
        SCAN,
        MAX_AGE,
        ENGINE,
        switch("--show-suppressed", help="Also show waived findings.", panel=Panel.OUTPUT),
        switch("--failing", help="Show only tables that fail.", panel=Panel.OUTPUT),
        options.DETAILS,
        options.LIMIT,
        options.ALLOW_EMPTY,
        options.CLIENT_FILE,
        READER,
        LOOK_IN_FILES,
        options.FORMAT._replace(type=CheckFormat, default=CheckFormat.TEXT),
        options.OUTPUT,
        options.FAIL_ON,
        *options.READING,
    ),
    examples=(
        "check ./orders --client trino@476 --client deltalake@1.6.6",
        "check /data/_inventory --policy policy.yaml --format sarif -o c.sarif",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE),
)
