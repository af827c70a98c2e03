"""Which Spark catalogs are Unity Catalog."""

from __future__ import annotations

import pytest

from deltaproto.fleet.catalogs import catalog_kind
from deltaproto.tables.session import DATABRICKS_RUNTIME, DELTA_CATALOG

RUNTIME = {DATABRICKS_RUNTIME: "16.4.x-scala2.12"}
UNITY = "io.unitycatalog.spark.UCSingleCatalog"


@pytest.mark.parametrize(
    ("catalog", "settings", "kind"),
    [
        ("spark_catalog", {}, "spark"),
        ("spark_catalog", {"spark.sql.catalog.spark_catalog": DELTA_CATALOG}, "spark"),
        ("spark_catalog", {"spark.sql.catalog.spark_catalog": UNITY}, "uc"),
        ("main", {"spark.sql.catalog.main": UNITY}, "uc"),
        ("main", RUNTIME, "uc"),
        ("hive_metastore", RUNTIME, "hive"),
        ("spark_catalog", {**RUNTIME, "spark.sql.catalog.spark_catalog": DELTA_CATALOG}, "hive"),
        # Nobody knows what these list.
        ("spark_catalog", {"spark.sql.catalog.spark_catalog": "com.example.Catalog"}, None),
        ("main", {"spark.sql.catalog.main": "com.example.Catalog"}, None),
        ("main", {}, None),
    ],
)
def test_the_kind_of_a_catalog(catalog: str, settings: dict[str, str], kind: str | None) -> None:
    assert catalog_kind(catalog, settings.get) == kind
