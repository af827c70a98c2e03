"""Engines as people write them."""

from __future__ import annotations

import pytest

from deltaproto.errors import UsageError
from deltaproto.planning.engine import NEWEST_DELTA_SPARK, NEWEST_RUNTIME, parse_engine


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("delta-spark@4.4", "delta-spark@4.4"),
        (" delta-spark@3.0.0 ", "delta-spark@3.0.0"),
        ("databricks@16.4", "databricks@16.4"),
        ("databricks@14.1", "databricks@14.1"),
        ("delta-spark", f"delta-spark@{NEWEST_DELTA_SPARK}"),
        ("databricks", f"databricks@{NEWEST_RUNTIME}"),
    ],
)
def test_what_is_understood(text: str, engine: str) -> None:
    assert str(parse_engine(text)) == engine


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("spark@4.0", "unknown engine spark@4.0", "use delta-spark@4.4.0 or databricks@16.4"),
        ("delta-spark@", "unknown engine delta-spark@", "use delta-spark@4.4.0 or databricks@16.4"),
        ("", "unknown engine ", "use delta-spark@4.4.0 or databricks@16.4"),
        (
            "delta-spark@x",
            "x is not a version of delta-spark",
            f"for example delta-spark@{NEWEST_DELTA_SPARK}",
        ),
        (
            "databricks@x",
            "x is not a version of databricks",
            f"for example databricks@{NEWEST_RUNTIME}",
        ),
        (
            "delta-spark@2.4",
            "delta-spark@2.4 is older than DROP FEATURE",
            "use delta-spark@3.0 or later",
        ),
        (
            "databricks@13.3",
            "databricks@13.3 is older than DROP FEATURE",
            "use databricks@14.1 or later",
        ),
    ],
)
def test_what_is_not(text: str, told: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_engine(text)
    assert (raised.value.message, raised.value.hint) == (told, hint)


@pytest.mark.parametrize(
    ("engine", "fast", "checkpoint", "normalises"),
    [
        ("delta-spark@3.1.0", False, False, False),
        ("delta-spark@3.2.0", False, True, False),
        ("delta-spark@3.3.0", False, True, True),
        ("delta-spark@4.0.0", True, True, True),
        ("databricks@15.4", False, True, False),
        ("databricks@16.0", False, True, True),
        ("databricks@16.2", False, True, True),
        ("databricks@16.3", True, True, True),
    ],
)
def test_what_came_when(engine: str, fast: bool, checkpoint: bool, normalises: bool) -> None:
    found = parse_engine(engine)
    assert found.fast_drop is fast
    assert found.leaves_checkpoint is checkpoint
    assert found.normalises is normalises
