"""The platform's two tables, typed in by hand, against the catalogs of features and clients."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.feature_matrix import FeatureAnswer, feature_rows
from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import Access, PathVerdict, Verdict
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from tests.clients.made import protocol, table
from tests.support.failures import each_row


class Minimum(NamedTuple):
    """One row of the table of protocol versions."""

    name: str
    features: tuple[str, ...]
    writer: int
    reader: int
    kind: str


MINIMA = (
    Minimum("Basic functionality", ("appendOnly", "invariants"), 2, 1, "writer"),
    Minimum("CHECK constraints", ("checkConstraints",), 3, 1, "writer"),
    Minimum("Change data feed", ("changeDataFeed",), 4, 1, "writer"),
    Minimum("Generated columns", ("generatedColumns",), 4, 1, "writer"),
    Minimum("Column mapping", ("columnMapping",), 5, 2, "reader-writer"),
    Minimum("Identity columns", ("identityColumns",), 6, 1, "writer"),
    Minimum("Row tracking", ("rowTracking",), 7, 1, "writer"),
    Minimum("Deletion vectors", ("deletionVectors",), 7, 3, "reader-writer"),
    Minimum("TimestampNTZ", ("timestampNtz",), 7, 3, "reader-writer"),
    Minimum("Liquid clustering", ("clustering",), 7, 3, "reader-writer"),
    Minimum("Iceberg readers (UniForm)", ("icebergCompatV1", "icebergCompatV2"), 7, 2, "writer"),
    Minimum("Type widening", ("typeWidening",), 7, 3, "reader-writer"),
    Minimum("Variant", ("variantType",), 7, 3, "reader-writer"),
    Minimum("Collations", ("collations",), 7, 3, "reader-writer"),
    Minimum("Protected checkpoints", ("checkpointProtection",), 7, 1, "writer"),
)
# Here the specification says: for writers only, reader 1. The record has to show both opinions.
DISPUTED = {"clustering", "collations"}


class Runtime(NamedTuple):
    """One row of the table of minimum runtimes, and the last runtime before it."""

    name: str
    feature: str
    runtime: str
    before: str | None
    """None: the page says `all supported`, so there is none that is supported and lacks it"""


# The page promises the legacy features for "all supported versions", and says of 9.1 LTS that
# column mapping and identity columns came with 10.4 LTS.
RUNTIMES = (
    Runtime("CHECK constraints", "checkConstraints", "9.1 LTS", None),
    Runtime("Change data feed", "changeDataFeed", "9.1 LTS", None),
    Runtime("Generated columns", "generatedColumns", "9.1 LTS", None),
    Runtime("Column mapping", "columnMapping", "10.4 LTS", "9.1 LTS"),
    Runtime("Identity columns", "identityColumns", "10.4 LTS", "9.1 LTS"),
    Runtime("Deletion vectors", "deletionVectors", "12.2 LTS", "12.1"),
    Runtime("TimestampNTZ", "timestampNtz", "13.3 LTS", "13.2"),
    Runtime("UniForm", "icebergCompatV1", "13.3 LTS", "13.2"),
    Runtime("Liquid clustering", "clustering", "13.3 LTS", "13.2"),
    Runtime("Row tracking", "rowTracking", "14.3 LTS", "14.2"),
    Runtime("Type widening", "typeWidening", "15.4 LTS", "15.3"),
    Runtime("Variant", "variantType", "15.4 LTS", "15.3"),
    Runtime("Collations", "collations", "16.1", "16.0"),
)
NOT_OK = {Verdict.REFUSED, Verdict.UNKNOWN}


def on(runtime: str, wanted: Protocol, access: Access) -> PathVerdict | None:
    """What a runtime does with a table that uses all of its features; None: not known."""
    found = ClientCatalog().resolve(f"databricks-runtime@{runtime}")
    if found.range is None:
        return None
    (path,) = found.paths
    mode = "name" if "columnMapping" in wanted.supported else None
    needs = table(wanted, used=wanted.supported, mode=mode)
    return judge_access(found.range, path, needs, access)


def verdict(runtime: str, wanted: Protocol, access: Access) -> Verdict:
    judgement = on(runtime, wanted, access)
    return Verdict.UNKNOWN if judgement is None else judgement.verdict


@each_row("row", MINIMA, ids=lambda row: row.name)
def test_item_3_versions_and_kind_of_each_row(row: Minimum) -> None:
    for name in row.features:
        record = feature_catalog.feature_record(name, in_reader_list=name in DISPUTED)
        assert (record.min_writer, record.kind) == (row.writer, row.kind)
        if row.writer < 7:
            assert name in Protocol(row.reader, row.writer).implied
            assert name not in Protocol(row.reader, row.writer - 1).implied
        else:
            pair = Protocol.carrying({name}, reader_features={name} & DISPUTED)
            assert (pair.min_reader_version, pair.min_writer_version) == (row.reader, row.writer)


@pytest.mark.parametrize("name", sorted(DISPUTED))
def test_item_3_where_the_specification_differs_both_are_on_record(name: str) -> None:
    record = feature_catalog.feature_record(name)
    assert (record.kind, record.min_reader, record.min_writer) == ("writer", 1, 7)
    assert "reader and writer" in record.disputes[0].databricks


@each_row("row", RUNTIMES, ids=lambda row: row.name)
@each_row("access", [Access.READ, Access.APPEND])
def test_items_4_and_17_the_minimum_runtime_takes_the_feature(row: Runtime, access: Access) -> None:
    assert verdict(row.runtime, Protocol.carrying({row.feature}), access) is Verdict.OK


@each_row("row", RUNTIMES, ids=lambda row: row.name)
def test_items_4_and_17_every_later_release_takes_it_too(row: Runtime) -> None:
    wanted = Protocol.carrying({row.feature})
    order = [
        "9.1 LTS",
        "10.4 LTS",
        "12.2 LTS",
        "13.3 LTS",
        "14.3 LTS",
        "15.4 LTS",
        "16.1",
        "17.3 LTS",
    ]
    for runtime in [*order[order.index(row.runtime) :], "18.0"]:
        assert verdict(runtime, wanted, Access.READ) is Verdict.OK
        assert verdict(runtime, wanted, Access.APPEND) is Verdict.OK


@pytest.mark.parametrize(
    "row", [row for row in RUNTIMES if row.before is not None], ids=lambda row: row.name
)
def test_items_4_and_17_the_release_before_does_not_and_the_feature_is_named(row: Runtime) -> None:
    assert row.before is not None
    judgement = on(row.before, Protocol.carrying({row.feature}), Access.APPEND)
    assert judgement is not None
    assert judgement.verdict in NOT_OK
    assert row.feature in judgement.because


def test_items_4_and_17_collations_are_kept_from_older_readers() -> None:
    # Databricks lists them for readers as well.
    wanted = Protocol.carrying({"collations"}, reader_features={"collations"})
    assert wanted.reader_features == {"collations"}
    for access in (Access.READ, Access.APPEND):
        assert verdict("16.1", wanted, access) is Verdict.OK
        assert verdict("16.0", wanted, access) in NOT_OK


def test_items_4_and_17_protected_checkpoints_need_16_3_and_two_pages_disagree_before() -> None:
    # The drop-feature page opens the table to all; the page on compatibility names 16.3.
    wanted = Protocol.carrying({"checkpointProtection"})
    for runtime in ("12.2 LTS", "14.3 LTS", "16.2", "16.3", "17.3 LTS", "19"):
        assert verdict(runtime, wanted, Access.READ) is Verdict.OK
    for runtime in ("16.3", "17.3 LTS", "18 LTS", "19"):
        assert verdict(runtime, wanted, Access.APPEND) is Verdict.OK
    for runtime in ("12.2 LTS", "14.3 LTS", "16.2"):
        judgement = on(runtime, wanted, Access.APPEND)
        assert judgement is not None
        assert (judgement.verdict, judgement.because) == ("unknown", ("checkpointProtection",))
        assert "16.3" in judgement.reason
        assert "dropping features" in judgement.reason


@each_row(
    ("feature", "before", "access"),
    [
        ("clustering", "12.2 LTS", Access.READ),
        ("clustering", "9.1 LTS", Access.STREAM),
        ("collations", "15.4 LTS", Access.READ),
        ("collations-preview", "9.1 LTS", Access.READ),
        ("icebergCompatV2", "13.3 LTS", Access.APPEND),
    ],
)
def test_where_page_and_specification_differ_the_verdict_is_unknown_and_names_both(
    feature: str, before: str, access: Access
) -> None:
    judgement = on(before, Protocol.carrying({feature}), access)
    assert judgement is not None
    if before == "9.1 LTS" and judgement.verdict is Verdict.REFUSED:
        return
    assert (judgement.verdict, feature in judgement.because) == (Verdict.UNKNOWN, True)
    assert "page" in judgement.reason
    assert (
        "specification" in judgement.reason
        or "RFC" in judgement.reason
        or ("page on UniForm" in judgement.reason)
    )


def test_the_matrix_of_a_runtime_never_says_yes_against_the_page() -> None:
    for runtime, features in (
        ("9.1 LTS", {"clustering", "collations", "icebergCompatV1", "icebergCompatV2"}),
        ("12.2 LTS", {"clustering", "collations"}),
        ("15.4 LTS", {"collations", "collations-preview"}),
    ):
        (path,) = ClientCatalog().resolve(f"databricks-runtime@{runtime}").paths
        answers = {row.feature: row.read for row in feature_rows(path)}
        assert {answers[name] for name in features} == {FeatureAnswer.UNKNOWN}, runtime
    (path,) = ClientCatalog().resolve("databricks-runtime@16.1").paths
    assert {row.read for row in feature_rows(path) if row.feature in DISPUTED} == {
        FeatureAnswer.YES
    }


@pytest.mark.parametrize("access", [Access.READ, Access.APPEND])
def test_item_17_table_features_as_such_need_12_2(access: Access) -> None:
    listed = protocol(3, 7, [], ["appendOnly", "invariants"])
    assert verdict("12.2 LTS", listed, access) is Verdict.OK
    assert verdict("12.1", listed, access) in NOT_OK


def test_item_17_older_lts_releases_take_lists_of_what_they_had() -> None:
    # "Generated columns through table features stay usable in 9.1 LTS", identity columns do not.
    assert verdict("9.1 LTS", protocol(1, 7, None, ["generatedColumns"]), Access.APPEND) == "ok"
    identity = on("9.1 LTS", protocol(1, 7, None, ["identityColumns"]), Access.APPEND)
    assert identity is not None
    assert (identity.verdict, identity.because) == ("refused", ("identityColumns",))
    assert verdict("10.4 LTS", protocol(1, 7, None, ["identityColumns"]), Access.APPEND) == "ok"


def test_item_16_one_feature_among_many_is_enough() -> None:
    wanted = Protocol.carrying({"deletionVectors", "timestampNtz", "variantType", "rowTracking"})
    judgement = on("14.3 LTS", wanted, Access.READ)
    assert judgement is not None
    assert (judgement.verdict, judgement.because) == ("refused", ("variantType",))
    assert verdict("15.4 LTS", wanted, Access.APPEND) is Verdict.OK


@pytest.mark.parametrize(("writer", "runtime"), [(4, "9.1 LTS"), (5, "10.4 LTS"), (6, "10.4 LTS")])
def test_item_18_a_legacy_number_asks_for_all_below_it(writer: int, runtime: str) -> None:
    for number in range(1, writer + 1):
        assert verdict(runtime, Protocol(1, number), Access.APPEND) is Verdict.OK
    if writer == 4:
        judgement = on(runtime, Protocol(2, 6), Access.APPEND)
        assert judgement is not None
        assert set(judgement.because) == {"columnMapping", "identityColumns"}


@pytest.mark.parametrize("name", ["icebergCompatV1", "icebergCompatV2"])
def test_item_22_uniform_is_judged_at_reader_2(name: str) -> None:
    wanted = protocol(2, 7, None, [name, "columnMapping"])
    assert Protocol.carrying({name}) == wanted
    # 11.2 knows reader version 2, but no lists of reader features.
    assert verdict("11.2", wanted, Access.READ) is Verdict.OK
    assert verdict(
        "11.2", protocol(3, 7, ["columnMapping"], [name, "columnMapping"]), Access.READ
    ) in (NOT_OK)
    refused = on("11.2", wanted, Access.APPEND)
    assert refused is not None
    assert refused.verdict in NOT_OK
    assert verdict("14.3 LTS", wanted, Access.APPEND) is Verdict.OK


def test_item_11_what_concerns_writers_keeps_no_reader_out() -> None:
    for row in MINIMA:
        for name in row.features:
            if row.kind == "writer" and row.reader == 1:
                listed = protocol(1, 7, None, [name])
                assert verdict("9.1 LTS", listed, Access.READ) is Verdict.OK
