"""Evaluates a policy for the tables of one scan: equal states once, with counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.caches import BoundedCache
from deltaproto.errors import TableError
from deltaproto.fleet.inventory_queries import InventoryQueries
from deltaproto.fleet.read_inventory import (
    error_from_row,
    facts_from_row,
    findings_from_row,
    read_error_rows,
    read_table_rows,
)
from deltaproto.fleet.scan_history import PastScan
from deltaproto.inspection.inspect import run_rules
from deltaproto.policy.contents import find_contents
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.table_check import TableCheck, unreadable_table
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.isolation import Isolation, RowLevelConcurrency
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.properties import expected_value
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState
from deltaproto.tables.engine_errors import contain_table_errors

_CACHE_SIZE = 10_000
# Per-table values that are irrelevant to evaluation.
_TABLE_SPECIFIC_PROPERTIES = frozenset(
    {
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementTimestamp",
        "delta.inCommitTimestampEnablementVersion",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "delta.rowTracking.materializedRowIdColumnName",
    }
)
# Counts the rows of one table.
_COUNTING_DOMAIN = "delta.rowTracking"


class SharedEvaluation(NamedTuple):
    """The evaluation shared by all tables of a group."""

    reader: ReaderName
    protocol: Protocol
    partition_columns: tuple[str, ...]
    features: tuple[FeatureState, ...]
    isolation: Isolation
    row_level: RowLevelConcurrency
    findings: tuple[Finding, ...]
    """findings of one of the tables; `table` is that table's name"""
    lowest: Protocol | None
    complete: bool


class TableEvaluator:
    """Evaluates tables, equal states once. Ignores history, so that no log is read for it."""

    def __init__(self) -> None:
        self._known = BoundedCache[tuple[object, ...], SharedEvaluation](_CACHE_SIZE)

    def evaluate(self, state: TableState) -> SharedEvaluation:
        """Evaluate one table."""
        key = _evaluation_key(state)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _evaluate_state(state)
        return found


def _evaluation_key(state: TableState) -> tuple[object, ...]:
    metadata = state.metadata
    configuration = metadata.configuration
    traits = metadata.traits
    managed = CATALOG_MANAGED & state.protocol.supported
    return (
        state.protocol,
        tuple(sorted(_relevant_configuration(configuration).items())) if configuration else (),
        metadata.partition_columns,
        None if traits is None else tuple(sorted(traits.items())),
        None if state.domains is None else tuple(sorted(_relevant_domains(state.domains))),
        state.clustering_columns and len(state.clustering_columns),
        frozenset(state.traces.items()),
        tuple(find_contents(metadata).items()),
        state.notes,
        state.reader,
        state.version if managed else None,
    )


def _relevant_configuration(configuration: Mapping[str, str | None]) -> dict[str, str]:
    # A property without a value forms its own group, distinct from every value.
    return {
        key: "" if _is_table_specific(key, value) else f"={value}" if value is not None else "-"
        for key, value in configuration.items()
    }


def _is_table_specific(key: str, value: str | None) -> bool:
    """Return True if a value is irrelevant: a valid value of a property that differs per table."""
    return (
        key in _TABLE_SPECIFIC_PROPERTIES
        and value is not None
        and expected_value(key, value) is None
    )


def _relevant_domains(domains: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in domains.items():
        yield name, "" if name == _COUNTING_DOMAIN else text


def _evaluate_state(state: TableState) -> SharedEvaluation:
    inspection = run_rules(state._replace(changes=None))
    return SharedEvaluation(
        state.reader,
        state.protocol,
        state.metadata.partition_columns,
        inspection.subject.features,
        inspection.isolation,
        inspection.row_level,
        inspection.findings,
        inspection.subject.lowest,
        inspection.complete,
    )


def check_row(row: Mapping[str, Any], checker: Checker) -> TableCheck:
    """Return the check of a row of `tables_query`; a damaged row is that table's error."""
    try:
        with contain_table_errors():
            return checker.check(facts_from_row(row))
    except TableError as error:
        return unreadable_table(row["table"], error)


def check_error_row(row: Mapping[str, Any], checker: Checker) -> TableCheck:
    """Return the check of a table that the scan could not read."""
    return checker.check_unreadable(row["table"], error_from_row(row), findings_from_row(row))


def check_rows(
    queries: InventoryQueries, scan: PastScan, checker: Checker, more: Iterable[str] = ()
) -> Iterator[tuple[Mapping[str, Any], TableCheck]]:
    """Yield every table of the scan with its check, by location, then those it could not read.

    Args:
        more: columns that the rows must have besides those that a check needs.

    Raises:
        TableError: when the inventory cannot be read.
    """
    for row in read_table_rows(queries, scan, more=more):
        yield row, check_row(row, checker)
    for row in read_error_rows(queries, scan):
        yield row, check_error_row(row, checker)


_FIRST = 10
_NUMBERS = ("tables", "unreadable", "waived", "off")


class PolicyTally:
    """Counts of verdicts and findings over checked tables."""

    def __init__(self) -> None:
        self.tables = 0
        self.unreadable = 0
        """tables that could not be read, or only partly"""
        self.waived = self.off = 0
        """findings that the policy waives, and findings of disabled rules"""
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        """counts by client, access and verdict"""
        self.rules: Counter[tuple[str, str]] = Counter()
        """counts by rule and severity"""
        self.first: list[tuple[str, str, str]] = []
        """table, rule and message of the first error of each rule"""

    def add(self, checked: TableCheck) -> None:
        """Count one table."""
        self.tables += not checked.of_policy
        self.unreadable += not checked.complete
        self.waived += len(checked.suppressed)
        self.off += checked.silenced
        for declared in checked.verdicts:
            verdict = declared.verdict
            self.verdicts[verdict.named, str(verdict.access), str(verdict.verdict)] += 1
        for finding in checked.findings:
            self.rules[finding.rule, str(finding.severity)] += 1
            if finding.severity is Severity.ERROR or checked.of_policy:
                self._first(checked.table, finding.rule, finding.message)

    def _first(self, table: str, rule: str, message: str) -> None:
        if len(self.first) < _FIRST and rule not in {each[1] for each in self.first}:
            self.first.append((table, rule, message))

    @property
    def severities(self) -> frozenset[Severity]:
        """The severities of the findings."""
        return frozenset(Severity(severity) for _, severity in self.rules)

    def dumped(self) -> str:
        """Return the counts as text, for `merge` in another process."""
        counters = {
            name: [[*key, count] for key, count in getattr(self, name).items()]
            for name in ("verdicts", "rules")
        }
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return json.dumps({**numbers, **counters, "first": self.first})

    def merge(self, dumped: str) -> None:
        """Add the counts of another tally."""
        other = json.loads(dumped)
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + other[name])
        for client, access, verdict, count in other["verdicts"]:
            self.verdicts[client, access, verdict] += count
        for rule, severity, count in other["rules"]:
            self.rules[rule, severity] += count
        for each in other["first"]:
            self._first(*each)
