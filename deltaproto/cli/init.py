"""`deltaproto init`: writes settings, and a policy from what the logs show."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel, environment_name
from deltaproto.cli.progress import warn
from deltaproto.counts import counted
from deltaproto.errors import ExitCode, UsageError
from deltaproto.fleet.build_report import find_last_writers
from deltaproto.fleet.catalog_places import CATALOG_PREFIX
from deltaproto.fleet.inventory_reader import (
    InventoryReader,
    open_inventory_reader,
    select_newest_state,
)
from deltaproto.fleet.last_writers import LastWriters
from deltaproto.fleet.schemas import is_inventory, require_inventory_folder
from deltaproto.fleet.settings_file import parse_settings, read_settings
from deltaproto.input_file import SETTINGS_FILE, require_input
from deltaproto.location import locate
from deltaproto.policy.local_catalog import load_local_catalog

STARTER_INVENTORY = "_inventory"
STARTER_POLICY = "policy.yaml"
_NIGHTLY = "deltaproto scan --fail-on never; s=$?; deltaproto check && exit $s"
"""exits with the code of `check`, or else with that of `scan`"""
_SETTINGS = """\
# Settings of this folder. Every deltaproto command that runs here reads them.

# Where to look for tables, at any depth: folders and URIs.
{sources}

# Where scans are saved, and what check, plan, report, drift, discover and forecast read.
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
# 0 2 * * *  cd {folder} && {{ {nightly}; }}
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


def run(values: Mapping[str, Any]) -> int:
    """Write the settings file and the policy, unless they exist, and print the next steps."""
    storage = options.storage_options(values)
    lines = [_write_settings(values, storage)]
    settings = read_settings(SETTINGS_FILE, os.environ)
    writers = _find_writers(settings.get("inventory"), storage)
    policy = settings.get("policy") or STARTER_POLICY
    lines.append(_write_policy(policy, writers))
    for line in lines:
        print(line)
    if writers is None:
        print("next: deltaproto scan, then deltaproto init again to fill in the clients that write")
    else:
        print("next: add the clients that only read to the policy, then run deltaproto check")
    return int(ExitCode.OK)


def _write_settings(values: Mapping[str, Any], storage: Mapping[str, str]) -> str:
    if os.path.lexists(SETTINGS_FILE):
        _refuse_other_settings(values)
        return f"{SETTINGS_FILE} exists, and was kept"
    policy = values["policy"] or STARTER_POLICY
    if os.path.abspath(policy) == os.path.abspath(SETTINGS_FILE):
        raise UsageError(f"{SETTINGS_FILE} holds the settings", "choose another --policy")
    if not os.path.lexists(policy):
        options.require_writable(policy, "--policy")
    for root in values["roots"]:
        # Refuses addresses with secrets.
        path = locate(root).path
        if path is not None and not os.path.isdir(path):
            warn(f"{root} is not a folder on this machine: a scan does not find tables there")
    inventory = values["inventory"] or STARTER_INVENTORY
    require_inventory_folder(inventory, storage)
    sources = (
        {"roots": values["roots"]}
        if values["roots"]
        else _scanned_sources(inventory, storage) or {"roots": (".",)}
    )
    text = _SETTINGS.format(
        sources="\n".join(_settings_lines(sources)),
        inventory=json.dumps(inventory),
        policy=json.dumps(policy),
        folder=json.dumps(os.getcwd()),
        nightly=_NIGHTLY,
    )
    # Refuse a name that the file cannot store before writing anything.
    parse_settings(text, SETTINGS_FILE, os.environ)
    _write(SETTINGS_FILE, text)
    return f"wrote {SETTINGS_FILE}"


def _refuse_other_settings(values: Mapping[str, Any]) -> None:
    """Refuse values that differ from the settings file; they may come from variables."""
    settings = read_settings(SETTINGS_FILE, os.environ)
    hint = "edit it, or run deltaproto init without arguments and options"
    if values["roots"]:
        raise UsageError(f"{SETTINGS_FILE} already exists", hint)
    for name in ("inventory", "policy"):
        value = values[name]
        if value is None or settings.get(name) in (value, os.path.abspath(value)):
            continue
        variable = environment_name(f"--{name}")
        also = f"; {variable} is set" if os.environ.get(variable) == value else ""
        raise UsageError(f"{SETTINGS_FILE} already exists, with another {name}{also}", hint)


def _open_if_inventory(inventory: str | None, storage: Mapping[str, str]) -> InventoryReader | None:
    if inventory is None or not is_inventory(inventory, storage):
        return None
    return open_inventory_reader(inventory, storage, None)


def _scanned_sources(inventory: str, storage: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return the sources that the last scans of an inventory searched, by settings key."""
    reader = _open_if_inventory(inventory, storage)
    if reader is None:
        return {}
    newest, *others = select_newest_state(reader, None).contributing
    # One scan has one set of patterns.
    alike = [newest, *(each for each in others if each.limits == newest.limits)]
    limits = {"include": newest.included, "exclude": newest.excluded}
    found: dict[str, list[str]] = {}
    for name in sorted({name for each in alike for name in each.roots}):
        if "://" in name:
            root = locate(name)
            found.setdefault("roots", []).append(root.path or name)
        elif name.startswith(CATALOG_PREFIX):
            found.setdefault("catalogs", []).append(name.removeprefix(CATALOG_PREFIX))
        else:
            found.setdefault("lists", []).append(name)
    return {**found, **{key: patterns for key, patterns in limits.items() if patterns}}


def _settings_lines(sources: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for key, names in sources.items():
        yield f"{key}: [{', '.join(map(json.dumps, names))}]"
    if "catalogs" not in sources:
        yield "# catalogs: [main.sales]"


def _find_writers(inventory: str | None, storage: Mapping[str, str]) -> LastWriters | None:
    reader = _open_if_inventory(inventory, storage)
    if reader is None:
        return None
    return find_last_writers(reader, select_newest_state(reader, None), load_local_catalog(()))


def _write_policy(path: str, writers: LastWriters | None) -> str:
    shown = os.path.relpath(path)
    text = starter_policy(writers)
    if os.path.lexists(path):
        with require_input(path) as file:
            found = file.read().decode("utf-8", "replace").replace("\r\n", "\n")
        # An unedited starter policy may be replaced.
        unchanged = found == starter_policy(None)
        if not unchanged or writers is None:
            return f"{shown} exists, and was kept"
    _write(path, text)
    if writers is None:
        return f"wrote {shown}, without clients"
    clients = counted(len(writers.clients), "client")
    return f"wrote {shown}: {clients} of {counted(writers.tables, 'table')}"


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, UnicodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "a name is not valid UTF-8"
        raise UsageError(f"cannot write {path}: {cause}", "check the folder") from None


def starter_policy(writers: LastWriters | None) -> str:
    """Return the text of a starter policy: of these writers, or without clients."""
    if writers is None or not writers.tables:
        return _NO_CLIENTS
    total = counted(writers.tables, "table")
    lines = [
        f"# A starter policy, written by deltaproto init from the newest commits of {total}.",
        "# Review it: it declares the last writers, and forbids versions above today's.",
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
            "    # Today's highest versions. Raise them deliberately.",
            f"    max_reader_version: {reader}",
            f"    max_writer_version: {writer}",
            "",
        ]
    )


COMMAND = Command(
    "init",
    f"Write a commented {SETTINGS_FILE} and a starter policy into this folder. Run it again after "
    "a scan to fill in the clients that write the tables. Files that you edited are kept.",
    run,
    Argument(
        "roots",
        "ROOT...",
        "Folders and URIs with tables. Default: those of the inventory's scans, or this folder.",
        many=True,
        required=False,
    ),
    (
        Option(
            ("--inventory",),
            f"Save scans in this folder or URI. Default: {STARTER_INVENTORY}.",
            metavar="INVENTORY",
            panel=Panel.OUTPUT,
        ),
        Option(
            ("--policy",),
            f"Write the policy to this file. Default: {STARTER_POLICY}.",
            metavar="FILE",
            panel=Panel.OUTPUT,
        ),
        options.STORAGE_OPTION,
        options.DEBUG,
    ),
    examples=("init s3://lake/gold --inventory s3://lake/_inventory", "init"),
)
