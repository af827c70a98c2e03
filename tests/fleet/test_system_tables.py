"""Databricks' system tables as sources: each form of export, and whose use they show."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.errors import TableError
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.requests import LogCounts, add_access_log
from deltaproto.fleet.seen.system_tables import parse_system_row
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.uses import SeenUses
from deltaproto.protocol.table_state import SparkSettings
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.lakes import s3_lake

Cli = Callable[..., Ran]
NOW = datetime(2026, 11, 20, 9, 30, 0, 123000, tzinfo=UTC)
TEXT = pa.string()
ORDERS = "main.sales.orders"
PLACE = "s3://lake/gold/orders"

AUDIT = pa.schema(
    {
        "event_time": pa.timestamp("us", "UTC"),
        "user_agent": TEXT,
        "source_ip_address": TEXT,
        "user_identity": pa.struct({"email": TEXT, "subject_name": TEXT}),
        "service_name": TEXT,
        "action_name": TEXT,
        "request_params": pa.map_(TEXT, TEXT),
        "response": pa.struct({"status_code": pa.int32(), "error_message": TEXT, "result": TEXT}),
    }
)
JOBS = pa.struct({"job_info": pa.struct({"job_id": TEXT}), "notebook_id": TEXT})
LINEAGE = pa.schema(
    {
        "event_time": pa.timestamp("us", "UTC"),
        "created_by": TEXT,
        "entity_type": TEXT,
        "entity_id": TEXT,
        "entity_metadata": JOBS,
        "source_table_full_name": TEXT,
        "source_path": TEXT,
        "target_table_full_name": TEXT,
        "target_path": TEXT,
    }
)
QUERIES = pa.schema(
    {
        "start_time": pa.timestamp("us", "UTC"),
        "end_time": pa.timestamp("us", "UTC"),
        "executed_by": TEXT,
        "execution_status": TEXT,
        "statement_text": TEXT,
        "statement_type": TEXT,
        "compute": pa.struct({"type": TEXT, "cluster_id": TEXT, "warehouse_id": TEXT}),
        "query_source": JOBS,
        "client_application": TEXT,
        "client_driver": TEXT,
    }
)


def audited(action: str, hours: float = 0, **values: Any) -> dict[str, Any]:
    return {
        "event_time": NOW - timedelta(hours=hours),
        "user_agent": "UnityCatalog-Java-Client/0.4.0 Delta/4.1.0 Spark/4.0.1",
        "source_ip_address": "192.0.2.3",
        "user_identity": {"email": "ada@example.com", "subject_name": None},
        "service_name": "unityCatalog",
        "action_name": action,
        "request_params": [("full_name_arg", ORDERS)],
        "response": {"status_code": 200, "error_message": None, "result": None},
        **values,
    }


def linked(hours: float = 0, **values: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(LINEAGE.names),
        "event_time": NOW - timedelta(hours=hours),
        "created_by": "bob@example.com",
        "source_table_full_name": ORDERS,
        **values,
    }


def queried(statement: str, hours: float = 0, **values: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(QUERIES.names),
        "start_time": NOW - timedelta(hours=hours + 1),
        "end_time": NOW - timedelta(hours=hours),
        "executed_by": "eve@example.com",
        "execution_status": "FINISHED",
        "statement_text": statement,
        "statement_type": "SELECT",
        "compute": {"type": "WAREHOUSE", "cluster_id": None, "warehouse_id": "w1"},
        "client_application": "Tableau",
        **values,
    }


CREDENTIAL = [("table_full_name", ORDERS), ("table_url", PLACE), ("operation", "READ")]
TABLES: dict[str, tuple[pa.Schema, list[dict[str, Any]]]] = {
    "databricks-audit": (
        AUDIT,
        [
            audited("generateTemporaryTableCredential", request_params=CREDENTIAL),
            audited("getTable", hours=1),
            audited(
                "generateTemporaryTableCredential",
                response={"status_code": 403, "error_message": "no", "result": None},
                request_params=CREDENTIAL,
            ),
            audited(
                "deltaSharingQueriedTable",
                user_identity=None,
                user_agent="Databricks-Service/x",
                request_params=[("recipient_name", "acme"), ("name", "orders")],
                response={
                    "status_code": 200,
                    "error_message": None,
                    "result": json.dumps(
                        {
                            "path": f"file: {PLACE}/_delta_log",
                            "userAgent": "Delta-Sharing-Python/1.3.0 pandas/2.2 PyArrow/18",
                        }
                    ),
                },
            ),
        ],
    ),
    "databricks-table-lineage": (
        LINEAGE,
        [
            linked(entity_type="JOB", entity_id="7"),
            linked(hours=2, entity_metadata={"job_info": None, "notebook_id": "n9"}),
            # The path of a table, and a target that is unknown.
            linked(source_table_full_name=None, source_path=f"{PLACE}/", target_path="s3://x/y"),
            linked(
                source_table_full_name="main.raw.events",
                target_table_full_name=ORDERS.upper(),
                entity_type="DASHBOARD_V3",
                entity_id="d1",
            ),
        ],
    ),
    "databricks-query-history": (
        QUERIES,
        [
            queried(f"SELECT * FROM {ORDERS} o JOIN main.raw.events e ON o.id = e.id"),
            queried("INSERT INTO `main`.`sales`.`orders` VALUES (1)", statement_type="INSERT"),
            queried(f"SELECT '{ORDERS}' -- {ORDERS}"),
            queried(f"SELECT 1 FROM {ORDERS}", execution_status="FAILED"),
        ],
    ),
}
EXPECTED = {
    "databricks-audit": (
        {"delta-spark@4.1.0": {"read"}, "delta-sharing-python@1.3.0": {"read"}},
        {("user", "ada@example.com"), ("user", "acme")},
        2,
    ),
    "databricks-table-lineage": (
        {"databricks-runtime": {"read"}},
        {("user", "bob@example.com"), ("job", "7"), ("notebook", "n9"), ("dashboard", "d1")},
        4,
    ),
    "databricks-query-history": (
        {"databricks-runtime": {"read"}},
        {("user", "eve@example.com"), ("cluster", "w1")},
        2,
    ),
}


def text(value: Any) -> Any:
    """A value as exports of SQL editors have it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return json.dumps(dict(value))
    return json.dumps(value) if isinstance(value, dict) else value


def write_parquet(folder: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "export.parquet")
    return str(folder / "export.parquet")


def write_csv(folder: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> str:
    with (folder / "export.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, schema.names)
        out.writeheader()
        out.writerows({name: text(value) for name, value in row.items()} for row in rows)
    return str(folder / "export.csv")


def write_json(folder: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> str:
    plain = ({name: text(value) for name, value in row.items()} for row in rows)
    (folder / "export.json").write_text("\n".join(map(json.dumps, plain)))
    return str(folder / "export.json")


def write_delta(folder: Path, schema: pa.Schema, rows: list[dict[str, Any]]) -> str:
    write_deltalake(str(folder / "export"), pa.Table.from_pylist(rows, schema))
    return str(folder / "export")


FORMS = (write_parquet, write_csv, write_json, write_delta)


def counted(name: str, **more: Any) -> tuple[SeenUses, LogCounts]:
    matcher, uses = TableMatcher({}), SeenUses()
    matcher.add(ORDERS, PLACE)
    found = add_access_log(name, {}, matcher, uses, ReadTraces(), None, **more)
    assert found.failed == ()
    return uses, found


def summary(uses: SeenUses) -> tuple[dict[str, set[str]], set[tuple[str, str]], int]:
    return (
        {client.label: set(map(str, seen.access)) for client, seen in uses.clients.items()},
        {(str(n.kind), n.text) for seen in uses.clients.values() for n in seen.principals},
        sum(seen.requests.count for seen in uses.clients.values()),
    )


@pytest.mark.parametrize("write", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("format_", TABLES)
def test_each_table_in_each_form(tmp_path: Path, format_: str, write: Any) -> None:
    schema, rows = TABLES[format_]
    uses, found = counted(write(tmp_path, schema, rows))
    assert (found.format, found.lines, found.unparsed) == (format_, 4, 0)
    assert summary(uses) == EXPECTED[format_]
    last = max(seen.requests.last or 0 for seen in uses.clients.values())
    newest = NOW - timedelta(hours=format_ == "databricks-query-history")
    assert last == int(newest.timestamp() * 1000)


def test_delivered_audit_logs(tmp_path: Path) -> None:
    # "Configure audit log delivery", and "Diagnostic log reference" of Azure Databricks.
    event: dict[str, Any] = {
        "sourceIPAddress": "192.0.2.3",
        "userAgent": "UnityCatalog-Java-Client/0.4.0 Delta/4.1.0 Spark/4.0.1",
        "serviceName": "unityCatalog",
        "actionName": "generateTemporaryTableCredential",
        "requestParams": {"full_name_arg": ORDERS, "operation": "READ"},
        "response": {"statusCode": 200, "errorMessage": None, "result": None},
    }
    who = {"email": "ada@example.com", "subjectName": None}
    time = int(NOW.timestamp() * 1000)
    delivered = {"version": "2.0", "timestamp": time, "userIdentity": who, **event}
    refused = {**delivered, "response": {"statusCode": 403}}
    azure = {
        "operationName": "Microsoft.Databricks/unityCatalog/generateTemporaryTableCredential",
        "time": NOW.isoformat(),
        "identity": json.dumps(who),
        "properties": {
            **event,
            "requestParams": json.dumps(event["requestParams"]),
            "response": json.dumps(event["response"]),
        },
    }
    (tmp_path / "audit.json").write_text("\n".join(map(json.dumps, (delivered, refused, azure))))
    uses, found = counted(str(tmp_path / "audit.json"))
    assert (found.format, found.lines, found.matched) == ("databricks-audit", 3, 2)
    principals = {("user", "ada@example.com")}
    assert summary(uses) == ({"delta-spark@4.1.0": {"read"}}, principals, 2)
    assert {seen.requests.last for seen in uses.clients.values()} == {time}


def test_a_row_is_of_one_event_and_names_two_tables() -> None:
    row = linked(target_table_full_name="main.sales.daily", entity_type="PIPELINE", entity_id="p")
    found = parse_system_row(row)
    assert found is not None
    source, (target,) = found[1], found[1].others
    assert source.use is not None
    assert target.use is not None
    assert (source.use.name, target.use.name) == (ORDERS, "main.sales.daily")
    assert (source.kind, target.kind) == ("read", "write")
    assert source.use.principals == (("pipeline", "p"),)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (audited("generateTemporaryTableCredential", request_params="{"), "damaged JSON"),
        (audited("getTable", request_params=None, response=None, user_identity=5), "nulls"),
        (linked(event_time="x", created_by=7, entity_type="TRAIN", entity_metadata=[1]), "kinds"),
        (queried("SELECT ```", compute="[", query_source=[["a", "b", "c"]]), "damaged SQL"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_value_never_stops_the_others(row: Mapping[str, Any], message: str) -> None:
    assert parse_system_row(row) is not None, message


def test_another_table_is_refused_and_another_file_is_counted(tmp_path: Path) -> None:
    other = pa.table({"id": [1, 2]})
    write_deltalake(str(tmp_path / "other"), other)
    pq.write_table(other, tmp_path / "other.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "other.parquet").read_bytes()[:-9])
    found = add_access_log(
        str(tmp_path / "other"), {}, TableMatcher({}), SeenUses(), ReadTraces(), None
    )
    ((name, error, _),) = found.failed
    assert name == str(tmp_path / "other")
    assert isinstance(error, TableError)
    assert "not a system table" in error.message
    assert counted(str(tmp_path / "other.parquet"))[1].unparsed == 2
    cut = str(tmp_path / "cut.parquet")
    found = add_access_log(cut, {}, TableMatcher({}), SeenUses(), ReadTraces(), None)
    assert "cannot be read to its end" in found.failed[0].error.message


@pytest.mark.storage
def test_rows_of_a_table_count_once_whatever_maintenance_does(cli: Cli, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "orders"), pa.table({"id": [1]}))
    inventory, export = str(tmp_path / "inventory"), str(tmp_path / "lineage")
    with s3_lake() as store:
        where = store.upload(tmp_path / "orders", "orders")
        assert cli("scan", where, "--inventory", inventory, "-q", *store.words()).code == 0

        def append(*hours: float) -> None:
            rows = [linked(each, source_table_full_name=None, source_path=where) for each in hours]
            write_deltalake(export, pa.Table.from_pylist(rows, LINEAGE), mode="append")

        def requests(*words: str) -> int:
            logs = ("--access-log", export, "--format", "json", *words, *store.words())
            ran = cli("discover", inventory, *logs)
            assert ran.code == 0, ran.err
            (document,) = documents(ran, "discover")
            return sum(each["requests"] for each in document["clients"])

        append(50, 40, 30, 1)
        # The newest hours are counted by the next run: rows arrive late.
        assert requests("--no-store") == 4
        assert requests() == 3
        append(2)
        assert requests() == 3
        DeltaTable(export).optimize.compact()
        append(-20)
        assert requests() == 5
        assert requests() == 5
        append(-30)
        assert requests() == 6


@pytest.mark.spark
def test_a_name_is_read_through_spark(spark: Any, tmp_path: Path) -> None:
    for format_, (schema, rows) in TABLES.items():
        name = f"lineage_of_{format_.replace('-', '_')}"
        write_parquet(tmp_path, schema, rows)
        spark.read.parquet(str(tmp_path / "export.parquet")).write.saveAsTable(name)
        uses, found = counted(f"spark_catalog.default.{name}", spark=SparkSettings())
        assert (found.format, found.lines, found.unparsed) == (format_, 4, 0)
        assert summary(uses) == EXPECTED[format_]
        spark.sql(f"DROP TABLE {name}")
