"""The files that `deltaproto init` writes: settings, and a policy from what the logs show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deltaproto.clients.catalog import Catalogue
from deltaproto.errors import UsageError
from deltaproto.fleet.inventory_reader import InventoryReader
from deltaproto.fleet.newest import NewestState
from deltaproto.fleet.schemas import Inventory
from deltaproto.protocol.writers import identify_name

STARTER_INVENTORY = "_inventory"
STARTER_POLICY = "policy.yaml"
_SETTINGS = """\
# Settings of this folder. Every deltaproto command that runs here reads them.

# Where to look for tables, at any depth: folders and URIs.
roots: {roots}
# catalogs: [main.sales]

# Where scans are saved, and what check, report and drift read.
inventory: {inventory}

# Which clients use the tables, and what they require.
policy: {policy}

# Options of the object store, named as in deltalake.
# storage_options:
#   AWS_REGION: eu-west-1
#   AWS_SECRET_ACCESS_KEY: ${{LAKE_SECRET}}

# A nightly scan, as a line of crontab:
# 0 2 * * *  cd {folder} && deltaproto scan --no-progress && deltaproto check --no-progress
"""
_NO_CLIENTS = """\
# A starter policy, written by deltaproto init. It names no clients yet:
# run `deltaproto scan`, then `deltaproto init` again to fill in those that write the tables.
policy_version: 1
clients: []
"""
_READERS = """\
  # Logs show who writes, never who only reads. Add the readers, for example:
  # - {client: trino@476, access: [read], as: dashboards}
"""


class Writers(NamedTuple):
    """Who made the newest commits of the tables in an inventory."""

    tables: int
    clients: Mapping[str, int]
    """number of tables by `ID@VERSION`"""
    without_version: Mapping[str, int]
    """number of tables by id, for commits that do not say which version wrote them"""
    unidentified: Mapping[str, int]
    """number of tables by the engine's recorded name"""
    unnamed: int
    """number of tables whose newest commit names no writer"""
    highest: tuple[int, int]
    """the highest reader and the highest writer version"""


def count_writers(inventory: InventoryReader, state: NewestState, catalogue: Catalogue) -> Writers:
    """Count the writers of the tables in the newest state of an inventory.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    return summarize_writers(_newest_rows(inventory, state), catalogue)


def summarize_writers(rows: Iterable[Mapping[str, Any]], catalogue: Catalogue) -> Writers:
    """Count the writers of rows of the inventory's `tables`."""
    clients: Counter[str] = Counter()
    without_version: Counter[str] = Counter()
    unidentified: Counter[str] = Counter()
    tables = unnamed = reader = writer = 0
    for row in rows:
        tables += 1
        reader = max(reader, row["min_reader_version"])
        writer = max(writer, row["min_writer_version"])
        name = row["last_engine"]
        if not name:
            unnamed += 1
            continue
        client, version = identify_name(name)
        if client is None:
            unidentified[name] += 1
        elif version is None or not _is_version(catalogue, client, version):
            without_version[client] += 1
        else:
            clients[f"{client}@{version}"] += 1
    highest = (reader, writer)
    return Writers(tables, clients, without_version, unidentified, unnamed, highest)


def _newest_rows(inventory: InventoryReader, state: NewestState) -> Iterator[Mapping[str, Any]]:
    for scan in state.contributing:
        for batch in inventory.batches(Inventory.TABLES, scan):
            for row in batch.to_pylist():
                if state.holds(scan, row["location"]):
                    yield row


def _is_version(catalogue: Catalogue, client: str, version: str) -> bool:
    try:
        catalogue.resolve(f"{client}@{version}")
    except UsageError:
        return False
    return True


def starter_settings(folder: str, roots: Sequence[str], inventory: str, policy: str) -> str:
    """Return the text of a commented `deltaproto.yaml`."""
    return _SETTINGS.format(
        roots=f"[{', '.join(map(json.dumps, roots))}]",
        inventory=json.dumps(inventory),
        policy=json.dumps(policy),
        folder=json.dumps(folder),
    )


def starter_policy(writers: Writers | None) -> str:
    """Return the text of a starter policy: of these writers, or without clients."""
    if writers is None or not writers.tables:
        return _NO_CLIENTS
    total = _tables(writers.tables)
    lines = [
        f"# A starter policy, written by deltaproto init from the newest commits of {total}.",
        "# Review it: it declares who wrote last, and forbids what no table has today.",
        "policy_version: 1",
        "clients:" if writers.clients else "clients: []",
    ]
    for client, count in sorted(writers.clients.items(), key=lambda each: (-each[1], each[0])):
        lines.append(f"  - {client}  # wrote {_tables(count)} last")
    for client, count in sorted(writers.without_version.items()):
        lines.append(f"  # - {client}@VERSION  # wrote {_tables(count)} last, version unknown")
    for name, count in sorted(writers.unidentified.items()):
        lines.append(f"  # unknown client: {json.dumps(name)} wrote {_tables(count)} last")
    if writers.unnamed:
        lines.append(f"  # {_tables(writers.unnamed)}: the newest commit names no writer")
    reader, writer = writers.highest
    return "\n".join(
        [
            *lines,
            *_READERS.splitlines(),
            "",
            "tables:",
            '  "**":',
            "    # The highest versions of today: raising one is a decision.",
            f"    max_reader_version: {reader}",
            f"    max_writer_version: {writer}",
            "",
        ]
    )


def _tables(count: int) -> str:
    return f"{count:,} {'table' if count == 1 else 'tables'}"
