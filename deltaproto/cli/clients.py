"""`deltaproto clients`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import completion, options
from deltaproto.cli.declare import Argument, Command, Panel, switch
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.feature_matrix import MatrixColumn, client_columns, newest_columns
from deltaproto.clients.resolve import parse_reference
from deltaproto.errors import ExitCode, UsageError
from deltaproto.policy.local_catalog import load_local_catalog
from deltaproto.render.clients import write_candidate, write_client, write_clients
from deltaproto.render.clients_matrix import write_matrix
from deltaproto.render.interface import Format, PageFormat


def run(values: Mapping[str, Any]) -> int:
    """Render the catalog, one client, or one client version with its matrix."""
    options.refuse_overwrite(values["output"], values["client_file"])
    catalog = load_local_catalog(values["client_file"])
    page, color = values["format"], not values["no_color"]
    named = values["client"]
    if values["matrix"]:
        columns = newest_columns(catalog) if named is None else _columns_of_client(catalog, named)
        with options.open_output(values["output"]) as file:
            write_matrix(columns, page, file, color=color)
        return int(ExitCode.OK)
    if page is PageFormat.HTML:
        raise UsageError("--format html shows the matrix only", "add --matrix")
    format_ = Format(page.value)
    if named is None:
        chosen = catalog.clients()
        with options.open_output(values["output"]) as file:
            write_clients(chosen, format_, file, color=color)
        return int(ExitCode.OK)
    reference = parse_reference(named)
    client = catalog.get(reference.id)
    if reference.version is None and reference.path is None and client.versions != "none":
        with options.open_output(values["output"]) as file:
            write_client(client, format_, file, color=color)
        return int(ExitCode.OK)
    candidate = catalog.resolve(named)
    with options.open_output(values["output"]) as file:
        write_candidate(candidate, format_, file, color=color)
    return int(ExitCode.OK)


def _columns_of_client(catalog: ClientCatalog, named: str) -> list[MatrixColumn]:
    reference = parse_reference(named)
    client = catalog.get(reference.id)
    found = client_columns(client)
    if reference.version is not None:
        catalog.resolve(named)
        found = [c for c in found if c.reference.version == reference.version]
    if reference.path is not None:
        found = [c for c in found if c.path.name == reference.path]
    if not found:
        raise UsageError(f"{named} has no changes", f"run deltaproto clients {client.id} --matrix")
    return found


COMMAND = Command(
    "clients",
    "Show what clients can read and write, with the evidence.",
    run,
    Argument(
        "client",
        "[ID[@VERSION]]",
        "One client, or one of its versions. Default: all clients.",
        required=False,
        words=completion.client_ids,
    ),
    (
        switch(
            "--matrix",
            help="Show a matrix of all features and the newest version of every client; with ID, "
            "of all its versions.",
            panel=Panel.GOAL,
        ),
        options.CLIENT_FILE,
        options.PAGE_FORMAT,
        options.OUTPUT,
        options.NO_COLOR,
        options.DEBUG,
    ),
    examples=(
        "clients trino",
        "clients deltalake@1.6.6 --format markdown",
    ),
    more_exits=(),
)
