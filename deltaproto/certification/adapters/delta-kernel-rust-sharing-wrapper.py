# /// script
# dependencies = ["delta-kernel-rust-sharing-wrapper=={version}", "pyarrow"]
# ///
"""Delta Kernel in Rust, through the wrapper that delta-sharing uses to read tables."""

import importlib.metadata
import pathlib

import pyarrow as pa
from delta_kernel_rust_sharing_wrapper import PythonInterface, ScanBuilder, Table
from kit import NotOffered


def release():
    return importlib.metadata.version("delta-kernel-rust-sharing-wrapper")


def _scan(table):
    location = pathlib.Path(table).as_uri() + "/"
    interface = PythonInterface(location)
    snapshot = Table(location).snapshot(interface)
    return ScanBuilder(snapshot).build().execute(interface)


def rows(table, version=None, where=None):
    if version is not None or where is not None:
        raise NotOffered
    found = _scan(table)
    return pa.Table.from_batches(found, schema=found.schema)


def schema(table):
    return [(field.name, str(field.type)) for field in _scan(table).schema]
