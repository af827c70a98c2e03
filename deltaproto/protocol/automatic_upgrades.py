"""Databricks automatic upgrades: features that Databricks turns on without a user's statement.

Only managed tables of Unity Catalog are affected. Nothing here is measured: every record cites a
document and the day on which it was read.
"""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple


class SourceDocument(NamedTuple):
    """A page of documentation."""

    title: str
    url: str
    read_on: date


AUTOMATIC_UPGRADES = SourceDocument(
    "Automatic upgrades",
    "https://docs.databricks.com/aws/en/tables/automatic-upgrades",
    date(2026, 11, 26),
)
FEATURE_ENABLEMENT = SourceDocument(
    "Automatic feature enablement",
    "https://learn.microsoft.com/azure/databricks/tables/automatic-feature-enablement",
    date(2026, 11, 26),
)
"""an earlier edition of the same page, with more features and without dates"""


class TableAge(StrEnum):
    """The tables of a rule."""

    EXISTING = "existing"
    NEW = "new"
    """tables that are created after the start"""


class Stage(StrEnum):
    """The release stage of the upgrade, which determines the observation window."""

    GENERAL = "generally available"
    PREVIEW = "public preview"
    """existing schemas only if the account is enrolled"""


WINDOW_DAYS = {Stage.GENERAL: 100, Stage.PREVIEW: 50}
"""days before an upgrade in which only verified workloads may have accessed an existing table"""
ACTIVE_DAYS = 30
"""days without any access after which a table is skipped as inactive"""
ROLLOUT_DAYS = 183
"""days from the start until an upgrade has reached all customers: about six months"""
MANAGED_TYPES = frozenset({"managed", "catalog-managed"})
"""types of affected tables, as Unity Catalog names them"""
UNAFFECTED_TYPES = frozenset({"external", "foreign"})
"""types of tables that are certainly not affected; for other types it is unknown"""
UNITY_CATALOG = "uc"
"""the scheme of Unity Catalog's addresses"""


class AutomaticUpgrade(NamedTuple):
    """A rule: one feature, and the tables on which it may be turned on."""

    id: str
    feature: str
    """the feature's name in the protocol"""
    tables: TableAge
    runtime: str
    """the lowest Databricks Runtime whose accesses are verified, that is, compatible"""
    stage: Stage
    start: date | None
    """first day; of existing tables, the first day of the documented month; None: not documented"""
    document: SourceDocument
    setting: tuple[str, str] | None = None
    """the property and value that turn the feature off; None if there is no such property.
    None of the documents says that automatic upgrades respect it."""

    @property
    def window(self) -> timedelta:
        """The observation window; new tables have none."""
        return timedelta(days=WINDOW_DAYS[self.stage] if self.tables is TableAge.EXISTING else 0)

    @property
    def rolled_out(self) -> date | None:
        """The day by which the upgrade has reached all customers; None: not documented."""
        return None if self.start is None else self.start + timedelta(days=ROLLOUT_DAYS)


RULES = (
    AutomaticUpgrade(
        "checkpoint-v2-existing",
        "v2Checkpoint",
        TableAge.EXISTING,
        "13.3",
        Stage.GENERAL,
        date(2026, 7, 1),
        AUTOMATIC_UPGRADES,
        ("delta.checkpointPolicy", "classic"),
    ),
    AutomaticUpgrade(
        "row-tracking-existing",
        "rowTracking",
        TableAge.EXISTING,
        "14.1",
        Stage.PREVIEW,
        None,
        FEATURE_ENABLEMENT,
        ("delta.enableRowTracking", "false"),
    ),
    AutomaticUpgrade(
        "column-mapping-existing",
        "columnMapping",
        TableAge.EXISTING,
        "15.3",
        Stage.PREVIEW,
        None,
        FEATURE_ENABLEMENT,
        ("delta.columnMapping.mode", "none"),
    ),
    AutomaticUpgrade(
        "catalog-managed-existing",
        "catalogManaged",
        TableAge.EXISTING,
        "16.4",
        Stage.PREVIEW,
        None,
        FEATURE_ENABLEMENT,
    ),
    AutomaticUpgrade(
        "checkpoint-v2-new",
        "v2Checkpoint",
        TableAge.NEW,
        "13.3",
        Stage.GENERAL,
        date(2026, 5, 19),
        AUTOMATIC_UPGRADES,
        ("delta.checkpointPolicy", "classic"),
    ),
    AutomaticUpgrade(
        "liquid-clustering-new",
        "clustering",
        TableAge.NEW,
        "15.4",
        Stage.GENERAL,
        date(2026, 5, 22),
        AUTOMATIC_UPGRADES,
    ),
)
"""every rule. Automatic liquid clustering is never added to an existing table."""
CONDITIONS = (
    "an existing table is upgraded only after an observation window "
    f"({WINDOW_DAYS[Stage.GENERAL]} days; {WINDOW_DAYS[Stage.PREVIEW]} in preview) in which only "
    "Databricks compute on a runtime that knows the feature accessed it through Unity Catalog; "
    "newer wording counts accesses to any table of its schema",
    f"a table without any access in the last {ACTIVE_DAYS} days is skipped",
    "a new table in a new schema gets all features at once",
    "clients that Unity Catalog does not see, or that come back less often than the window, do "
    "not stop an upgrade",
)
"""the conditions of all rules, as text"""
