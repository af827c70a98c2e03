"""The files that `deltaproto init` writes: settings, and a policy from what the logs show."""

from __future__ import annotations

import json
from collections.abc import Sequence

from deltaproto.counts import counted
from deltaproto.fleet.last_writers import LastWriters

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

# Findings that are accepted for now: check fails only on others. Write the file with
# deltaproto check --write-baseline known.json
# baseline: known.json

# Options of the object store, named as in deltalake.
# storage_options:
#   AWS_REGION: eu-west-1
#   AWS_SECRET_ACCESS_KEY: ${{LAKE_SECRET}}

# A nightly scan, as a line of crontab:
# 0 2 * * *  cd {folder} && deltaproto scan --fail-on never && deltaproto check
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


def starter_settings(folder: str, roots: Sequence[str], inventory: str, policy: str) -> str:
    """Return the text of a commented `deltaproto.yaml`."""
    return _SETTINGS.format(
        roots=f"[{', '.join(map(json.dumps, roots))}]",
        inventory=json.dumps(inventory),
        policy=json.dumps(policy),
        folder=json.dumps(folder),
    )


def starter_policy(writers: LastWriters | None) -> str:
    """Return the text of a starter policy: of these writers, or without clients."""
    if writers is None or not writers.tables:
        return _NO_CLIENTS
    total = counted(writers.tables, "table")
    lines = [
        f"# A starter policy, written by deltaproto init from the newest commits of {total}.",
        "# Review it: it declares who wrote last, and forbids what no table has today.",
        "policy_version: 1",
        "clients:" if writers.clients else "clients: []",
    ]
    for client, count in sorted(writers.clients.items(), key=lambda each: (-each[1], each[0])):
        lines.append(f"  - {client}  # wrote {counted(count, 'table')} last")
    for client, count in sorted(writers.without_version.items()):
        lines.append(
            f"  # - {client}@VERSION  # wrote {counted(count, 'table')} last, version unknown"
        )
    for name, count in sorted(writers.unidentified.items()):
        lines.append(f"  # unknown client: {json.dumps(name)} wrote {counted(count, 'table')} last")
    if writers.unnamed:
        tables = counted(writers.unnamed, "table")
        lines.append(f"  # {tables}: the scan did not see who wrote last; deltaproto discover may")
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
