"""Policies that no table can meet: refused within a pattern, shown between patterns."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.policy.document import PolicyError, load_policy
from deltaproto.policy.document.contradictions import find_contradictions
from deltaproto.policy.document.model import PolicySettings
from deltaproto.protocol.isolation import IsolationLevel
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]


def problems(**settings: Any) -> list[str]:
    return [each.problem for each in find_contradictions(PolicySettings(**settings))]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"forbid_features": ("deletionVectors",),
             "require_properties": {"delta.enableDeletionVectors": "true"}},
            "delta.enableDeletionVectors = true enables deletionVectors, which is forbidden",
        ),
        (
            {"forbid_features": ("domainMetadata",),
             "require_properties": {"delta.enableRowTracking": "true"}},
            "delta.enableRowTracking = true enables rowTracking, which requires domainMetadata, "
            "which is forbidden",
        ),
        (
            {"forbid_features": ("v2Checkpoint",),
             "require_properties": {"delta.feature.v2Checkpoint": "supported"}},
            "delta.feature.v2Checkpoint = supported adds v2Checkpoint, which is forbidden",
        ),
        (
            {"forbid_features": ("clustering",), "cluster_by": ("id",)},
            "cluster_by needs clustering, which is forbidden",
        ),
        (
            {"max_reader_version": 2, "require_features": ("deletionVectors",)},
            "deletionVectors is required, which requires reader version 3: max_reader_version is 2",
        ),
        (
            {"max_writer_version": 4,
             "require_properties": {"delta.columnMapping.mode": "name"}},
            "delta.columnMapping.mode = name enables columnMapping, which requires writer version "
            "5: max_writer_version is 4",
        ),
        (
            {"max_writer_version": 6, "cluster_by": ("id",)},
            "cluster_by needs clustering, which requires writer version 7: max_writer_version is 6",
        ),
        (
            {"max_writer_version": 6, "require_features": ("changeDataFeed",),
             "forbid_features": ("appendOnly",)},
            "writer versions up to 6 imply features, and no allowed version has changeDataFeed "
            "without appendOnly",
        ),
        (
            {"max_writer_version": 6, "min_writer_version": 4,
             "forbid_features": ("generatedColumns", "changeDataFeed")},
            "writer versions up to 6 imply features, and no allowed version has the required "
            "minimum without changeDataFeed or generatedColumns",
        ),
        (
            {"min_reader_version": 3, "max_writer_version": 6},
            "min_reader_version 3 requires writer version 7: max_writer_version is 6",
        ),
        (
            {"require_properties": {"delta.enableIcebergCompatV1": "true",
                                    "delta.enableIcebergCompatV2": "true"}},
            "delta.enableIcebergCompatV1 = true enables icebergCompatV1, which excludes "
            "icebergCompatV2: delta.enableIcebergCompatV2 = true enables icebergCompatV2",
        ),
        (
            {"require_features": ("deletionVectors",),
             "require_properties": {"delta.enableIcebergCompatV1": "true"}},
            "delta.enableIcebergCompatV1 = true enables icebergCompatV1, which excludes "
            "deletionVectors: deletionVectors is required",
        ),
        (
            {"require_properties": {"delta.enableIcebergCompatV2": "true",
                                    "delta.columnMapping.mode": "none"}},
            "delta.enableIcebergCompatV2 = true enables icebergCompatV2, which requires "
            "columnMapping: delta.columnMapping.mode = none disables it",
        ),
        (
            {"isolation": IsolationLevel.SERIALIZABLE,
             "require_properties": {"delta.isolationLevel": "WriteSerializable"}},
            "delta.isolationLevel = WriteSerializable contradicts isolation Serializable",
        ),
    ],
)  # fmt: skip
def test_settings_that_exclude_each_other(settings: dict[str, Any], problem: str) -> None:
    assert problem in problems(**settings)
    # Each setting alone can be met.
    for name, value in settings.items():
        if name != "require_properties":
            assert problems(**{name: value}) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"require_features": ("deletionVectors",),
         "require_properties": {"delta.enableDeletionVectors": "false"}},
        # Its preview has the same property.
        {"forbid_features": ("typeWidening-preview",),
         "require_properties": {"delta.enableTypeWidening": "true"}},
        {"forbid_features": ("typeWidening",),
         "require_properties": {"delta.enableTypeWidening": "true"}},
        {"max_writer_version": 5, "max_reader_version": 2, "require_features": ("columnMapping",)},
        {"max_reader_version": 2, "require_features": ("columnMapping",),
         "forbid_features": ("appendOnly",)},
        {"max_writer_version": 4, "require_features": ("changeDataFeed",)},
        {"max_writer_version": 6, "forbid_features": ("changeDataFeed",)},
        {"cluster_by": (), "forbid_features": ("clustering",)},
        {"isolation": IsolationLevel.SERIALIZABLE,
         "require_properties": {"delta.isolationLevel": "serializable"}},
        {"require_features": ("icebergCompatV1", "icebergCompatV2")},
    ],
)  # fmt: skip
def test_settings_that_some_table_meets(settings: dict[str, Any]) -> None:
    assert problems(**settings) == []


def test_all_contradictions_of_a_file_have_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "policy_version: 1\n"
        "profiles:\n"
        "  open:\n"
        "    forbid_features: [deletionVectors]\n"
        "tables:\n"
        "  gold/**:\n"
        "    profile: open\n"
        "    require_properties:\n"
        "      delta.enableDeletionVectors: true\n"
        "  silver/**:\n"
        "    forbid_features: [deletionVectors, domainMetadata]\n"
        "    require_features: [clustering]\n"
        "    require_properties:\n"
        "      delta.appendOnly: true\n"
        "      delta.enableDeletionVectors: true\n"
    )
    with pytest.raises(PolicyError) as raised:
        load_policy(str(file), rules=(), today=datetime.date(2026, 11, 28))
    lines = [line.removeprefix(f"{file}:").partition(" (")[0] for line in raised.value.lines]
    assert lines == [
        "6:3: delta.enableDeletionVectors = true enables deletionVectors, which is forbidden",
        "12:24: clustering is required, which requires domainMetadata, which is forbidden",
        "15:7: delta.enableDeletionVectors = true enables deletionVectors, which is forbidden",
    ]
    assert "(with the profile open)" in raised.value.lines[0]


CONTRADICTION = (
    "policy_version: 1\n"
    "tables:\n"
    "  '**': {forbid_features: [deletionVectors]}\n"
    "  gold/**: {require_properties: {delta.enableDeletionVectors: true}}\n"
)


def three_tables(folder: Path) -> list[str]:
    """Create two tables below gold, and one below silver."""
    places = [folder / name for name in ("gold/t", "gold/u", "silver/t")]
    for place in places:
        Log(place).commit(0, commit_info(), protocol(1, 2), metadata(), add())
    return [*map(str, places)]


def test_patterns_that_contradict_each_other(cli: Cli, tmp_path: Path) -> None:
    tables, file = three_tables(tmp_path), tmp_path / "policy.yaml"
    file.write_text(CONTRADICTION)
    ran = cli("check", *tables, "--policy", str(file), "--format", "json")
    (found,) = [each for each in ran.json["findings"] if each["rule"] == "DP306"]
    assert found["severity"] == "warning"
    assert found["message"] == (
        f'{file}:4:3: "gold/**" and less specific patterns contradict each other: '
        "delta.enableDeletionVectors = true enables deletionVectors, which is forbidden (2 tables)"
    )
    planned = cli("plan", tables[0], "--policy", str(file))
    assert planned.code == 1
    assert "these requirements contradict each other" in planned.out
    file.write_text(
        "policy_version: 1\n"
        "tables:\n"
        "  '**': {forbid_features: [deletionVectors]}\n"
        "  gold/**:\n"
        "    forbid_features: []\n"
        "    forbid_features_replace: true\n"
        "    require_properties: {delta.enableDeletionVectors: true}\n"
    )
    ran = cli("check", *tables, "--policy", str(file), "--format", "json")
    assert "DP306" not in {each["rule"] for each in ran.json["findings"]}


@pytest.mark.parametrize(
    ("pattern", "tables"), [("gold/*", None), ("gold/t", "1 table"), ("silver/*", "2 tables")]
)
def test_a_waiver_of_contradictions(
    pattern: str, tables: str | None, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        f"{CONTRADICTION}waivers:\n"
        f"  - {{rule: DP306, table: {pattern}, reason: r, expires: 2999-01-01}}\n"
    )
    words = [*three_tables(tmp_path), "--policy", str(file)]
    ran = cli("check", *words, "--format", "json").json
    found = [each["message"] for each in ran["findings"] if each["rule"] == "DP306"]
    assert [each.rpartition(" (")[2] for each in found] == ([f"{tables})"] if tables else [])
    suppressed = [each["rule"] for each in ran["suppressed"]]
    assert suppressed == ([] if tables == "2 tables" else ["DP306"])
    assert ("DP301" in {each["rule"] for each in ran["findings"]}) is (tables == "2 tables")
    for format_ in ("text", "markdown"):
        text = cli("check", *words, "--format", format_).out
        assert ("contradict each other" in " ".join(text.split())) is bool(tables)
        # The policy is named only beside its findings.
        assert (file.name in text) is bool(tables)
