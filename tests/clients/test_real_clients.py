"""The catalog against the installed clients: what `check` says is what happens.

Every legacy pair, every feature alone and with what it requires, on hand-made tables; and every
table that Spark makes with a feature in use. An `ok` that fails is the worst mistake there is.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import Access, PathVerdict, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.tables import RECIPES, recipes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = [(r, w) for r in (1, 2) for w in range(1, 7)]
READER_WRITER = {
    f.name for f in feature_catalog.all_features() if f.kind is FeatureKind.READER_WRITER
}
SETS: dict[str, list[str]] = {"nothing": [], "strange": ["nobodyKnowsIt"]}
for _feature in feature_catalog.all_features():
    SETS[_feature.name] = [_feature.name]
    if _feature.required_features:
        SETS[f"{_feature.name}-whole"] = sorted(
            feature_catalog.with_required_features({_feature.name})
        )


# A draft's feature: deltalake takes it beside timestampNtz, and refuses it alone. We refuse both.
TOO_STRICT = ("timestampNanos",)


class Client(NamedTuple):
    """One way through a client, and how to use it."""

    name: str
    read: Callable[[str], list[int]]
    append: Callable[[str], None] | None


def asked(table: str) -> TableRequirements:
    inspection = inspect_table(table, ReadRequest())
    assert isinstance(inspection, Inspection)
    return facts_from_inspection(inspection).needs


def verdict(name: str, needs: TableRequirements, access: Access) -> PathVerdict:
    candidate = ClientCatalog().resolve(name)
    assert candidate.range is not None, candidate.unknown
    (path,) = candidate.paths
    return judge_access(candidate.range, path, needs, access)


@pytest.fixture(scope="module")
def delta_spark_client(spark: SparkSession) -> Client:
    def read(table: str) -> list[int]:
        rows = spark.read.format("delta").load(table).select("id").collect()
        return sorted(row.id for row in rows)

    def append(table: str) -> None:
        spark.sql("select 7L id").write.format("delta").mode("append").save(table)

    return Client(f"delta-spark@{version('delta-spark')}", read, append)


def deltalake_clients() -> list[Client]:
    def read_with_engine(table: str) -> list[int]:
        query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
        return sorted(pa.table(query.execute("select id from t"))["id"].to_pylist())

    def append_with_engine(table: str) -> None:
        deltalake.write_deltalake(table, pa.table({"id": [7]}), mode="append")

    def read_with_pyarrow(table: str) -> list[int]:
        found = deltalake.DeltaTable(table).to_pyarrow_table(columns=["id"])
        return sorted(found["id"].to_pylist())

    release = deltalake.__version__
    return [
        Client(f"deltalake/engine@{release}", read_with_engine, append_with_engine),
        Client(f"deltalake/pyarrow@{release}", read_with_pyarrow, None),
    ]


def handmade(path: Path, action: Any) -> str:
    log = Log(path)
    pq.write_table(pa.table({"id": [1, 2, 3]}), path / "part-0.parquet")
    size = (path / "part-0.parquet").stat().st_size
    file = add(size=size, stats=json.dumps({"numRecords": 3}))
    log.commit(0, commit_info(), action, metadata(), file)
    return log.table


def protocols() -> Iterator[Any]:
    for reader, writer in PAIRS:
        yield pytest.param(protocol(reader, writer), id=f"{reader}-{writer}")
    for name, features in SETS.items():
        readers = sorted(READER_WRITER & set(features))
        yield pytest.param(protocol(3 if readers else 1, 7, readers or None, features), id=name)
    yield pytest.param(protocol(3, 7, [], []), id="empty-lists")
    yield pytest.param(protocol(2, 7, None, ["columnMapping"]), id="reader-2-writer-7")
    strange = ["nobodyKnowsIt"]
    yield pytest.param(protocol(3, 7, strange, strange), id="strange-for-readers")


@pytest.mark.parametrize("action", protocols())
def test_the_verdict_on_a_protocol_is_what_happens(action: Any, tmp_path: Path) -> None:
    compare(handmade(tmp_path / "t", action), deltalake_clients(), tmp_path)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("action", protocols())
def test_the_verdict_on_a_protocol_is_what_happens_in_spark(
    action: Any, delta_spark_client: Client, tmp_path: Path
) -> None:
    compare(handmade(tmp_path / "t", action), [delta_spark_client], tmp_path)


def compare(table: str, clients: list[Client], tmp_path: Path) -> None:
    """Compare the verdict on each client with what it does to the table."""
    needs = asked(table)
    for number, client in enumerate(clients):
        copy = str(shutil.copytree(table, tmp_path / f"copy-{number}"))
        for access in (Access.READ, Access.APPEND):
            if access is Access.APPEND and client.append is None:
                continue
            said = verdict(client.name, needs, access)
            failed = attempt(client, access, copy)
            if said.verdict is Verdict.REFUSED:
                known = said.because == TOO_STRICT and client.name.startswith("deltalake/engine")
                assert failed is not None or known, (client.name, access, said)
            else:
                # Let through unchecked, and harmless while nothing uses it: that is `wrong` too.
                assert said.verdict in (Verdict.OK, Verdict.WRONG), (client.name, access, said)
                assert failed is None, (client.name, access, failed)


def attempt(client: Client, access: Access, table: str) -> Exception | None:
    """What went wrong; a table is read before it is appended to."""
    try:
        if access is Access.READ:
            assert client.read(table) == [1, 2, 3]
        elif client.append is not None:
            client.append(table)
    except Exception as error:
        return error
    return None


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", recipes(name for name in RECIPES if name != "identity"))
def test_the_verdict_on_a_table_in_use_is_what_happens(
    name: str, real_tables: Mapping[str, str], delta_spark_client: Client
) -> None:
    with_spark, others = delta_spark_client, deltalake_clients()
    table = real_tables[name]
    needs = asked(table)
    right = with_spark.read(table)
    assert verdict(with_spark.name, needs, Access.READ).verdict is Verdict.OK
    for client in others:
        said = verdict(client.name, needs, Access.READ)
        try:
            answer: list[int] | Exception = client.read(table)
        except Exception as error:
            answer = error
        if said.verdict is Verdict.OK:
            assert answer == right, client.name
        elif said.verdict is Verdict.REFUSED:
            assert isinstance(answer, Exception), (client.name, said)
        else:
            assert said.verdict is Verdict.WRONG, (client.name, said)
