"""What catalogs say about tables, against their logs: each finding, and what looks like one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from deltalake import DeltaTable

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.reconcile import Reconciliation
from deltaproto.policy.finding import Finding
from deltaproto.tables.catalogs.described import (
    DeclaredProtocol,
    declared_protocol,
    hive_columns,
    log_columns_digest,
)
from deltaproto.tables.catalogs.hive import HiveMetastore
from deltaproto.tables.catalogs.interface import CatalogCounts, CatalogTable
from tests.conftest import Ran
from tests.fleet.test_scan_catalogs import lake as lake
from tests.fleet.test_scan_catalogs import make, rows
from tests.support import contract
from tests.support.hive_metastore import Writer, metastore
from tests.support.lakes import Lake, trust
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.unity_server import UnityServer, refused

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
UC = "uc://h"
ROW_SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long"}, {"name": "Day", "type": "date"}],
}
ROW = {
    "table": "main.s.t",
    "location": "s3://lake/t",
    "code": None,
    "min_reader_version": 3,
    "min_writer_version": 7,
    "reader_features": ["deletionVectors"],
    "writer_features": ["deletionVectors", "appendOnly"],
    "configuration": [],
    "columns_digest": log_columns_digest(ROW_SCHEMA, ()),
    "complete": True,
}


class Client:
    """Where the schemas of a catalog are, and tables of other formats."""

    def __init__(self, places: Mapping[str, str] = {}, others: tuple[str, ...] = ()) -> None:
        self._places, self.counts = places, CatalogCounts()
        self.asked = 0
        for each in others:
            self.counts.add_other_format(each)

    def schema_location(self, schema: tuple[str, ...]) -> str | None:
        self.asked += 1
        name = ".".join(schema)
        if name == "refused":
            raise TableError(ErrorCode.PERMISSION_DENIED, "no", "")
        return self._places.get(name)


def collected(
    *tables: CatalogTable, catalog: str = UC, whole: bool = True, client: Client | None = None
) -> CatalogEntries:
    entries = CatalogEntries()
    entries.begin(catalog)
    entries.clients[catalog] = [client or Client()]  # type: ignore[list-item]
    for table in tables:
        entries.add(DiscoveredTable(table.name, table.location, entry=table), catalog)
    if whole:
        entries.finish(catalog)
    return entries


def entry(name: str = "main.s.t", location: str = "s3://lake/t", **fields: Any) -> CatalogTable:
    return CatalogTable(name, location, **{"type": "external", **fields})


def found(entries: CatalogEntries, **row: Any) -> list[Finding]:
    return list(Reconciliation(entries).findings_on({**ROW, **row}))


def digest(**types: str) -> str:
    found = hive_columns(types.items(), [], {})
    assert found is not None
    return found.digest


def ids(findings: list[Finding]) -> list[str]:
    return [f"{each.rule} {each.severity}" for each in findings]


def test_an_entry_that_says_what_the_log_says() -> None:
    agrees = entry(
        columns=digest(day="date", ID="bigint"),
        protocol=DeclaredProtocol(3, 7, ("DeletionVectors", "appendOnly")),
        id="a",
    )
    assert found(collected(agrees)) == []
    assert found(collected(entry())) == []
    empty = CatalogEntries()
    assert (list(Reconciliation(empty).findings_on(ROW)), bool(empty)) == ([], False)


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        (DeclaredProtocol(1, None, ()), "reader version 1 instead of 3"),
        (DeclaredProtocol(None, 2, ()), "writer version 2 instead of 7"),
        (DeclaredProtocol(3, 7, ("deletionVectors",)), "without appendOnly"),
        (
            DeclaredProtocol(None, None, ("deletionVectors", "appendOnly", "rowTracking")),
            "also rowTracking",
        ),
    ],
)
def test_another_protocol_in_the_properties(stated: DeclaredProtocol, text: str) -> None:
    (finding,) = found(collected(entry(protocol=stated)))
    assert ids([finding]) == ["DP507 info"]
    assert finding.message.endswith(f"a different protocol from the log: {text}")


def test_features_that_a_pair_implies_and_names_of_one_feature() -> None:
    legacy = {"min_reader_version": 1, "min_writer_version": 3}
    row = {**legacy, "reader_features": None, "writer_features": None}
    implied = DeclaredProtocol(1, 3, ("appendOnly", "checkConstraints"))
    assert found(collected(entry(protocol=implied)), **row) == []
    both = ["catalogManaged"]
    managed = DeclaredProtocol(3, 7, ("catalogOwned-preview",))
    same = {"reader_features": both, "writer_features": both}
    assert found(collected(entry(protocol=managed)), **same) == []


def test_properties_of_a_protocol() -> None:
    assert declared_protocol({"owner": "x", "delta.appendOnly": "true"}) is None
    assert declared_protocol({"delta.minReaderVersion": "new", "delta.feature.x": "off"}) is None
    assert declared_protocol(
        {"DELTA.minreaderversion": "3", "delta.minWriterVersion": "7", "delta.feature.a": "enabled"}
    ) == DeclaredProtocol(3, 7, ("a",))


def test_other_columns() -> None:
    fewer, renamed = digest(id="bigint"), digest(id="bigint", days="date")
    (one,) = found(collected(entry(columns=fewer)))
    assert (ids([one]), one.message) == (
        ["DP504 info"],
        "The entry main.s.t has 1 column, and the log has 2",
    )
    assert "`deltaproto inspect uc://h/main.s.t` shows the columns" in one.hint
    (two,) = found(collected(entry(columns=renamed)))
    assert "2 columns, and the log as many, but not with the same names" in two.message
    (three,) = found(collected(entry(columns=digest(id="int", day="date"))))
    assert three.message.endswith("has the columns of the log, but not all with the same types")
    assert found(collected(entry(columns=fewer)), columns_digest=None) == []


def test_what_is_not_known_of_columns_accuses_nobody() -> None:
    older = "-".join(str(ROW["columns_digest"]).split("-")[:2])
    widened = entry(columns=digest(id="int", day="date"))
    assert ids(found(collected(widened))) == ["DP504 info"]
    # An inventory of an earlier release has digests of the names only.
    assert found(collected(widened), columns_digest=older) == []
    assert found(collected(entry(columns=digest(id="bigint", day="epoch")))) == []
    # The newest version is not known.
    stale = entry(columns=digest(id="int"), protocol=DeclaredProtocol(1, 2, ()))
    assert found(collected(stale), complete=False) == []


def test_columns_of_hive_entries() -> None:
    columns = [("ID", "bigint"), ("day", "date")]
    expected = hive_columns(columns, [], {})
    assert expected is not None
    assert expected.types == {"id": "bigint", "day": "date"}
    partitioned = hive_columns(columns[:1], columns[1:], {})
    assert partitioned is not None
    assert partitioned.types == {"id": "bigint", "day": None}
    placeholder = [("col", "array<string>")]
    assert hive_columns(placeholder, [], {}) is None
    assert hive_columns([], [], {}) is None
    fields = [{"name": "Id", "type": "long"}, {"name": "day", "type": "timestamp_ntz"}]
    schema = json.dumps({"type": "struct", "fields": fields})
    stored = "spark.sql.sources.schema"
    parts = {
        f"{stored}.numParts": "2",
        f"{stored}.part.0": schema[:9],
        f"{stored}.part.1": schema[9:],
    }
    for properties in ({stored: schema}, parts):
        of_spark = hive_columns(placeholder, [], properties)
        assert of_spark is not None
        assert of_spark.types == {"id": "bigint", "day": "timestamp_ntz"}
    for broken in (
        {stored: "{"},
        {stored: '{"fields": [1]}'},
        {stored: '{"type":"struct","fields":[]}'},
        {**parts, f"{stored}.numParts": "3"},
        {f"{stored}.numParts": "many"},
    ):
        assert hive_columns(placeholder, [], broken) is None, broken
    # A table may have one column of that name and another type.
    assert hive_columns([("col", "string")], [], {}) == ({"col": "string"}, True)


def test_the_id_of_another_table() -> None:
    log = {"configuration": [("io.unitycatalog.tableId", "A-1")]}
    (finding,) = found(collected(entry(id="b-2")), **log)
    assert ids([finding]) == ["DP503 warning"]
    assert finding.evidence == "id in the log: A-1; of the entry: b-2"
    assert found(collected(entry(id="a-1")), **log) == []
    assert found(collected(entry(id=None)), **log) == []
    older = {"configuration": [("ucTableId", "z")]}
    assert ids(found(collected(entry(id="b-2")), **older)) == ["DP503 warning"]
    # Ids of other catalogs are not in logs; another name of the table has an id of its own.
    assert found(collected(entry(id="b-2"), catalog="glue://r"), **log) == []
    both = collected(entry(id="a-1"), entry("main.s.again", id="b-2"))
    assert ids(found(both, **log)) == ["DP505 info"]


def test_several_names() -> None:
    again = entry("main.s.again", "s3a://lake/t/")
    (finding,) = found(collected(entry(), again))
    assert ids([finding]) == ["DP505 info"]
    assert "main.s.t, main.s.again" in finding.message
    # A resource link is a second name by design.
    assert found(collected(entry(), again._replace(link=True))) == []
    # Letters of a name do not count, and catalogs over other catalogs are usual.
    assert found(collected(entry(), entry("Main.S.T"))) == []
    entries = collected(entry())
    for catalog in ("hms://h", "glue://r"):
        entries.add(DiscoveredTable("s.t", "s3://lake/t", entry=entry("s.t")), catalog)
    assert found(entries) == []
    assert entries.names("s3://lake/t") == ("main.s.t", "s.t")


def test_a_table_inside_another_one() -> None:
    outer = entry("main.s.outer", "s3a://lake/outer/", type="managed")
    inner = entry("main.s.inner", "s3://lake/outer/deep/inner")
    where = {"location": inner.location}
    (finding,) = found(collected(outer, inner), **where)
    assert ids([finding]) == ["DP506 warning"]
    assert "managed table main.s.outer" in finding.message
    for neighbors in (
        (outer._replace(type="external"), inner),
        (outer, inner._replace(type="managed")),
        (outer._replace(location="s3://lake/out"), inner),
        (outer._replace(location="s3://lake/outer/deep/inner/more"), inner),
    ):
        assert found(collected(*neighbors), **where) == [], neighbors
    # Another catalog's tables are not this catalog's to delete.
    entries = collected(inner)
    entries.add(DiscoveredTable("s.o", outer.location, entry=outer), "hms://h")
    assert found(entries, **where) == []


def test_a_table_inside_a_database() -> None:
    places = {"sales": "s3a://lake/sales.db", "default": "s3://lake", "hr": "/nowhere/hr.db"}
    client = Client(places)
    inner = entry("hr.inner", "s3://lake/sales.db/inner")
    others = (entry("sales.t"), entry("default.t", "s3://lake/d"), entry("refused.t", "s3://x/t"))
    entries = collected(inner, *others, catalog="hms://h", client=client)
    compared = Reconciliation(entries)
    (finding,) = compared.findings_on({**ROW, "location": inner.location})
    assert ids([finding]) == ["DP506 info"]
    assert "folder of the database sales" in finding.message
    # Each database is requested once, and `default` never: it contains all others.
    assert (list(compared.findings_on(ROW)), client.asked) == ([], 3)
    managed = inner._replace(type="managed")
    assert found(collected(managed, *others, client=Client(places)), location=inner.location) == []


def test_no_log_at_the_location(tmp_path: Path) -> None:
    for code, location, expected in (
        ("not-a-delta-table", "s3://lake/t", ["DP501 warning"]),
        ("not-found", "s3://lake/t", ["DP501 warning"]),
        ("permission-denied", "s3://lake/t", []),
        ("storage", "s3://lake/t", []),
        ("timeout", "s3://lake/t", []),
        ("corrupt-log", "s3://lake/t", []),
        ("not-found", f"file://{tmp_path}/gone", ["DP501 warning"]),
        # This may be a folder of another machine.
        ("not-found", "file:///no/such/folder/t", []),
    ):
        entries = collected(entry(location=location))
        assert ids(found(entries, code=code, location=location)) == expected, (code, location)
    # The name of an unreadable place that no catalog lists.
    assert found(collected(), code="not-found", location="s3://lake/x") == []


def test_no_entry_for_a_table() -> None:
    other = entry("main.s.other", "s3://lake/other")
    (finding,) = found(collected(other))
    assert ids([finding]) == ["DP502 info"]
    assert finding.message == "uc://h has no entry for this location that you may see"
    unreadable = {"code": "corrupt-log"}
    assert found(collected(other), **unreadable) == []
    # Not everything was looked at.
    assert found(collected(other, whole=False)) == []
    failed = collected(other)
    failed.fail(UC)
    assert found(failed) == []
    partly = collected(other)
    partly.begin("glue://r")
    assert found(partly) == []
    session = collected(other)
    session.begin("catalog main")
    assert found(session) == []


@pytest.mark.parametrize(
    ("listed", "walked"),
    [
        ("s3a://lake/t/", "s3://lake/t"),
        ("S3://lake//t", "s3://lake/t"),
        ("s3://lake/a%20b", "s3://lake/a b"),
        ("s3://lake/a b", "s3://lake/a%20b"),
        ("s3://lake/T", "s3://lake/t"),
        ("file:/lake/a b", "file:///lake/a%20b"),
        # These cannot be compared with any other address.
        ("dbfs:/mnt/lake/t", "s3://lake/t"),
        ("wasbs://c@a.blob.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t"),
        ("s3://lake/other", "hdfs://n/lake/t"),
        ("s3://lake/other", "az://lake/t"),
        ("abfss://lake@a.dfs.core.windows.net/t", "az://lake/t"),
        ("abfss://lake@a.dfs.core.windows.net/t", "abfss://lake/t"),
    ],
)
def test_another_spelling_is_no_missing_entry(listed: str, walked: str) -> None:
    entries = CatalogEntries()
    entries.begin(UC)
    table = entry(location=listed)
    place = listed.replace("file:", "file://") if listed.startswith("file") else listed
    entries.add(DiscoveredTable(table.name, place, entry=table), UC)
    entries.finish(UC)
    assert "DP502" not in str(ids(found(entries, location=walked)))
    assert "DP502" not in str(ids(found(entries, location=walked, table=walked)))


def test_an_entry_of_another_format_is_an_entry() -> None:
    # As UniForm tables have in Glue.
    client = Client(others=("s3a://lake/t/",))
    assert found(collected(entry("main.s.o", "s3://lake/o"), client=client)) == []


def test_links_lead_to_their_entry(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    entries = collected(entry(location=f"{tmp_path}/real"))
    assert found(entries, location=f"file://{tmp_path}/link") == []
    assert ids(found(entries, location=f"file://{tmp_path}/other")) == ["DP502 info"]


def table_with(folder: Path, configuration: dict[str, Any]) -> Path:
    log = Log(folder)
    log.commit(0, commit_info(), protocol(1, 2), metadata(configuration), add())
    return folder


def fill(unity: UnityServer, lake: Path) -> None:
    """Tables with one problem each, one without any, and one without an entry."""
    stated = {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}
    good = {**stated, "delta.feature.deletionVectors": "supported"}
    unity.add("main.s.good", f"file://{make(lake / 'good')}", properties=good)
    unity.add("main.s.two", f"file://{make(lake / 'two')}")
    unity.add("main.s.names", f"file://{lake}/two/")
    unity.add("main.s.gone", f"file://{lake}/gone")
    unity.add("main.s.outer", f"file://{make(lake / 'outer')}", table_type="MANAGED")
    unity.add("main.s.inner", f"file://{make(lake / 'outer' / 'in' / 'inner')}")
    copied = table_with(lake / "copied", {"io.unitycatalog.tableId": "another"})
    unity.add("main.s.copied", f"file://{copied}")
    unity.add(
        "main.s.stale",
        f"file://{make(lake / 'stale')}",
        properties={**stated, **{"delta.minReaderVersion": "2"}},
    )
    unity.add("main.s.seen", "", table_type="VIEW", data_source_format=None)
    unity.add("main.s.csv", f"file://{lake}/csv", data_source_format="CSV")
    make(lake / "csv")
    make(lake / "alone")


EXPECTED = {
    ("DP501", "main.s.gone"),
    ("DP503", "main.s.copied"),
    ("DP505", "main.s.two"),
    ("DP506", "main.s.inner"),
    ("DP507", "main.s.stale"),
}


def catalog_rules(findings: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["rule"], each["table"]) for each in findings if each["rule"] >= "DP5"}


def test_a_scan_of_a_catalog_and_its_folders(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "inventory"
    fill(unity, lake)
    url = f"uc://{unity.authority}"
    words = ("scan", url, str(lake), "--inventory", str(inventory), "--format", "json")
    ran = cli(*words)
    assert (ran.code, ran.json["errors"]) == (3, 1)
    (document,) = contract.documents(ran, "scan")
    counts = {each["rule"]: each["findings"] for each in document["by_rule"]}
    expected = {*EXPECTED, ("DP502", str(lake / "alone"))}
    assert {rule: counts[rule] for rule, _ in expected} == {rule: 1 for rule, _ in expected}
    assert catalog_rules(rows(inventory, "findings")) == expected
    # The log shows the same as before, and the catalog is compared again.
    again = cli(*words)
    assert again.json["by_rule"] == document["by_rule"]
    last = [
        each for each in rows(inventory, "findings") if each["scan_id"] == again.json["scan_id"]
    ]
    assert catalog_rules(last) == expected
    keys = [(each["location"], each["number"]) for each in last]
    assert len(set(keys)) == len(keys)
    check = cli("check", str(inventory), "--client", "deltalake@1.6.0", "--format", "json")
    assert check.code == 3
    (document,) = contract.documents(check, "check")
    assert catalog_rules(document["findings"]) == expected
    assert all(
        each["hint"] and each["evidence"] for each in document["findings"] if each["rule"] >= "DP5"
    )
    text = cli("check", str(inventory), "--client", "deltalake@1.6.0", "--details")
    assert all(rule in text.out for rule, _ in expected)
    report = cli("report", str(inventory), "--format", "json")
    shown = {each["rule"] for each in report.json["findings"]}
    assert shown >= {rule for rule, _ in expected}
    page = cli("report", str(inventory), "--format", "markdown")
    assert "DP501: " in page.out
    for format_ in ("jsonl", "markdown", "sarif", "junit", "github", "gitlab"):
        words = ("--client", "deltalake@1.6.0", "--format", format_)
        shown = cli("check", str(inventory), *words)
        assert shown.code == 3, shown.err
        assert "DP501" in shown.out, format_
        assert "DP503" in shown.out, format_
    # A policy decides about them as about any other finding.
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: []\ndefaults: {}\n"
        "severities: {DP501: off, DP502: off, DP505: error, DP507: off}\n"
        "waivers:\n  - {rule: DP506, table: main.s.inner, reason: moving, expires: 2099-01-01}\n"
        'tables:\n  "**":\n    max_reader_version: 3\n'.replace("defaults: {}\n", ""),
        encoding="utf-8",
    )
    judged = cli("check", str(inventory), "--policy", str(policy), "--format", "json")
    assert catalog_rules(judged.json["findings"]) == {
        ("DP503", "main.s.copied"),
        ("DP505", "main.s.two"),
    }
    assert catalog_rules(judged.json["suppressed"]) == {("DP506", "main.s.inner")}


def test_an_unchanged_table_is_compared_again(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "inventory"
    unity.add("main.s.t", f"file://{make(lake / 't')}")
    for file in (make(lake / "alone") / "_delta_log").iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    url = f"uc://{unity.authority}"
    words = ("scan", url, str(lake), "--inventory", str(inventory), "--format", "json")
    for unchanged in (0, 1, 1):
        ran = cli(*words)
        assert (ran.json["tables"], ran.json["unchanged"]) == (2, unchanged)
        last = [r for r in rows(inventory, "findings") if r["scan_id"] == ran.json["scan_id"]]
        assert catalog_rules(last) == {("DP502", str(lake / "alone"))}
        assert len(last) == ran.json["findings"]
    unity.add("main.s.alone", f"file://{lake}/alone")
    ran = cli(*words)
    assert not [each for each in ran.json["by_rule"] if each["rule"] >= "DP5"]


def test_an_ordinary_fleet_has_no_findings(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    for number in range(6):
        unity.add(f"main.s.t{number}", f"file://{make(tmp_path / 'lake' / f't{number}')}")
    url = f"uc://{unity.authority}"
    ran = cli("scan", url, str(tmp_path / "lake"), "--format", "json", "--fail-on", "warning")
    assert (ran.code, ran.json["tables"]) == (0, 6)
    assert not [each for each in ran.json["by_rule"] if each["rule"] >= "DP5"]


def test_a_catalog_that_fails_accuses_nobody(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    unity.add("main.s.t", f"file://{make(lake / 't')}")
    unity.add("main.hr.t", f"file://{make(lake / 'hr')}")
    unity.faults.append(
        lambda path, query: refused(403, "no") if query.get("schema_name") == "hr" else None
    )
    url = f"uc://{unity.authority}"
    for roots in ((url, str(lake)), (f"{url}/main.s", str(lake)), (f"{url}/main.s.t", str(lake))):
        ran = cli("scan", *roots, "--format", "json")
        assert ran.json["tables"] == 2
        assert not [each for each in ran.json["by_rule"] if each["rule"] >= "DP5"], roots


def test_a_table_that_is_named_has_columns_to_compare(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    unity.add("main.s.t", f"file://{make(tmp_path / 't')}", columns=[{"name": "ID"}])
    unity.add("main.s.u", f"file://{make(tmp_path / 'u')}", columns=[{"name": "x"}])
    names = [f"uc://{unity.authority}/main.s.{name}" for name in "tu"]
    inventory = tmp_path / "inventory"
    assert cli("scan", *names, "--inventory", str(inventory)).code == 0
    assert catalog_rules(rows(inventory, "findings")) == {("DP504", "main.s.u")}


def test_an_inventory_of_an_earlier_release(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", tmp_path / "inventory"
    fill(unity, lake)
    words = ("scan", f"uc://{unity.authority}", "--inventory", str(inventory))
    assert cli(*words).code == 3
    from deltalake import write_deltalake

    older = DeltaTable(inventory / "tables").to_pyarrow_table()
    write_deltalake(
        inventory / "tables",
        older.drop_columns(["columns_digest", "other_names", "catalog", "table_type"]),
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=["scan_id"],
    )
    checked = cli("check", str(inventory), "--client", "deltalake@1.6.0", "--format", "json")
    assert catalog_rules(checked.json["findings"]) == EXPECTED
    assert cli(*words).code == 3
    assert DeltaTable(inventory / "tables").to_pyarrow_table().column("columns_digest").null_count


def one_by_one(cli: Cli, catalog: str, *names: str, schema: str = "sales") -> list[tuple[str, str]]:
    """Rules that `check` of each table, by its name in the catalog, finds violated."""
    found = []
    for name in names:
        address = f"{catalog}/{schema}.{name}"
        ran = cli("check", address, "--client", "deltalake@1.6.0", "--format", "json")
        (document,) = contract.documents(ran, "check")
        found += [
            (each["rule"], f"{schema}.{name}")
            for each in document["findings"]
            if each["rule"] >= "DP5" and each["table"] == address
        ]
    return found


@pytest.mark.storage
def test_glue_and_s3(cli: Cli, lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    root = lake.roots[0]
    uris = {
        name: lake.upload(make(tmp_path / name), f"reconcile/{name}")
        for name in ("good", "sales.db/inner", "stale", "alone", "iceberg")
    }
    # This user may use S3 only.
    trust(lake)
    glue = boto3.client("glue", region_name="us-east-1")
    place = f"{root}/reconcile/sales.db".replace("s3://", "s3a://")
    glue.create_database(DatabaseInput={"Name": "reconcile", "LocationUri": place})
    delta = {"spark.sql.sources.provider": "delta"}
    column = [{"Name": "id", "Type": "bigint"}]
    for name, uri, parameters, columns in (
        ("good", uris["good"] + "/", delta, column),
        ("inner", uris["sales.db/inner"], delta, [{"Name": "col", "Type": "array<string>"}]),
        (
            "stale",
            uris["stale"],
            {"classification": "delta"},
            [*column, {"Name": "b", "Type": "int"}],
        ),
        ("gone", f"{root}/reconcile/gone", delta, []),
        ("uniform", uris["iceberg"], {"table_type": "ICEBERG"}, column),
    ):
        storage = {"Location": f"{uri}", "Columns": columns, "SerdeInfo": {"Parameters": {}}}
        if name == "inner":
            storage["Location"] = f"{uri}-__PLACEHOLDER__"
            storage["SerdeInfo"] = {"Parameters": {"path": uri}}
        glue.create_table(
            DatabaseName="reconcile",
            TableInput={
                "Name": name,
                "TableType": "EXTERNAL_TABLE",
                "Parameters": parameters,
                "StorageDescriptor": storage,
            },
        )
    inventory = tmp_path / "inventory"
    ran = cli(
        "scan", "glue://us-east-1", f"{root}/reconcile", "--inventory", str(inventory),
        "--format", "json",
    )  # fmt: skip
    assert ran.json["errors"] == 1, ran.out + ran.err
    assert catalog_rules(rows(inventory, "findings")) == {
        ("DP501", "reconcile.gone"),
        ("DP502", uris["alone"]),
        ("DP504", "reconcile.stale"),
        ("DP506", "reconcile.inner"),
    }
    named = one_by_one(
        cli, "glue://us-east-1", "good", "inner", "stale", "gone", schema="reconcile"
    )
    assert named == [("DP504", "reconcile.stale"), ("DP501", "reconcile.gone")]
    glue.delete_database(Name="reconcile")


@pytest.mark.spark
@pytest.mark.slow
def test_a_hive_metastore(cli: Cli, tmp_path: Path) -> None:
    delta = {"spark.sql.sources.provider": "delta"}
    lake, inventory = tmp_path / "lake", tmp_path / "inventory"
    with metastore(tmp_path / "hive") as port:
        writer = Writer(port)
        writer.database("sales", lake)
        writer.database("hr", tmp_path / "elsewhere")
        good = make(lake / "go od")
        path = {"path": f"file:{good}"}
        writer.table("sales", "good", f"file:{good}-__PLACEHOLDER__", delta, path)
        inner = make(lake / "sales" / "inner")
        writer.table("hr", "inner", f"file:{inner}/", delta)
        stale = make(lake / "stale")
        wrong = {**delta, "delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
        writer.table("sales", "stale", f"file:{stale}", wrong)
        writer.table("sales", "gone", f"file:{lake}/gone", delta)
        writer.table("sales", "seen", f"file:{lake}/x", {}, kind="VIRTUAL_VIEW")
        other = Log(lake / "other")
        other.commit(0, commit_info(), protocol(1, 2), metadata(schema=SCHEMA), add())
        writer.table("sales", "other", f"file:{lake}/other", delta)
        narrow = {"id": "int"}
        writer.table("sales", "narrow", f"file:{make(lake / 'narrow')}", delta, columns=narrow)
        lost = {"id": "uniontype<int,string>"}
        writer.table("sales", "new", f"file:{make(lake / 'new')}", delta, columns=lost)
        make(lake / "alone")
        client = HiveMetastore(f"127.0.0.1:{port}")
        assert client.schema_location(("sales",)) == f"{lake}/sales"
        words = (f"hms://127.0.0.1:{port}", str(lake), "--inventory", str(inventory))
        ran = cli("scan", *words, "--format", "json")
        named = one_by_one(cli, words[0], "good", "new", "stale", "gone", "other", "narrow")
    assert named == [
        ("DP507", "sales.stale"),
        ("DP501", "sales.gone"),
        ("DP504", "sales.other"),
        ("DP504", "sales.narrow"),
    ]
    assert (ran.code, ran.json["errors"]) == (3, 1), ran.out + ran.err
    assert catalog_rules(rows(inventory, "findings")) == {
        ("DP501", "sales.gone"),
        ("DP502", str(lake / "alone")),
        ("DP504", "sales.other"),
        ("DP504", "sales.narrow"),
        ("DP506", "hr.inner"),
        ("DP507", "sales.stale"),
    }


SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("a", "b")
        ],
    }
)
