"""The exceptions that a lost conflict raises: causes, ways out, sources.

Sources: the Databricks page "Isolation levels and write conflicts" (newest edition); Delta Spark's
`ConflictChecker`, `OptimisticTransaction`, `OptimizeTableCommand` and `delta-error-classes.json`.
"""

from __future__ import annotations

from deltaproto.conflicts import delta_rs
from deltaproto.conflicts.operation import LITERALS, PAGE, Cause, ExceptionName, ExceptionRecord

_SPARK = "delta-io/delta, "
_BOTH = ("databricks", "delta-spark", "delta-rs")

RECORDS: tuple[ExceptionRecord, ...] = (
    ExceptionRecord(
        ExceptionName.APPEND,
        "DELTA_CONCURRENT_APPEND",
        _BOTH,
        "Another transaction added files where this one was reading.",
        (
            Cause(
                "files where this operation reads",
                "an INSERT, UPDATE, DELETE or MERGE added files to a partition that this one "
                "reads, or anywhere in an unpartitioned table; usual between UPDATE, DELETE and "
                "MERGE, also when they change different partitions but one reads the other's",
                LITERALS,
                PAGE + "ConcurrentAppendException",
            ),
            Cause(
                "blind appends under Serializable",
                "under Serializable also the files of a blind append count; in Delta Spark that "
                "is the level of a table without delta.isolationLevel",
                "keep the appends out of the partitions that are read, or choose "
                "WriteSerializable where history and content may disagree",
                PAGE + "ConcurrentAppendException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "several changes that read the appended rows",
                "under WriteSerializable, when several concurrent UPDATE, DELETE or MERGE may "
                "read what a blind append adds (Databricks)",
                "let at most one of them be able to read the appended rows",
                PAGE + "ConcurrentAppendException",
            ),
            Cause(
                "files that OPTIMIZE rewrote",
                "in Delta Spark the files that OPTIMIZE or REORG wrote count as well, at both "
                "levels, although their rows are old",
                "compact other partitions than those being changed, or at another time",
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
                "Delta Spark any removal, when this operation read the whole table",
                LITERALS,
                PAGE + "ConcurrentDeleteReadException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "compaction",
                "OPTIMIZE or REORG replaced the file; on Databricks only with ZORDER BY or "
                "without deletion vectors",
                "compact when nobody changes the same partitions; on Databricks enable deletion "
                "vectors and leave ZORDER BY out",
                PAGE + "matrices; " + _SPARK + "ConflictChecker",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.DELETE_DELETE,
        "DELTA_CONCURRENT_DELETE_DELETE",
        _BOTH,
        "Another transaction removed a file that this one removes too.",
        (
            Cause(
                "two compactions",
                "two OPTIMIZE or REORG rewrote the same files",
                "run one compaction of a partition at a time; automatic and scheduled ones count",
                PAGE + "ConcurrentDeleteDeleteException",
            ),
            Cause(
                "two changes of one file",
                "both rewrite the same file; with deletion vectors Delta Spark still compares "
                "files, not rows",
                LITERALS,
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
                "somebody changed a property, the schema, a constraint or the isolation level; "
                "before Delta Spark 4.1 storing the same metadata again counts as well",
                "change metadata in a window without writers, and find idle metadata commits with "
                "`deltaproto history`",
                PAGE + "MetadataChangedException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "a write that updates the schema",
                "a write with schema evolution is a metadata change for everybody else",
                "evolve the schema in a step of its own, before the parallel writes",
                PAGE + "MetadataChangedException",
            ),
            Cause(
                "a property that a feature drop unsets",
                "DROP FEATURE unsets the feature's property in a commit of its own first; that "
                "commit is what hits writers of deletionVectors, rowTracking or v2Checkpoint",
                "drop features in a window without writers",
                "measured with delta-spark 4.4.0",
            ),
            Cause(
                "values for an identity column",
                "in Delta Spark two transactions that both make identity values both store the "
                "counter, which is metadata",
                "write to tables with identity columns one after the other",
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
                "added feature, unless they change the protocol too, and none survives a drop",
                "run again; if the new protocol is refused then, use a newer runtime or client "
                "that knows its features. Change protocols in a window without writers",
                PAGE + "ProtocolChangedException; " + _SPARK + "checkProtocolCompatibility",
            ),
            Cause(
                "concurrent create or replace",
                "several writers create or replace the same table at the same time",
                "let one job create the table before the others start",
                PAGE + "ProtocolChangedException",
            ),
            Cause(
                "empty path",
                "several writers write to the same empty path at the same time: each is the first "
                "commit, which sets the protocol; the message says so when version 0 won",
                "create the table ahead of time",
                PAGE + "ProtocolChangedException; " + _SPARK + "protocolChangedException",
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
                "location, and the runs write at the same time; so do batch writes that share a "
                "txnAppId",
                "never run two queries with one checkpoint location; give each its own",
                PAGE + "ConcurrentTransactionException; " + _SPARK + "ConflictChecker",
            ),
            Cause(
                "one metadata domain, two writers",
                "in Delta Spark both transactions write the same metadata domain, such as the "
                "clustering columns",
                "change clustering columns one after the other",
                _SPARK + "ConflictChecker.checkIfDomainMetadataConflict",
            ),
        ),
    ),
    ExceptionRecord(
        ExceptionName.WRITE,
        "DELTA_CONCURRENT_WRITE",
        ("delta-spark", "delta-rs"),
        "Another transaction committed the version that this one wanted, and it does not retry.",
        (
            Cause(
                "a large commit",
                "RESTORE, CLONE, CONVERT, and the tombstones that DROP FEATURE deletionVectors "
                "writes when there are more than 10,000 are committed without checking "
                "conflicts: any other commit at that moment wins",
                "run them in a window without any writer",
                _SPARK + "OptimisticTransaction.commitLarge",
            ),
            Cause(
                "a move to coordinated commits",
                "the commit that hands the table to a commit coordinator is not retried",
                "run it in a window without any writer",
                _SPARK + "OptimisticTransaction",
            ),
        ),
    ),
)
_BY_NAME = {record.name: record for record in RECORDS}


def record(name: ExceptionName) -> ExceptionRecord:
    """What is known about one exception."""
    return _BY_NAME[name]


def search(text: str) -> tuple[ExceptionRecord | None, tuple[str, ...]]:
    """The exception people mean by `text`, else the nearest names.

    Its error class will do, and so will the message that deltalake raises.
    """
    said = text.casefold()
    for name, message in delta_rs.MESSAGES.items():
        if message in said:
            return _BY_NAME[name], ()
    wanted = _key(text)
    keys = {_key(name): item for item in RECORDS for name in (item.name, item.error_class)}
    if wanted in keys:
        return keys[wanted], ()
    import difflib

    near = difflib.get_close_matches(wanted, keys, n=3, cutoff=0.5)
    return None, tuple(dict.fromkeys(str(keys[key].name) for key in near))


def _key(text: str) -> str:
    """What a class name with its package, or an error class with its subclass, boils down to."""
    bare = text.strip().strip("[]").casefold()
    name = bare.partition(".")[0] if bare.startswith("delta_") else bare.rpartition(".")[2]
    letters = "".join(character for character in name if character.isalnum())
    return letters.removeprefix("delta").removesuffix("exception")
