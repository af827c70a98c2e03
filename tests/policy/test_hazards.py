"""Hazards told from findings, properties and the path."""

from __future__ import annotations

from deltaproto.clients import requirements
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.hazards import hazards_of, unsaved


def finding(rule: str, evidence: str) -> Finding:
    return Finding(rule, Severity.INFO, "m", "h", "t", evidence=evidence)


def test_only_local_paths_hold_percent_signs_literally() -> None:
    assert set(hazards_of((), {}, "file:///t%2520")) == {requirements.PERCENT_IN_PATH}
    assert set(hazards_of((), {}, "file:///t%20")) == {requirements.SPECIAL_LOCATION}
    special, beyond = requirements.SPECIAL_LOCATION, requirements.NON_ASCII_LOCATION
    assert set(hazards_of((), {}, "file:///%C3%A4/t")) == {special}
    assert set(hazards_of((), {}, "file:///t%C3%A4")) == {special, beyond}
    assert set(hazards_of((), {}, "file:///t%5E")) == {requirements.ODD_LOCATION}
    assert set(hazards_of((), {}, "s3://bucket/t=1/a+b")) == {requirements.HIVE_LOCATION}
    assert set(hazards_of((), {}, "file:///t%3D1")) == {requirements.HIVE_LOCATION}
    assert not set(hazards_of((), {}, "file:///t-1/a+b"))
    assert not set(hazards_of((), {}, "s3://bucket/t%2520"))


def test_the_evidence_of_findings_names_hazards() -> None:
    found = [
        finding("DP140", "absolute-paths"),
        finding("DP143", "expression size(); expression double-quoted string"),
        finding("DP107", "absolute-paths"),
        finding("DP141", "something else"),
    ]
    assert set(hazards_of(found, {}, "file:///t")) == {
        "absolute-paths",
        "expression size()",
        "expression double-quoted string",
    }


def test_properties_show_hazards_in_any_case() -> None:
    assert set(hazards_of((), {"delta.appendOnly": "TRUE"}, "")) == {requirements.APPEND_ONLY}
    tracking = {"delta.enableRowTracking": "true"}
    assert set(hazards_of((), tracking, "")) == {requirements.UNNAMED_ROW_IDS}
    named = {**tracking, "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1"}
    assert not set(hazards_of((), named, ""))


def test_only_the_log_shows_the_files() -> None:
    assert requirements.ABSOLUTE_PATHS not in unsaved("log")
    assert requirements.ABSOLUTE_PATHS in unsaved("spark")
