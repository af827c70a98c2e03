"""GitLab code quality: one valid document, an entry for each finding and each failure."""

from __future__ import annotations

import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from deltaproto.policy.finding import Severity
from deltaproto.render.ci_reports import write_gitlab
from deltaproto.render.findings import Report, fingerprint, problem
from tests.render.strategies import CLEAN, MISSING, ORDERS, PARTIAL, finding, reports

SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


def entries(*tables: Report, hidden: str = "") -> list[dict[str, Any]]:
    file = io.StringIO()
    write_gitlab(iter(tables), file, hidden=lambda: hidden)
    found = json.loads(file.getvalue())
    assert isinstance(found, list)
    return found


def test_each_finding_is_an_entry_with_the_fingerprint_of_sarif() -> None:
    found = entries(ORDERS, CLEAN)
    assert [each["check_name"] for each in found] == [each.rule for each in ORDERS.findings]
    assert [each["fingerprint"] for each in found] == [
        fingerprint(ORDERS, each) for each in ORDERS.findings
    ]
    assert found[0]["location"] == {"path": "orders", "lines": {"begin": 1}}
    assert found[1] == {
        "description": "it is needed\nHint: add it",
        "check_name": "DP103",
        "fingerprint": fingerprint(ORDERS, ORDERS.findings[1]),
        "severity": "critical",
        "location": {"path": "orders", "lines": {"begin": 1}},
    }


def test_severities_are_those_of_gitlab() -> None:
    words = {
        severity: entries(CLEAN._replace(findings=(finding(severity=severity),)))[0]["severity"]
        for severity in Severity
    }
    assert words == {
        Severity.ERROR: "critical",
        Severity.WARNING: "major",
        Severity.INFO: "info",
    }


def test_a_table_without_a_whole_answer_is_a_blocker() -> None:
    found = entries(MISSING, PARTIAL)
    assert [(each["check_name"], each["severity"]) for each in found] == [
        ("not-found", "blocker"),
        ("incomplete", "blocker"),
    ]


def test_what_is_not_shown_is_counted() -> None:
    (found,) = entries(CLEAN, hidden="2 findings are waived")
    assert found["description"] == "2 findings are waived"
    assert found["severity"] == "info"


@given(st.lists(reports, max_size=4))
def test_any_text_makes_a_valid_document(tables: list[Report]) -> None:
    found = entries(*tables)
    wanted = sum(
        len(each.findings) + (problem(each.error, complete=each.complete) is not None)
        for each in tables
    )
    assert len(found) == wanted
    for each in found:
        assert {*each} == {"description", "check_name", "fingerprint", "severity", "location"}
        assert each["severity"] in SEVERITIES
        assert len(each["fingerprint"]) in (32, 64)
        assert "\x1b" not in json.dumps(each, ensure_ascii=False)
