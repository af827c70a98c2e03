"""What a measurement was made on and with, without names or paths of the machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from deltaproto import __version__

_PACKAGES = ("deltalake", "pyspark", "delta-spark", "pyarrow", "obstore", "msgspec")
_KERNEL = Path(__file__).parent / "kernel_inspect" / "Cargo.lock"


def environment() -> list[tuple[str, str]]:
    """Date, machine and versions, as the rows of a table."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return [
        ("measured", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("memory", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"),
        ("system", _system()),
        ("load before, of 1, 5 and 15 minutes", load),
        ("deltaproto", __version__),
        ("Python", platform.python_version()),
        *((name, _installed(name)) for name in _PACKAGES),
        ("Java", _said("java", "-version", r'version "([^"]+)"')),
        ("rustc", _said("rustc", "--version", r"rustc (\S+)")),
        ("delta_kernel", _kernel()),
    ]


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        name = platform.system()
    kernel = re.match(r"\d+\.\d+", platform.release())
    return f"{name}, {platform.system()} {kernel[0] if kernel else ''}".rstrip()


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _said(program: str, flag: str, pattern: str) -> str:
    if shutil.which(program) is None:
        return "not installed"
    ran = subprocess.run([program, flag], capture_output=True, text=True, check=False)
    found = re.search(pattern, ran.stdout + ran.stderr)
    return found[1] if found else "unknown"


def _kernel() -> str:
    """The version that is locked, and so the one that is built."""
    try:
        found = re.search(r'name = "delta_kernel"\nversion = "([^"]+)"', _KERNEL.read_text())
    except OSError:
        found = None
    return found[1] if found else "unknown"
