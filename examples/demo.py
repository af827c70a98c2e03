"""Create real Delta tables with Spark, then run the commands that a new user would run.

`make demo` runs this. The tables stay in the scratch folder, so that you can try other commands.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from deltaproto.errors import DeltaprotoError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session

ORDERS = "id bigint, customer string, amount decimal(10,2)"
TABLES: dict[str, tuple[str, ...]] = {
    "plain": ("create table {t} ({orders}) using delta", "{rows}"),
    "constraints": (
        "create table {t} ({orders}) using delta",
        "{rows}",
        "alter table {t} add constraint amount_positive check (amount > 0)",
    ),
    "change_feed": (
        "create table {t} ({orders}) using delta"
        " tblproperties ('delta.enableChangeDataFeed'='true')",
        "{rows}",
        "update {t} set amount = 1 where id = 1",
    ),
    "column_mapping": (
        "create table {t} ({orders}) using delta tblproperties ('delta.columnMapping.mode'='name')",
        "{rows}",
        "alter table {t} rename column customer to buyer",
    ),
    "deletion_vectors": (
        "create table {t} ({orders}) using delta"
        " tblproperties ('delta.enableDeletionVectors'='true')",
        "{rows}",
        "delete from {t} where id % 10 = 3",
    ),
    "to_downgrade": (
        "create table {t} ({orders}) using delta"
        " tblproperties ('delta.enableDeletionVectors'='true')",
        "{rows}",
        "delete from {t} where id % 10 = 3",
    ),
    "clustered": (
        "create table {t} ({orders}) using delta cluster by (customer)",
        "{rows}",
    ),
    "widened": (
        "create table {t} (id int, customer string, amount decimal(10,2)) using delta"
        " tblproperties ('delta.enableTypeWidening'='true')",
        "insert into {t} select cast(id as int), 'c', 1 from range(100)",
        "alter table {t} alter column id type bigint",
        "{rows}",
    ),
    "legacy": (
        "create table {t} ({orders}) using delta"
        " tblproperties ('delta.minReaderVersion'='2','delta.minWriterVersion'='5')",
        "{rows}",
    ),
    "after_drop_feature": (
        "create table {t} ({orders}) using delta"
        " tblproperties ('delta.enableDeletionVectors'='true')",
        "{rows}",
        "alter table {t} drop feature deletionVectors",
    ),
    "everything": (
        "create table {t} (id bigint not null, customer string, amount decimal(10,2),"
        " at timestamp_ntz, small int) using delta cluster by (customer) tblproperties ("
        "'delta.enableChangeDataFeed'='true','delta.columnMapping.mode'='name',"
        "'delta.enableDeletionVectors'='true','delta.enableRowTracking'='true',"
        "'delta.enableTypeWidening'='true','delta.enableInCommitTimestamps'='true',"
        "'delta.checkpointPolicy'='v2')",
        "insert into {t} select id, 'c', 1, null, 1 from range(100)",
        "alter table {t} add constraint amount_positive check (amount > 0)",
        "delete from {t} where id = 3",
        "alter table {t} alter column small type bigint",
    ),
}
PLAN = ".plan.json"
"""hidden, so that `.demo/*` contains tables only"""
LEFT = (PLAN, "plan.json", ".deltaproto")
"""what a demo writes beside its tables; the next one removes these, and nothing else"""
ROWS = "insert into {t} select id, concat('c', id % 7), 1 + id from range(100)"
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("What protocol is this table on, and why?", ("inspect", "{root}/deletion_vectors")),
    (
        "The same table through all three readers",
        ("inspect", "--reader", "all", "{root}/clustered"),
    ),
    ("Everything at once", ("inspect", "{root}/everything")),
    ("A legacy version pair implies features that nothing uses", ("inspect", "{root}/legacy")),
    ("What DROP FEATURE leaves behind", ("inspect", "{root}/after_drop_feature")),
    ("Explain that finding", ("explain", "DP114")),
    ("Who changed its protocol, and why?", ("history", "{root}/after_drop_feature")),
    (
        "Which clients can use it, and because of which feature not?",
        (
            "check",
            "{root}/deletion_vectors",
            "--client",
            "trino@450",
            "--client",
            "databricks-runtime@11.3",
            "--client",
            "deltalake@1.6.6",
        ),
    ),
    (
        "How do the blocked clients regain access? The plan, step by step",
        ("plan-downgrade", "{root}/deletion_vectors", "--drop", "deletionVectors"),
    ),
    (
        "What would row tracking change, and would Trino still work?",
        ("plan-upgrade", "{root}/plain", "--enable", "rowTracking", "--for-client", "trino@400"),
    ),
    (
        "The same plan as a file, to be applied",
        (
            "plan-downgrade",
            "{root}/to_downgrade",
            "--drop",
            "deletionVectors",
            "--format",
            "json",
            "--output",
            f"{{root}}/{PLAN}",
        ),
    ),
    (
        "Apply it: the warning, the gates, each step verified",
        ("apply", f"{{root}}/{PLAN}", "--yes"),
    ),
    ("Which writers would a change affect?", ("conflicts", "{root}/deletion_vectors")),
    ("Who uses these tables, and for whom?", ("discover", "{root}")),
    ("Everything known about one feature", ("features", "columnMapping")),
    ("Many tables for a script: JSON, here only the protocols", ("inspect", "{all}")),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".demo"), help="scratch folder")
    root: Path = parser.parse_args().into
    unexpected = sorted({each.name for each in root.glob("*")} - {*TABLES, *LEFT})
    if unexpected:
        hint = "pass a new folder with --into"
        print(f"error: {root} contains {unexpected[0]}\nhint: {hint}", file=sys.stderr)
        return 2
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    try:
        make_tables(root)
    except DeltaprotoError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    for title, words in COMMANDS:
        if show(title, words, root) not in (0, 1):
            return 1
    print(f"The tables are in {root}. Try: deltaproto inspect {root}/*")
    return 0


def make_tables(root: Path) -> None:
    """Create all tables with Spark."""
    with timed("starting Spark (the first time it also fetches Delta's jars)"):
        spark = spark_session(SparkSettings())
    for name, statements in TABLES.items():
        with timed(f"creating {name}"):
            table = f"delta.`{(root / name).absolute()}`"
            for statement in statements:
                spark.sql(statement.replace("{rows}", ROWS).format(t=table, orders=ORDERS))
    spark.stop()


def show(title: str, words: tuple[str, ...], root: Path) -> int:
    """Run one command as a user would, and print it with its output."""
    tables = [str(root / name) for name in TABLES]
    full = [word.format(root=root, all="{all}") for word in words if word != "{all}"]
    shown = " ".join(
        ["deltaproto", *full, *([f"{root}/*", "--format", "json"] if "{all}" in words else [])]
    )
    print(
        f"\n\033[1m# {title}\033[0m\n$ {shown}"
        if sys.stdout.isatty()
        else f"\n# {title}\n$ {shown}"
    )
    command = ["deltaproto", *full, *([*tables, "--format", "json"] if "{all}" in words else [])]
    if "{all}" in words:
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        for entry in json.loads(ran.stdout)["tables"]:
            print(f"{Path(entry['table']).name:20} {json.dumps(entry['protocol'])}")
        return ran.returncode
    sys.stdout.flush()
    return subprocess.run(command, check=False).returncode


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    print(f"{what} … ", end="", flush=True)
    start = time.perf_counter()
    yield
    print(f"{time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
