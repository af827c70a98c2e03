"""Inventories whose scans listed different parts of a catalog."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.errors import no_tables_error
from deltaproto.fleet.catalog_places import (
    CatalogPlace,
    parse_catalog_place,
    unity_addresses,
)
from deltaproto.fleet.discovered import UnreadablePlace
from deltaproto.fleet.newest_state import NewestState
from deltaproto.fleet.scan_history import PastScan, ScannedPlace
from tests.conftest import Ran
from tests.fleet.test_scan_catalogs import make
from tests.support.unity_server import UnityServer, refused

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
ALL = ["main.hr.t", "main.more.s", "main.more.t"]


class Fleet:
    """A server with three tables, and an inventory."""

    def __init__(self, cli: Cli, unity: UnityServer, folder: Path) -> None:
        self.cli, self.unity, self.folder = cli, unity, folder
        self.url = f"uc://{unity.authority}"
        self.inventory = str(folder / "inventory")
        for name in ALL:
            unity.add(name, f"file://{make(folder / 'lake' / name)}")

    def scan(self, *roots: str) -> Ran:
        places = [root if root.startswith("/") else f"{self.url}/{root}" for root in roots]
        return self.cli("scan", *places, "--inventory", self.inventory)

    def drop(self, name: str) -> None:
        catalog, schema, table = name.split(".")
        entries = self.unity.tables[catalog, schema]
        entries[:] = [each for each in entries if each["name"] != table]

    def checked(self) -> list[str]:
        words = ("check", self.inventory, "--client", "deltalake/engine@1.6.6", "--format", "json")
        return sorted(each["table"] for each in self.cli(*words).json["tables"])


@pytest.fixture
def fleet(cli: Cli, unity: UnityServer, tmp_path: Path) -> Fleet:
    return Fleet(cli, unity, tmp_path)


GONE = ["main.hr.t", "main.more.s"]


@pytest.mark.parametrize(
    ("before", "then", "tables"),
    [
        ("", "main.more", GONE),
        ("", "main", GONE),
        ("", "MAIN.More", GONE),
        ("main", "main.more", GONE),
        ("main.more main.hr", "main.more", GONE),
        ("main.more", "main", GONE),
        ("main.more", "", GONE),
        ("main.hr main.more", "main.hr", ALL),
        ("", "main.hr", ALL),
        ("", "main.more.s", ALL),
    ],
)
def test_a_dropped_table(fleet: Fleet, before: str, then: str, tables: list[str]) -> None:
    def lowered(path: str, query: dict[str, str]) -> object:
        # As Databricks does it: names in any case.
        upper = [key for key, value in query.items() if value != value.lower()]
        lower = {key: value.lower() for key, value in query.items()}
        return fleet.unity.reply(path, lower, None) if upper else None

    fleet.unity.tokens = set()
    fleet.unity.faults.append(lowered)  # type: ignore[arg-type]
    assert fleet.scan(*before.split(" ")).code == 0
    assert set(fleet.checked()) <= set(ALL)
    fleet.drop("main.more.t")
    assert fleet.scan(*then.split(" ")).code == 0
    assert fleet.checked() == tables
    report = fleet.cli("report", fleet.inventory, "--format", "json")
    assert report.json["tables"] == len(tables)
    plan = ("plan-upgrade", "--from", fleet.inventory, "--set", "delta.appendOnly=true")
    assert len(fleet.cli(*plan, "--format", "json").json["plans"]) == len(tables)


def test_a_table_that_was_created_again_elsewhere(fleet: Fleet) -> None:
    assert fleet.scan("").code == 0
    fleet.drop("main.more.t")
    fleet.unity.add("main.more.t", f"file://{make(fleet.folder / 'lake' / 'again')}")
    assert fleet.scan("main.more").code == 0
    assert fleet.checked() == ALL


def test_a_table_with_a_name_that_was_not_listed_again(fleet: Fleet) -> None:
    place = fleet.unity.tables["main", "more"][1]["storage_location"]
    fleet.unity.add("main.hr.again", place)
    assert fleet.scan("").code == 0
    fleet.drop("main.more.t")
    assert fleet.scan("main.more").code == 0
    # It is still there, as main.hr.again.
    assert len(fleet.checked()) == 3
    fleet.drop("main.hr.again")
    assert fleet.scan("main.hr").code == 0
    assert fleet.checked() == ["main.hr.t", "main.more.s"]


def notices(fleet: Fleet) -> list[str]:
    words = ("check", fleet.inventory, "--client", "trino@476", "--format", "json")
    return [each for each in fleet.cli(*words).json.get("notices", ()) if "again without" in each]


def test_names_that_a_later_scan_did_not_store(fleet: Fleet) -> None:
    """Patterns of a policy with these names would not match, without a word."""
    place = fleet.unity.tables["main", "more"][1]["storage_location"]
    fleet.unity.add("main.hr.again", place)
    assert fleet.scan("").code == 0
    assert fleet.scan("main.more").code == 0
    (notice,) = notices(fleet)
    assert "1 table was read again without catalog names such as main.hr.again" in notice
    assert notice.endswith(f"patterns with these names do not match; scan {fleet.url}/ again")
    assert fleet.scan(str(fleet.folder / "lake")).code == 0
    (notice, _) = sorted(notices(fleet))
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    assert (fleet.cli(*words).code, fleet.cli(*words, "--fail-on", "warning").code) == (0, 1)
    # A name that is gone is not lost, and one that was found again neither.
    fleet.drop("main.hr.again")
    assert fleet.scan("").code == 0
    assert notices(fleet) == []


def test_a_table_that_a_folder_or_a_list_had_too(fleet: Fleet) -> None:
    lake = fleet.folder / "lake"
    assert fleet.scan("", str(lake)).code == 0
    fleet.drop("main.more.t")
    assert fleet.scan("main.more").code == 0
    assert fleet.checked() == ALL
    tables = fleet.folder / "tables.txt"
    tables.write_text(f"{lake}/main.more.t\n", encoding="utf-8")
    fleet.inventory += "2"
    fleet.unity.add("main.more.t", f"file://{lake}/main.more.t")
    words = ("--inventory", fleet.inventory)
    assert fleet.cli("scan", f"{fleet.url}/main", "--list", str(tables), *words).code == 0
    fleet.drop("main.more.t")
    assert fleet.scan("main.more").code == 0
    assert fleet.checked() == ALL


def test_a_schema_that_was_not_listed(fleet: Fleet) -> None:
    assert fleet.scan("main.more").code == 0
    fleet.drop("main.more.t")
    fleet.unity.faults.append(
        lambda _, query: refused(403, "no") if query.get("schema_name") == "more" else None
    )
    assert fleet.scan("main").code == 3
    # The tables of main.more are not known to be gone, and its error counts.
    assert len(fleet.checked()) == 3
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    assert fleet.cli(*words).code == 3
    fleet.unity.faults.clear()
    assert fleet.scan("main").code == 0
    assert fleet.checked() == GONE
    assert fleet.cli(*words).code == 0


def test_an_error_of_a_schema_that_was_listed_later(fleet: Fleet) -> None:
    fleet.unity.faults.append(
        lambda _, query: refused(403, "no") if query.get("schema_name") == "more" else None
    )
    assert fleet.scan("").code == 3
    fleet.unity.faults.clear()
    assert fleet.scan("main").code == 0
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    assert fleet.cli(*words).code == 0
    assert fleet.checked() == ALL


def test_another_server(fleet: Fleet) -> None:
    assert fleet.scan("").code == 0
    fleet.drop("main.more.t")
    port = fleet.unity.authority.rpartition(":")[2]
    other = f"uc://localhost:{port}/main.more"
    assert fleet.cli("scan", other, "--inventory", fleet.inventory).code == 0
    assert fleet.checked() == ALL


def test_drift_of_a_schema_in_other_case(fleet: Fleet) -> None:
    fleet.unity.tables["main", "MORE"] = fleet.unity.tables["main", "more"]
    assert fleet.scan("main.MORE").code == 0
    fleet.unity.faults.append(
        lambda _, query: refused(403, "no") if query.get("schema_name") == "MORE" else None
    )
    assert fleet.scan("main.MORE").code == 3
    drift = fleet.cli("drift", fleet.inventory, "--format", "json").json["changes"]
    assert {each["change"] for each in drift} == {"unreadable"}


def past(number: int, *roots: str) -> PastScan:
    ended = datetime(2026, 11, number, tzinfo=UTC)
    return PastScan(f"scan{number}", ended, ended, 1, 0, roots, (), ())


@pytest.mark.parametrize(
    ("before", "then", "name", "counts"),
    [
        ("glue://aws/", "glue://aws/Shop", "shop.t", False),
        ("glue://aws/", "glue://other/shop", "shop.t", True),
        ("hms://host:9083/", "hms://host:9083/shop", "shop.`a.b`", False),
        ("hms://host:9083/", "hms://host:9083/sho", "shop.t", True),
        ("hms://host:9083/", "uc://host:9083/shop", "shop.t", True),
        ("catalog main", "catalog main.shop", "main.shop.t", False),
        ("catalog main.shop", "catalog main", "main.shop.t", False),
        ("catalog main", "catalog shop", "main.shop.t", True),
        # A single name may be a schema of the current catalog.
        ("catalog shop", "catalog shop", "main.shop.t", True),
        ("uc://host/", "catalog main", "main.shop.t", True),
    ],
)
def test_other_catalogs(before: str, then: str, name: str, counts: bool) -> None:
    old, new = past(1, before), past(2, then)
    places = {old: [ScannedPlace("s3://lake/t", (name,))], new: [ScannedPlace("s3://lake/u")]}
    state = NewestState([new, old], lambda scan: places[scan])
    assert state.is_newest(old, "s3://lake/t") is counts
    assert state.contributing == ((new, old) if counts else (new,))
    # Neither from releases that did not store all names, nor if some are not known.
    early = old._replace(not_searched=None)
    for each, names in ((early, (name,)), (old, None)):
        rows = {each: [ScannedPlace("s3://lake/t", names)], new: []}
        state = NewestState([new, each], lambda scan, rows=rows: rows[scan])  # type: ignore[misc]
        assert state.is_newest(each, "s3://lake/t")


def test_places_of_catalogs() -> None:
    assert parse_catalog_place("uc://host:1/Main.`a B`") == CatalogPlace(
        "uc://host:1", ("main", "a b")
    )
    assert parse_catalog_place("uc://host:1/") == CatalogPlace("uc://host:1", ())
    assert parse_catalog_place("catalog Main") == CatalogPlace("", ("main",))
    assert parse_catalog_place("main.more") == CatalogPlace("", ("main", "more"))
    for text in ("s3://main/more", "file:///main.more", "/main.more", "main"):
        assert parse_catalog_place(text) is None, text
    assert not CatalogPlace("", ("main",)).covers(CatalogPlace("", ("main2", "t")))
    # A whole catalog of a Spark session is not a folder of that name.
    error = no_tables_error("main")
    assert UnreadablePlace("catalog main", error).uri == "catalog main"


@pytest.mark.parametrize(
    ("before", "then", "code"),
    [
        ("main.more", "", 0),
        ("main main.more", "", 0),
        ("", "main.more", 0),
        ("", "main.hr", 3),
    ],
)
def test_a_dropped_entry_whose_folder_was_missing(
    fleet: Fleet, before: str, then: str, code: int
) -> None:
    (fleet.folder / "lake" / "main.more.t").rename(fleet.folder / "elsewhere")
    assert fleet.scan(*before.split(" ")).code == 3
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    assert fleet.cli(*words).code == 3
    fleet.drop("main.more.t")
    assert fleet.scan(then).code == 0
    assert fleet.cli(*words).code == code


def test_a_restored_folder_is_read_although_an_older_scan_counts(fleet: Fleet) -> None:
    """main.hr.t is only in the older scan, which did not find the folder of main.more.t."""
    moved = (fleet.folder / "lake" / "main.more.t").rename(fleet.folder / "elsewhere")
    assert fleet.scan("").code == 3
    moved.rename(fleet.folder / "lake" / "main.more.t")
    assert fleet.scan("main.more").code == 0
    assert fleet.checked() == ALL
    ran = fleet.cli("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    assert (ran.code, "not-found" in ran.out) == (0, False)


def test_a_missing_folder_with_a_name_that_was_not_listed_again(fleet: Fleet) -> None:
    place = fleet.unity.tables["main", "more"][1]["storage_location"]
    fleet.unity.add("main.hr.again", place)
    (fleet.folder / "lake" / "main.more.t").rename(fleet.folder / "elsewhere")
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    assert fleet.scan("").code == 3
    fleet.drop("main.more.t")
    assert fleet.scan("main.more").code == 0
    # main.hr.again still has that folder.
    assert fleet.cli(*words).code == 3
    fleet.drop("main.hr.again")
    assert fleet.scan("main.hr").code == 0
    assert fleet.cli(*words).code == 0


def _forget_names(fleet: Fleet) -> None:
    """Make the inventory that of a release which stored no names of unreadable tables."""
    errors = Path(fleet.inventory) / "errors"
    older = DeltaTable(errors).to_pyarrow_table().drop_columns(["other_names"])
    shutil.rmtree(errors)
    write_deltalake(errors, older, partition_by=["scan_id"])


def test_an_older_inventory_has_no_names_of_missing_folders(fleet: Fleet) -> None:
    """Another schema may have the same folder: only a scan of the whole server shows it."""
    (fleet.folder / "lake" / "main.more.t").rename(fleet.folder / "elsewhere")
    assert fleet.scan("").code == 3
    _forget_names(fleet)
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6")
    fleet.drop("main.more.t")
    for roots, code in (("main.more", 3), ("", 0)):
        assert fleet.scan(roots).code == 0
        assert fleet.cli(*words).code == code


def test_a_schema_that_could_not_be_listed_may_have_the_missing_folder(fleet: Fleet) -> None:
    (fleet.folder / "lake" / "main.more.t").rename(fleet.folder / "elsewhere")
    assert fleet.scan("main.more").code == 3
    _forget_names(fleet)
    hidden = fleet.unity.faults.append
    hidden(lambda _, query: refused(403, "no") if query.get("schema_name") == "hr" else None)
    fleet.drop("main.more.t")
    assert fleet.scan("").code == 3
    words = ("check", fleet.inventory, "--client", "deltalake/engine@1.6.6", "--format", "json")
    codes = sorted(each["error"]["code"] for each in fleet.cli(*words).json["errors"])
    assert codes == ["not-found", "permission-denied"]


@pytest.mark.parametrize(
    ("table", "roots", "address"),
    [
        ("main.sales.t", ["uc://host/"], "uc://host/main.sales.t"),
        ("main.sales.t", ["uc://host:8443/main.sales.t"], "uc://host:8443/main.sales.t"),
        ("Main.`Sales Data`.t", ["uc://host/main"], "uc://host/Main.`Sales Data`.t"),
        ("main.sales.t", ["uc://a/main", "uc://b/other"], "uc://a/main.sales.t"),
        ("main.sales.t", ["uc://a/", "uc://b/"], None),
        ("main.sales.t", ["uc://a/", "catalog main"], None),
        ("main.sales.t", ["uc://a/", "catalog other", "s3://lake/"], "uc://a/main.sales.t"),
        ("sales.t", ["glue://us-east-1/", "uc://a/main"], None),
        ("main.sales.t", ["uc://a/other"], None),
        ("s3://lake/main.sales.t", ["uc://a/"], None),
        ("/lake/t", ["uc://a/", "/lake"], None),
    ],
)
def test_the_address_of_a_scanned_table(table: str, roots: list[str], address: str | None) -> None:
    assert unity_addresses(roots)(table) == address
