"""The exceptions of a lost conflict: causes, remedies and sources.

Sources: the Databricks page "Isolation levels and write conflicts" (newest edition); Delta Spark's
`ConflictChecker`, `OptimisticTransaction`, `OptimizeTableCommand` and `delta-error-classes.json`.
"""

from __future__ import annotations

from deltaproto.conflicts import delta_rs
from deltaproto.conflicts.operation import (
    DATABRICKS_PAGE,
    USE_LITERALS,
    Cause,
    ExceptionName,
    ExceptionRecord,
)

_SPARK = "delta-io/delta, "
_BOTH = ("databricks", "delta-spark", "delta-rs")

RECORDS: tuple[ExceptionRecord, ...] = (
    ExceptionRecord(
        ExceptionName.APPEND,
        "DELTA_CONCURRENT_APPEND",
        _BOTH,
        "Another transaction added files that this one should have read.",
        (
            Cause(
                "files where this operation reads",
                "an INSERT, UPDATE, DELETE or MERGE added files to a partition that this one "
                "reads, or anywhere in an unpartitioned table; common between UPDATE, DELETE and "
                "MERGE, even on different partitions if one reads the partition of the other",
                USE_LITERALS,
                DATABRICKS_PAGE + "ConcurrentAppendException",
            ),
            Cause(
                "blind appends under Serializable",
                "under Serializable, the files of a blind append also count; in Delta Spark this "
                "is the level of a table without delta.isolationLevel",
                "keep the appends out of the partitions that are read, or use "
                "WriteSerializable if history and content may disagree",
                DATABRICKS_PAGE + "ConcurrentAppendException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "several changes that read the appended rows",
                "under WriteSerializable, if several concurrent UPDATE, DELETE or MERGE may "
                "read what a blind append adds (Databricks)",
                "allow at most one of them to read the appended rows",
                DATABRICKS_PAGE + "ConcurrentAppendException",
            ),
            Cause(
                "files that OPTIMIZE rewrote",
                "in Delta Spark, files written by OPTIMIZE or REORG also count, at both levels, "
                "although their rows are old",
                "compact partitions that are not being changed, or compact at another time",
                _SPARK + "ConflictChecker.checkForAddedFilesThatShouldHaveBeenReadByCurrentTxn",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.DELETE_READ,
        "DELTA_CONCURRENT_DELETE_READ",
        _BOTH,
        "Another transaction removed a file that this one read.",
        (
            Cause(
                "a file that was rewritten",
                "a DELETE, UPDATE or MERGE rewrote or removed a file that this operation read; in "
                "Delta Spark any removal, if this operation read the whole table",
                USE_LITERALS,
                DATABRICKS_PAGE + "ConcurrentDeleteReadException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "compaction",
                "OPTIMIZE or REORG replaced the file; on Databricks only with ZORDER BY or "
                "without deletion vectors",
                "compact when no job changes the same partitions; on Databricks enable deletion "
                "vectors and omit ZORDER BY",
                DATABRICKS_PAGE + "matrices; " + _SPARK + "ConflictChecker",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.DELETE_DELETE,
        "DELTA_CONCURRENT_DELETE_DELETE",
        _BOTH,
        "Another transaction removed a file that this one also removes.",
        (
            Cause(
                "two compactions",
                "two OPTIMIZE or REORG rewrote the same files",
                "run one compaction of a partition at a time, including automatic and scheduled "
                "ones",
                DATABRICKS_PAGE + "ConcurrentDeleteDeleteException",
            ),
            Cause(
                "two changes of one file",
                "both rewrite the same file; with deletion vectors Delta Spark still compares "
                "files, not rows",
                USE_LITERALS,
                _SPARK + "ConflictChecker.checkForDeletedFilesAgainstCurrentTxnDeletedFiles",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.METADATA,
        "DELTA_METADATA_CHANGED",
        _BOTH,
        "Another transaction changed the table's metadata.",
        (
            Cause(
                "ALTER TABLE",
                "a property, the schema, a constraint or the isolation level was changed; "
                "before Delta Spark 4.1, storing the same metadata again also counts",
                "change metadata while no writers run, and find idle metadata commits with "
                "`deltaproto history`",
                DATABRICKS_PAGE + "MetadataChangedException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "a write that updates the schema",
                "a write with schema evolution is a metadata change for other transactions",
                "evolve the schema in a separate step, before the parallel writes",
                DATABRICKS_PAGE + "MetadataChangedException",
            ),
            Cause(
                "a property that a feature drop unsets",
                "DROP FEATURE first unsets the feature's property in a separate commit; that "
                "commit affects writers of deletionVectors, rowTracking or v2Checkpoint",
                "drop features while no writers run",
                "measured with delta-spark 4.4.0",
            ),
            Cause(
                "values for an identity column",
                "in Delta Spark, two transactions that generate identity values both store the "
                "counter, which is metadata",
                "run writes to tables with identity columns one at a time",
                _SPARK + "IdentityColumn, ConflictChecker",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.PROTOCOL,
        "DELTA_PROTOCOL_CHANGED",
        _BOTH,
        "Another transaction changed the table's protocol.",
        (
            Cause(
                "upgrade",
                "the table was upgraded to another protocol; in Delta Spark writers survive an "
                "added feature unless they also change the protocol; none survives a drop",
                "run again; if the new protocol is then refused, use a newer runtime or client "
                "that supports its features. Change protocols while no writers run",
                DATABRICKS_PAGE
                + "ProtocolChangedException; "
                + _SPARK
                + "checkProtocolCompatibility",
            ),
            Cause(
                "concurrent create or replace",
                "several writers create or replace the same table concurrently",
                "let one job create the table before the others start",
                DATABRICKS_PAGE + "ProtocolChangedException",
            ),
            Cause(
                "empty path",
                "several writers write concurrently to the same empty path: each is the first "
                "commit, which sets the protocol; the message shows this if version 0 won",
                "create the table ahead of time",
                DATABRICKS_PAGE
                + "ProtocolChangedException; "
                + _SPARK
                + "protocolChangedException",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.TRANSACTION,
        "DELTA_CONCURRENT_TRANSACTION",
        _BOTH,
        "Another run of the same streaming query wrote to the table.",
        (
            Cause(
                "one checkpoint location, two runs",
                "one streaming query was started several times with the same checkpoint "
                "location, and the runs write concurrently; so do batch writes that share a "
                "txnAppId",
                "never run two queries with one checkpoint location; give each query its own",
                DATABRICKS_PAGE + "ConcurrentTransactionException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "one metadata domain, two writers",
                "in Delta Spark, both transactions write the same metadata domain, such as the "
                "clustering columns",
                "change clustering columns in one transaction at a time",
                _SPARK + "ConflictChecker.checkIfDomainMetadataConflict",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.WRITE,
        "DELTA_CONCURRENT_WRITE",
        ("delta-spark", "delta-rs"),
        "Another transaction committed the same version first, and this one does not retry.",
        (
            Cause(
                "a large commit",
                "RESTORE, CLONE, CONVERT, and the tombstones that DROP FEATURE deletionVectors "
                "writes if there are more than 10,000 are committed without conflict checks: any "
                "concurrent commit wins",
                "run them while no writers run",
                _SPARK + "OptimisticTransaction.commitLarge",
            ),
            Cause(
                "a move to coordinated commits",
                "the commit that hands the table to a commit coordinator is not retried",
                "run it while no writers run",
                _SPARK + "OptimisticTransaction",
            ),
        ),
    ),
)
_BY_NAME = {record.name: record for record in RECORDS}


def find_exception(text: str) -> tuple[ExceptionRecord | None, tuple[str, ...]]:
    """Find an exception by name, or return the nearest names.

    Also accepts its error class and deltalake's message.
    """
    folded = text.casefold()
    for name, message in delta_rs.MESSAGES.items():
        if message in folded:
            return _BY_NAME[name], ()
    wanted = _key(text)
    keys = {_key(name): item for item in RECORDS for name in (item.name, item.error_class)}
    if wanted in keys:
        return keys[wanted], ()
    import difflib

    near = difflib.get_close_matches(wanted, keys, n=3, cutoff=0.5)
    return None, tuple(dict.fromkeys(str(keys[key].name) for key in near))


def _key(text: str) -> str:
    """Reduce a class name with package, or an error class with subclass, to its key."""
    bare = text.strip().strip("[]").casefold()
    name = bare.partition(".")[0] if bare.startswith("delta_") else bare.rpartition(".")[2]
    letters = "".join(character for character in name if character.isalnum())
    return letters.removeprefix("delta").removesuffix("exception")
