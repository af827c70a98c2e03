"""The platform's checklist for a protocol tool, as far as these commands answer it.

The tables are those of the platform's page on feature compatibility: the minimum runtimes for
full support, and the protocol versions by feature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, add, column, metadata, protocol, schema_string

Cli = Callable[..., Ran]


class Row(NamedTuple):
    """One row of the platform's table of protocol versions."""

    name: str
    features: tuple[str, ...]
    writer: int
    reader: int
    kind: str


VERSIONS = (
    Row("Basic functionality", ("appendOnly", "invariants"), 2, 1, "writer"),
    Row("CHECK constraints", ("checkConstraints",), 3, 1, "writer"),
    Row("Change data feed", ("changeDataFeed",), 4, 1, "writer"),
    Row("Generated columns", ("generatedColumns",), 4, 1, "writer"),
    Row("Column mapping", ("columnMapping",), 5, 2, "reader-writer"),
    Row("Identity columns", ("identityColumns",), 6, 1, "writer"),
    Row("Row tracking", ("rowTracking",), 7, 1, "writer"),
    Row("Deletion vectors", ("deletionVectors",), 7, 3, "reader-writer"),
    Row("TimestampNTZ", ("timestampNtz",), 7, 3, "reader-writer"),
    Row("Type widening", ("typeWidening",), 7, 3, "reader-writer"),
    Row("Variant", ("variantType",), 7, 3, "reader-writer"),
    Row("Protected checkpoints", ("checkpointProtection",), 7, 1, "writer"),
)
# The protocol specification makes these writer features; the page lists them for both, at reader 3.
DISPUTED = (
    Row("Liquid clustering", ("clustering",), 7, 3, "reader-writer"),
    Row("Collations", ("collations",), 7, 3, "reader-writer"),
)
UNIFORM = Row("Iceberg readers (UniForm)", ("icebergCompatV1", "icebergCompatV2"), 7, 2, "writer")

RUNTIMES = {
    "checkConstraints": "all supported",
    "changeDataFeed": "all supported",
    "generatedColumns": "all supported",
    "columnMapping": "all supported",
    "identityColumns": "all supported",
    "deletionVectors": "12.2 LTS",
    "timestampNtz": "13.3 LTS",
    "icebergCompatV1": "13.3 LTS",
    "clustering": "13.3 LTS",
    "rowTracking": "14.3 LTS",
    "typeWidening": "15.4 LTS",
    "variantType": "15.4 LTS",
    "collations": "16.1",
    "checkpointProtection": "16.3",
}


@pytest.fixture
def catalog(cli: Cli) -> dict[str, dict[str, Any]]:
    features = cli("features", "--format", "json").json["features"]
    return {feature["name"]: feature for feature in features}


def inspect(cli: Cli, log: Log, *actions: dict[str, Any]) -> tuple[Ran, dict[str, Any]]:
    """The text of an inspection, and the table's entry in JSON."""
    log.commit(0, *actions)
    return cli("inspect", log.table), cli("inspect", log.table, "--format", "json").table


def line(ran: Ran, label: str) -> str:
    """The line of a text inspection that starts with `label`, without it."""
    (found,) = [text for text in ran.out.splitlines() if text.strip().startswith(label + " ")]
    return found.strip().removeprefix(label).strip()


def rules(table: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in table["findings"]}


class TestShow:
    @pytest.mark.parametrize("pair", [(1, 1), (1, 2), (1, 4), (2, 5), (1, 6), (2, 6)])
    def test_item_1_the_versions(self, cli: Cli, log: Log, pair: tuple[int, int]) -> None:
        text, table = inspect(cli, log, protocol(*pair), metadata())
        assert line(text, "protocol").startswith(f"({pair[0]},{pair[1]}):")
        shown = table["protocol"]
        assert (shown["minReaderVersion"], shown["minWriterVersion"]) == pair

    @pytest.mark.parametrize(
        ("action", "said"),
        [
            (protocol(1, 2), "no feature lists"),
            (protocol(1, 7, None, ["rowTracking", "domainMetadata"]), "no readerFeatures"),
            (protocol(3, 7, ["timestampNtz"], ["timestampNtz"]), "readers and writers"),
        ],
        ids=["legacy", "writers-only", "both"],
    )
    def test_item_2_the_lists_and_that_one_is_absent(
        self, cli: Cli, log: Log, action: dict[str, Any], said: str
    ) -> None:
        text, table = inspect(cli, log, action, metadata())
        assert said in line(text, "protocol")
        stored = action["protocol"]
        for role in ("readerFeatures", "writerFeatures"):
            names = stored.get(role)
            assert table["protocol"][role] == (None if names is None else sorted(names))
            assert all(name in text.out for name in names or ())

    @pytest.mark.parametrize("row", VERSIONS, ids=lambda row: row.name)
    def test_item_3_kind_and_versions_of_each_feature(
        self, cli: Cli, catalog: dict[str, dict[str, Any]], row: Row
    ) -> None:
        markdown = cli("features", "--format", "markdown").out
        for name in row.features:
            feature = catalog[name]
            assert feature["kind"] == row.kind
            assert feature["min_writer_version"] == row.writer
            assert feature["min_reader_version"] == row.reader
            needed_by = {"reader-writer": "everyone", "writer": "writers"}[row.kind]
            assert f"| `{name}` | {needed_by} | {row.reader},{row.writer} |" in markdown
            page = cli("features", name).out
            assert f"{row.kind} feature" in page
            assert f"reader {row.reader}, writer {row.writer}" in page

    @pytest.mark.parametrize("row", DISPUTED, ids=lambda row: row.name)
    def test_item_3_where_the_page_and_the_specification_differ_both_are_shown(
        self, cli: Cli, catalog: dict[str, dict[str, Any]], row: Row
    ) -> None:
        (name,) = row.features
        assert catalog[name]["min_writer_version"] == row.writer
        (dispute,) = catalog[name]["disputes"]
        assert dispute["oss"].startswith("writer-only")
        assert "reader and writer, reader version 3 and writer version 7" in dispute["databricks"]
        assert dispute["applies"]
        assert "disputed" in cli("features", name).out

    @pytest.mark.parametrize(("name", "runtime"), RUNTIMES.items())
    def test_item_4_the_minimum_runtime_of_full_support(
        self, cli: Cli, catalog: dict[str, dict[str, Any]], name: str, runtime: str
    ) -> None:
        assert catalog[name]["since"]["databricks"] == runtime
        assert f" {runtime}" in cli("features", name).out
        (row,) = [
            text
            for text in cli("features", "--format", "markdown").out.splitlines()
            if text.startswith(f"| `{name}` |")
        ]
        assert f"| {'all' if runtime == 'all supported' else runtime} |" in row

    def test_item_4_in_an_inspection(self, cli: Cli, log: Log) -> None:
        _, table = inspect(cli, log, protocol(2, 5), metadata())
        shown = {feature["min_databricks_runtime"] for feature in table["features"]}
        assert shown == {"all supported"}

    @pytest.mark.parametrize("writer", range(1, 7))
    def test_item_5_a_legacy_number_bundles_all_lower_ones(
        self, cli: Cli, log: Log, writer: int
    ) -> None:
        text, table = inspect(cli, log, protocol(2, writer), metadata())
        assert "legacy version numbers" in line(text, "protocol")
        bundle = {n for r in VERSIONS for n in r.features if r.writer <= writer and r.writer < 7}
        assert {feature["name"] for feature in table["features"]} == bundle
        assert all(f["implied"] and not f["listed"] for f in table["features"])
        for name in bundle:
            assert "implied" in line(text, name)

    def test_item_5_table_features_imply_nothing(self, cli: Cli, log: Log) -> None:
        text, table = inspect(cli, log, protocol(1, 7, None, ["checkConstraints"]), metadata())
        assert "table features" in line(text, "protocol")
        (feature,) = table["features"]
        assert feature["listed"]
        assert not feature["implied"]

    @pytest.mark.parametrize("on", [True, False])
    def test_item_9_supported_is_not_enabled(self, cli: Cli, log: Log, on: bool) -> None:
        text, table = inspect(
            cli,
            log,
            protocol(3, 7, ["deletionVectors"], ["deletionVectors"]),
            metadata({"delta.enableDeletionVectors": str(on).lower()}),
            add(),
        )
        (feature,) = table["features"]
        assert feature["listed"] is True
        assert feature["enabled"] is on
        assert line(text, "deletionVectors").split()[1:3] == ["listed", "yes" if on else "no"]

    @pytest.mark.parametrize(
        ("actual", "lowest"),
        [
            (protocol(1, 7, None, ["appendOnly", "invariants"]), protocol(1, 2)),
            (
                protocol(3, 7, [], ["appendOnly", "checkConstraints", "invariants"]),
                protocol(1, 3),
            ),
            (
                protocol(3, 7, ["columnMapping"], ["columnMapping"]),
                protocol(2, 7, None, ["columnMapping"]),
            ),
            (protocol(1, 5), protocol(1, 4)),
            (protocol(2, 5), protocol(2, 5)),
            (
                protocol(3, 7, ["timestampNtz"], ["timestampNtz"]),
                protocol(3, 7, ["timestampNtz"], ["timestampNtz"]),
            ),
        ],
        ids=["to-2", "to-3", "reader-list-goes", "odd-pair", "lowest-pair", "lowest-lists"],
    )
    def test_item_10_the_lowest_protocol_beside_the_actual_one(
        self, cli: Cli, log: Log, actual: dict[str, Any], lowest: dict[str, Any]
    ) -> None:
        text, table = inspect(cli, log, actual, metadata())
        absent = {"readerFeatures": None, "writerFeatures": None}
        assert table["protocol"] == absent | actual["protocol"]
        assert table["lowest_protocol"] == absent | lowest["protocol"]
        versions = lowest["protocol"]
        pair = f"({versions['minReaderVersion']},{versions['minWriterVersion']})"
        shown = line(text, "lowest")
        assert shown.startswith(pair)
        assert ("already the lowest" in shown) == (actual == lowest)

    def test_item_10_what_normalising_would_add_is_not_called_lower(
        self, cli: Cli, log: Log
    ) -> None:
        text, table = inspect(cli, log, protocol(1, 7, None, ["rowTracking"]), metadata())
        assert "would add domainMetadata" in line(text, "lowest")
        assert "DP107" not in rules(table)

    @pytest.mark.parametrize("row", DISPUTED, ids=lambda row: row.name)
    def test_item_11_readers_need_whatever_their_list_names(
        self, cli: Cli, log: Log, row: Row
    ) -> None:
        (name,) = row.features
        action = protocol(3, 7, [name], [name, "domainMetadata"])
        _, table = inspect(cli, log, action, metadata())
        (feature,) = [f for f in table["features"] if f["name"] == name]
        assert feature["kind"] == "reader-writer"
        assert name in table["reasons"][0]


class TestCheck:
    @pytest.mark.parametrize("pair", [(0, 2), (1, 0), (-1, 2), (2, -7), (3, 2), (3, 6)])
    def test_item_13_versions_that_do_not_exist(
        self, cli: Cli, log: Log, pair: tuple[int, int]
    ) -> None:
        text, table = inspect(cli, log, protocol(*pair), metadata())
        assert rules(table) == {"DP101"}
        assert text.code == 1

    @pytest.mark.parametrize("pair", [(4, 7), (1, 8), (3, 8), (4, 8)])
    def test_item_13_versions_from_the_future(
        self, cli: Cli, log: Log, pair: tuple[int, int]
    ) -> None:
        text, table = inspect(cli, log, protocol(*pair), metadata())
        assert table["error"]["code"] == "unsupported-protocol"
        assert f"({pair[0]},{pair[1]})" in text.out
        assert text.code == 3

    @pytest.mark.parametrize("version", ["3", 1.5, None, True, [1]])
    def test_item_13_versions_that_are_no_integers(
        self, cli: Cli, log: Log, version: object
    ) -> None:
        action = {"protocol": {"minReaderVersion": version, "minWriterVersion": 2}}
        _, table = inspect(cli, log, action, metadata())
        assert table["error"]["code"] == "corrupt-log"
        assert "minReaderVersion" in table["error"]["message"]

    @pytest.mark.parametrize("writer", range(2, 8))
    def test_item_13_every_writer_version_that_exists(
        self, cli: Cli, log: Log, writer: int
    ) -> None:
        lists = {"writer_features": ["appendOnly"]} if writer == 7 else {}
        _, table = inspect(cli, log, protocol(1, writer, **lists), metadata())
        assert "DP101" not in rules(table)

    @pytest.mark.parametrize(
        ("action", "rule", "feature"),
        [
            (protocol(1, 6, None, ["rowTracking"]), "DP101", None),
            (protocol(2, 7, ["columnMapping"], ["columnMapping"]), "DP101", None),
            (protocol(1, 7, None, ["timestampNtz"]), "DP101", "timestampNtz"),
            (protocol(3, 7, ["timestampNtz"], []), "DP102", "timestampNtz"),
            (protocol(3, 7, ["timestampNtz"], None), "DP101", None),
        ],
        ids=[
            "writer-list-below-7",
            "reader-list-below-3",
            "reader-feature-below-reader-3",
            "reader-feature-not-in-writer-list",
            "reader-list-alone",
        ],
    )
    def test_item_14_versions_and_lists_belong_together(
        self, cli: Cli, log: Log, action: dict[str, Any], rule: str, feature: str | None
    ) -> None:
        text, table = inspect(cli, log, action, schema_with_ntz())
        hits = {(f["rule"], f.get("feature"), f["severity"]) for f in table["findings"]}
        assert (rule, feature, "error") in hits
        assert text.code == 1

    @pytest.mark.parametrize("name", UNIFORM.features)
    def test_item_21_uniform_needs_column_mapping(
        self, cli: Cli, log: Log, catalog: dict[str, dict[str, Any]], name: str
    ) -> None:
        assert ("enabled", "columnMapping") in {
            (need["need"], need["feature"]) for need in catalog[name]["requires"]
        }
        text, table = inspect(cli, log, protocol(1, 7, None, [name]), uniform(name, mapping=False))
        (finding,) = [f for f in table["findings"] if f["rule"] == "DP104"]
        assert finding["feature"] == name
        assert "columnMapping" in finding["message"]
        assert text.code == 1

    @pytest.mark.parametrize("name", UNIFORM.features)
    def test_item_22_uniform_is_judged_at_reader_2_and_writer_7(
        self, cli: Cli, log: Log, name: str
    ) -> None:
        action = protocol(UNIFORM.reader, UNIFORM.writer, None, ["columnMapping", name])
        text, table = inspect(cli, log, action, uniform(name, mapping=True))
        assert table["findings"] == []
        assert text.code == 0
        assert table["lowest_protocol"] == table["protocol"]
        (feature,) = [f for f in table["features"] if f["name"] == name]
        assert feature["kind"] == UNIFORM.kind
        assert table["reasons"][0] == "reader 2: readers must support columnMapping"

    @pytest.mark.parametrize("name", UNIFORM.features)
    def test_item_22_reader_3_is_more_than_uniform_needs(
        self, cli: Cli, log: Log, name: str
    ) -> None:
        action = protocol(3, 7, ["columnMapping"], ["columnMapping", name])
        _, table = inspect(cli, log, action, uniform(name, mapping=True))
        assert rules(table) == {"DP107"}
        assert table["lowest_protocol"]["minReaderVersion"] == UNIFORM.reader


def schema_with_ntz() -> dict[str, Any]:
    return metadata(schema=schema_string(column("at", "timestamp_ntz")))


def uniform(name: str, *, mapping: bool) -> dict[str, Any]:
    """Metadata that enables an Iceberg feature, with or without column mapping."""
    enabled = {f"delta.enable{name[0].upper()}{name[1:]}": "true"}
    if not mapping:
        return metadata(enabled)
    ids = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "p"}
    fields = schema_string(column("c", **ids))
    return metadata({**enabled, "delta.columnMapping.mode": "name"}, schema=fields)
