"""The rules: what each one finds, what it leaves alone, and its page."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

import deltaproto.policy.rules as rules_package
from deltaproto.cli.main import COMMANDS
from deltaproto.errors import EngineError, ErrorCode, TableError
from deltaproto.inspection.inspect import compare_readers
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule
from deltaproto.policy.rules import all_rules, find_rule, schema_missing
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState
from tests.conftest import Ran
from tests.policy.cases import CASES, Case
from tests.support.failures import each_row
from tests.support.logs import Log, metadata, protocol

Cli = Callable[..., Ran]
HEADINGS = (
    "## What it does",
    "## Why it breaks",
    "## Who breaks",
    "## How to fix",
    "## How safe",
    "## References",
)
# Made while comparing readers, not by linting one table.
COMPARING = {"DP120", "DP121", "DP122"}


def inspect(cli: Cli, table: str) -> list[dict[str, Any]]:
    ran = cli("inspect", table, "--format", "json", "--fail-on", "never")
    # What a catalog may know better is never complete, and so never code 0.
    assert ran.code == (0 if ran.table["complete"] else 3), ran.err
    findings: list[dict[str, Any]] = ran.table["findings"]
    return findings


def found(findings: list[dict[str, Any]]) -> set[tuple[str, str | None]]:
    return {(finding["rule"], finding.get("feature")) for finding in findings}


class TestCases:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_finds_exactly_what_is_there(self, cli: Cli, log: Log, case: Case) -> None:
        case.build(log)
        findings = inspect(cli, log.table)
        assert found(findings) == case.expected
        severities = {rule.id: rule.severity for rule in all_rules()}
        for finding in findings:
            assert finding["severity"] == severities[finding["rule"]]
            assert finding["table"] == log.table
            assert finding["hint"]
            assert "\n" not in finding["message"]

    def test_cases_have_names_of_their_own(self) -> None:
        names = [case.name for case in CASES]
        assert len(set(names)) == len(names)

    @each_row("rule", [m.RULE for m in rules_package._MODULES], ids=lambda rule: rule.id)
    def test_every_lint_rule_fires_in_a_case(self, rule: Rule) -> None:
        fires = any(rule.id in {id_ for id_, _ in case.expected} for case in CASES)
        assert fires != (rule.id in COMPARING)

    def test_the_evidence_names_commit_and_engine(self, cli: Cli, log: Log) -> None:
        (case,) = (c for c in CASES if c.name == "upgrade-by-delta-rs-loses-what-the-pair-implied")
        case.build(log)
        (finding,) = inspect(cli, log.table)
        assert "appendOnly, invariants" in finding["message"]
        assert finding["evidence"] == "version 1: ADD FEATURE by delta-rs:py-1.6.6"


class TestRealDeltaRs:
    """What deltalake itself writes; its defects may go, then these tests tell."""

    @pytest.fixture
    def table(self, tmp_path: Path) -> str:
        path = tmp_path / "real"
        write_deltalake(path, pa.table({"id": [1]}))
        return str(path)

    def test_a_fresh_table_has_no_finding(self, cli: Cli, table: str) -> None:
        assert inspect(cli, table) == []

    def test_add_feature_loses_the_implied_ones(self, cli: Cli, table: str) -> None:
        DeltaTable(table).alter.add_feature(
            TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
        )
        (finding,) = inspect(cli, table)
        assert finding["rule"] == "DP105"
        assert "delta-rs" in finding["evidence"]

    def test_add_feature_with_all_of_them_loses_none(self, cli: Cli, table: str) -> None:
        DeltaTable(table).alter.add_feature(
            [TableFeatures.DeletionVectors, TableFeatures.AppendOnly, TableFeatures.Invariants],
            allow_protocol_versions_increase=True,
        )
        assert inspect(cli, table) == []

    def test_a_lost_feature_that_is_in_use_is_missing(self, cli: Cli, tmp_path: Path) -> None:
        path = str(tmp_path / "fed")
        feed = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(path, pa.table({"id": [1]}), configuration=feed)
        DeltaTable(path).alter.add_feature(
            TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
        )
        assert found(inspect(cli, path)) == {("DP105", None), ("DP103", "changeDataFeed")}

    def test_set_table_properties_brings_a_feature_nobody_asked_for(
        self, cli: Cli, table: str
    ) -> None:
        DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
        (finding,) = inspect(cli, table)
        assert (finding["rule"], finding["feature"]) == ("DP106", "variantType")
        assert re.fullmatch(
            r"version 1: SET TBLPROPERTIES by delta-rs:py-[\d.]+", finding["evidence"]
        )

    def test_a_property_that_needs_no_feature_brings_none(self, cli: Cli, table: str) -> None:
        DeltaTable(table).alter.set_table_properties({"delta.appendOnly": "true"})
        assert inspect(cli, table) == []


def state(reader: ReaderName, **changed: Any) -> TableState:
    """One reader's answer, made by hand."""
    properties = {"delta.appendOnly": "true", **changed.pop("properties", {})}
    about = {"id": "1", "partition_columns": ("day",), **changed.pop("about", {})}
    answer = TableState(
        table="t",
        location="file:///t",
        reader=reader,
        version=4,
        protocol=Protocol(1, 7, None, frozenset({"appendOnly"})),
        metadata=Metadata(configuration=properties, **about),
        clustering_columns=(),
    )
    return answer._replace(**changed)


LOG_STATE = state(ReaderName.LOG)


def test_only_spark_is_not_asked_for_a_schema() -> None:
    """Spark's reader returns no stored schema, which is not a finding on the table."""
    found = {
        reader: [each.rule for each in schema_missing.check(RuleContext(state(reader)))]
        for reader in (ReaderName.SPARK, ReaderName.LOG, ReaderName.DELTA_RS)
    }
    rule = schema_missing.RULE.id
    assert found == {
        ReaderName.SPARK: [],
        ReaderName.LOG: [rule],
        ReaderName.DELTA_RS: [rule],
    }


def compared(*others: TableState | TableError, log: TableState = LOG_STATE) -> list[Finding]:
    names = (ReaderName.DELTA_RS, ReaderName.SPARK)
    return list(
        compare_readers("t", {ReaderName.LOG: log, **dict(zip(names, others, strict=False))})
    )


class TestComparing:
    def test_dp120_a_refusal_beside_an_answer(self) -> None:
        refusal = TableError(ErrorCode.UNSUPPORTED_PROTOCOL, "deltalake: no such feature")
        (finding,) = compared(refusal)
        assert finding.rule == "DP120"
        assert finding.message == "delta-rs gives no result: deltalake: no such feature"
        assert finding.evidence == "delta-rs: unsupported-protocol"

    def test_dp120_a_missing_engine_has_refused_nothing(self) -> None:
        assert compared(EngineError("pyspark is not installed")) == []

    def test_dp120_when_nobody_answers_there_is_an_error_instead(self) -> None:
        error = TableError(ErrorCode.NOT_FOUND, "gone")
        assert list(compare_readers("t", dict.fromkeys(ReaderName, error))) == []

    @pytest.mark.parametrize(
        ("field", "changed"),
        [
            ("version", {"version": 5}),
            ("id", {"about": {"id": "2"}}),
            ("minReaderVersion", {"protocol": Protocol(2, 7, None, frozenset({"appendOnly"}))}),
            ("writerFeatures", {"protocol": Protocol(1, 7, None, frozenset({"invariants"}))}),
            ("partition_columns", {"about": {"partition_columns": ()}}),
            ("configuration", {"properties": {"a": "b"}}),
            ("clustering_columns", {"clustering_columns": ("id",)}),
        ],
    )
    @pytest.mark.parametrize("reader", [ReaderName.DELTA_RS, ReaderName.SPARK])
    def test_dp121_each_field_that_differs(
        self, field: str, changed: dict[str, Any], reader: ReaderName
    ) -> None:
        other = state(reader, **changed)
        (finding,) = compare_readers("t", {ReaderName.LOG: LOG_STATE, reader: other})
        assert (finding.rule, finding.evidence) == ("DP121", field)
        assert finding.message.startswith(f"{field}: log has ")
        assert f"{reader} has " in finding.message
        written = "changed meanwhile" in finding.hint
        assert written == (field == "version")

    def test_dp121_equal_answers_agree(self) -> None:
        assert compared(state(ReaderName.DELTA_RS), state(ReaderName.SPARK)) == []

    def test_dp121_empty_and_absent_lists_look_alike_to_other_readers(self) -> None:
        empty = state(ReaderName.LOG, protocol=Protocol(1, 7, None, frozenset()))
        absent = {"minReaderVersion": 1, "minWriterVersion": 7}
        other = state(ReaderName.DELTA_RS, protocol=Protocol.stored(absent))
        assert compared(other, log=empty) == []

    def test_dp121_what_a_reader_cannot_see_is_not_compared(self) -> None:
        clustered = state(ReaderName.LOG, clustering_columns=("id",))
        blind = state(ReaderName.DELTA_RS, clustering_columns=None)
        redacted = state(ReaderName.SPARK, properties={"password": "*(redacted)"})
        assert compared(blind, log=clustered) == []
        assert compared(redacted) == []

    def test_dp121_without_the_log_the_first_answer_is_the_yardstick(self) -> None:
        answers = {
            ReaderName.LOG: TableError(ErrorCode.CORRUPT_LOG, "damaged"),
            ReaderName.DELTA_RS: state(ReaderName.DELTA_RS),
            ReaderName.SPARK: state(ReaderName.SPARK, version=5),
        }
        refused, disagree = compare_readers("t", answers)
        assert refused.rule == "DP120"
        assert disagree.message == "version: delta-rs has 4, spark has 5"

    def test_dp120_and_dp121_through_the_command_line(
        self, cli: Cli, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pyspark", None)
        # delta-rs takes the first of two protocols in a commit, Spark and the log reader the last.
        log.commit(0, protocol(1, 3), protocol(1, 2), metadata())
        ran = cli("inspect", log.table, "--reader", "all")
        assert "DP121  minWriterVersion: log has 2, delta-rs has 3" in ran.out
        assert "DP120" not in ran.out


class TestPages:
    def test_ids_and_names_are_unique(self) -> None:
        ids, names = zip(*((rule.id, rule.name) for rule in all_rules()), strict=True)
        assert len(set(ids)) == len(ids)
        assert len(set(names)) == len(names)
        assert list(ids) == sorted(ids)

    def test_every_rule_module_is_registered(self) -> None:
        folder = Path(str(rules_package.__file__)).parent
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert {m.__name__.rsplit(".", 1)[-1] for m in rules_package._modules()} == modules

    @each_row("rule", all_rules(), ids=lambda rule: rule.id)
    def test_each_page_has_every_heading_with_text_below(self, rule: Rule) -> None:
        found_rule = find_rule(rule.id)
        assert found_rule is not None
        page = found_rule[1]
        summary, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
        assert tuple(section.splitlines()[0] for section in sections) == HEADINGS
        assert all(section.split("\n", 1)[1].strip() for section in sections)
        assert summary.strip().endswith(".")

    @each_row("rule", all_rules(), ids=lambda rule: rule.id)
    def test_explain_takes_id_and_name_in_any_case(self, cli: Cli, rule: Rule) -> None:
        pages = [cli("explain", word) for word in (rule.id, rule.id.lower(), rule.name.upper())]
        assert {page.code for page in pages} == {0}
        (out,) = {page.out for page in pages}
        assert out.startswith(f"{rule.id} {rule.name} ({rule.severity})\n")
        for heading in HEADINGS:
            assert f"\n{heading.removeprefix('## ')}\n" in out
        markdown = cli("explain", rule.id, "--format", "markdown").out
        assert all(heading in markdown for heading in HEADINGS)

    def test_explain_lists_all_rules(self, cli: Cli) -> None:
        out = cli("explain").out
        assert all(f"\n{rule.id}  {rule.name} " in out for rule in all_rules())

    def test_explain_of_what_is_no_rule_names_the_nearest(self, cli: Cli) -> None:
        ran = cli("explain", "invalid-protokol")
        assert ran.code == 2
        assert ran.out == ""
        assert "did you mean DP101 invalid-protocol" in ran.err

    @each_row("rule", all_rules(), ids=lambda rule: rule.id)
    def test_pages_send_people_to_commands_that_exist(self, rule: Rule) -> None:
        found_rule = find_rule(rule.id)
        assert found_rule is not None
        known = set(COMMANDS)
        named = re.findall(r"`deltaproto ([a-z-]+)", found_rule[1])
        assert set(named) <= known
