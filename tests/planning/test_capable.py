"""Plans that an engine cannot carry out at all."""

from __future__ import annotations

import pytest

from deltaproto.planning.engine import parse_engine
from deltaproto.planning.engine_support import find_engine_blockers
from tests.planning.test_classics import carrying, given


@pytest.mark.parametrize(
    ("engine", "feature", "remedy"),
    [
        # VARIANT came with Delta 4.0 and Databricks Runtime 15.4 LTS.
        ("delta-spark@3.1.0", "variantType", "--engine delta-spark@4.0.0 or later"),
        ("databricks@14.3", "variantType", "--engine databricks@15.4 or later"),
        ("delta-spark@4.4.0", "nosuch", "use an engine that supports the feature"),
        ("databricks@14.3", "nosuch", None),
        ("delta-spark@4.4.0", "variantType", None),
        ("databricks@16.4", "variantType", None),
    ],
)
def test_a_feature_that_the_engine_does_not_know(
    engine: str, feature: str, remedy: str | None
) -> None:
    table = given(carrying(feature))._replace(engine=parse_engine(engine))
    found = [*find_engine_blockers(table)]
    if remedy is None:
        assert found == []
        return
    (blocked,) = found
    assert blocked.feature == feature
    assert blocked.error == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert blocked.remedy == remedy
    assert engine in blocked.reason


@pytest.mark.parametrize("by_name", [True, False])
def test_a_table_of_a_catalog_is_changed_by_name_alone(by_name: bool) -> None:
    table = given(carrying("catalogManaged"))
    table = table._replace(needs=table.needs._replace(by_name=by_name))
    found = [*find_engine_blockers(table)]
    assert bool(found) is not by_name
    for blocked in found:
        assert blocked.feature == "catalogManaged"
        assert blocked.error == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"
        assert blocked.remedy == "use the table's catalog name"
