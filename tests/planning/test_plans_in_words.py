"""Whole plans, word by word: goals for tables of every kind.

That the steps do what they say is what the oracle tests show on Spark; nothing of a plan, texts
least of all, is to change unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from syrupy.assertion import SnapshotAssertion

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.auto_enable import features_of_columns
from deltaproto.planning.predict.schema import Array, Atomic, Column, Struct
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput, UpgradeRequest
from deltaproto.planning.search.cost import Files
from deltaproto.planning.search.goals import HistoryChoice, TableClient
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import carrying, given
from tests.support.golden import Text
from tests.support.protocols import changed

ON = {
    "allowColumnDefaults": {},
    "appendOnly": {"delta.appendOnly": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
    "checkConstraints": {"delta.constraints.c": "id > 0", "delta.constraints.D": "s <> ''"},
    "columnMapping": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "icebergCompatV1": {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
    "icebergCompatV2": {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "5"},
    "checkpointProtection": {"delta.requireCheckpointProtectionBeforeVersion": "3"},
}
USED = {
    "deletionVectors": {"vectors": True},
    "typeWidening": {"widened": True},
    "v2Checkpoint": {"v2_checkpoint": True, "to_checkpoint": 2},
    "rowTracking": {"row_ids": True, "domains": ("delta.rowTracking",)},
    "clustering": {"clustering": ("id",), "domains": ("delta.clustering",)},
    "columnMapping": {"unmappable": ()},
}
COLUMNS = Struct(
    (
        Column("id", Atomic("long"), nullable=False),
        Column("s", Atomic("string")),
        Column("a", Array(Struct((Column("x", Atomic("integer")),)))),
        Column("g", Atomic("long"), generated="id * 2"),
    )
)
PLAIN = Struct(
    tuple(column._replace(nullable=True) for column in COLUMNS.columns if column.generated is None)
)
"""without those that a protocol has to list"""
UNGENERATED = Struct(tuple(column._replace(generated=None) for column in COLUMNS.columns))
"""with those alone that need no more than (1,2)"""
FILES = Files(10, 1000, 3, 300, 5, 500)
NAMES = [f.name for f in feature_catalog.all_features() if feature_catalog.is_registered(f.name)]
CLIENTS = ("deltalake/engine@0.25.0", "delta-spark@3.1.0", "databricks-runtime@12.2")


class Case(NamedTuple):
    """A table and what is asked of it."""

    given: PlanInput
    asked: UpgradeRequest | DowngradeRequest


def table(
    *names: str, engine: str = "delta-spark@4.4.0", columns: bool = True, **more: Any
) -> PlanInput:
    """A table on which features are in use, as far as they can be."""
    configuration = {key: value for name in names for key, value in ON.get(name, {}).items()}
    seen = {key: value for name in names for key, value in USED.get(name, {}).items()}
    traced = frozenset(names) - {"clustering"}
    found = given(carrying(*names), configuration, **{"traced": traced, **seen, **more})
    if columns:
        protocol = found.table.protocol
        unlisted = bool(features_of_columns(COLUMNS, protocol) - protocol.supported)
        plain = found.table.with_schema(PLAIN if unlisted else COLUMNS)
        found = found._replace(table=plain._replace(widened=found.table.widened))
    return found._replace(files=FILES, engine=parse_engine(engine))


def use(client: str, *access: Access) -> TableClient:
    return TableClient(ClientCatalog().resolve(client), access or (Access.READ, Access.APPEND))


def using(case: PlanInput, *access: Access) -> PlanInput:
    """With clients that use it."""
    resolved = (ClientCatalog().resolve(name) for name in CLIENTS)
    clients = tuple(
        TableClient(each, access or (Access.READ, Access.DML), "etl") for each in resolved
    )
    return case._replace(clients=clients)


EVERYTHING = table(
    *("columnMapping", "deletionVectors", "rowTracking", "typeWidening", "clustering"),
    *("changeDataFeed", "checkConstraints", "inCommitTimestamp", "v2Checkpoint"),
    *("generatedColumns", "invariants"),
    hours_left={"deletionVectors": 5.0, "columnMapping": 30.5},
)
LITTLE = table(
    "deletionVectors", "columnMapping", traced=None, aged=None, vectors=None, columns=False
)
AGED = table(
    "deletionVectors", traced=frozenset(), aged=frozenset({"deletionVectors"}), vectors=False
)
OPEN = AGED._replace(table=AGED.table._replace(aged_in_newest_run=frozenset({"deletionVectors"})))
LEGACY = using(given(Protocol(2, 6), ON["columnMapping"])._replace(files=FILES))
BY_ID = {"delta.columnMapping.mode": "id"}
VARIANT, BAD_NAME = Column("v", Atomic("variant")), Column("a b", Atomic("long"))


def _with(*columns: Column) -> dict[str, Any]:
    """What is seen of a table with these columns."""
    seen = Table(Protocol(1, 2)).with_schema(Struct(columns))
    return {name: getattr(seen, name) for name in ("schema", "unmappable", "geospatial")}


ODD = table(
    *("variantType", "timestampNtz", "allowColumnDefaults", "identityColumns", "clustering"),
    columns=False,
    **_with(
        VARIANT,
        Column("t", Atomic("timestamp_ntz"), nullable=False),
        Column("d", Atomic("long"), default="3"),
        Column("dt", Atomic("timestamp_ntz"), default="null"),
        Column("i", Atomic("long"), identity=True),
        Column("u", Atomic("timestamp")),
    ),
)
NAMED = table(
    "columnMapping",
    columns=False,
    **_with(BAD_NAME, Column("x(y)", Atomic("date")), Column("d e", Atomic("long"), default="3")),
)
OWN = """alter table t add column c int; update t set s = 'x'; delete from t;
    alter table u set tblproperties ('delta.enableDeletionVectors' = 'true'); optimize t"""

REFUSED = "alter table t add column n timestamp_ntz"


def cases() -> dict[str, Case]:
    drops = {f"drop-{name}": Case(table(name), DowngradeRequest(drop=(name,))) for name in NAMES}
    enables = {
        f"enable-{name}": Case(
            given(Protocol(1, 2), schema=UNGENERATED),
            UpgradeRequest(
                enable=(FeatureToEnable(name, None, ("id",) if name == "clustering" else ()),)
            ),
        )
        for name in NAMES
    }
    vectors, mapping = table("deletionVectors"), table("columnMapping", "deletionVectors")
    downgrades = {
        "truncate": (
            vectors,
            DowngradeRequest(drop=("deletionVectors",), history=HistoryChoice.TRUNCATE),
        ),
        "keep": (vectors, DowngradeRequest(drop=("deletionVectors",), history=HistoryChoice.KEEP)),
        "both": (mapping, DowngradeRequest(drop=("deletionVectors", "columnMapping"))),
        "lowest": (EVERYTHING, DowngradeRequest(lowest=True)),
        "lowest-enabled": (using(EVERYTHING), DowngradeRequest(lowest=True, include_enabled=True)),
        "everything-to-1-2": (using(EVERYTHING, Access.STREAM), DowngradeRequest(to=(1, 2))),
        "everything-to-2-5": (EVERYTHING, DowngradeRequest(to=(2, 5))),
        "everything-rewritten": (EVERYTHING, DowngradeRequest(to=(1, 2), rewrite=True)),
        "little-known": (LITTLE, DowngradeRequest(to=(1, 2))),
        "aged": (AGED, DowngradeRequest(to=(1, 2))),
        "open": (OPEN, DowngradeRequest(to=(1, 2))),
        "legacy": (LEGACY, DowngradeRequest(to=(1, 4))),
        "legacy-drop": (LEGACY, DowngradeRequest(drop=("columnMapping", "identityColumns"))),
        "nothing": (vectors, DowngradeRequest(to=(3, 7))),
        "unknown": (vectors, DowngradeRequest(drop=("nosuch",))),
        "absent": (vectors, DowngradeRequest(drop=("rowTracking",))),
        "protected": (table("checkpointProtection"), DowngradeRequest(to=(1, 2))),
        "for-delta-rs": (mapping, DowngradeRequest(clients=(use("deltalake/engine@0.25.0"),))),
        "for-readers": (
            EVERYTHING,
            DowngradeRequest(clients=(use("delta-spark@2.4.0", Access.READ),)),
        ),
        "partitioned-rewritten": (
            table("clustering", "columnMapping", partition_columns=("s",), clustering=()),
            DowngradeRequest(drop=("clustering", "columnMapping"), rewrite=True),
        ),
        "by-name-rewritten": (
            table("variantType")._replace(sql="`c`.`s`.`t 1`", name="c.s.t 1"),
            DowngradeRequest(drop=("variantType",), rewrite=True),
        ),
        "cast-rewritten": (ODD, DowngradeRequest(to=(1, 2), rewrite=True)),
        "cast-one-rewritten": (ODD, DowngradeRequest(drop=("timestampNtz",), rewrite=True)),
        "names-rewritten": (NAMED, DowngradeRequest(drop=("columnMapping",), rewrite=True)),
        "nested-rewritten": (
            table("variantType", columns=False, **_with(Column("st", Struct((VARIANT,))))),
            DowngradeRequest(drop=("variantType",), rewrite=True),
        ),
        "nested-names-rewritten": (
            table("columnMapping", columns=False, **_with(Column("st", Struct((BAD_NAME,))))),
            DowngradeRequest(drop=("columnMapping",), rewrite=True),
        ),
        "tracked-suspended": (
            table("rowTracking", row_ids=None)._replace(complete=False, warnings=("noticed",)),
            DowngradeRequest(to=(1, 2)),
        ),
        "geospatial": (
            table("geospatial", columns=False, **_with(Column("g", Atomic("geometry(4326)")))),
            DowngradeRequest(drop=("geospatial",)),
        ),
        "by-id": (
            table("columnMapping")._replace(
                table=table("columnMapping").table.with_properties(BY_ID)
            ),
            DowngradeRequest(drop=("columnMapping",)),
        ),
        "domains": (
            table("domainMetadata", domains=("a.b", "c")),
            DowngradeRequest(drop=("domainMetadata",)),
        ),
        "suspended": (
            given(
                carrying("rowTracking", "domainMetadata"),
                {"delta.rowTrackingSuspended": "true"},
                domains=("delta.rowTracking",),
            ),
            DowngradeRequest(to=(1, 2)),
        ),
        "coordinated": (
            given(
                carrying("coordinatedCommits-preview"),
                {"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"},
            ),
            DowngradeRequest(drop=("coordinatedCommits-preview",)),
        ),
        "lowest-protected": (
            table("checkpointProtection", "deletionVectors"),
            DowngradeRequest(lowest=True, history=HistoryChoice.KEEP),
        ),
        "lowest-required": (
            given(carrying("icebergCompatV2", "columnMapping"), ON["icebergCompatV2"]),
            DowngradeRequest(lowest=True),
        ),
        "lowest-untold": (
            LITTLE._replace(
                states=tuple(each._replace(present=None, enabled=None) for each in LITTLE.states)
            ),
            DowngradeRequest(lowest=True),
        ),
        "several-clients": (
            using(EVERYTHING),
            DowngradeRequest(
                clients=(
                    use("deltalake/engine@0.25.0", Access.READ, Access.APPEND, Access.DML),
                    use("delta-spark@2.4.0"),
                )
            ),
        ),
        "no-legacy-pair": (table("allowColumnDefaults"), DowngradeRequest(to=(1, 6))),
        "keep-protected": (
            table("checkpointProtection"),
            DowngradeRequest(drop=("checkpointProtection",), history=HistoryChoice.KEEP),
        ),
        "retention": (
            given(
                carrying("deletionVectors"),
                ON["deletionVectors"]
                | {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 3 days"},
                traced=frozenset({"deletionVectors"}),
            ),
            DowngradeRequest(to=(1, 2)),
        ),
    }
    for engine in ("delta-spark@3.1.0", "delta-spark@3.2.0", "databricks@15.4", "databricks@17.3"):
        for name in ("deletionVectors", "columnMapping", "rowTracking", "v2Checkpoint"):
            asked = DowngradeRequest(drop=(name,))
            downgrades[f"{engine.replace('@', '-')}-{name}"] = table(name, engine=engine), asked
    plain = using(given(Protocol(1, 2), schema=UNGENERATED)._replace(files=FILES))
    generating = using(given(Protocol(1, 4), schema=COLUMNS)._replace(files=FILES))
    keep = tuple(TableClient(ClientCatalog().resolve(c), (Access.READ,)) for c in CLIENTS)
    upgrades = {
        "to-1-4": (plain, UpgradeRequest(to=(1, 4))),
        "to-2-5": (plain, UpgradeRequest(to=(2, 5))),
        "to-3-7": (plain, UpgradeRequest(to=(3, 7))),
        "to-1-9": (plain, UpgradeRequest(to=(1, 9))),
        "isolation": (plain, UpgradeRequest(isolation="Serializable")),
        "isolation-unknown": (plain, UpgradeRequest(isolation="Snapshot")),
        "several": (
            plain,
            UpgradeRequest(
                enable=(FeatureToEnable("rowTracking"), FeatureToEnable("columnMapping", "id")),
                set={"delta.enableTypeWidening": "true", "team": "a"},
                isolation="WriteSerializable",
            ),
        ),
        "set-refused": (plain, UpgradeRequest(set={"delta.columnMapping.mode": "nosuch"})),
        "set-iceberg": (plain, UpgradeRequest(set={"delta.enableIcebergCompatV2": "true"})),
        "iceberg-v3": (mapping, UpgradeRequest(enable=(FeatureToEnable("icebergCompatV3"),))),
        "keep": (plain, UpgradeRequest(enable=(FeatureToEnable("deletionVectors"),), keep=keep)),
        "own": (plain, UpgradeRequest(statements=tuple(parse_script(OWN)))),
        "own-refused": (plain, UpgradeRequest(statements=tuple(parse_script(f"{OWN}; {REFUSED}")))),
        "unknown": (plain, UpgradeRequest(enable=(FeatureToEnable("nosuch"),))),
        "own-by-path": (
            generating._replace(sql="delta.`/t`"),
            UpgradeRequest(
                statements=tuple(parse_script("insert into delta.`/t/` (id) values (1); " + OWN))
            ),
        ),
        "own-elsewhere": (
            plain,
            UpgradeRequest(
                statements=tuple(parse_script("delete from u; delete from u; delete from c.s.T"))
            ),
        ),
        "own-after-refused": (
            plain,
            UpgradeRequest(statements=tuple(parse_script(f"{REFUSED}; {OWN}"))),
        ),
        "to-lower": (LEGACY, UpgradeRequest(to=(1, 2))),
        "to-the-same": (LEGACY, UpgradeRequest(to=(2, 6))),
        "isolation-as-it-is": (
            given(Protocol(1, 2), {"delta.isolationLevel": "serializable"}),
            UpgradeRequest(isolation="SERIALIZABLE"),
        ),
        "set-but-not-listed": (
            given(Protocol(1, 2), ON["deletionVectors"]),
            UpgradeRequest(enable=(FeatureToEnable("deletionVectors"),)),
        ),
        "clustering-without": (plain, UpgradeRequest(enable=(FeatureToEnable("clustering"),))),
        "gaps": (given(Protocol(1, 3)), UpgradeRequest(set=ON["deletionVectors"])),
        "legacy": (
            LEGACY,
            UpgradeRequest(
                enable=(FeatureToEnable("deletionVectors"), FeatureToEnable("v2Checkpoint"))
            ),
        ),
        "on-3.1.0": (
            plain._replace(engine=parse_engine("delta-spark@3.1.0")),
            UpgradeRequest(
                enable=(
                    FeatureToEnable("rowTracking"),
                    FeatureToEnable("clustering", None, ("id",)),
                )
            ),
        ),
        "on-databricks": (
            plain._replace(engine=parse_engine("databricks@15.4")),
            UpgradeRequest(
                enable=(FeatureToEnable("rowTracking"), FeatureToEnable("deletionVectors"))
            ),
        ),
    }
    return {
        **drops,
        **enables,
        **{f"down-{name}": Case(*case) for name, case in downgrades.items()},
        **{f"up-{name}": Case(*case) for name, case in upgrades.items()},
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_the_whole_plan(name: str, snapshot: SnapshotAssertion) -> None:
    given, asked = CASES[name]
    if isinstance(asked, UpgradeRequest):
        plan = plan_upgrade(given, asked)
    else:
        plan = plan_downgrade(given, asked)
    assert "\n".join(told(plan)) + "\n" == snapshot(extension_class=Text)


def told(plan: Plan) -> Iterator[str]:
    yield f"{plan.command}: {plan.goal_text} {dict(plan.goal)}, by {plan.engine}"
    yield changed(plan.protocol_before, plan.protocol_after) + ", incomplete" * (not plan.complete)
    yield f"{plan.cost}, no return from {plan.point_of_no_return}"
    for step in plan.steps:
        yield from _step(step)
    for other in plan.alternatives:
        yield f"or {other.name}, reaches {other.reaches_goal}: {other.text}"
        yield f"    {changed(plan.protocol_before, other.protocol_after)} {other.cost}"
        yield from (f"    {each.id} {each.action} {each.sql}" for each in other.steps)
        for each in other.steps:
            if each.action == "rewrite-table" or each.action == "swap":
                yield from _step(each)
    for title, stuck in (("blocked", plan.blocked), ("kept", plan.kept)):
        yield from (f"{title}: {b.feature} {b.error}: {b.reason} | {b.remedy}" for b in stuck)
    yield from (f"warning: {text}" for text in plan.warnings)
    for change in plan.clients:
        yield (
            f"{change.client} ({change.label}) {change.access}: {change.before} -> {change.after} "
            f"{', '.join(change.because)}: {change.reason}"
        )


def _step(step: Step) -> Iterator[str]:
    yield f"{step.id} {step.action} {step.feature}{' (optional)' * step.optional}: {step.why}"
    rest = {
        "sql": step.sql,
        "commits": f"{step.operations} {step.commits}",
        "protocol": changed(step.protocol_before, step.protocol_after),
        "rewrites": tuple(step.rewrites) if step.rewrites.files != 0 else None,
        "expects": step.expects,
        "waits": (step.wait_hours, step.setting) if step.wait_hours or step.setting else None,
        "truncates": step.retention_hours if step.truncates else None,
        "undo": step.undo,
    }
    yield from (f"  {name}: {value}" for name, value in rest.items() if value is not None)
    for clash in step.clashes:
        yield f"  clash {clash.engine} {clash.loser} {clash.exception}: {clash.who} | {clash.why}"
    yield from (f"  stream {s.effect}: {s.reads} | {s.why}" for s in step.streams)
    yield from (f"  loss: {text}" for text in step.losses)
    yield from (f"  warning: {text}" for text in step.warnings)
