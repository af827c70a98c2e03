"""A table that is named with its catalog's URL, against its entry: findings, and none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltaproto
from tests.conftest import Ran
from tests.fleet.test_scan_catalogs import _alone as _alone
from tests.fleet.test_scan_catalogs import unity as unity
from tests.support import contract
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.unity_server import UnityServer

Cli = Callable[..., Ran]
CLIENT = ("--client", "deltalake@1.6.0")
VECTORS = ["deletionVectors"]
MANAGED = ["catalogManaged", "inCommitTimestamp"]
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "Id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "price", "type": "decimal(12,2)", "nullable": True, "metadata": {}},
        {"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}},
    ],
}
COLUMNS = [
    {"name": "id", "type_text": "bigint", "type_json": '{"name":"id","type":"long"}'},
    {"name": "price", "type_text": "decimal(12,2)"},
    {"name": "at", "type_text": "a type of the next release"},
]
STATED = {
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
    "delta.feature.deletionVectors": "supported",
}


def make(folder: Path, configuration: dict[str, Any] | None = None) -> str:
    log = Log(folder)
    described = metadata(configuration or {}, json.dumps(SCHEMA))
    log.commit(0, commit_info(), protocol(3, 7, VECTORS, VECTORS), described, add())
    return f"file://{folder}"


def shown(cli: Cli, name: str, *words: str) -> dict[str, str]:
    """Messages of the findings on entries, by rule: the same with `inspect` and `check`."""
    inspected = cli("inspect", name, *words, "--format", "json")
    (document,) = contract.documents(inspected, "inspect")
    table = document["tables"][0]
    checked = cli("check", name, *CLIENT, "--format", "json")
    (document,) = contract.documents(checked, "check")
    found = [
        {each["rule"]: each["message"] for each in findings if each["rule"] >= "DP5"}
        for findings in (table.get("findings", ()), document["findings"])
    ]
    assert found[0] == found[1] or words
    assert all(each["table"] == name for each in table.get("findings", ()))
    return found[0]


def test_an_entry_like_the_log(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    where = make(tmp_path / "t", {"io.unitycatalog.tableId": "ID-OF-MAIN.S.T"})
    unity.add("main.s.t", where, columns=COLUMNS, properties=STATED)
    name = f"uc://{unity.authority}/main.s.t"
    assert shown(cli, name) == {}
    # The catalog is asked once for the table, and not again for each reader.
    before = unity.requests["tables"]
    assert cli("inspect", name, "--reader", "delta-rs").code in (0, 1, 3)
    assert unity.requests["tables"] == before + 1


def test_an_entry_unlike_the_log(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    where = make(tmp_path / "t", {"io.unitycatalog.tableId": "another"})
    price = {"name": "price", "type_text": "decimal(10,2)"}
    stale = {**STATED, "delta.minReaderVersion": "2"}
    unity.add("main.s.t", where, columns=[COLUMNS[0], price], properties=stale)
    name = f"uc://{unity.authority}/main.s.t"
    assert shown(cli, name) == {
        "DP503": "The log belongs to another table of Unity Catalog than main.s.t",
        "DP504": "The entry main.s.t has different columns from the log: only in the log: at; "
        "price is decimal(10,2) instead of decimal(12,2)",
        "DP507": "The properties of the entry main.s.t state a different protocol from the log: "
        "reader version 2 instead of 3",
    }
    text = cli("inspect", name)
    assert all(rule in text.out for rule in ("DP503", "DP504", "DP507"))
    # The entry describes the newest version.
    assert shown(cli, name, "--version", "0") == {}
    by_path = cli("inspect", str(tmp_path / "t"), "--format", "json").json["tables"][0]
    assert not [each for each in by_path["findings"] if each["rule"] >= "DP5"]
    assert "DP503" in {each.rule for each in deltaproto.inspect_table(name).findings}


def test_an_entry_without_a_log(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    unity.add("main.s.gone", f"file://{tmp_path}/gone")
    unity.add("main.s.elsewhere", "file:///no/such/folder/t")
    (tmp_path / "damaged" / "_delta_log").mkdir(parents=True)
    (tmp_path / "damaged" / "_delta_log" / f"{0:020d}.json").write_text("{", encoding="utf-8")
    unity.add("main.s.damaged", f"file://{tmp_path}/damaged")
    host = f"uc://{unity.authority}"
    message = f"{host} has an entry for this table, but there is no Delta log at its location"
    assert shown(cli, f"{host}/main.s.gone") == {"DP501": message}
    delta_rs = cli("inspect", f"{host}/main.s.gone", "--reader", "delta-rs", "--format", "json")
    assert [each["rule"] for each in delta_rs.json["tables"][0]["findings"]] == ["DP501"]
    for other in ("elsewhere", "damaged", "unknown"):
        assert shown(cli, f"{host}/main.s.{other}") == {}, other
    gone = f"{host}/main.s.gone"
    for format_ in ("text", "markdown", "html"):
        assert "DP501" in cli("inspect", gone, "--format", format_).out, format_
    for format_ in ("text", "markdown", "sarif", "junit", "github"):
        ran = cli("check", gone, *CLIENT, "--format", format_)
        assert ran.code == 3, format_
        assert "DP501" in ran.out, format_
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: [deltalake@1.6.0]\nseverities: {DP501: off}\n",
        encoding="utf-8",
    )
    silent = cli("check", gone, "--policy", str(policy), "--format", "json")
    assert (silent.code, silent.json["findings"]) == (3, [])
    (checked,) = deltaproto.check(gone, clients=["deltalake@1.6.0"])
    assert [each.rule for each in checked.findings] == ["DP501"]


def test_a_version_that_the_catalog_does_not_confirm(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    log = Log(tmp_path / "t")
    stated = {**STATED, **{f"delta.feature.{name}": "supported" for name in MANAGED}}
    own = {"io.unitycatalog.tableId": "id-of-main.s.t", "delta.enableInCommitTimestamps": "true"}
    log.commit(
        0,
        commit_info(inCommitTimestamp=100),
        protocol(3, 7, ["catalogManaged"], MANAGED),
        metadata(own, json.dumps(SCHEMA)),
        add(),
    )
    entry = unity.add(
        "main.s.t", f"file://{tmp_path}/t", columns=COLUMNS[:1], properties=stated,
        table_type="MANAGED",
    )  # fmt: skip
    name = f"uc://{unity.authority}/main.s.t"
    # The entry describes version 1, which is not published, and cannot be found.
    unity.commits[entry["table_id"]] = (1, {1: 101})
    assert shown(cli, name) == {}
    unity.commits[entry["table_id"]] = (0, {})
    assert set(shown(cli, name)) == {"DP504", "DP507"}
