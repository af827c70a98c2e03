"""Random goals of a downgrade, of the four kinds."""

from __future__ import annotations

from random import Random

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.plan_inputs.client_scope import newest_clients
from deltaproto.planning.downgrade import DowngradeRequest
from deltaproto.planning.search.goals import HistoryChoice, TableClient

_PAIRS = ((1, 1), (1, 2), (1, 3), (1, 4), (1, 6), (1, 7), (1, 7), (2, 5), (2, 6), (2, 7), (3, 7))
# What Delta Spark can drop; the others are asked for too, but seldom.
_DROPPABLE = frozenset(
    {
        *("checkConstraints", "columnMapping", "deletionVectors", "rowTracking", "domainMetadata"),
        *("inCommitTimestamp", "materializePartitionColumns", "checkpointProtection"),
        *("v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "typeWidening-preview"),
        *("geospatial", "geospatial-dev", "coordinatedCommits-preview"),
    }
)
_OLD = (
    "databricks-runtime@12.2 LTS",
    "databricks-runtime@14.3 LTS",
    "delta-spark@2.4.0",
    "delta-spark@3.3.0",
    "delta-spark@4.0.0",
    "deltalake/engine@0.25.0",
    "deltalake/engine@1.6.6",
    "polars@1.39.0",
    "duckdb@1.4.1",
    "trino@400",
    "trino@476",
    "athena@3",
    "clickhouse@25.8",
)


def random_goal(random: Random, supported: frozenset[str]) -> DowngradeRequest:
    """What somebody might ask of a table that supports these features."""
    history = random.choice((None, None, HistoryChoice.KEEP, HistoryChoice.TRUNCATE))
    kind = random.choice(("lowest", "lowest", "drop", "drop", "drop", "to", "clients"))
    names = sorted(supported & _DROPPABLE if random.random() < 0.85 else supported)
    if kind == "lowest" or (kind == "drop" and not names):
        asked = DowngradeRequest(lowest=True, include_enabled=random.random() < 0.7)
    elif kind == "drop":
        asked = DowngradeRequest(
            drop=tuple(random.sample(names, min(len(names), random.randint(1, 4))))
        )
    elif kind == "clients":
        asked = DowngradeRequest(clients=tuple(_use(random) for _ in range(random.randint(1, 2))))
    else:
        asked = DowngradeRequest(to=random.choice(_PAIRS))
    return asked._replace(history=history)


def random_clients(random: Random) -> tuple[TableClient, ...]:
    """A few clients that use the table."""
    known = random.sample(list(newest_clients(ClientCatalog())), 5)
    old = (ClientCatalog().resolve(text) for text in random.sample(_OLD, 3))
    return (*known, *(TableClient(candidate, (Access.READ, Access.APPEND)) for candidate in old))


def _use(random: Random) -> TableClient:
    access = random.choice(((Access.READ,), (Access.READ, Access.APPEND), (Access.APPEND,)))
    if random.random() < 0.7:
        return TableClient(ClientCatalog().resolve(random.choice(_OLD)), access)
    return TableClient(
        random.choice(list(newest_clients(ClientCatalog()))).candidate, (Access.READ,)
    )
