"""Engines as people write them."""

from __future__ import annotations

import re

import pytest

from deltaproto.errors import UsageError
from deltaproto.planning.engine import (
    NEWEST_DELTA_SPARK,
    NEWEST_RUNTIME,
    EngineName,
    parse_engine,
)
from deltaproto.protocol.feature import FeatureStatus
from deltaproto.protocol.feature_catalog import all_features
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import given as table_of


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
    ("engine", "fast", "checkpoint", "normalizes"),
    [
        ("delta-spark@3.1.0", False, False, False),
        ("delta-spark@3.2.0", False, True, False),
        ("delta-spark@3.3.0", False, True, True),
        ("delta-spark@4.0.0", True, True, True),
        ("databricks@15.4", False, True, False),
        ("databricks@16.0", False, True, False),
        ("databricks@16.1", False, True, True),
        ("databricks@16.3", True, True, True),
    ],
)
def test_what_came_when(engine: str, fast: bool, checkpoint: bool, normalizes: bool) -> None:
    found = parse_engine(engine)
    assert found.fast_drop is fast
    assert found.leaves_checkpoint is checkpoint
    assert found.normalizes is normalizes


@pytest.mark.parametrize("engine", ["delta-spark@3.2.0", "databricks@15.4"])
def test_the_suggested_engine_knows_the_feature(engine: str) -> None:
    """Each suggestion is a later version, or another engine that knows the feature."""
    here = parse_engine(engine)
    for feature in all_features():
        if here.knows(feature) is not False:
            continue
        suggestion = here.instead(feature)
        found = re.match(r"--engine (\S+) or later$", suggestion)
        since = feature.since.delta_spark if here.name is EngineName.DELTA_SPARK else None
        if feature.status is FeatureStatus.RETIRED:
            assert suggestion == "use an older engine that supported the feature"
        elif found is None:
            assert suggestion == "use an engine that supports the feature"
            assert (since, feature.since.databricks) == (None, None), feature.name
        else:
            there = parse_engine(found[1])
            assert there.knows(feature) is True, feature.name
            if since is not None:
                assert str(there) == f"{EngineName.DELTA_SPARK}@{since}"


def test_a_newer_engine_than_every_known_one_is_a_warning() -> None:
    table = table_of(Protocol(1, 2))._replace(warnings=("first",))
    for text, newer in (
        ("delta-spark@4.4.9", False),
        ("delta-spark@9.0.0", True),
        ("databricks@19", False),
        ("databricks@20", True),
    ):
        found = table.executed_by(parse_engine(text), {"a": "b"})
        warning = (
            f"{text} is newer than every known version: the plan assumes that it behaves the same "
            "way."
        )
        assert found.warnings == (("first", warning) if newer else ("first",))
        assert (str(found.engine), found.session) == (text, {"a": "b"})
