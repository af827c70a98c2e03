"""How much is measured: what is quoted, and a try-out that takes a minute or two."""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    """Sizes and rounds of `make bench`."""

    quick: bool
    small: int
    """rounds on the small table"""
    rounds: int
    """of each size of a growth curve"""
    slow: int
    """rounds of a side that takes many seconds"""
    commits: tuple[int, ...]
    files: tuple[int, ...]
    tables: tuple[int, ...]
    by_spark: int
    """tables that Spark still reads one after the other"""
    saved: int
    """tables of a saved inspection"""
    pairs: int
    """rounds on saved inspections"""


FULL = Scale(
    quick=False,
    small=15,
    rounds=5,
    slow=3,
    commits=(1, 10, 100, 1_000, 10_000),
    files=(1_000, 10_000, 100_000, 1_000_000),
    tables=(10, 100, 1_000, 10_000),
    by_spark=100,
    saved=5_000,
    pairs=3,
)
QUICK = Scale(
    quick=True,
    small=3,
    rounds=2,
    slow=1,
    commits=(1, 10, 100),
    files=(1_000, 10_000),
    tables=(10, 100, 300),
    by_spark=10,
    saved=300,
    pairs=2,
)


class FleetScale(NamedTuple):
    """Sizes and rounds of `make bench-fleet`."""

    quick: bool
    tables: int
    """of the fleet that is scanned, and of the one that is reported on"""
    rounds: int
    counts: tuple[int, int]
    """tables of two fleets, of which the larger must not take more memory"""
    commits: tuple[int, ...]
    files: tuple[int, ...]
    by_cores: int
    """tables for Spark with one core and with two"""
    on_store: int
    """tables on an object store"""
    asked: int
    """tables in an inventory that is asked"""
    planned: int
    """tables in an inventory that is planned for a policy"""


FULL_FLEETS = FleetScale(
    quick=False,
    tables=10_000,
    rounds=5,
    counts=(2_000, 8_000),
    commits=(10, 100, 1_000),
    files=(10, 1_000, 50_000),
    by_cores=6_000,
    on_store=400,
    asked=1_000_000,
    planned=100_000,
)
QUICK_FLEETS = FleetScale(
    quick=True,
    tables=300,
    rounds=2,
    counts=(100, 200),
    commits=(10, 50),
    files=(10, 100),
    by_cores=200,
    on_store=40,
    asked=2_000,
    planned=600,
)
