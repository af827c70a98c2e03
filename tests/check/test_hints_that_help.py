"""Hints name what works: nothing that the plan would refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
STAMPED = {"delta.enableInCommitTimestamps": "true"}
DISABLE = "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'false')"
DROP = "--drop inCommitTimestamp"


def hints(cli: Cli, table: str, *words: str) -> dict[str, str]:
    """The hints of the findings on each client."""
    ran = cli("check", table, *words, "--format", "json")
    found: list[dict[str, Any]] = ran.json["findings"]
    return {each["client"]: each["hint"] for each in found if each["rule"] == "DP201"}


@pytest.mark.parametrize("saved", ["", "inspection", "inventory"])
@pytest.mark.parametrize("stamped", [True, False])
def test_a_table_whose_newest_commit_has_no_timestamp(
    cli: Cli, tmp_path: Path, stamped: bool, saved: str
) -> None:
    log = Log(tmp_path / "lake" / "t")
    listed = protocol(1, 7, None, ["inCommitTimestamp"])
    log.commit(0, commit_info(inCommitTimestamp=1), listed, metadata(STAMPED))
    log.commit(1, commit_info(**({"inCommitTimestamp": 2} if stamped else {})))
    table = log.table
    if saved == "inspection":
        table = str(tmp_path / "saved.json")
        cli("inspect", log.table, "--format", "json", "-o", table)
    elif saved:
        table = str(tmp_path / "inventory")
        cli("scan", str(tmp_path / "lake"), "--inventory", table)
    clients = ("--client", "trino@476", "--client", "delta-spark@4.4.0")
    found = hints(cli, table, *clients)
    if stamped:
        assert found.keys() == {"trino@476"}
        assert DROP in found["trino@476"]
        return
    assert DROP not in "".join(found.values())
    assert found["trino@476"].startswith(f"{DISABLE}, for which Delta Spark raises an error")
    assert found["trino@476"].endswith("then drop inCommitTimestamp")
    assert found["delta-spark@4.4.0"].startswith(DISABLE)
    assert found["delta-spark@4.4.0"].endswith("; then enable them again")
    blocked = cli("plan-downgrade", log.table, "--drop", "inCommitTimestamp")
    assert (blocked.code, DISABLE in " ".join(blocked.out.split())) == (1, True)


@pytest.mark.parametrize(("name", "needed"), [("my id", True), ("a.b", False), ("id", False)])
def test_column_names_that_need_column_mapping(
    cli: Cli, tmp_path: Path, name: str, needed: bool
) -> None:
    ids = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "col-1"}
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    schema = schema_string(column(name, **ids))
    log = Log(tmp_path / "t").commit(0, commit_info(), protocol(2, 5), metadata(mapping, schema))
    words = ("--client", "deltalake/pyarrow@0.15.0", "--access", "read")
    (hint,) = hints(cli, log.table, *words).values()
    assert ("rename the columns with spaces" in hint) is needed
    assert "--drop columnMapping" in hint
    plan = cli("plan-downgrade", log.table, "--drop", "columnMapping")
    assert ("rename these columns first" in plan.out) is needed
