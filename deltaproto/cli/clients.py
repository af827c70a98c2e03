"""`deltaproto clients`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.checking.site import site_catalogue
from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command
from deltaproto.clients.catalogue import parse_reference
from deltaproto.errors import ExitCode
from deltaproto.report.clients import write_candidate, write_client, write_clients


def run(values: Mapping[str, Any]) -> int:
    """Render the catalogue, one client, or one version of it with its matrix."""
    catalogue = site_catalogue(values["catalogue"])
    format_, color = values["format"], not values["no_color"]
    named = values["client"]
    if named is None:
        chosen = catalogue.clients()
        with options.opened(values["output"]) as file:
            write_clients(chosen, format_, file, color=color)
        return int(ExitCode.OK)
    reference = parse_reference(named)
    client = catalogue.get(reference.id)
    if reference.version is None and reference.path is None and client.versions != "none":
        with options.opened(values["output"]) as file:
            write_client(client, format_, file, color=color)
        return int(ExitCode.OK)
    candidate = catalogue.resolve(named)
    with options.opened(values["output"]) as file:
        write_candidate(candidate, format_, file, color=color)
    return int(ExitCode.OK)


COMMAND = Command(
    "clients",
    "Show what clients can read and write, with the evidence.",
    run,
    Argument(
        "client",
        "[ID[@VERSION]]",
        "One client, or one version of it; without it, all of them.",
        required=False,
    ),
    (
        options.CATALOGUE,
        options.FORMAT,
        options.OUTPUT,
        options.NO_COLOR,
        options.DEBUG,
    ),
)
