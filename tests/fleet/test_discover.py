"""`deltaproto discover`: the clients that the tables' own logs show."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake import __version__ as deltalake_version

from deltaproto.clients.model import Access
from deltaproto.fleet.seen.commits import access_of
from deltaproto.fleet.seen.table_tasks import dump_result, load_result
from deltaproto.fleet.seen.uses import Client, Mark, PrincipalKind, SeenUses
from deltaproto.protocol.writers import Confidence
from deltaproto.tables.log.commits import Commit
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
HOUR = 3_600_000
START = 1_764_000_000_000 // HOUR * HOUR


def table(folder: Path, name: str, *infos: dict[str, Any]) -> Log:
    """A table with one commit for each of the infos, an hour after the other."""
    log = Log(folder / name)
    for version, info in enumerate(infos):
        more = [protocol(1, 2), metadata()] if version == 0 else []
        timed = {"timestamp": START + version * HOUR, **info}
        log.commit(version, commit_info(**timed), *more)
    return log


def discovered(cli: Cli, *words: str, code: int = 0) -> dict[str, Any]:
    ran = cli("discover", *words, "--format", "json")
    assert ran.code == code, ran.err
    (document,) = documents(ran, "discover")
    return document


def test_a_real_table_of_deltalake(cli: Cli, tmp_path: Path) -> None:
    where = str(tmp_path / "orders")
    write_deltalake(where, pa.table({"id": [1, 2]}))
    write_deltalake(where, pa.table({"id": [3]}), mode="append")
    DeltaTable(where).delete("id = 1")
    DeltaTable(where).optimize.compact()
    found = discovered(cli, where)
    (client,) = found["clients"]
    assert (client["client"], client["version"]) == ("deltalake", deltalake_version)
    assert client["access"] == ["append", "dml", "maintain"]
    assert (client["tables"], client["commits"], client["requests"]) == (1, 4, 0)
    assert client["confidence"] == "certain"
    assert client["evidence"] == [
        {"field": "commitInfo.engineInfo", "value": f"delta-rs:py-{deltalake_version}", "count": 4}
    ]
    assert client["by_table"][0]["table"] == where
    assert found["unidentified"] == found["errors"] == []
    (source,) = found["sources"]
    assert source == {
        **{"name": "table logs", "format": "delta"},
        **{"lines": 4, "matched": 4, "unparsed": 0, "known_files": 0},
        **{"undated": 0, "undated_example": None},
    }


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    nightly = {
        "engineInfo": "Databricks-Runtime/15.4.x-scala2.12",
        "userName": "ada@example.com",
        "job": {"jobName": "nightly", "jobId": "3"},
        "notebook": {"notebookId": "44"},
        "clusterId": "0108-110130-7h1qxtew",
    }
    table(root, "a", nightly, {**nightly, "operation": "MERGE"}, {"engineInfo": "loader 7"})
    trino = {
        "clusterId": "trino-455-node",
        "userName": "etl",
        "operationParameters": {"queryId": "20240911_100656_00086_2dq6g"},
    }
    table(root, "b", trino, {**nightly, "operation": "OPTIMIZE"}, {})
    return root


def test_clients_tables_and_principals_of_a_folder(cli: Cli, lake: Path) -> None:
    found = discovered(cli, str(lake))
    by_id = {each["client"]: each for each in found["clients"]}
    assert set(by_id) == {"databricks-runtime", "trino"}
    runtime = by_id["databricks-runtime"]
    assert (runtime["version"], runtime["commits"], runtime["tables"]) == ("15.4", 3, 2)
    assert runtime["access"] == ["append", "dml", "maintain"]
    assert {(each["kind"], each["name"], each["commits"]) for each in runtime["principals"]} == {
        ("user", "ada@example.com", 3),
        ("job", "nightly", 3),
        ("notebook", "44", 3),
        ("cluster", "0108-110130-7h1qxtew", 3),
    }
    assert runtime["first_seen"] == "2025-11-24T16:00:00Z"
    assert runtime["last_seen"] == "2025-11-24T17:00:00Z"
    assert [(each["table"], each["access"]) for each in runtime["by_table"]] == [
        (str(lake / "a"), ["append", "dml"]),
        (str(lake / "b"), ["maintain"]),
    ]
    assert by_id["trino"]["version"] == "455"
    assert ("query", "20240911_100656_00086_2dq6g") in {
        (each["kind"], each["name"]) for each in by_id["trino"]["principals"]
    }
    assert {each["mark"] for each in found["unidentified"]} == {"loader 7", "no mark"}
    assert all(each["confidence"] == "unknown" for each in found["unidentified"])
    (source,) = found["sources"]
    assert (source["lines"], source["matched"]) == (6, 4)


def test_an_inventory_means_its_tables_and_its_errors(cli: Cli, lake: Path, tmp_path: Path) -> None:
    Log(lake / "broken").raw(0, b"{")
    inventory = str(tmp_path / "inventory")
    assert cli("scan", str(lake), "--inventory", inventory, "-q").code == 3
    found = discovered(cli, inventory, code=3)
    assert found["complete"] is False
    assert found["tables"] == 2
    assert [each["client"] for each in found["clients"]] == ["databricks-runtime", "trino"]
    assert [each["table"] for each in found["errors"]] == [str(lake / "broken")]
    # Named twice, a table is counted once.
    again = discovered(cli, inventory, str(lake / "a"), str(lake), code=3)
    assert [each["commits"] for each in again["clients"]] == [3, 1]


def test_one_bad_table_never_stops_the_others(cli: Cli, lake: Path, tmp_path: Path) -> None:
    Log(lake / "empty")
    (lake / "a" / "_delta_log" / f"{3:020d}.json").write_bytes(b'{"commitInfo":{"oper')
    gone = str(tmp_path / "gone")
    found = discovered(cli, gone, str(lake), code=3)
    assert {each["client"] for each in found["clients"]} == {"databricks-runtime", "trino"}
    errors = {each["table"]: each["error"]["code"] for each in found["errors"]}
    assert errors == {
        gone: "not-found",
        str(lake / "empty"): "not-a-delta-table",
        str(lake / "a"): "corrupt-log",
    }
    (source,) = found["sources"]
    assert (source["lines"], source["unparsed"]) == (7, 1)
    for format_ in ("text", "markdown", "html"):
        ran = cli("discover", gone, str(lake), "--format", format_)
        assert ran.code == 3
        assert "Incomplete: not every table and log could be read." in ran.out


def test_a_catalog_may_have_newer_commits(cli: Cli, log: Log) -> None:
    features = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]
    log.commit(
        0,
        commit_info(engineInfo="DuckDB"),
        protocol(3, 7, ["catalogManaged", "vacuumProtocolCheck"], features),
        metadata({"delta.enableInCommitTimestamps": "true"}),
    )
    found = discovered(cli, log.table, code=3)
    assert [each["client"] for each in found["clients"]] == ["duckdb"]
    assert [each["error"]["code"] for each in found["errors"]] == ["catalog-managed"]


def test_only_the_last_days(cli: Cli, tmp_path: Path) -> None:
    now = int(time.time() * 1000)
    day = 24 * HOUR
    new, old = {"timestamp": now - day}, {"timestamp": now - 40 * day}
    lake = tmp_path / "lake"
    # A writer with a wrong clock in the middle hides nobody.
    table(
        lake,
        "a",
        {**old, "engineInfo": "Apache-Spark/3.2.1 Delta-Lake/2.0.0"},
        {**new, "engineInfo": "Apache-Spark/3.5.1 Delta-Lake/3.2.0"},
        {"timestamp": 7, "engineInfo": "DuckDB"},
        {**new, "engineInfo": "delta-rs:py-1.6.6"},
    )
    found = discovered(cli, str(lake), "--days", "30")
    assert {(each["client"], each["version"]) for each in found["clients"]} == {
        ("delta-spark", "3.2.0"),
        ("deltalake", "1.6.6"),
    }
    assert found["since"] is not None
    assert len(discovered(cli, str(lake))["clients"]) == 4
    assert cli("discover", str(lake), "--days", "0").code == 2


def test_the_rarest_interval_is_in_the_result(cli: Cli, tmp_path: Path) -> None:
    day = 24 * HOUR
    daily = [{"timestamp": START + n * day, "userName": "daily"} for n in range(95)]
    quarterly = [{"timestamp": START + n * 90 * day, "userName": "quarter"} for n in (0, 1)]
    commits = sorted([*daily, *quarterly], key=lambda each: each["timestamp"])
    table(tmp_path, "t", *({"engineInfo": "DuckDB", **each} for each in commits))
    (client,) = discovered(cli, str(tmp_path / "t"))["clients"]
    assert client["frequency"] == {"active_days": 95, "longest_gap_hours": 24}
    gaps = {each["name"]: each["longest_gap_hours"] for each in client["principals"]}
    assert gaps == {"daily": 24, "quarter": 90 * 24}


def test_principals_are_hashed_on_request(cli: Cli, lake: Path) -> None:
    words = ("discover", str(lake), "--pseudonymize")
    for format_ in ("text", "json", "markdown", "html"):
        out = cli(*words, "--format", format_).out
        for name in ("ada@example.com", "nightly", "0108-110130", "20240911_", "trino-455-node"):
            assert name not in out, (format_, name)
    first = discovered(cli, str(lake), "--pseudonymize")["clients"]
    assert first == discovered(cli, str(lake), "--pseudonymize")["clients"]
    names = [each["name"] for client in first for each in client["principals"]]
    assert len(names) == len(set(names)) == 7
    assert all(name.startswith("sha256:") for name in names)


SECRET = "s3cr3t0123456789abcdef"


def test_credentials_and_hostile_marks_never_reach_an_output(cli: Cli, tmp_path: Path) -> None:
    address = f"https://user:{SECRET}@host/x?sig={SECRET}"
    members = ("engineInfo", "clientVersion", "kernelVersion", "clusterId", "userName")
    infos: list[dict[str, Any]] = [{name: f"{name} {address}"} for name in members]
    infos += [
        {"operation": address, "operationParameters": {"queryId": address}},
        {"job": {"jobName": address}, "notebook": {"notebookId": address}},
        {"engineInfo": "\x1b[2J\n::error::x\u202e<script>" + "x" * 10_000, "job": [1]},
        {"engineInfo": ["list"], "operationParameters": "text", "timestamp": "late"},
    ]
    where = table(tmp_path, "t", *infos).table
    for format_ in ("text", "json", "jsonl", "markdown", "html"):
        ran = cli("discover", where, "--format", format_)
        assert ran.code == 0
        assert SECRET not in ran.out + ran.err, format_
        assert "\x1b[2J" not in ran.out
        assert "\n::error" not in ran.out
        assert "<script>x" not in ran.out
        assert len(ran.out) < 60_000


def commit(operation: str, **parameters: Any) -> Commit:
    info = {"operation": operation, "operationParameters": parameters}
    return Commit(0, info, None, None)


def test_the_access_that_a_commit_shows() -> None:
    rows = [
        (commit("WRITE", mode="Append"), Access.APPEND),
        (commit("WRITE", mode="Overwrite"), Access.DML),
        (commit("WRITE", mode='"Overwrite"'), Access.DML),
        (commit("STREAMING UPDATE", outputMode="Append"), Access.APPEND),
        (commit("STREAMING UPDATE", outputMode="Complete"), Access.DML),
        (commit("CREATE TABLE AS SELECT"), Access.APPEND),
        (commit("CREATE OR REPLACE TABLE AS SELECT"), Access.DML),
        (commit("UPDATE"), Access.DML),
        (commit("UPDATE SCHEMA"), Access.MAINTAIN),
        (commit("RESTORE"), Access.DML),
        (commit("VACUUM START"), Access.MAINTAIN),
        (commit("SET TBLPROPERTIES"), Access.MAINTAIN),
        (commit("delta-go.Write"), Access.APPEND),
        (commit("something else"), None),
        (Commit(0, {"operation": ["x"], "operationParameters": []}, None, None), None),
        (Commit(0, {}, None, None), None),
    ]
    wrong = [(row, access_of(row)) for row, wanted in rows if access_of(row) is not wanted]
    assert wrong == []


def test_memory_is_bounded_for_a_client_with_a_query_for_each_commit() -> None:
    uses = SeenUses()
    seen = uses.client(Client("trino", "455"), Confidence.CERTAIN)
    for number in range(5_000):
        name = uses.name(PrincipalKind.QUERY, f"q{number}")
        mark = Mark("commitInfo.clusterId", f"trino-455-{number}")
        seen.add("t", START + number * HOUR, Access.APPEND, [name], [mark])
    assert len(seen.principals) <= 2_000
    assert len(seen.principals) + seen.forgotten == 5_000
    assert ("query", "q4999") in seen.principals
    assert len(seen.evidence) == 20
    assert seen.commits.count == 5_000


def test_a_user_and_a_job_of_one_commit_stay_among_many_principals() -> None:
    """Room for the second name was made by forgetting the first, which had no time yet."""
    uses = SeenUses()
    seen = uses.client(Client("trino", "455"), Confidence.CERTAIN)
    for number in range(1_999):
        name = uses.name(PrincipalKind.USER, f"u{number}")
        seen.add("t", START + number * HOUR, Access.APPEND, [name], [])
    names = [uses.name(PrincipalKind.USER, "new"), uses.name(PrincipalKind.JOB, "nightly")]
    seen.add("t", START + 5_000 * HOUR, Access.APPEND, names, [])
    assert [seen.principals[name].commits.count for name in names] == [1, 1]


def test_results_of_tasks_are_sent_at_a_fraction_of_their_size() -> None:
    """Spark keeps those of all tasks of a job, and they filled the memory of its driver."""
    uses = SeenUses()
    for number in range(2_000):
        seen = uses.client(Client("trino", f"{number % 4}"), Confidence.CERTAIN)
        name = uses.name(PrincipalKind.USER, f"user {number % 50}")
        seen.add(f"s3://lake/t{number}", START + number * HOUR, Access.READ, [name], [])
    sent = dump_result(uses)
    assert len(sent) < len(pickle.dumps(uses)) / 5
    found = load_result(sent).clients
    assert {c: s.commits.count for c, s in found.items()} == {
        c: s.commits.count for c, s in uses.clients.items()
    }


def test_nothing_found(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    assert cli("discover", str(tmp_path / "lake")).code == 3
    assert cli("discover", str(tmp_path / "lake"), "--allow-empty").code == 0
    assert cli("discover").code == 2


def test_names_from_standard_input(cli: Cli, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(f"# ours\n{lake / 'a'}\n"))
    found = discovered(cli, "-")
    assert found["tables"] == 1
    assert json.dumps(found).count("trino") == 0


def test_many_tables_are_one_row_for_each_client(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for number in range(12):
        infos = [
            {"engineInfo": f"Databricks-Runtime/{release}.4", "userName": f"u{number % 9}@x.org"}
            for release in (*range(10, 17), 10)
        ]
        infos += [{"engineInfo": "loader 7", "userName": "u"}, {"engineInfo": "loader 8"}]
        table(tmp_path / "lake", f"t{number}", *infos)
    lake = str(tmp_path / "lake")
    shown = cli("discover", lake).out
    lines = shown.splitlines()
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("databricks-runtime@") for line in lines) == 7
    assert "by 9 users, such as u0@x.org" in " ".join(shown.split())
    assert "by user u |" in cli("discover", lake, "--format", "markdown").out
    assert "--details shows the users, jobs, tables and evidence" in shown
    few = cli("discover", lake, "--limit", "3").out
    assert sum(line.startswith("databricks-runtime@") for line in few.splitlines()) == 3
    assert "and 4 more clients: --limit 0 or --details shows all" in few
    assert cli("discover", lake, "--limit", "0").out == shown
    assert cli("discover", lake, "--limit", "-1").code == 2
    detailed = cli("discover", lake, "--details", "--limit", "3").out
    assert "evidence" in detailed
    assert all(f"u{number}@x.org (" in detailed for number in range(8))
    for format_ in ("markdown", "html"):
        assert "9 users, such as u0@x.org" in cli("discover", lake, "--format", format_).out
    assert len(discovered(cli, lake, "--limit", "1")["clients"]) == 7
    five = [str(tmp_path / "lake" / f"t{number}") for number in range(5)]
    assert "evidence" in cli("discover", *five).out
