"""The cost of large schemas and property maps grows with their size, not with its square."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.protocol.feature import CLUSTERING_DOMAIN
from tests.conftest import Ran
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
SIZES = (150, 300, 600)
COMMANDS: dict[str, tuple[str, ...]] = {
    "inspect": (),
    "check": ("--client", "trino@476"),
    "plan-downgrade": ("--lowest",),
    "plan-upgrade": ("--set", "delta.appendOnly=true"),
}


def checks(count: int) -> list[Any]:
    conf = {f"delta.constraints.c{n}": f"CAST(a{n} AS STRING) > '{n}'" for n in range(count)}
    columns = [column(f"a{n}", "timestamp") for n in range(count)]
    return [protocol(1, 4), metadata(conf, schema_string(*columns))]


def generated(count: int) -> list[Any]:
    columns = [
        column(f"a{n}", **({"delta.generationExpression": "a0 + 1"} if n else {}))
        for n in range(count)
    ]
    return [protocol(1, 4), metadata({}, schema_string(*columns))]


def clustered(count: int) -> list[Any]:
    columns = json.dumps({"clusteringColumns": [[f"a{n}"] for n in range(count)]})
    domain = {"domain": CLUSTERING_DOMAIN, "configuration": columns, "removed": False}
    schema = schema_string(*(column(f"a{n}") for n in range(count)))
    features = ["clustering", "domainMetadata"]
    return [protocol(1, 7, None, features), metadata({}, schema), {"domainMetadata": domain}]


def statistics(count: int) -> list[Any]:
    conf = {"delta.dataSkippingStatsColumns": ",".join(f"a{n}" for n in range(count))}
    schema = schema_string(*(column(f"a{n}") for n in range(count)))
    return [protocol(1, 4), metadata(conf, schema)]


def widened(count: int) -> list[Any]:
    change = {"delta.typeChanges": [{"fromType": "short", "toType": "integer"}]}
    schema = schema_string(*(column(f"a{n}", **change) for n in range(count)))
    return [protocol(3, 7, ["typeWidening"], ["typeWidening"]), metadata({}, schema)]


def properties(count: int) -> list[Any]:
    return [protocol(1, 4), metadata({f"my.{n}": "v" for n in range(count)})]


@pytest.mark.rotating
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "make",
    [checks, generated, clustered, statistics, widened, properties],
    ids=lambda f: f.__name__,
)
def test_twice_the_table_takes_at_most_about_twice_the_calls(
    cli: Cli, tmp_path: Path, make: Callable[[int], list[Any]], command: str
) -> None:
    def calls(count: int) -> int:
        path = tmp_path / str(count)
        if not path.exists():
            Log(path).commit(0, commit_info(), *make(count))
        return count_calls(lambda: cli(command, str(path), *COMMANDS[command]))

    calls(SIZES[0] - 1)  # What is loaded once is loaded now.
    small, middle, large = map(calls, SIZES)
    # A square would make it four times, and so would half of one.
    assert large - middle < 2.6 * max(middle - small, 5_000)


def count_calls(work: Callable[[], object]) -> int:
    """Return the number of Python functions and generator steps that `work` calls."""
    count = 0

    def called(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count
