"""One table as an object."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from deltaproto.app import checking, planning, reading
from deltaproto.app.arguments import NONE, TableSource, connection_options, table_name
from deltaproto.app.checking import CheckResult
from deltaproto.app.plan import Plan
from deltaproto.app.reading import ConflictReport, History, Inspection


class _ReadArguments(TypedDict):
    """The arguments of every function that reads a table."""

    storage_options: Mapping[str, str]
    spark_remote: str | None
    spark_conf: Mapping[str, str]


class Table:
    """One Delta table. Each method reads its newest state; nothing is read before.

    Args:
        source: a path, a URI or a catalog name (`uc://HOST/NAME`); a `pathlib.Path`; or a
            `deltalake.DeltaTable`, whose storage options are used if none are passed.
        storage_options: as in deltalake.
        spark_remote: a Spark Connect URL.
        spark_conf: settings of a Spark session that is started here.

    Raises:
        UsageError: for a source of another type, or an invalid Spark Connect URL.
    """

    def __init__(
        self,
        source: TableSource,
        *,
        storage_options: Mapping[str, str] = NONE,
        spark_remote: str | None = None,
        spark_conf: Mapping[str, str] = NONE,
    ) -> None:
        self.name = table_name(source)
        """the table as it was named"""
        by = connection_options(source, storage_options, spark_remote, spark_conf)
        self._arguments = _ReadArguments(
            storage_options=by.storage_options,
            spark_remote=spark_remote,
            spark_conf=dict(spark_conf),
        )

    def inspect(
        self,
        *,
        reader: str = "auto",
        version: int | None = None,
        look_in_files: bool = False,
        activity: bool = False,
    ) -> Inspection:
        """Inspect the table; see `deltaproto.inspect_table`."""
        return reading.inspect_table(
            self.name,
            reader=reader,
            version=version,
            look_in_files=look_in_files,
            activity=activity,
            **self._arguments,
        )

    def check(
        self,
        policy: str | os.PathLike[str] | None = None,
        *,
        clients: Sequence[str] = (),
        access: Sequence[str] = (),
        client_files: Sequence[str] = (),
        look_in_files: bool = False,
    ) -> CheckResult:
        """Check the table; see `deltaproto.check`. Findings on the policy are in its findings.

        Raises:
            UsageError: for an invalid policy, with file and line, and for an unknown client.
            TableError: when the table cannot be read.
        """
        checked, *of_policy = checking.check(
            self.name,
            policy,
            clients=clients,
            access=access,
            client_files=client_files,
            look_in_files=look_in_files,
            **self._arguments,
        )
        if checked.error is not None:
            raise checked.error
        more = (finding for each in of_policy for finding in each.findings)
        return checked._replace(findings=(*checked.findings, *more))

    def history(self, *, limit: int | None = None, since: datetime | None = None) -> History:
        """Read which commits changed the protocol; see `deltaproto.history`."""
        return reading.history(
            self.name,
            limit=limit,
            since=since,
            **self._arguments,
        )

    def conflicts(
        self,
        sql: str | None = None,
        *,
        operation: str | None = None,
        against: str | None = None,
        exception: str | None = None,
        engine: str = "databricks",
        runtime: str | None = None,
        photon: bool | None = None,
        isolation: str | None = None,
        row_level_concurrency: str = "auto",
    ) -> ConflictReport:
        """Return which concurrent operations conflict; see `deltaproto.find_conflicts`."""
        return reading.find_conflicts(
            self.name,
            sql=sql,
            operation=operation,
            against=against,
            exception=exception,
            engine=engine,
            runtime=runtime,
            photon=photon,
            isolation=isolation,
            row_level_concurrency=row_level_concurrency,
            **self._arguments,
        )

    def plan_upgrade(
        self,
        *,
        enable: Sequence[str] = (),
        set: Mapping[str, str] = NONE,
        to: tuple[int, int] | None = None,
        isolation: str | None = None,
        cluster_by: Sequence[str] = (),
        sql: Sequence[str] = (),
        for_clients: Sequence[str] = (),
        access: Sequence[str] = (),
        clients: Sequence[str] = (),
        policy: str | os.PathLike[str] | None = None,
        seen: str | os.PathLike[str] | None = None,
        seen_days: int = 90,
        engine: str | None = None,
        client_files: Sequence[str] = (),
    ) -> Plan:
        """Plan features, properties or an isolation level; see `deltaproto.plan_upgrade`."""
        return planning.plan_upgrade(
            self.name,
            enable=enable,
            set=set,
            to=to,
            isolation=isolation,
            cluster_by=cluster_by,
            sql=sql,
            for_clients=for_clients,
            access=access,
            clients=clients,
            policy=policy,
            seen=seen,
            seen_days=seen_days,
            engine=engine,
            client_files=client_files,
            **self._arguments,
        )

    def plan_policy(
        self,
        policy: str | os.PathLike[str],
        *,
        clients: Sequence[str] = (),
        seen: str | os.PathLike[str] | None = None,
        seen_days: int = 90,
        engine: str | None = None,
        client_files: Sequence[str] = (),
    ) -> Plan:
        """Plan the statements that bring the table into line with a policy; see
        `deltaproto.plan_policy`.
        """
        return planning.plan_policy(
            self.name,
            policy,
            clients=clients,
            seen=seen,
            seen_days=seen_days,
            engine=engine,
            client_files=client_files,
            **self._arguments,
        )

    def plan_downgrade(
        self,
        *,
        lowest: bool = False,
        include_enabled: bool = False,
        drop: Sequence[str] = (),
        to: tuple[int, int] | None = None,
        for_clients: Sequence[str] = (),
        access: Sequence[str] = (),
        policy: str | os.PathLike[str] | None = None,
        history: str | None = None,
        rewrite: bool = False,
        clients: Sequence[str] = (),
        seen: str | os.PathLike[str] | None = None,
        seen_days: int = 90,
        engine: str | None = None,
        client_files: Sequence[str] = (),
    ) -> Plan:
        """Plan the cheapest way to a lower protocol; see `deltaproto.plan_downgrade`."""
        return planning.plan_downgrade(
            self.name,
            lowest=lowest,
            include_enabled=include_enabled,
            drop=drop,
            to=to,
            for_clients=for_clients,
            access=access,
            policy=policy,
            history=history,
            rewrite=rewrite,
            clients=clients,
            seen=seen,
            seen_days=seen_days,
            engine=engine,
            client_files=client_files,
            **self._arguments,
        )

    def __repr__(self) -> str:
        return f"Table({self.name!r})"
