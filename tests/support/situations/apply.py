"""Plan files that are damaged, stale or incomplete, and gates of `apply` that do not pass."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltaproto.execution.run_log import journal_path
from deltaproto.execution.runner import EngineFacts, StatementRunner
from deltaproto.execution.verify import StatementResult
from deltaproto.planning.engine import EngineName
from deltaproto.policy.document.windows import DAYS
from tests.execution.files import changed
from tests.support.logs import Log, commit_info, metadata, protocol
from tests.support.situations.world import Words, World, situation

DELTA_SPARK = EngineFacts(EngineName.DELTA_SPARK, "4.4.0", "4.2.0", True, {})


class FakeRunner:
    """An engine that says what it is, and commits nothing unless `run` is replaced."""

    def __init__(self, facts: EngineFacts) -> None:
        self._facts = facts

    def facts(self) -> EngineFacts:
        return self._facts

    def run(self, sql: str, mark: str, progress: object = None) -> StatementResult:
        return StatementResult()


def ready(world: World, plan: str, **facts: Any) -> str:
    """The plan, with an engine that would execute it."""
    runner = FakeRunner(DELTA_SPARK._replace(**facts))
    world.patch.setattr(StatementRunner, "started", lambda _: runner)
    return plan


@situation("The plan file does not exist", "apply")
def missing(world: World) -> Words:
    return (str(world.folder / "plan.json"),)


@situation("The file is not a plan", "apply")
def no_plan(world: World) -> Words:
    return (world.saved(world.table()),)


@situation("The plan file is cut off", "apply")
def cut(world: World) -> Words:
    file = Path(world.plan())
    file.write_text(file.read_text()[:-50])
    return (str(file),)


@situation("The folder contains no plan", "apply")
def no_plans(world: World) -> Words:
    return (str(world.folder),)


@situation("The plan file was changed", "apply")
def edited(world: World) -> Words:
    file = world.plan()
    changed(file, table="other")
    return (file,)


@situation("The plan file has a member of the wrong type", "apply")
def wrong_type(world: World) -> Words:
    file = world.plan()
    changed(file, sealed=True, steps=None)
    return (file,)


@situation("A statement of the plan is not the one that its step describes", "apply")
def forged(world: World) -> Words:
    file = world.plan()
    steps = json.loads(Path(file).read_text())["steps"]
    steps[0]["sql"] = steps[0]["sql"].replace("'b'", "'c'")
    changed(file, sealed=True, steps=steps)
    return (ready(world, file),)


@situation("The plan does more than its goal asks for", "apply")
def beyond_goal(world: World) -> Words:
    table = world.table("table", protocol(3, 7, ["vacuumProtocolCheck"], ["vacuumProtocolCheck"]))
    file = world.plan(table, goal=("plan-downgrade", "--drop", "vacuumProtocolCheck"))
    goal = {**json.loads(Path(file).read_text())["goal"], "kind": "to", "reader": 3, "writer": 7}
    changed(file, sealed=True, goal=goal)
    return (ready(world, file),)


@situation("The plan file claims to undo another plan", "apply")
def undo_plan(world: World) -> Words:
    file = world.plan()
    changed(file, sealed=True, goal={"kind": "upgrade", "undo": "0" * 16, "text": ""})
    return (ready(world, file),)


@situation("A statement of the plan is on another table", "apply")
def other_table(world: World) -> Words:
    goal = ("plan-upgrade", "--sql", "DELETE FROM elsewhere.orders")
    return (ready(world, world.plan(goal=goal)),)


@situation("The plan file holds a table that could not be planned", "apply")
def unplanned(world: World) -> Words:
    return (ready(world, world.plan(world.table(), str(world.folder / "nowhere"))), "--dry-run")


@situation("A folder of `plan --out` lacks a table that could not be planned", "apply")
def not_in_folder(world: World) -> Words:
    table = world.table("table", protocol(1, 2), metadata({"delta.appendOnly": "true"}))
    (world.folder / "empty").mkdir()
    policy = world.policy('tables:\n  "**": {require_properties: {delta.appendOnly: "false"}}\n')
    words = (table, str(world.folder / "empty"), "--policy", policy, "--out")
    world.made("plan", *words, str(world.folder / "plans"), codes=(3,))
    (file,) = (world.folder / "plans").glob("table-*.json")
    ready(world, str(file))
    return (str(file.parent), "--dry-run")


@situation("The plan is blocked", "apply")
def blocked(world: World) -> Words:
    table = world.table("table", protocol(1, 7, None, ["clustering", "domainMetadata"]))
    return (world.plan(table, goal=("plan-downgrade", "--drop", "clustering")),)


@situation("The plan was made for a table that is managed by a catalog", "apply")
def managed(world: World) -> Words:
    return (ready(world, world.plan(world.catalog_managed())),)


@situation("The plan was made from an inventory without `--fresh`", "apply")
def not_fresh(world: World) -> Words:
    return (ready(world, world.plan(world.inventory(world.table()))),)


@situation("The plan was made from a saved inspection", "apply")
def from_saved(world: World) -> Words:
    return (ready(world, world.plan(world.saved(world.table()))),)


@situation("The plan was made from an older version of the table", "apply")
def from_older(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata()).commit(1, commit_info())
    return (ready(world, world.plan(world.saved(log.table, more=("--version", "0")))),)


@situation("The table no longer exists", "apply")
def gone(world: World) -> Words:
    table = world.table()
    file = world.plan(table)
    shutil.rmtree(table)
    return (ready(world, file),)


@situation("The newest commit of the table is damaged", "apply")
def corrupt(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    file = world.plan(log.table)
    log.raw(1, b"{not json\n")
    return (ready(world, file),)


def then(world: World, *actions: dict[str, Any]) -> Words:
    """A plan for a table that gets one more commit."""
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    file = world.plan(log.table)
    log.commit(1, commit_info("SET TBLPROPERTIES"), *actions)
    return (ready(world, file),)


@situation("Schema or properties changed since the plan was made", "apply")
def stale(world: World) -> Words:
    return then(world, metadata({"delta.appendOnly": "true"}))


@situation("The protocol changed since the plan was made", "apply")
def other_protocol(world: World) -> Words:
    return then(world, protocol(1, 4))


@situation(
    "The table was clustered by other columns since the plan was made, which affects its steps",
    "apply",
)
def clustered(world: World) -> Words:
    log = world.log()
    features = ["checkConstraints", "clustering", "domainMetadata"]
    log.commit(0, commit_info(), protocol(1, 7, None, features), metadata())
    file = world.plan(log.table, goal=("plan-downgrade", "--drop", "checkConstraints"))
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns": [["id"]]}'}
    log.commit(1, commit_info("CLUSTER BY"), {"domainMetadata": {**domain, "removed": False}})
    return (ready(world, file),)


@situation("The path holds a different table than the plan's", "apply")
def replaced(world: World) -> Words:
    table = world.table()
    file = world.plan(table)
    shutil.rmtree(table)
    Log(Path(table)).commit(0, commit_info(), protocol(1, 2), metadata(id="another"))
    return (ready(world, file),)


@situation("The table was rolled back to before the plan", "apply")
def rolled_back(world: World) -> Words:
    log = world.log()
    log.commit(0, commit_info(), protocol(1, 2), metadata()).commit(1, commit_info())
    file = world.plan(log.table)
    log.path(1, ".json").unlink()
    return (ready(world, file),)


@situation("Spark is not installed", "apply")
def no_spark(world: World) -> Words:
    world.patch.setitem(sys.modules, "pyspark", None)
    return (world.plan(),)


@situation("The engine's version differs from the plan's", "apply")
def engine(world: World) -> Words:
    return (ready(world, world.plan(), version="3.3.0"),)


@situation("The engine differs from the plan's", "apply")
def databricks(world: World) -> Words:
    return (ready(world, world.plan(), name=EngineName.DATABRICKS, version="16.4"),)


@situation("The engine does not report its Delta version", "apply")
def no_version(world: World) -> Words:
    return (ready(world, world.plan(), version=None), "--dry-run")


@situation("Spark has not loaded Delta's SQL extension", "apply")
def no_extension(world: World) -> Words:
    return (ready(world, world.plan(), delta=False),)


WIDEN = ("plan-upgrade", "--enable", "typeWidening")


@situation("The access of a client of the policy is not known after the plan", "apply")
def unknown_client(world: World) -> Words:
    policy = world.policy("clients: [{client: trino@9999, access: [read]}]\n")
    return (ready(world, world.plan(goal=WIDEN)), "--policy", policy, "--dry-run")


@situation("The approval of a lost access has expired", "apply")
def expired(world: World) -> Words:
    client = "client: deltalake/engine@1.6.6"
    approval = (
        f"{{{client}, access: [read], table: '**', feature: typeWidening, approver: Mary Moss, "
        "reason: moves, expires: 2026-01-01}"
    )
    policy = world.policy(f"clients: [{{{client}, access: [read]}}]\napprovals: [{approval}]\n")
    return (ready(world, world.plan(goal=WIDEN)), "--policy", policy)


@situation("No maintenance window is open", "apply")
def window(world: World) -> Words:
    day = DAYS[(datetime.now(UTC).weekday() + 3) % len(DAYS)]
    opens = f"{{days: [{day}], from: 01:00, to: 02:00}}"
    policy = world.policy(f'tables:\n  "**": {{maintenance_windows: [{opens}]}}\n')
    return (ready(world, world.plan()), "--policy", policy, "--dry-run")


@situation("The policy has an empty list of maintenance windows for a table", "apply")
def no_window(world: World) -> Words:
    policy = world.policy('tables:\n  "**": {maintenance_windows: []}\n')
    return (ready(world, world.plan()), "--policy", policy, "--dry-run")


@situation("A step cannot be reversed", "apply")
def irreversible(world: World) -> Words:
    features = ["deletionVectors"]
    table = world.table("table", protocol(3, 7, features, features))
    goal = ("plan-downgrade", "--drop", *features, "--history", "truncate")
    return (ready(world, world.plan(table, goal=goal)), "--dry-run")


@situation("Confirmation is not possible", "apply")
def nobody(world: World) -> list[Words]:
    world.stdin = ""
    return [("apply", ready(world, world.plan()))]


def journal(world: World, **event: Any) -> Words:
    """A plan with a journal that holds this event."""
    file = world.plan()
    plan_id = json.loads(Path(file).read_text())["plan_id"]
    path = journal_path(str(world.folder / ".deltaproto"), plan_id)
    path.parent.mkdir()
    path.write_text(json.dumps({"plan": plan_id, **event}) + "\n")
    return (ready(world, file),)


@situation("The journal is damaged", "apply")
def damaged_journal(world: World) -> Words:
    return journal(world, event="done")


@situation("The journal is that of another plan", "apply")
def other_journal(world: World) -> Words:
    return journal(world, event="begin", plan="0123456789abcdef")


@situation("The journal has more steps than the plan", "apply")
def long_journal(world: World) -> Words:
    stored = {"minReaderVersion": 1, "minWriterVersion": 2}
    done = {"steps_done": 9, "at": 0, "early": [], "version": 0}
    return journal(world, event="done", protocol=stored, metadata=None, **done)


@situation("The journal cannot be written", "apply")
def no_journal(world: World) -> Words:
    return (ready(world, world.plan()), "--journal", "/dev/null/journals")


@situation("The audit log cannot be opened", "apply")
def no_audit(world: World) -> Words:
    return (ready(world, world.plan()), "--audit", "/dev/null/audit.jsonl")


def commits(world: World, *words: str) -> Words:
    """A plan whose engine makes the commit of each statement."""
    log = world.log()
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
    file = ready(world, world.plan(log.table))

    def run(_: object, sql: str, mark: str, progress: object = None) -> StatementResult:
        info = commit_info("SET TBLPROPERTIES", userMetadata=mark)
        log.commit(1, info, metadata({"a": "b"}))
        return StatementResult()

    world.patch.setattr(FakeRunner, "run", run)
    return (file, *words)


@situation("The audit log cannot be written after a statement", "apply")
def full(world: World) -> Words:
    return commits(world, "--audit", "/dev/full")


@situation("A statement made no commit", "apply")
def no_commit(world: World) -> Words:
    return (ready(world, world.plan()),)


@situation("The recent commits cannot be read", "apply")
def no_activity(world: World) -> Words:
    from deltaproto.errors import ErrorCode, TableError
    from deltaproto.execution import prepare

    def fails(_: object) -> None:
        raise TableError(ErrorCode.STORAGE, "boom")

    world.patch.setattr(prepare, "recent_activity", fails)
    return (ready(world, world.plan()), "--dry-run")


@situation("Several gates fail", "apply")
def several(world: World) -> Words:
    words = then(world, protocol(1, 4))
    policy = world.policy('tables:\n  "**": {maintenance_windows: []}\n')
    return (*words, "--policy", policy)
