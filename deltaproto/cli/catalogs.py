"""`deltaproto catalogs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command
from deltaproto.cli.progress import show_waiting
from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.fleet.catalog_check import check_catalog
from deltaproto.location import Location, LocationKind, locate
from deltaproto.render.catalogs import write_catalog_report

_EXAMPLE = "for example: deltaproto catalogs test uc://HOST/CATALOG"


def run(values: Mapping[str, Any]) -> int:
    """Check one catalog, and render what works."""
    words = values["words"]
    if len(words) != 2 or words[0] != "test":
        raise UsageError("catalogs needs the action `test` and the URL of a catalog", _EXAMPLE)
    try:
        location = locate(words[1])
    except TableError as error:
        raise UsageError(error.message, error.hint) from None
    if location.kind is not LocationKind.CATALOG:
        raise UsageError(f"{words[1]} is not the URL of a catalog", _hint(location))
    storage = options.storage_options(values)
    with options.open_output(values["output"]) as file:
        show = options.shows_progress(values)
        with show_waiting(f"testing {words[1]}", show=show):
            report = check_catalog(location, storage)
        write_catalog_report(report, values["format"], file, color=not values["no_color"])
    return int(ExitCode.OK if report.ok else ExitCode.UNREADABLE)


def _hint(location: Location) -> str:
    scheme, separator, rest = location.uri.partition("://")
    if scheme not in ("http", "https") or not separator:
        return _EXAMPLE
    # The address of a Databricks workspace, as a browser shows it.
    return f"write uc://{rest.partition('/')[0]}/CATALOG for Unity Catalog on that host"


COMMAND = Command(
    "catalogs",
    "Test the connection to a catalog: credentials, listing, storage, and the log of a table.",
    run,
    Argument(
        "words",
        "test URL",
        "The word test, and a URL: uc://HOST, hms://HOST:PORT or glue://REGION.",
        many=True,
        words=lambda: ("test",),
    ),
    (
        options.STORAGE_OPTION,
        options.CONFIG,
        options.FORMAT,
        options.OUTPUT,
        options.NO_COLOR,
        options.NO_PROGRESS,
        options.QUIET,
        options.DEBUG,
    ),
    examples=(
        "catalogs test uc://dbc-1234.cloud.databricks.com/main",
        "catalogs test glue://eu-west-1",
    ),
)
