"""JUnit XML: valid whatever the tables are called, and failing from `--fail-on` on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ExitCode
from deltaproto.policy.finding import FailOn, Severity, exit_code
from deltaproto.render.ci_reports import write_junit
from deltaproto.render.findings import Report
from tests.render.strategies import CLEAN, MISSING, ORDERS, PARTIAL, RULES, finding, reports

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "schemas" / "junit-10.xsd")
OUTCOMES = ("failure", "error", "skipped")


def written(*tables: Report, fail_on: FailOn = FailOn.ERROR) -> list[ElementTree.Element]:
    """The suites that are written, after the document was held against the schema."""
    file = io.StringIO()
    write_junit(iter(tables), file, rules=RULES, fail_on=fail_on)
    assert file.getvalue().isascii()
    root = ElementTree.fromstring(file.getvalue())
    SCHEMA.validate(root)
    assert len(root) == len(tables)
    return list(root)


def outcomes(suite: ElementTree.Element) -> list[str]:
    return [next((tag for tag in OUTCOMES if case.find(tag) is not None), "") for case in suite]


class TestSuites:
    def test_each_table_is_a_suite_with_counts(self) -> None:
        suite, _ = written(ORDERS, CLEAN)
        assert suite.attrib == {
            "name": "orders",
            "tests": "3",
            "failures": "1",
            "errors": "0",
            "skipped": "1",
        }
        assert outcomes(suite) == ["", "failure", "skipped"]

    def test_each_finding_is_a_case(self) -> None:
        (suite,) = written(ORDERS)
        low, needed, accepted = suite
        names = {rule.id: rule.name for rule in RULES}
        assert low.attrib == {"classname": "DP107", "name": "not-lowest-protocol: orders"}
        assert low.findtext("system-out") == "info: the protocol could be lower\nHint: lower it"
        assert needed.attrib == {
            "classname": "DP103",
            "name": f"{names['DP103']}: orders, deletionVectors",
        }
        failure = needed.find("failure")
        assert failure is not None
        assert failure.attrib == {"type": "error", "message": "it is needed"}
        assert failure.text == "it is needed\nHint: add it"
        assert accepted.get("name") == f"{names['DP108']}: orders, delta-rs"
        skipped = accepted.find("skipped")
        assert skipped is not None
        assert skipped.get("message") == "known"

    def test_evidence_is_shown(self) -> None:
        found = finding(severity=Severity.ERROR, evidence="measured")
        ((case,),) = written(CLEAN._replace(findings=(found,)))
        assert (case.findtext("failure") or "").endswith("\nEvidence: measured")

    def test_a_table_without_findings_passes(self) -> None:
        ((case,),) = written(CLEAN)
        assert case.attrib == {"classname": "deltaproto", "name": "no findings: clean"}
        assert len(case) == 0

    @pytest.mark.parametrize(
        ("table", "code", "message"),
        [
            (MISSING, "not-found", "there is no table"),
            (PARTIAL, "incomplete", "the result may be incomplete"),
        ],
    )
    def test_a_table_without_a_whole_answer_is_an_error(
        self, table: Report, code: str, message: str
    ) -> None:
        (suite,) = written(table)
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
        error = suite[0].find("error")
        assert error is not None
        assert error.attrib == {"type": code, "message": message}

    def test_an_incomplete_answer_keeps_its_findings(self) -> None:
        (suite,) = written(ORDERS._replace(complete=False))
        assert outcomes(suite) == ["", "failure", "skipped", "error"]

    def test_findings_that_look_alike_are_numbered(self) -> None:
        table = CLEAN._replace(findings=(finding(),) * 3)
        (suite,) = written(table)
        name = "not-lowest-protocol: clean"
        assert [case.get("name") for case in suite] == [name, f"{name} #2", f"{name} #3"]

    def test_no_tables_are_no_suites(self) -> None:
        assert written() == []


class TestFailOn:
    @pytest.mark.parametrize("severity", Severity)
    @pytest.mark.parametrize("fail_on", FailOn)
    def test_a_case_fails_exactly_when_the_exit_code_says_so(
        self, fail_on: FailOn, severity: Severity
    ) -> None:
        found = finding(severity=severity)
        (suite,) = written(CLEAN._replace(findings=(found,)), fail_on=fail_on)
        fails = exit_code((found,), fail_on) is ExitCode.FINDINGS
        assert outcomes(suite) == (["failure"] if fails else [""])


class TestAnyText:
    @given(st.lists(reports, max_size=3), st.sampled_from(FailOn))
    def test_the_document_is_valid_and_its_counts_are_right(
        self, tables: list[Report], fail_on: FailOn
    ) -> None:
        for table, suite in zip(tables, written(*tables, fail_on=fail_on), strict=True):
            shown = outcomes(suite)
            assert suite.get("tests") == str(len(suite))
            for tag, count in zip(OUTCOMES, ("failures", "errors", "skipped"), strict=True):
                assert suite.get(count) == str(shown.count(tag))
            answered = table.error is None and table.complete
            told = len(table.findings) + len(table.suppressed) + (not answered)
            assert len(suite) == max(told, 1)

    @given(reports)
    def test_no_two_cases_of_a_table_have_one_name(self, table: Report) -> None:
        (suite,) = written(table)
        names = [case.get("name") for case in suite]
        assert len(set(names)) == len(names)
        assert not any("\n" in (name or "") for name in names)

    def test_what_xml_forbids_is_replaced(self) -> None:
        (suite,) = written(CLEAN._replace(table="a\x00\x1b\r\ud800\uffff]]>é"))
        assert suite.get("name") == "a\\x00\\x1b\\x0d\ufffd\ufffd]]>é"

    def test_suites_are_written_before_the_next_table_is_read(self) -> None:
        file = io.StringIO()
        sizes: list[int] = []

        def tables() -> Iterator[Report]:
            for _ in range(3):
                sizes.append(len(file.getvalue()))
                yield CLEAN

        write_junit(tables(), file, rules=RULES, fail_on=FailOn.ERROR)
        assert sizes == sorted(set(sizes))
