"""SARIF: valid whatever the tables are called, and the same finding from run to run."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, FormatChecker

from deltaproto import __version__
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.render.findings import Report, RulePage, fingerprint
from deltaproto.render.sarif import FINGERPRINT, write_sarif
from tests.render.strategies import (
    CLEAN,
    MISSING,
    ORDERS,
    PAGES,
    PARTIAL,
    RULES,
    finding,
    findings,
    locations,
    reports,
    texts,
)
from tests.support.failures import each_row

STARTED = "2026-11-21T08:00:00Z"
SCHEMA = json.loads(
    (Path(__file__).parent / "schemas" / "sarif-2.1.0.schema.json").read_text(encoding="utf-8")
)
# RFC 3986, appendix A: URI-reference, without literals for IPv6.
PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
AUTHORITY = (
    r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*(?::[0-9]*)?"
)
HIERARCHY = rf"(?://{AUTHORITY}(?:/{PCHAR}*)*|(?!//)(?:{PCHAR}|/)*)"
URI = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*:{HIERARCHY}")
RELATIVE = re.compile(rf"//{AUTHORITY}(?:/{PCHAR}*)*|(?!//)(?!{PCHAR}*:)(?:{PCHAR}|/)*")
FORMATS = FormatChecker()
FORMATS.checks("uri-reference")(lambda text: bool(URI.fullmatch(text) or RELATIVE.fullmatch(text)))
VALIDATOR = Draft7Validator(SCHEMA, format_checker=FORMATS)
VALID_RULES: set[str] = set()
"""JSON of the rule descriptions that were validated already"""


def written(*tables: Report, rules: list[RulePage] = PAGES) -> dict[str, Any]:
    """The run that is written, after the whole document was held against the schema."""
    file = io.StringIO()
    write_sarif(iter(tables), file, rules=rules, started_at=STARTED)
    assert file.getvalue().isascii()
    document = json.loads(file.getvalue())
    validate(document)
    json.dumps(document, ensure_ascii=False).encode()
    (run,) = document["runs"]
    return dict(run)


def validate(document: dict[str, Any]) -> None:
    """Validate the document. Equal descriptions of the rules are validated once: they are long."""
    runs = []
    for run in document["runs"]:
        driver = run["tool"]["driver"]
        described = json.dumps(driver["rules"])
        if described in VALID_RULES:
            tool = {**run["tool"], "driver": {**driver, "rules": []}}
            runs.append({**run, "tool": tool})
        else:
            VALIDATOR.validate(document)
            VALID_RULES.add(described)
            return
    VALIDATOR.validate({**document, "runs": runs})


def uri(report: Report) -> str:
    (result,) = written(report._replace(findings=(finding(),)))["results"]
    return str(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


class TestDocument:
    def test_a_finding_becomes_a_result(self) -> None:
        run = written(ORDERS)
        _, result, _ = run["results"]
        (rule,) = [rule for rule, _ in PAGES if rule.id == "DP103"]
        identity = fingerprint(ORDERS, ORDERS.findings[1])
        assert result == {
            "ruleId": "DP103",
            "ruleIndex": [rule.id for rule, _ in PAGES].index("DP103"),
            "level": "error",
            "message": {"text": "it is needed\nHint: add it"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "s3://lake/orders"},
                        "region": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
                    },
                    "logicalLocations": [{"fullyQualifiedName": "orders"}],
                }
            ],
            "partialFingerprints": {FINGERPRINT: identity, "primaryLocationLineHash": identity},
            "suppressions": [],
            "properties": {"table": "orders", "feature": "deletionVectors"},
        }
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == rule.id

    def test_a_suppressed_finding_says_why_and_until_when(self) -> None:
        *_, result = written(ORDERS)["results"]
        assert result["suppressions"] == [
            {
                "kind": "external",
                "status": "accepted",
                "justification": "known",
                "properties": {"expires": "2027-01-31"},
            }
        ]
        assert result["properties"] == {"table": "orders", "client": "delta-rs"}

    def test_a_table_without_a_whole_answer_makes_the_run_unsuccessful(self) -> None:
        run = written(CLEAN, MISSING, PARTIAL)
        (invocation,) = run["invocations"]
        assert run["results"] == []
        assert invocation["startTimeUtc"] == STARTED
        assert invocation["executionSuccessful"] is False
        gone, partly = invocation["toolExecutionNotifications"]
        assert gone["level"] == partly["level"] == "error"
        assert gone["message"]["text"] == "gone: there is no table\nHint: look elsewhere"
        assert gone["properties"] == {"code": "not-found", "table": "gone"}
        assert partly["properties"] == {"code": "incomplete", "table": "partly"}

    @pytest.mark.parametrize("tables", [(), (CLEAN,), (CLEAN, ORDERS)])
    def test_a_run_over_readable_tables_is_successful(self, tables: tuple[Report, ...]) -> None:
        (invocation,) = written(*tables)["invocations"]
        assert invocation["executionSuccessful"] is True
        assert invocation["toolExecutionNotifications"] == []

    @pytest.mark.parametrize(
        ("severity", "level"),
        [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")],
    )
    def test_each_severity_has_a_level(self, severity: Severity, level: str) -> None:
        (result,) = written(CLEAN._replace(findings=(finding(severity=severity),)))["results"]
        assert result["level"] == level

    def test_a_rule_that_was_not_announced_has_no_index(self) -> None:
        (result,) = written(CLEAN._replace(findings=(finding("DP999"),)))["results"]
        assert result["ruleId"] == "DP999"
        assert "ruleIndex" not in result

    def test_brackets_in_a_message_make_no_link(self) -> None:
        said = finding(message="see [here](http://example.com)", hint="")
        (result,) = written(CLEAN._replace(findings=(said,)))["results"]
        assert result["message"]["text"] == "see [here] (http://example.com)"


class TestRules:
    def test_the_tool_names_itself_and_its_rules(self) -> None:
        driver = written()["tool"]["driver"]
        assert (driver["name"], driver["version"]) == ("deltaproto", __version__)
        assert [rule["id"] for rule in driver["rules"]] == [rule.id for rule in RULES]

    def test_a_rule_carries_its_page(self) -> None:
        (shown,) = [rule for rule in written()["tool"]["driver"]["rules"] if rule["id"] == "DP107"]
        (page,) = [page for rule, page in PAGES if rule.id == "DP107"]
        assert shown["name"] == "NotLowestProtocol"
        assert shown["shortDescription"]["text"] == "The protocol is not in its lowest form."
        assert shown["fullDescription"]["text"].startswith("Compares the stored protocol with")
        assert shown["help"] == {"text": page, "markdown": page}
        assert shown["defaultConfiguration"] == {"level": "note"}

    @each_row("rule_page", PAGES, ids=lambda rule_page: rule_page[0].id)
    def test_github_takes_every_description(self, rule_page: RulePage) -> None:
        (shown,) = written(rules=[rule_page])["tool"]["driver"]["rules"]
        assert re.fullmatch(r"(?:[A-Z][a-z0-9]*)+", shown["name"])
        for name in ("shortDescription", "fullDescription"):
            assert 0 < len(shown[name]["text"]) <= 1024

    def test_a_page_without_headings_is_its_own_summary(self) -> None:
        rule = Rule("DP999", "some-rule", Severity.ERROR, since="9.9")
        (shown,) = written(rules=[(rule, "One line.")])["tool"]["driver"]["rules"]
        assert shown["fullDescription"]["text"] == "One line."


class TestUri:
    @pytest.mark.parametrize(
        ("location", "shown"),
        [
            ("file:///tmp/a%20b", "file:///tmp/a%20b"),
            ("s3://lake/a b", "s3://lake/a%20b"),
            ("s3://lake/100%", "s3://lake/100%25"),
            ("s3://lake/day=1/é?#x", "s3://lake/day=1/%C3%A9%3F%23x"),
            ("s3://[x:y]/t", "s3://%5Bx%3Ay%5D/t"),
            ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
            ("http://localhost:9000/b", "http://localhost:9000/b"),
            ("dbfs:/user/hive/t", "dbfs:/user/hive/t"),
            ("/no/scheme", "%2Fno%2Fscheme"),
        ],
    )
    def test_a_location_becomes_a_uri(self, location: str, shown: str) -> None:
        assert uri(Report("t", location)) == shown

    def test_without_a_location_the_name_is_a_relative_reference(self) -> None:
        assert uri(Report("main.sales.`a/b: c`", None)) == "main.sales.%60a%2Fb%3A%20c%60"

    @given(locations | texts)
    def test_any_location_is_a_uri_reference(self, location: str) -> None:
        assert FORMATS.conforms(uri(Report("t", location)), "uri-reference")


class TestAnyText:
    @given(st.lists(reports, max_size=3))
    def test_the_document_is_valid_and_has_a_result_for_each_finding(
        self, tables: list[Report]
    ) -> None:
        run = written(*tables)
        wanted = [found.rule for table in tables for found in table.findings] + [
            accepted.finding.rule for table in tables for accepted in table.suppressed
        ]
        assert len(run["results"]) == len(wanted)

    def test_results_are_written_before_the_next_table_is_read(self) -> None:
        file = io.StringIO()
        sizes: list[int] = []

        def tables() -> Iterator[Report]:
            for _ in range(3):
                sizes.append(len(file.getvalue()))
                yield ORDERS

        write_sarif(tables(), file, rules=PAGES, started_at=STARTED)
        assert sizes == sorted(set(sizes))


class TestFingerprint:
    @given(reports, findings, texts, texts, st.sampled_from(Severity), st.none() | texts)
    def test_wording_severity_and_evidence_leave_it_alone(
        self,
        table: Report,
        found: Finding,
        message: str,
        hint: str,
        severity: Severity,
        evidence: str | None,
    ) -> None:
        later = found._replace(message=message, hint=hint, severity=severity, evidence=evidence)
        assert fingerprint(table, found) == fingerprint(table, later)

    @given(reports, findings, st.none() | texts, st.sampled_from(["rule", "feature", "client"]))
    def test_rule_feature_and_client_are_in_it(
        self, table: Report, found: Finding, other: str | None, member: str
    ) -> None:
        changed = found._replace(**{member: other or ""})
        same = getattr(found, member) == (other or "")
        assert (fingerprint(table, found) == fingerprint(table, changed)) is same

    @given(findings, locations, locations)
    def test_the_table_is_in_it(self, found: Finding, one: str, two: str) -> None:
        by_location = [fingerprint(Report("t", where), found) for where in (one, two)]
        by_name = [fingerprint(Report(name, None), found) for name in (one, two)]
        assert (by_location[0] == by_location[1]) is (one == two)
        assert (by_name[0] == by_name[1]) is (one == two)

    def test_another_name_for_the_same_location_leaves_it_alone(self) -> None:
        names = (Report(name, "s3://lake/t") for name in ("s3://lake/t", "main.sales.t"))
        assert len({fingerprint(table, finding()) for table in names}) == 1

    def test_it_is_the_same_in_every_release(self) -> None:
        found = finding(feature="deletionVectors", client="delta-rs")
        assert fingerprint(ORDERS, found) == "a0356c049be2c3c73087f957f8e50b01"

    def test_another_version_of_deltaproto_leaves_it_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = written(ORDERS)
        monkeypatch.setattr("deltaproto.render.sarif.__version__", "9.9.9")
        after = written(ORDERS)
        assert after["tool"]["driver"]["version"] == "9.9.9"
        assert before["results"] == after["results"]
