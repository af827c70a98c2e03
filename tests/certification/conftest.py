"""A small kit, made once, and clients that are wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.certification.client import ClientUnderTest, certify
from deltaproto.certification.fixtures.case import Kit
from deltaproto.certification.fixtures.make import make_kit
from deltaproto.certification.process import ProcessLimits
from deltaproto.certification.verify_writes import WriteVerifier
from deltaproto.clients.measurement import Measurement, MeasurementCell, ResultColumn
from deltaproto.clients.resolve import ClientReference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADAPTERS = Path(__file__).parent / "adapters"
TABLES = (
    "plain",
    "plain.checkpoint",
    "protocol.1-2",
    "protocol.2-5",
    "protocol.unknown-reader",
    "protocol.unknown-writer",
    "appendOnly.enabled",
    "checkConstraints.enabled",
    "invariants.expression",
    "changeDataFeed.enabled",
    "columnMapping.renamed",
    "deletionVectors.listed",
    "deletionVectors.enabled",
    "deletionVectors.present",
    "rowTracking.enabled",
    "domainMetadata.present",
    "generatedColumns.enabled",
    "inCommitTimestamp.present",
    "typeWidening.present",
    "variantType.present",
)
Measure = Callable[..., Measurement]


@pytest.fixture(scope="session")
def kit(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return make_kit(spark, tmp_path_factory.mktemp("kit") / "kit", only=TABLES)


@pytest.fixture
def measure(kit: Kit, spark: SparkSession, tmp_path: Path) -> Measure:
    """Measure an adapter of this folder: `measure("honest", "plain", Operation.ROWS)`."""

    def run(
        name: str,
        *wanted: str | ResultColumn,
        limits: ProcessLimits = ProcessLimits(seconds=30),
        command: str | None = None,
    ) -> Measurement:
        tables = {each for each in wanted if each in TABLES}
        operations = {each for each in wanted if isinstance(each, ResultColumn)}
        subject = ClientUnderTest(ClientReference(name, None, None), ADAPTERS / f"{name}.py", (), 2)
        return certify(
            subject,
            kit,
            WriteVerifier(spark),
            tmp_path / "clients",
            command=command,
            limits=limits,
            wanted=lambda case, operation: (
                (not tables or case.name in tables) and (not operations or operation in operations)
            ),
        )

    return run


def cell(measured: Measurement, case: str, operation: ResultColumn) -> MeasurementCell:
    """The only cell of this table and operation."""
    (found,) = (c for c in measured.cells if (c.case, c.operation) == (case, operation))
    return found
