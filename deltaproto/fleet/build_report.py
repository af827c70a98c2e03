"""The data of a fleet report: for its policy, or for the clients that wrote last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.inventory_reader import InventoryReader
from deltaproto.fleet.last_writers import LastWriters, summarize_rows
from deltaproto.fleet.newest_state import NewestState
from deltaproto.fleet.schemas import Inventory
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy, parse_declared
from deltaproto.policy.usage import has_requirements

if TYPE_CHECKING:
    from deltaproto.fleet.overview import Overview


def load_report_policy(path: str | None, *, allow_empty: bool) -> Policy | None:
    """Return the policy of a report.

    Raises:
        UsageError: for an invalid policy.
        TableError: no-tables, for a policy that requires nothing, unless `allow_empty`.
    """
    if path is None:
        return None
    policy = load_local_policy(path)
    if not (has_requirements(policy) or allow_empty):
        raise TableError(
            ErrorCode.NO_TABLES,
            f"nothing to report: {path} declares no clients and no settings",
            "add clients, or settings under tables; pass --allow-empty to report anyway",
        )
    return policy


def build_report(
    policy: Policy | None, files: Sequence[str], inventory: InventoryReader, state: NewestState
) -> Overview:
    """Return the data of a report on the policy, or else on the clients that wrote last.

    Raises:
        UsageError: for an invalid client file.
        TableError: when the inventory cannot be read.
    """
    catalog = load_local_catalog(files, policy)
    if policy is not None:
        return inventory.overview(state, Checker(policy, catalog))
    writers = find_last_writers(inventory, state, catalog)
    checker = Checker(Policy(source=""), catalog, named=map(parse_declared, writers.clients))
    return inventory.overview(state, checker)._replace(last_writers=writers)


def find_last_writers(
    inventory: InventoryReader, state: NewestState, catalog: ClientCatalog
) -> LastWriters:
    """Count the writers of the tables in the newest state of an inventory.

    Raises:
        TableError: when the inventory cannot be read.
    """
    return summarize_rows(_newest_rows(inventory, state), catalog)


def _newest_rows(inventory: InventoryReader, state: NewestState) -> Iterator[Mapping[str, Any]]:
    for scan in state.contributing:
        for batch in inventory.batches(Inventory.TABLES, scan):
            for row in batch.to_pylist():
                if state.is_newest(scan, row["location"]):
                    yield row
