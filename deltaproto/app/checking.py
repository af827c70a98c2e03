"""Checks of tables against declared clients and a policy."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.app.arguments import NONE, TableSource, require_texts, table_name, table_sources
from deltaproto.app.reading import read_table
from deltaproto.app.result import Result, Rows, findings_failure, show_in_notebooks
from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError, TableError, UsageError
from deltaproto.inspection import ReadRequest, Unreadable
from deltaproto.inspection.age import DEFAULT_MAX_AGE_DAYS
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.policy.client_findings import caveats_for
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import (
    load_local_catalog,
    load_local_policy,
    parse_accesses,
    parse_declared,
)
from deltaproto.policy.table_check import TableCheck, unreadable_table
from deltaproto.tables.engine_errors import contain_table_errors

if TYPE_CHECKING:
    from deltaproto.fleet.seen.seen_findings import RecentUses, SeenChecks
    from deltaproto.render.document.blocks import Document

SeenInventory = tuple[str | os.PathLike[str], int, Mapping[str, str]]
"""an inventory in which `discover` counted, the number of days to count, and storage options"""

_LOG = logging.getLogger("deltaproto.check")

Verdict = DeclaredVerdict
show_in_notebooks(Verdict)


class CheckResult(Result, TableCheck):
    """The check of one table: verdicts on the declared clients, and findings."""

    def _failure(self) -> DeltaprotoError | None:
        if self.error is not None:
            return self.error
        return findings_failure(self, self.table, self.findings, complete=self.complete)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `check` for this table."""
        from deltaproto.render.check_json import checked_fields

        return checked_fields(self)

    def _document(self) -> Document:
        return CheckResults([self])._document()

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<CheckResult {self.table}: {self.error.code}>"
        outcomes = [str(each.outcome) for each in self.verdicts]
        found = ", ".join(f"{outcomes.count(each)} {each}" for each in dict.fromkeys(outcomes))
        findings = counted(len(self.findings), "finding")
        return f"<CheckResult {self.table}: {found or 'no client declared'}; {findings}>"


class CheckResults(list[CheckResult], Result):
    """The checks of several tables, in the order of the tables.

    The last entry may be about the policy itself (`of_policy`).
    """

    notes: tuple[str, ...] = ()
    """the scans of an inventory that were checked, and the limits of what `after` finds"""

    @property
    def verdicts(self) -> Rows:
        """One row for each verdict: table, client, version, path, access, outcome, because, …"""
        import pyarrow as pa

        text = pa.string()
        names = ("table", "location", "client", "version", "path", "access", "outcome", "reason")
        columns = {**dict.fromkeys(names, text), "because": pa.list_(text), "confidence": text}
        return Rows.of(
            (
                {
                    "table": checked.table,
                    "location": checked.location,
                    **{name: getattr(each, name) for name in columns if hasattr(each, name)},
                }
                for checked in self
                for each in checked.verdicts
            ),
            columns,
        )

    @property
    def findings(self) -> Rows:
        """One row for each finding: table, rule, severity, message, hint, feature, client, …"""
        import pyarrow as pa

        text = pa.string()
        names = ("table", "rule", "severity", "message", "hint", "feature", "client")
        columns = {**dict.fromkeys(names, text), "known": pa.bool_()}
        return Rows.of(
            (
                {name: getattr(each, name) for name in columns}
                for checked in self
                for each in checked.findings
            ),
            columns,
        )

    @property
    def errors(self) -> Rows:
        """One row for each table that could not be read: table, code, message and hint."""
        import pyarrow as pa

        return Rows.of(
            (
                {
                    "table": each.table,
                    "code": str(each.error.code),
                    "message": each.error.message,
                    "hint": each.error.hint,
                }
                for each in self
                if each.error is not None
            ),
            dict.fromkeys(("table", "code", "message", "hint"), pa.string()),
        )

    def _failure(self) -> DeltaprotoError | None:
        if all(each.of_policy for each in self):
            return ResultError(self, ExitCode.UNREADABLE, "no table was checked", "pass tables")
        failures = [error for each in self if (error := each._failure()) is not None]
        if len(failures) < 2:
            return failures[0] if failures else None
        code = ExitCode.worst(each.exit_code for each in failures)
        first = next(each for each in failures if each.exit_code is code)
        message = f"{len(failures):,} of {len(self):,} tables are not ok; {first.message}"
        return ResultError(self, code, message, first.hint)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `check` for all tables, without its envelope."""
        import io
        import json

        from deltaproto.render.check_json import CheckDocument
        from deltaproto.render.interface import envelope

        file = io.StringIO()
        document = CheckDocument(file)
        for checked in self:
            document.add(checked)
        caveats = caveats_for(one.client for each in self for one in each.verdicts)
        document.close([*caveats, *self.notes])
        around = envelope("check", {}).keys()
        return {k: v for k, v in json.loads(file.getvalue()).items() if k not in around}

    def _document(self) -> Document:
        from deltaproto.render.check_json import Counts
        from deltaproto.render.check_section import check_section
        from deltaproto.render.document.blocks import Document

        counts = Counts()
        for checked in self:
            counts.add(checked)
        return Document("Check", (counts.line(),), [check_section(each) for each in self])

    def __repr__(self) -> str:
        return f"<CheckResults: {counted(len(self), 'table')}, {sum(each.ok for each in self)} ok>"


def check(
    tables: TableSource | Iterable[TableSource],
    policy: str | os.PathLike[str] | None = None,
    *,
    clients: Sequence[str] = (),
    access: Sequence[str] = (),
    after: str | None = None,
    seen: str | os.PathLike[str] | None = None,
    seen_days: int = 90,
    client_files: Sequence[str] = (),
    catalogue: Sequence[str] = (),
    look_in_files: bool = False,
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> CheckResults:
    """Check each table: verdicts on the declared clients, and findings.

    A table that cannot be read has `error`, and is not `complete`: never treat it as compliant.
    Findings on the policy itself (DP301 and up: patterns that match nothing, expired waivers) are
    in an additional entry at the end, with `of_policy`.

    Args:
        tables: one or more tables, as for `inspect_table`.
        policy: a YAML file.
        clients: more clients, as ID@VERSION, which use every table.
        access: read, append, dml, maintain or stream, instead of what is declared.
        after: a client at a newer version, as ID@VERSION: findings DP407 show what changes for each
            table when the client is upgraded. For a Databricks Runtime, these include automatic
            upgrades that it no longer delays, as documented, not measured.
        seen: an inventory in which `discover` counted clients: findings DP403 to DP406 show which
            clients were seen and are not declared, are declared and were not seen, are older than
            declared, or come back rarely. The logger `deltaproto` gets a warning if the count is
            old, or if tables were not counted.
        seen_days: count the clients of the last N days of `seen`.
        client_files: files with custom clients.
        catalogue: the old name of `client_files`.
        look_in_files: search every live file for traces of features, and read the statistics of
            every data file.

    Raises:
        UsageError: for an invalid policy, with file and line, for an unknown client, if no version
            of the client of `after` is declared, and if `discover` never counted in `seen`.
        TableError: corrupt-log, when the inventory `seen` is damaged.
    """
    files = (*client_files, *catalogue)
    compared = None if seen is None else (seen, seen_days, storage_options)
    checks = load_checks(policy, clients, access, files, after, compared)

    def checked(source: TableSource) -> TableCheck:
        request = ReadRequest(look_in_files=look_in_files)
        read = read_table(source, request, storage_options, spark_remote, spark_conf)
        if isinstance(read, Unreadable):
            return checks.checker.check_unreadable(read.table, read.error, read.findings)
        try:
            with contain_table_errors():
                return checks.checker.check(facts_from_inspection(read))
        except TableError as error:
            return unreadable_table(table_name(source), error)

    return checks.collect(map(checked, table_sources(tables)))


class Checks(NamedTuple):
    """The settings for checking tables, and the results that checks are compared with."""

    checker: Checker
    compare: Callable[[Iterable[TableCheck]], Iterable[TableCheck]] = iter
    notes: tuple[str, ...] = ()
    """the limits of what `after` finds"""

    def collect(self, tables: Iterable[TableCheck]) -> CheckResults:
        """Return the checks of all tables, and the findings on the policy itself."""
        every = self.checker.with_policy(self.compare(tables))
        results = CheckResults(map(CheckResult._make, every))
        results.notes = self.notes
        return results


def load_checks(
    policy: str | os.PathLike[str] | None,
    clients: Sequence[str],
    access: Sequence[str],
    files: Sequence[str],
    after: str | None,
    seen: SeenInventory | None,
) -> Checks:
    """Return the checks for a policy, clients, or both.

    Raises:
        UsageError: for an invalid policy or an unknown client, or if neither is passed; if no
            version of the client of `after` is declared; and like `load_seen`.
        TableError: corrupt-log, when the inventory `seen` is damaged.
    """
    if policy is None and not clients:
        raise UsageError("nothing to check against", "pass a policy, or clients as ID@VERSION")
    rules = Policy(source="") if policy is None else load_local_policy(os.fspath(policy))
    catalog = load_local_catalog(require_texts(files, "client_files"), rules)
    named = [parse_declared(text) for text in require_texts(clients, "clients")]
    accesses = parse_accesses(require_texts(access, "access"), "access")
    notes: tuple[str, ...] = ()
    if after is None:
        checker = Checker(rules, catalog, named=named, access=accesses)
    else:
        from deltaproto.fleet.forecast.after import UpgradeChecker, describe_limits

        upgrade = catalog.resolve(after)
        checker = UpgradeChecker(upgrade, rules, catalog, named=named, access=accesses)
        notes = tuple(describe_limits(after, checker))
    if seen is None:
        return Checks(checker, notes=notes)
    from deltaproto.fleet.seen.seen_findings import SeenChecks

    recent, notice = load_seen(seen)
    if notice is not None:
        _LOG.warning("%s", notice)
    compared = SeenChecks(recent, rules, catalog, checker)
    return Checks(checker, partial(_compare_and_log, seen[0], compared), notes)


def load_seen(seen: SeenInventory) -> tuple[RecentUses, str | None]:
    """Return the clients seen in the last days, and a notice if they were counted long ago.

    Raises:
        UsageError: for an invalid number of days, when there is no inventory, or when `discover`
            never counted in it.
        TableError: corrupt-log, when the inventory is damaged.
    """
    from deltaproto.fleet.seen.seen_findings import MOST_DAYS, load_recent_uses

    name, days, storage_options = seen
    if not 0 < days <= MOST_DAYS:
        raise UsageError(f"seen_days is {days}", f"pass a number from 1 to {MOST_DAYS}")
    return load_recent_uses(os.fspath(name), storage_options, days, DEFAULT_MAX_AGE_DAYS)


def _compare_and_log(
    name: str | os.PathLike[str], compared: SeenChecks, tables: Iterable[TableCheck]
) -> Iterator[TableCheck]:
    """Yield each check with the findings about clients seen; then log which tables had no count."""
    yield from compared.checked(tables)
    if missing := compared.uncounted:
        _LOG.warning(
            "%s: discover has not counted the commits of %s, such as %s; clients that are not "
            "declared may use them",
            name,
            counted(len(missing), "table"),
            missing[0],
        )
