"""What several commands are tried on."""

from __future__ import annotations

import pytest

from tests.support.logs import Log, add, commit_info, metadata, protocol

VECTORS = "deletionVectors"


@pytest.fixture
def vectors(log: Log) -> str:
    """A table with deletion vectors on one of two files."""
    stored = protocol(3, 7, [VECTORS], ["appendOnly", "invariants", VECTORS])
    marked = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    log.commit(0, commit_info(), stored, metadata({"delta.enableDeletionVectors": "true"}))
    log.commit(1, add("a.parquet", size=10), add("b.parquet", size=32, deletionVector=marked))
    return log.table
