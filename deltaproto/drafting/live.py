"""A table that is looked at now, as the planner takes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from deltaproto.checking.live import facts
from deltaproto.errors import ErrorCode, TableError
from deltaproto.inspection.inspect import judged
from deltaproto.inspection.interface import Inspection
from deltaproto.planning.given import Given
from deltaproto.planning.observe import observe
from deltaproto.planning.plan import Fingerprint
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.location import locate
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.reach import reach
from deltaproto.tables.sql import table_name


def look(table: str, storage_options: Mapping[str, str], spark: SparkSettings) -> Given:
    """The table as its log shows it, traces in files included.

    Raises:
        TableError: when the table cannot be read, or its protocol breaks the spec.
        EngineError: when a catalog name needs Spark and there is none.
    """
    reached = reach(table, storage_options, spark)
    reader = LogReader(storage_options, look_in_files=True)
    inspection = judged(reader.read_from(reached.location, reached.store))
    return given(inspection)


def given(inspection: Inspection) -> Given:
    """What an inspection gives the planner.

    Raises:
        TableError: when the protocol breaks the spec, so that nothing can be predicted.
    """
    state = inspection.state
    refuse_broken(state.protocol)
    found = facts(inspection)
    return Given(
        name=state.table,
        location=state.location,
        sql=table_name(locate(state.table)),
        table=observe(state),
        needs=found.needs,
        states=inspection.subject.features,
        fingerprint=Fingerprint(
            state.metadata.id, state.version, state.protocol, digest(state.metadata)
        ),
        complete=inspection.complete,
        warnings=tuple(
            f"{finding.rule}: {finding.message}"
            for finding in inspection.findings
            if not inspection.complete
        ),
    )


def digest(metadata: Metadata) -> str:
    """A digest of what plans depend on: schema, partitioning, and Delta's own properties."""
    configuration = {
        key: value for key, value in metadata.configuration.items() if key.startswith("delta.")
    }
    told = [metadata.schema_string, list(metadata.partition_columns), sorted(configuration.items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def refuse_broken(protocol: Protocol) -> None:
    """Refuse a protocol that the spec forbids: nothing can be predicted on it.

    Raises:
        TableError: unsupported-protocol.
    """
    for violation in protocol.violations():
        raise TableError(
            ErrorCode.UNSUPPORTED_PROTOCOL,
            f"the protocol breaks the spec: {violation.message}",
            "repair it first; `deltaproto inspect` says what is wrong",
        )
