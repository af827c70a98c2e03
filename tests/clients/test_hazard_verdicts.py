"""Verdicts on the layout of files and on damaged logs: known only where they were measured."""

from __future__ import annotations

from deltaproto.clients import requirements
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.verdicts import path_verdicts
from deltaproto.policy.constructs import OTHER_FUNCTION
from deltaproto.protocol.protocol import Protocol
from tests.support.failures import each_row

HIDDEN, STORED = requirements.HIDDEN_PARTITIONS, requirements.STORED_PARTITIONS
BINARY, MAPPED = requirements.BINARY_PARTITIONS, requirements.MAPPED_PARTITIONS
DECIMAL = requirements.DECIMAL_PARTITIONS
READ, APPEND, DML = Access.READ, Access.APPEND, Access.DML
IN_QUOTES = requirements.EXPRESSION_PREFIX + "a column's name in double quotes"
OTHER = requirements.EXPRESSION_PREFIX + OTHER_FUNCTION


def judged(client: str, access: Access, hazard: str) -> Verdict:
    needs = requirements.table_requirements(Protocol(1, 2), {}, {}, hazards={hazard})
    ((_, said),) = path_verdicts(ClientCatalog().resolve(client), access, needs)
    return said.verdict


@each_row(
    ("client", "access", "hazard", "verdict"),
    [
        ("polars/scan@2.1.0", READ, HIDDEN, Verdict.WRONG),
        ("polars/scan@2.1.0", READ, STORED, Verdict.OK),
        ("polars/eager@2.1.0", READ, STORED, Verdict.OK),
        ("polars@1.40.1", READ, STORED, Verdict.OK),
        ("polars@1.40.1", READ, HIDDEN, Verdict.WRONG),
        ("polars@1.38.0", READ, STORED, Verdict.UNKNOWN),
        ("polars@1.36.1", READ, STORED, Verdict.REFUSED),
        ("polars@1.10.0", READ, STORED, Verdict.OK),
        # The range of versions from 1.0 has the other facts.
        ("polars@1.36.1", READ, HIDDEN, Verdict.WRONG),
        ("polars@1.11.0", READ, HIDDEN, Verdict.WRONG),
        ("polars@1.10.0", READ, HIDDEN, Verdict.OK),
        ("polars@1.0.0", READ, requirements.ISO_TIMESTAMPS, Verdict.WRONG),
        ("polars@1.20.1", READ, requirements.ISO_TIMESTAMPS, Verdict.UNKNOWN),
        ("polars@1.36.1", READ, requirements.ISO_TIMESTAMPS, Verdict.OK),
        ("deltalake/engine@0.24.0", READ, requirements.ISO_TIMESTAMPS, Verdict.REFUSED),
        ("deltalake/engine@0.25.1", READ, requirements.ISO_TIMESTAMPS, Verdict.OK),
        ("duckdb@1.5.5", READ, MAPPED, Verdict.WRONG),
        ("duckdb@1.5.5", READ, STORED, Verdict.OK),
        ("deltalake/engine@1.6.6", READ, BINARY, Verdict.OK),
        ("deltalake/engine@1.6.6", APPEND, BINARY, Verdict.WRONG),
        ("deltalake/engine@1.6.6", DML, BINARY, Verdict.WRONG),
        ("deltalake/engine@0.25.5", DML, BINARY, Verdict.WRONG),
        ("deltalake/pyarrow@0.25.5", APPEND, BINARY, Verdict.OK),
        ("polars/scan@2.1.0", APPEND, BINARY, Verdict.WRONG),
        ("daft@0.7.26", APPEND, BINARY, Verdict.REFUSED),
        ("duckdb@1.5.5", APPEND, BINARY, Verdict.OK),
        # One UPDATE worked when it was measured; another one accepts rows that violate it.
        ("deltalake/engine@1.2.1", DML, "expression /", Verdict.WRONG),
        ("deltalake/engine@1.0.2", DML, "expression log()", Verdict.WRONG),
        ("deltalake/engine@1.6.6", READ, requirements.ONLY_PARTITIONS, Verdict.OK),
        ("deltalake/engine@1.6.6", APPEND, requirements.ONLY_PARTITIONS, Verdict.REFUSED),
        ("deltalake/engine@1.6.6", READ, requirements.REPEATED_PARTITIONS, Verdict.REFUSED),
        ("delta-spark@4.4.0", READ, requirements.ONLY_PARTITIONS, Verdict.OK),
        ("delta-spark@4.4.0", APPEND, requirements.ONLY_PARTITIONS, Verdict.REFUSED),
        ("delta-spark@4.4.0", READ, requirements.REPEATED_PARTITIONS, Verdict.UNKNOWN),
        ("delta-spark@4.4.0", READ, requirements.LACKING_COLUMNS, Verdict.REFUSED),
        ("delta-spark@4.4.0", APPEND, requirements.LACKING_COLUMNS, Verdict.OK),
        ("deltalake/engine@1.6.6", READ, requirements.LACKING_COLUMNS, Verdict.REFUSED),
        ("deltalake/pyarrow@1.6.6", READ, requirements.LACKING_COLUMNS, Verdict.OK),
        # Its DataFrame writer appends such rows, and INSERT does not.
        ("delta-spark@4.4.0", READ, "type time", Verdict.OK),
        ("delta-spark@4.4.0", APPEND, "type time", Verdict.REFUSED),
        ("delta-spark@4.4.0", READ, "type time(9)", Verdict.REFUSED),
        ("delta-spark@4.4.0", APPEND, "type empty struct", Verdict.REFUSED),
        ("delta-spark@4.4.0", APPEND, "type udt", Verdict.REFUSED),
        ("delta-spark@4.4.0", READ, "type timestamp_ltz", Verdict.OK),
        ("deltalake/engine@1.6.6", READ, DECIMAL, Verdict.OK),
        ("deltalake/engine@1.6.6", APPEND, DECIMAL, Verdict.WRONG),
        ("deltalake/engine@0.17.4", DML, DECIMAL, Verdict.WRONG),
        ("deltalake/pyarrow@0.25.5", APPEND, DECIMAL, Verdict.OK),
        ("polars/scan@2.1.0", APPEND, DECIMAL, Verdict.WRONG),
        ("deltalake/pyarrow@0.17.4", READ, DECIMAL, Verdict.REFUSED),
        ("deltalake/pyarrow@1.6.6", READ, requirements.NEGATIVE_PARTITIONS, Verdict.REFUSED),
        ("deltalake/engine@1.6.6", READ, requirements.NEGATIVE_PARTITIONS, Verdict.OK),
        ("deltalake/engine@1.6.6", READ, requirements.MISFIT_PARTITIONS, Verdict.REFUSED),
        ("deltalake/pyarrow@0.17.4", READ, requirements.MISFIT_PARTITIONS, Verdict.WRONG),
        ("trino@476", READ, requirements.MISFIT_PARTITIONS, Verdict.UNKNOWN),
        ("delta-spark@4.4.0", READ, requirements.UNTRACKED_FILES, Verdict.OK),
        ("delta-spark@4.4.0", APPEND, requirements.UNTRACKED_FILES, Verdict.OK),
        ("delta-spark@4.4.0", DML, requirements.UNTRACKED_FILES, Verdict.REFUSED),
        ("delta-spark@4.4.0", Access.MAINTAIN, requirements.UNTRACKED_FILES, Verdict.REFUSED),
        ("delta-spark@4.0.0", DML, requirements.UNTRACKED_FILES, Verdict.UNKNOWN),
        ("delta-spark@4.4.0", READ, requirements.UNSTAMPED, Verdict.OK),
        ("delta-spark@4.4.0", APPEND, requirements.UNSTAMPED, Verdict.REFUSED),
        ("delta-spark@4.0.0", APPEND, requirements.UNSTAMPED, Verdict.UNKNOWN),
        ("databricks-runtime@17.3", APPEND, requirements.UNSTAMPED, Verdict.UNKNOWN),
        ("delta-spark@4.0.0", APPEND, requirements.UNTRACKED_FILES, Verdict.OK),
        ("delta-spark@4.4.0", APPEND, "expression strpos()", Verdict.OK),
        ("delta-spark@4.4.0", READ, OTHER, Verdict.OK),
        ("delta-spark@4.4.0", APPEND, OTHER, Verdict.REFUSED),
        ("delta-spark@3.3.0", Access.MAINTAIN, OTHER, Verdict.REFUSED),
        ("databricks-runtime@17.3", APPEND, OTHER, Verdict.UNKNOWN),
        ("deltalake/engine@1.6.6", APPEND, OTHER, Verdict.OK),
        ("deltalake/engine@1.6.6", APPEND, "expression arrow_cast()", Verdict.OK),
        (
            "delta-spark@4.4.0",
            APPEND,
            "expression a column's name in double quotes",
            Verdict.UNKNOWN,
        ),
        ("delta-spark@4.4.0", DML, "expression ::", Verdict.OK),
        ("delta-spark@3.3.0", DML, "expression ::", Verdict.REFUSED),
        ("delta-spark@3.3.0", DML, "expression try_mod()", Verdict.REFUSED),
        ("delta-spark@3.3.0", DML, "expression length()", Verdict.OK),
    ],
)
def test_the_catalog_says_what_was_measured(
    client: str, access: Access, hazard: str, verdict: Verdict
) -> None:
    assert judged(client, access, hazard) is verdict


@each_row(
    ("client", "access", "hazard", "verdict"),
    [
        ("delta-spark@4.4.0", READ, requirements.UNSIZED_FILES, Verdict.WRONG),
        ("delta-spark@4.4.0", DML, requirements.UNSIZED_FILES, Verdict.WRONG),
        ("delta-spark@4.4.0", Access.MAINTAIN, requirements.UNSIZED_FILES, Verdict.WRONG),
        ("delta-spark@4.4.0", APPEND, requirements.UNSIZED_FILES, Verdict.OK),
        ("delta-spark@4.4.0", READ, requirements.IMPOSSIBLE_SIZES, Verdict.WRONG),
        ("delta-spark@4.4.0", READ, requirements.INCOMPLETE_ADDS, Verdict.OK),
        ("delta-spark@4.4.0", DML, requirements.NO_PARTITION_VALUES, Verdict.REFUSED),
        ("delta-spark@4.4.0", READ, requirements.MISTYPED_ADDS, Verdict.UNKNOWN),
        ("delta-spark@4.3.1", READ, requirements.UNSIZED_FILES, Verdict.UNKNOWN),
        ("delta-spark@4.4.0", READ, requirements.DUPLICATE_COLUMNS, Verdict.REFUSED),
        ("delta-spark@4.4.0", DML, requirements.DUPLICATE_COLUMNS, Verdict.REFUSED),
        ("delta-spark@4.3.1", DML, requirements.DUPLICATE_COLUMNS, Verdict.UNKNOWN),
        ("trino@476", READ, requirements.UNSIZED_FILES, Verdict.UNKNOWN),
        ("deltalake/engine@1.6.6", DML, requirements.DUPLICATE_COLUMNS, Verdict.REFUSED),
        ("deltalake/engine@1.6.2", READ, requirements.DUPLICATE_COLUMNS, Verdict.REFUSED),
        ("deltalake/pyarrow@1.6.2", READ, requirements.DUPLICATE_COLUMNS, Verdict.REFUSED),
        ("deltalake/pyarrow@1.3.0", READ, requirements.DUPLICATE_COLUMNS, Verdict.UNKNOWN),
        ("deltalake/engine@1.0.2", READ, requirements.UNSIZED_FILES, Verdict.WRONG),
        ("deltalake/engine@1.2.1", READ, requirements.UNSIZED_FILES, Verdict.UNKNOWN),
        ("duckdb@1.5.5", READ, requirements.UNSIZED_FILES, Verdict.REFUSED),
        ("duckdb@1.5.5", APPEND, requirements.UNSIZED_FILES, Verdict.UNKNOWN),
        ("duckdb@1.5.5", READ, requirements.IMPOSSIBLE_SIZES, Verdict.OK),
        ("daft@0.7.26", READ, requirements.INCOMPLETE_ADDS, Verdict.REFUSED),
        ("polars/scan@2.1.0", READ, requirements.UNREADABLE_STATISTICS, Verdict.OK),
        ("deltalake/engine@1.6.6", READ, requirements.UNREADABLE_STATISTICS, Verdict.REFUSED),
        ("deltalake/pyarrow@1.6.6", READ, requirements.UNREADABLE_STATISTICS, Verdict.OK),
        ("deltalake/engine@1.6.6", READ, requirements.MISTYPED_STATISTICS, Verdict.OK),
        ("delta-spark@4.4.0", DML, requirements.MISTYPED_WITH_BOOLEANS, Verdict.OK),
        ("polars/scan@2.1.0", READ, requirements.MISTYPED_WITH_BOOLEANS, Verdict.REFUSED),
        ("duckdb@1.5.5", READ, requirements.MISTYPED_WITH_BOOLEANS, Verdict.OK),
        ("deltalake/engine@1.6.6", APPEND, requirements.UNREADABLE_WITH_BOOLEANS, Verdict.REFUSED),
        ("deltalake/pyarrow@1.6.6", READ, requirements.UNREADABLE_WITH_BOOLEANS, Verdict.REFUSED),
        ("polars/scan@2.1.0", READ, requirements.UNREADABLE_WITH_BOOLEANS, Verdict.REFUSED),
        ("polars/eager@1.44.2", READ, requirements.UNREADABLE_WITH_BOOLEANS, Verdict.UNKNOWN),
        ("polars@1.13.0", READ, requirements.PARTITIONS_AT_HIVE_LOCATION, Verdict.OK),
        ("polars@1.20.1", READ, requirements.PARTITIONS_AT_HIVE_LOCATION, Verdict.WRONG),
        ("polars/scan@2.1.0", READ, requirements.PARTITIONS_AT_HIVE_LOCATION, Verdict.REFUSED),
        ("polars/scan@2.1.0", APPEND, requirements.PARTITIONS_AT_HIVE_LOCATION, Verdict.OK),
        ("polars/eager@2.1.0", READ, requirements.HIVE_LOCATION, Verdict.OK),
        ("daft@0.7.26", READ, requirements.UNREADABLE_WITH_BOOLEANS, Verdict.REFUSED),
        ("duckdb@1.5.5", READ, requirements.UNREADABLE_WITH_BOOLEANS, Verdict.OK),
    ],
)
def test_damage_has_a_verdict_only_where_it_was_measured(
    client: str, access: Access, hazard: str, verdict: Verdict
) -> None:
    assert judged(client, access, hazard) is verdict
