"""Who deltaproto is measured against: a bare deltalake script, delta-kernel-rs, a warm Spark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.pairs import Cost, run
from deltaproto.errors import EngineError
from deltaproto.tables.java import require_java

BARE = """
import sys
from deltalake import DeltaTable
print(DeltaTable(sys.argv[1]).protocol())
"""
POOL = """
import sys
from concurrent.futures import ThreadPoolExecutor
from deltalake import DeltaTable
tables = sys.stdin.read().splitlines()
with ThreadPoolExecutor(8) as pool:
    for protocol in pool.map(lambda table: DeltaTable(table).protocol(), tables):
        print(protocol)
"""
_KERNEL = Path(__file__).parent / "kernel_inspect"


def deltaproto(*words: str | Path, codes: Sequence[int] = (0,)) -> Cost:
    """A command, as a whole process with Python's start."""
    return run([sys.executable, "-m", "deltaproto", *map(str, words)], codes=codes)


def bare(table: Path) -> Cost:
    """The shortest deltalake script that prints a table's protocol, as a whole process."""
    return run([sys.executable, "-c", BARE, str(table)])


def pool(names: Path) -> Cost:
    """The same for many tables, named in a file, with eight threads."""
    return run([sys.executable, "-c", POOL], lines=names)


class Kernel:
    """The program in `kernel_inspect/`, built where cargo is at hand."""

    def __init__(self, program: Path) -> None:
        self._program = str(program)

    def inspect(self, table: Path) -> Cost:
        return run([self._program, str(table)])

    def each(self, names: Path) -> Cost:
        """Many tables, named in a file, one after the other."""
        return run([self._program, "-"], lines=names)


class Spark:
    """A session in a process of its own, which stays between the rounds.

    A session is started by many jobs anyway, so its start is told apart and is in no ratio. Delta's
    cache of tables is emptied before each measurement: an inspection sees a table once.
    """

    def __init__(self) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.spark_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_KERNEL.parents[1],
        )
        if self._ask([]) is None:
            raise EngineError("Spark did not start", "start it with `make demo` to see why")
        self.start = time.perf_counter() - began
        """seconds until a new process has a session"""

    def detail(self, *tables: Path | str) -> Cost:
        """DESCRIBE DETAIL of tables, one after the other."""
        answer = self._ask([os.fspath(table) for table in tables])
        if answer is None:
            raise SystemExit("the Spark session has ended")
        return Cost(answer["seconds"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, tables: list[str]) -> dict[str, Any] | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(tables), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return None
        line = next((each for each in self._process.stdout if each.startswith("{")), None)
        return None if line is None else dict(json.loads(line))


class Peers:
    """What there is on this machine; `missing` says why the others are not."""

    def __init__(self, *, spark: bool = True) -> None:
        self.missing: dict[str, str] = {}
        self._stack = ExitStack()
        self.kernel = self._kernel()
        self.spark = self._spark() if spark else None
        if not spark:
            self.missing["Spark"] = "left out with `--no-spark`"

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _kernel(self) -> Kernel | None:
        if shutil.which("cargo") is None:
            self.missing["delta-kernel-rs"] = "no cargo on this machine"
            return None
        print("building kernel_inspect (minutes the first time)", flush=True)
        manifest = _KERNEL / "Cargo.toml"
        built = subprocess.run(
            ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest],
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            print(built.stderr, file=sys.stderr)
            self.missing["delta-kernel-rs"] = "cargo could not build it"
            return None
        return Kernel(_KERNEL / "target" / "release" / "kernel-inspect")

    def _spark(self) -> Spark | None:
        try:
            require_java()
            print("starting Spark", flush=True)
            spark = Spark()
        except EngineError as error:
            self.missing["Spark"] = error.message
            return None
        self._stack.callback(spark.close)
        return spark
