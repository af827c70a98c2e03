"""Reading tables, and checking them against declared clients and rules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from deltaproto.app.arguments import NONE, member, spark_settings, words
from deltaproto.errors import TableError, UsageError

if TYPE_CHECKING:
    from deltaproto.inspection.interface import Inspection
    from deltaproto.policy.evaluate import TableCheck


def inspect_table(
    table: str,
    *,
    reader: str = "auto",
    version: int | None = None,
    look_in_files: bool = False,
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> Inspection:
    """Inspect one table: protocol, layers of features, isolation level and findings.

    Args:
        table: a path, a URI or a catalog name; a name needs Spark.
        reader: auto, log, delta-rs, spark or all.
        version: the table's version; None: the newest.
        look_in_files: search every live file for traces of features.
        storage_options: as in deltalake.
        spark_remote: a Spark Connect URL.
        spark_conf: settings of a Spark session that is started here.

    Raises:
        UsageError: for an invalid request for this table.
        TableError: when the table cannot be read; `code` is the reason.
    """
    from deltaproto.inspection import ReadRequest, Unreadable
    from deltaproto.inspection import inspect_table as inspected
    from deltaproto.inspection.interface import ReaderChoice

    request = ReadRequest(
        reader=member(ReaderChoice, reader, "reader"),
        version=version,
        look_in_files=look_in_files,
        storage_options=dict(storage_options),
        spark=spark_settings(spark_remote, spark_conf, storage_options),
    )
    result = inspected(table, request)
    if isinstance(result, Unreadable):
        raise result.error
    return result


def check(
    tables: str | Iterable[str],
    policy: str | os.PathLike[str] | None = None,
    *,
    clients: Sequence[str] = (),
    access: Sequence[str] = (),
    catalogue: Sequence[str] = (),
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> list[TableCheck]:
    """Check each table: verdicts on the declared clients, and findings.

    A table that cannot be read has `error`, and is not `complete`: never treat it as compliant.
    Findings on the policy itself (DP301 and up: patterns that match nothing, expired waivers) are
    in an additional entry at the end, with `of_policy`.

    Args:
        tables: one or more paths, URIs or catalog names.
        policy: a YAML file.
        clients: more clients, as ID@VERSION, which use every table.
        access: read, append, dml, maintain or stream, instead of what is declared.
        catalogue: files with custom clients.

    Raises:
        UsageError: for an invalid policy, with file and line, and for an unknown client.
    """
    from deltaproto.inspection.facts import facts_from_inspection
    from deltaproto.plan_inputs.parse_goal import parse_accesses
    from deltaproto.policy.document import Policy
    from deltaproto.policy.evaluate import Checker, unreadable_table
    from deltaproto.policy.local_catalog import (
        load_local_catalog,
        load_local_policy,
        parse_declared,
    )
    from deltaproto.tables.engine_errors import contain_table_errors

    if policy is None and not clients:
        raise UsageError("nothing to check against", "pass a policy, or clients as ID@VERSION")
    rules = Policy(source="") if policy is None else load_local_policy(os.fspath(policy))
    checker = Checker(
        rules,
        load_local_catalog(words(catalogue, "catalogue"), rules),
        asked=[parse_declared(text) for text in words(clients, "clients")],
        access=parse_accesses(words(access, "access"), "access"),
    )

    def checked(table: str) -> TableCheck:
        try:
            inspection = inspect_table(
                table,
                storage_options=storage_options,
                spark_remote=spark_remote,
                spark_conf=spark_conf,
            )
            with contain_table_errors():
                return checker.check(facts_from_inspection(inspection))
        except TableError as error:
            return unreadable_table(table, error)

    each = map(checked, [tables] if isinstance(tables, str) else tables)
    return list(checker.with_policy(each))
