"""Checks what works with a catalog, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.location import Location, locate
from deltaproto.tables.catalogs.interface import (
    CatalogClient,
    CatalogFailure,
    CatalogTable,
    Name,
    name_parts,
    quoted_name,
)
from deltaproto.tables.catalogs.opening import open_catalog
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import open_log

_SCHEMAS = 50
"""schemas that are searched for a table"""


class CheckStatus(StrEnum):
    """The result of one step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class CatalogCheck(NamedTuple):
    """One step."""

    name: str
    status: CheckStatus
    detail: str
    hint: str = ""


class CatalogReport(NamedTuple):
    """What works with a catalog."""

    url: str
    checks: tuple[CatalogCheck, ...]

    @property
    def ok(self) -> bool:
        """True if every step succeeded: none failed, none was skipped."""
        return all(check.status is CheckStatus.OK for check in self.checks)


_STEPS = ("credentials", "schemas", "tables", "storage", "log")


def check_catalog(location: Location, options: Mapping[str, str]) -> CatalogReport:
    """Try what a scan does, on the first table found. Problems with the catalog are never raised.

    Args:
        location: a catalog's URL, with or without a name.
        options: the user's storage options.
    """
    done: list[CatalogCheck] = []
    try:
        for check in _steps(location, options):
            done.append(check)
    except TableError as error:
        done.append(CatalogCheck(_STEPS[len(done)], CheckStatus.FAILED, error.message, error.hint))
    done += (CatalogCheck(step, CheckStatus.SKIPPED, "") for step in _STEPS[len(done) :])
    return CatalogReport(location.uri.rstrip("/"), tuple(done))


def _steps(location: Location, options: Mapping[str, str]) -> Iterator[CatalogCheck]:
    client = open_catalog(location, options)
    name = name_parts(location, client.depth)
    yield _done("credentials", client.credentials())
    if len(name) == client.depth:
        yield _done("schemas", quoted_name(name[:-1]))
        table = client.table(name)
        yield _done("tables", f"{table.name}: {table.type}")
    else:
        visible = _visible_schemas(client, name)
        yield visible.check
        found, check = _first_table(client, visible.names)
        yield check
        if found is None:
            return
        table = found
    given = client.storage_options(table)
    secret = any("key" in key or "token" in key for key in given)
    yield _done("storage", "temporary credentials" if secret else "your own credentials")
    where = locate(table.location)
    state = LogReader({}).read_from(where, open_log(where, {**given, **options}))
    yield _done("log", f"{table.name} at {where.uri}: version {state.version}, {state.protocol}")


class _Schemas(NamedTuple):
    names: list[Name]
    check: CatalogCheck


def _visible_schemas(client: CatalogClient, above: Name) -> _Schemas:
    names, failures = list[Name](), list[CatalogFailure]()
    for each in client.schemas(above):
        if isinstance(each, CatalogFailure):
            failures.append(each)
        else:
            names.append(each)
    total = counted(len(names), "schema")
    if failures:
        first = failures[0]
        detail = f"{total}; {len(failures):,} not listed, first {first.place}: "
        return _Schemas(
            names,
            CatalogCheck(
                "schemas", CheckStatus.FAILED, detail + first.error.message, first.error.hint
            ),
        )
    if names:
        return _Schemas(names, _done("schemas", total))
    hint = "check the permissions: catalogs hide tables that you may not use"
    return _Schemas(names, CatalogCheck("schemas", CheckStatus.FAILED, "no schema", hint))


def _first_table(
    client: CatalogClient, schemas: list[Name]
) -> tuple[CatalogTable | None, CatalogCheck]:
    refused: list[TableError] = []
    for schema in islice(schemas, _SCHEMAS):
        try:
            page = next((page for page in client.pages(schema) if page), [])
        except TableError as error:
            refused.append(error)
            continue
        if table := next((each for each in page if each.location), None):
            return table, _done("tables", f"{table.name}: {table.type}")
    searched = counted(min(len(schemas), _SCHEMAS), "schema")
    detail = f"no Delta table with a location in {searched}"
    if skipped := client.counts.describe_skipped():
        detail += f"; {skipped} skipped"
    hint = "name a schema or a table in the URL"
    if refused:
        detail += f"; {len(refused):,} not listed, first: {refused[0].message}"
        hint = refused[0].hint
    return None, CatalogCheck("tables", CheckStatus.FAILED, detail, hint)


def _done(name: str, detail: str) -> CatalogCheck:
    return CatalogCheck(name, CheckStatus.OK, detail)
