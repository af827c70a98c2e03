# /// script
# dependencies = ["delta-spark=={version}", "pyspark", "setuptools<81"]
# ///
"""Delta Kernel for Java with its default engine, called like a connector does: no Spark."""

import datetime
import itertools
import json
import os
import subprocess
import tempfile
from importlib.metadata import version as installed
from pathlib import Path

import pyspark
from kit import NotOffered
from py4j.java_gateway import JavaGateway, get_method

# The kernel is released together with delta-spark, and Ivy comes with Spark.
VERSION = installed("delta-spark")
RELEASE = tuple(int(part) for part in VERSION.split(".")[:2])

# Since 4.2, the kernel's defaults do not declare its API as a dependency.
IVY = """<ivy-module version="2.0"><info organisation="adapter" module="adapter"/><dependencies>
<dependency org="io.delta" name="delta-kernel-api" rev="{0}" conf="default"/>
<dependency org="io.delta" name="delta-kernel-defaults" rev="{0}" conf="default"/>
</dependencies></ivy-module>"""


def _classpath():
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder) / "ivy.xml", Path(folder) / "classpath"
        wanted.write_text(IVY.format(VERSION))
        given = ["-ivy", str(wanted), "-confs", "default", "-cachepath", str(found)]
        done = subprocess.run([java, "-jar", str(ivy), *given], capture_output=True, text=True)
        if done.returncode or not found.exists():
            raise RuntimeError(f"Ivy found no jars of {VERSION}: {done.stdout[-1500:]}")
        return found.read_text().strip()


gateway = JavaGateway.launch_gateway(
    classpath=_classpath(),
    java_path=None,
    javaopts=["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"],
    die_on_exit=True,
)
java, kernel = gateway.jvm.java, gateway.jvm.io.delta.kernel
Table, Scan, Transaction = kernel.Table, kernel.Scan, kernel.Transaction
Predicate, Column, Literal = (
    kernel.expressions.Predicate,
    kernel.expressions.Column,
    kernel.expressions.Literal,
)
Batch, Iterable = kernel.data.FilteredColumnarBatch, kernel.utils.CloseableIterable
ScanState, ScanFiles = kernel.internal.data.ScanStateRow, kernel.internal.InternalScanFileUtils
Utils, Optional, ArrayList = kernel.internal.util.Utils, java.util.Optional, java.util.ArrayList
_default = kernel.defaults
_engine = _default.client.DefaultTableClient if RELEASE < (3, 2) else _default.engine.DefaultEngine
engine = _engine.create(gateway.jvm.org.apache.hadoop.conf.Configuration())

# Releases before 4.0 require the engine for every call on a snapshot.
with_engine = (engine,) if RELEASE < (4, 0) else ()


def release():
    return VERSION


def _each(iterator):
    """Py4J treats any Java exception as the iterator's end."""
    following = get_method(iterator, "next")
    while iterator.hasNext():
        yield following()


def _snapshot(table, version=None):
    found = Table.forPath(engine, table)
    if version is None:
        return found.getLatestSnapshot(engine)
    return found.getSnapshotAsOfVersion(engine, version)


def _types(schema):
    return [(field.getName(), field.getDataType()) for field in schema.fields()]


MAKERS = {
    "long": "ofLong",
    "integer": "ofInt",
    "short": "ofShort",
    "byte": "ofByte",
    "double": "ofDouble",
    "string": "ofString",
    "boolean": "ofBoolean",
}


def _literal(kind, value):
    if value is None:
        return Literal.ofNull(kind)
    if kind.toString() not in MAKERS:
        raise NotOffered
    return getattr(Literal, MAKERS[kind.toString()])(value)


def _scan(table, version=None, where=None, columns=None):
    snapshot = _snapshot(table, version)
    builder = snapshot.getScanBuilder(*with_engine)
    if where:
        kind = dict(_types(snapshot.getSchema(*with_engine)))[where.column]
        wanted = Predicate(where.op, Column(where.column), _literal(kind, where.value))
        builder = builder.withFilter(*with_engine, wanted)
    if columns is not None:
        builder = builder.withReadSchema(*with_engine, columns)
    scan = builder.build()
    state, remaining = scan.getScanState(engine), scan.getRemainingFilter()
    physical = ScanState.getPhysicalDataReadSchema(
        *(with_engine or (engine,) * (RELEASE < (4, 1))), state
    )
    for files in _each(scan.getScanFiles(engine)):
        for file in _each(files.getRows()):
            status = Utils.singletonCloseableIterator(ScanFiles.getAddFileStatus(file))
            batches = ArrayList()
            handler = engine.getParquetHandler()
            for read in _each(handler.readParquetFiles(status, physical, Optional.empty())):
                batches.add(read if RELEASE < (4, 1) else read.getData())
            read = Utils.toCloseableIterator(batches.iterator())
            for batch in _each(Scan.transformPhysicalData(engine, state, file, read)):
                yield from _each(_selected(batch, remaining).getRows())


def _selected(batch, remaining):
    """The kernel skips files; the connector must apply the rest of a filter."""
    if not remaining.isPresent():
        return batch
    data = batch.getData()
    handler = engine.getExpressionHandler()
    evaluator = handler.getPredicateEvaluator(data.getSchema(), remaining.get())
    return Batch(data, Optional.of(evaluator.eval(data, batch.getSelectionVector())))


EPOCH = datetime.datetime(1970, 1, 1)
READERS = {
    "boolean": "getBoolean",
    "byte": "getByte",
    "short": "getShort",
    "integer": "getInt",
    "long": "getLong",
    "float": "getFloat",
    "double": "getDouble",
    "string": "getString",
    "binary": "getBinary",
}


def _value(row, at, kind):
    if row.isNullAt(at):
        return None
    if kind in ("timestamp", "timestamp_ntz"):
        return EPOCH + datetime.timedelta(microseconds=row.getLong(at))
    if kind == "date":
        return (EPOCH + datetime.timedelta(days=row.getInt(at))).date()
    if kind.startswith("Decimal"):
        return row.getDecimal(at)
    return getattr(row, READERS[kind])(at)


def rows(table, version=None, where=None):
    found, types = [], None
    for row in _scan(table, version, where):
        types = types or [(name, kind.toString()) for name, kind in _types(row.getSchema())]
        found.append({name: _value(row, at, kind) for at, (name, kind) in enumerate(types)})
    return found


def count(table):
    return sum(1 for _ in _scan(table, columns=kernel.types.StructType()))


def schema(table):
    return [
        (name, kind.toString()) for name, kind in _types(_snapshot(table).getSchema(*with_engine))
    ]


def _batch(fields, rows):
    """Rows with the table's fields, from JSON: boxed numbers cannot be passed to Java.

    Parsed as nullable, because the JSON handler would reject a null in a NOT NULL column: such a
    null must reach the kernel's writer, as it does from most connectors.
    """
    loose, struct = kernel.types.StructType(), kernel.types.StructType()
    for field in fields:
        loose, struct = loose.add(field.getName(), field.getDataType()), struct.add(field)
    lines = gateway.new_array(java.lang.Object, len(rows))
    for at, row in enumerate(rows):
        lines[at] = json.dumps(row)
    texts = _default.internal.data.vector.DefaultGenericVector.fromArray(
        kernel.types.StringType.STRING, lines
    )
    parsed = engine.getJsonHandler().parseJson(texts, loose, Optional.empty())
    vectors = gateway.new_array(kernel.data.ColumnVector, len(fields))
    for at in range(len(fields)):
        vectors[at] = parsed.getColumnVector(at)
    return _default.internal.data.DefaultColumnarBatch(len(rows), struct, vectors)


def _begin(table, operation):
    made = Table.forPath(engine, table)
    return made.createTransactionBuilder(engine, "adapter", getattr(kernel.Operation, operation))


def _commit(transaction, actions):
    done = transaction.commit(engine, actions)
    if RELEASE >= (4, 0):
        for hook in done.getPostCommitHooks():
            hook.threadSafeInvoke(engine)


if RELEASE >= (3, 2):

    def append(table, rows):
        transaction = _begin(table, "WRITE").build(engine)
        state, actions = transaction.getTransactionState(engine), ArrayList()
        schema = transaction.getSchema(engine)
        kinds = dict(_types(schema))
        fields = [field for field in schema.fields() if field.getName() in rows.names]
        parts = list(transaction.getPartitionColumns(engine))

        def part(row):
            return tuple(str(row.get(name)) for name in parts)

        for _, group in itertools.groupby(sorted(rows.values, key=part), part):
            group = list(group)
            values = java.util.HashMap()
            for name in parts:
                values[name] = _literal(kinds[name], group[0].get(name))
            data = Batch(_batch(fields, group), Optional.empty())
            physical = Transaction.transformLogicalData(
                engine, state, Utils.singletonCloseableIterator(data), values
            )
            context = Transaction.getWriteContext(engine, state, values)
            files = engine.getParquetHandler().writeParquetFiles(
                context.getTargetDirectory(), physical, context.getStatisticsColumns()
            )
            for action in _each(Transaction.generateAppendActions(engine, state, files, context)):
                actions.add(action)
        closeable = Utils.toCloseableIterator(actions.iterator())
        _commit(transaction, Iterable.inMemoryIterable(closeable))

    def checkpoint(table):
        found = Table.forPath(engine, table)
        found.checkpoint(engine, found.getLatestSnapshot(engine).getVersion(*with_engine))


if RELEASE >= (3, 3):

    def configure(table, key, value):
        wanted = java.util.HashMap()
        wanted[key] = value
        builder = _begin(table, "MANUAL_UPDATE").withTableProperties(engine, wanted)
        _commit(builder.build(engine), Iterable.emptyIterable())
