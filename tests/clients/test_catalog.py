"""The shipped catalog, and references to its clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients import version_scheme
from deltaproto.clients.catalog import ClientCatalog, load_shipped_client, shipped_client_ids
from deltaproto.clients.model import (
    ANY_TABLE,
    ANY_UNKNOWN_FEATURE,
    Access,
    Client,
    Confidence,
    ProtocolGate,
    Range,
    Verdict,
)
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import latest_version, parse_reference
from deltaproto.clients.verdicts import evaluate_clients
from deltaproto.errors import UsageError
from deltaproto.protocol import feature_catalog as features
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.protocol import Protocol
from tests.clients.made import PROOF, client
from tests.support.failures import each_row

GATE = {"read": {"legacy": [1]}}
CLIENTS = [load_shipped_client(name) for name in shipped_client_ids()]
IDS = [
    "athena",
    "azure-data-factory",
    "azure-stream-analytics",
    "bigquery",
    "chdb",
    "clickhouse",
    "daft",
    "databricks-runtime",
    "datahub",
    "delta-flink",
    "delta-hive",
    "delta-kernel-java",
    "delta-kernel-rs",
    "delta-kernel-rust-sharing-wrapper",
    "delta-rs",
    "delta-sharing-python",
    "delta-sharing-spark",
    "delta-spark",
    "delta-standalone",
    "deltalake",
    "dremio",
    "duckdb",
    "fabric-dataflows",
    "fabric-direct-lake",
    "fabric-eventstreams",
    "fabric-kql",
    "fabric-pipelines",
    "fabric-spark",
    "fabric-sql-endpoint",
    "fabric-warehouse",
    "kafka-delta-ingest",
    "polars",
    "powerbi-delta-connector",
    "presto",
    "redshift-spectrum",
    "sail",
    "snowflake-delta-direct",
    "snowflake-manifest",
    "spark-rapids",
    "starrocks",
    "synapse-serverless",
    "synapse-spark",
    "trino",
    "xtable",
]


def gates(each: Range) -> Iterator[tuple[str, ProtocolGate]]:
    for path in each.paths:
        if path.read is not None:
            yield "read", path.read
        if path.write is not None:
            yield "write", path.write


def named(gate: ProtocolGate) -> set[str]:
    conditional = gate.unused | gate.legacy_unused | (gate.unchecked or frozenset())
    return {*(gate.features or ()), *conditional, *gate.modes}


class TestShipped:
    def test_the_clients_are_these(self) -> None:
        assert list(shipped_client_ids()) == IDS
        assert [each.id for each in ClientCatalog().clients()] == IDS

    @each_row("name", IDS)
    def test_an_entry_has_the_id_of_its_file(self, name: str) -> None:
        assert load_shipped_client(name).id == name

    def test_no_name_means_two_clients(self) -> None:
        names = [n.casefold() for each in CLIENTS for n in (each.id, *each.aliases)]
        assert len(names) == len(set(names))

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_the_newest_known_version_belongs_to_its_range(self, made: Client) -> None:
        for each in made.ranges:
            if (version := latest_version(each, made)) is not None:
                found = ClientCatalog().resolve(f"{made.id}@{version}")
                assert (found.documented or found.range) == each, version

    @each_row(
        ("name", "known"),
        [
            ("databricks-runtime@18 LTS", True),
            ("databricks-runtime@18.2", True),
            ("databricks-runtime@18+2026-09-01", True),
            ("databricks-runtime@19", True),
            ("databricks-runtime@19+2026-07-23", True),
            ("databricks-runtime@18.0-beta", False),
            ("databricks-runtime@18.1-beta", False),
            ("databricks-runtime@18 (Beta)", False),
            ("databricks-runtime@19 (Beta)", False),
            ("databricks-runtime@18+2026-05-18", False),
            ("databricks-runtime@19+2026-06-26", False),
            ("databricks-runtime@18.3", False),
            ("databricks-runtime@20", False),
            ("duckdb@2.0.0", True),
            ("duckdb@2.0.0rc1", False),
            ("clickhouse@26.8", True),
            ("clickhouse@26.9", False),
            ("starrocks@4.1", True),
            ("starrocks@4.2", False),
            ("xtable@0.4.0", True),
            ("rapids@26.04", True),
            ("acryl-datahub@1.7.0.17", True),
        ],
    )
    def test_new_versions_are_known_and_betas_are_not(self, name: str, known: bool) -> None:
        found = ClientCatalog().resolve(name)
        assert (found.range is not None) is known
        if found.range is not None:
            assert found.range.confidence in (Confidence.DOCUMENTED, Confidence.INFERRED)
            assert all(proof.kind != "measured" for proof in found.range.evidence)
            assert any("http" in proof.reference for proof in found.range.evidence)

    def test_a_version_with_updates_has_a_date_from_which_something_is_new(self) -> None:
        before, after = (
            ClientCatalog().resolve(f"databricks-runtime@18+{day}").range
            for day in ("2026-08-31", "2026-09-01")
        )
        assert before is not None
        assert after is not None
        assert before != after
        assert "RESTORE and CLONE" in after.note
        assert ClientCatalog().resolve("databricks-runtime@18 LTS").range == before

    @each_row(
        ("name", "used", "verdict"),
        [
            ("xtable@0.4.0", "deletionVectors", Verdict.WRONG),
            ("spark-rapids@25.04", "deletionVectors", Verdict.WRONG),
            ("spark-rapids@26.04", "deletionVectors", Verdict.WRONG),
            ("datahub@1.1.0", "deletionVectors", Verdict.REFUSED),
            ("datahub@1.7.0", "deletionVectors", Verdict.OK),
            ("datahub@1.7.0", "v2Checkpoint", Verdict.UNKNOWN),
            ("databricks-runtime@19", "icebergWriterCompatV3", Verdict.OK),
            ("databricks-runtime@19", "timestampNanos", Verdict.UNKNOWN),
            ("databricks-runtime@19", "columnUpdates", Verdict.UNKNOWN),
            ("databricks-runtime@18.2", "geospatial", Verdict.OK),
            ("databricks-runtime@18.1", "geospatial", Verdict.UNKNOWN),
            ("starrocks@4.1", "deletionVectors", Verdict.OK),
            ("starrocks@4.1", "typeWidening", Verdict.REFUSED),
        ],
    )
    def test_verdicts_of_the_new_entries(self, name: str, used: str, verdict: Verdict) -> None:
        needs = TableRequirements(Protocol.carrying({used}), frozenset({used}), frozenset())
        (found,) = evaluate_clients(ClientCatalog().resolve(name), [Access.READ], needs)
        assert found.verdict is verdict, found.reason

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_every_feature_is_one_of_the_catalog(self, made: Client) -> None:
        for each in (*made.ranges, *made.measured):
            mentioned = {name for _, gate in gates(each) for name in named(gate)}
            mentioned |= {n for path in each.paths for bad in path.known_bad for n in bad.features}
            mentioned -= {ANY_UNKNOWN_FEATURE, ANY_TABLE}
            unknown = {n for n in mentioned | each.catalog_only if features.find_feature(n) is None}
            assert unknown == set(), (made.id, each.start)

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_readers_are_asked_for_reader_features_only(self, made: Client) -> None:
        # Databricks lists collations for readers too; the specification does not.
        disputed = {"collations", "collations-preview"}
        allowed = disputed if made.id == "databricks-runtime" else set()
        for each in (*made.ranges, *made.measured):
            for side, gate in gates(each):
                if side == "read":
                    kinds = {
                        n: features.feature_record(n).kind
                        for n in named(gate) - {ANY_UNKNOWN_FEATURE}
                    }
                    assert {n for n, kind in kinds.items() if kind is FeatureKind.WRITER} <= allowed

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_no_feature_is_both_taken_and_doubted(self, made: Client) -> None:
        for each in (*made.ranges, *made.measured):
            for _, gate in gates(each):
                doubted = gate.unused | (gate.unchecked or frozenset())
                assert doubted & (gate.features or frozenset()) == frozenset()

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_every_range_says_how_it_is_known(self, made: Client) -> None:
        for each in (*made.ranges, *made.measured):
            assert each.evidence, (made.id, each.start)
            assert all(proof.reference for proof in each.evidence)

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_what_is_offered_has_a_gate(self, made: Client) -> None:
        for each in (*made.ranges, *made.measured):
            for path in each.paths:
                assert path.access
                assert all(path.offers(access) for access in path.access)
                assert all(bad.access <= path.access for bad in path.known_bad)

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_every_range_is_found_by_its_first_version(self, made: Client) -> None:
        for each in made.ranges:
            if each.start is not None:
                found = ClientCatalog().resolve(f"{made.id}@{each.start}")
                assert (found.documented or found.range) == each

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_an_alias_means_the_client(self, made: Client) -> None:
        for alias in made.aliases:
            assert ClientCatalog().get(alias.upper()).id == made.id
            assert ClientCatalog().get(parse_reference(f"{alias}@1").id).id == made.id


class TestReferences:
    @pytest.mark.parametrize(
        ("text", "said", "start"),
        [
            ("trino@476", "trino@476", "471"),
            ("TRINO@471", "trino@471", "471"),
            (" trino @ 470 ", "trino@470", "469"),
            ("dbr@14.3 LTS", "databricks-runtime@14.3 LTS", "14.3"),
            ("databricks-runtime@14.3.x-scala2.12", "databricks-runtime@14.3.x-scala2.12", "14.3"),
            ("delta-rs python@1.6.3", "deltalake@1.6.3", "1.6.3"),
            ("deltalake/pyarrow@1.6.3", "deltalake/pyarrow@1.6.3", "1.6.3"),
            ("athena@engine v3", "athena@engine v3", "3"),
            (
                "snowflake-delta-direct@2026-03-01",
                "snowflake-delta-direct@2026-03-01",
                None,
            ),
            (
                "snowflake-delta-direct@2026-03-02",
                "snowflake-delta-direct@2026-03-02",
                "2026.3.2",
            ),
            ("bigquery", "bigquery", None),
        ],
    )
    def test_what_a_reference_means(self, text: str, said: str, start: str | None) -> None:
        found = ClientCatalog().resolve(text)
        assert str(found.reference) == said
        assert found.range is not None
        assert (found.documented or found.range).start == start

    def test_without_a_path_all_of_them_are_meant(self) -> None:
        found = ClientCatalog().resolve("deltalake@1.6.3")
        assert [path.name for path in found.paths] == ["engine", "pyarrow"]
        (one,) = ClientCatalog().resolve("deltalake/pyarrow@1.6.3").paths
        assert one.name == "pyarrow"

    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            ("trinoo@476", "unknown client trinoo", "did you mean trino"),
            ("delta@4.0", "unknown client delta", "delta-spark (the library for Spark), deltalake"),
            ("spark@3.3.0", "spark alone does not determine", "Spark 3.3 runs 2.1 to 2.3"),
            ("PySpark@4.0.1", "PySpark alone does not determine", "Spark 4.0 runs 4.0 to 4.4"),
            ("spark@4.2", "spark alone does not determine", "k@4.4.0: Spark 4.2 runs 4.4"),
            ("spark@9", "spark alone does not determine", "k@3.3.0: Spark 3.1 runs 1.0"),
            ("databricks@14.3", "unknown client databricks", "databricks-runtime"),
            ("qqqq", "unknown client qqqq", "deltaproto clients"),
            ("trino", "trino requires a version", "trino@"),
            ("trino@latest", "latest is not a version of trino", "trino@483"),
            ("trino@476@477", "476@477 is not a version of trino", "trino@483"),
            ("bigquery@1", "bigquery has no versions", "write bigquery without a version"),
            ("trino/engine@476", "trino has no path engine", "omit the path"),
            ("bigquery/x", "bigquery has no path x", "omit the path"),
            ("deltalake/spark@1.6.3", "deltalake has no path spark", "engine, pyarrow"),
        ],
    )
    def test_a_wrong_reference_is_told_what_is_wrong(
        self, text: str, message: str, hint: str
    ) -> None:
        with pytest.raises(UsageError) as refused:
            ClientCatalog().resolve(text)
        assert message in refused.value.message
        assert hint in refused.value.hint

    def test_the_hint_for_a_spark_has_only_the_releases_that_it_runs(self) -> None:
        with pytest.raises(UsageError) as refused:
            ClientCatalog().resolve("spark@3.5.1")
        assert refused.value.hint == (
            "name the version of Delta, as in delta-spark@3.3.0: Spark 3.5 runs 3.0 to 3.3"
        )

    @pytest.mark.parametrize(
        "text", ["", " ", "@", "@1", "/", "/a@1", "a/@1", "a/b/c@1", "trino@", "trino@ ", "a / "]
    )
    def test_what_has_not_the_form_names_no_client(self, text: str) -> None:
        with pytest.raises(UsageError, match="is not a client"):
            parse_reference(text)

    @given(st.text(st.sampled_from("trino@/ 476\n\0") | st.characters(), max_size=30))
    def test_any_text_is_a_client_or_a_usage_error(self, text: str) -> None:
        try:
            found = ClientCatalog().resolve(text)
        except UsageError:
            return
        assert found.client in CLIENTS


class TestVersions:
    GAPS = client(
        [
            {"from": "1.0", "before": "1.2", **GATE},
            {"from": "1.2.0", "before": "2.0", **GATE},
            {"from": "2.1", "before": "3.0", **GATE},
        ]
    )

    @pytest.mark.parametrize(
        "version", ["0.9", "2.0", "2.0.7", "3.0", "9", "2.0rc1", "2.1b1", "1.2a1"]
    )
    def test_what_was_not_looked_at_is_not_known(self, version: str) -> None:
        found = ClientCatalog([self.GAPS]).resolve(f"made@{version}")
        assert found.range is None
        assert found.paths == ()
        known = "(known: from 1.0 up to before 2.0, from 2.1 up to before 3.0)"
        assert f"{version} is not a known version" in found.unknown
        assert known in found.unknown
        early = version in ("2.0rc1", "2.1b1", "1.2a1")
        assert found.unknown.endswith("it is a pre-release") is early

    @pytest.mark.parametrize(
        ("version", "start"),
        [("1.0", "1.0"), ("1.1.9", "1.0"), ("1.2", "1.2.0"), ("1.3rc1", "1.2.0"), ("2.1", "2.1")],
    )
    def test_from_is_inside_and_before_is_not(self, version: str, start: str) -> None:
        found = ClientCatalog([self.GAPS]).resolve(f"made@{version}").range
        assert found is not None
        assert found.start == start

    def test_a_path_of_an_unknown_version_is_kept(self) -> None:
        assert ClientCatalog().resolve("deltalake/pyarrow@0.1").reference.path == "pyarrow"

    @each_row("made", CLIENTS, ids=lambda made: made.id)
    def test_a_pre_release_of_the_unknown_next_version_is_unknown(self, made: Client) -> None:
        end = made.newest.end
        if made.versions != "dotted" or end is None:
            assert end is None or version_scheme.parse_version(made.versions, end) is not None
            return
        assert ClientCatalog().resolve(f"{made.id}@{end}rc1").range is None
        assert ClientCatalog().resolve(f"{made.id}@{end}").range is None


class TestSites:
    def test_a_sites_client_comes_first(self) -> None:
        own = client([{"evidence": PROOF, "from": "1", **GATE}], "number", aliases=["house"])
        site = ClientCatalog([own._replace(id="trino")])
        assert site.get("TRINO").aliases == ("house",)
        assert site.get("house").id == "trino"
        assert list(site.ids()) == IDS
        assert ClientCatalog().get("trino").aliases != ("house",)

    def test_a_new_client_joins(self) -> None:
        site = ClientCatalog([client([GATE], "none")])
        assert site.ids() == tuple(sorted([*IDS, "made"]))
        assert site.resolve("made").paths[0].read is not None

    def test_one_client_is_listed_once_under_all_its_names(self) -> None:
        upper = client([GATE], "none")._replace(id="Trino")
        other = client([GATE], "none", aliases=["trino"])
        for own in (upper, other):
            site = ClientCatalog([own])
            assert site.get("trino") == own
            assert sorted(site.ids()) == sorted([own.id, *(n for n in IDS if n != "trino")])
            assert len(site.clients()) == len(IDS)


def test_the_page_on_names_says_which_clients_have_a_version() -> None:
    """The columns: a product, its names, and where to find the version."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "name-your-client.md"
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", page.read_text("utf-8"), re.M)
    catalog = ClientCatalog()
    ids = {each.id for each in catalog.clients()}
    names = [name for product, cell in rows for name in re.findall(r"`([\w-]+(?:@[\d.]+)?)`", cell)]
    named = {name for name in names if name.partition("@")[0] in ids}
    # The table of error messages has ids only.
    messages = page.read_text("utf-8").partition("## From an error message")[2]
    named -= set(re.findall(r"`([\w-]+)`", messages))
    assert {"athena@3", "bigquery", "trino@476"} <= named
    for name in named:
        catalog.resolve(name)
