"""Hangs, floods both streams, dies, takes all memory, or panics: each operation another way."""

import os
import signal
import sys
import time


class PanicException(BaseException):
    pass


def rows(table, version=None, where=None):
    time.sleep(3600)


def count(table):
    while True:
        print("so many words " * 1000)
        sys.stderr.write("and as many here " * 1000)


def total(table, column):
    os.kill(os.getpid(), signal.SIGSEGV)


def schema(table):
    raise PanicException("index out of bounds")


def append(table, rows):
    os._exit(7)


def delete(table, where):
    os.write(1, b"this goes to standard error\n")
    raise ValueError("no")


def configure(table, key, value):
    log = os.path.join(table, "_delta_log")
    newest = max(name for name in os.listdir(log) if name.endswith(".json"))
    name = f"{int(newest[:20]) + 1:020d}.json"
    with open(os.path.join(log, name), "w") as file:
        file.write('{"commitInfo":{}}')
    time.sleep(3600)


def optimize(table):
    _ = b"x" * (600 * 1024**2)
    time.sleep(30)
