"""Copies into a new table with an engine that needs no Spark: races, kills and refusals."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from deltaproto.cli.apply import load_or_create_undo_plan
from deltaproto.errors import EngineError, ErrorCode, ExitCode, TableError
from deltaproto.execution import copy_state
from deltaproto.execution.apply import apply_plans
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.execution.run_log import AuditLog
from deltaproto.execution.runner import EngineFacts
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitLimits
from deltaproto.location import locate
from deltaproto.plan_inputs import from_log
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import plan_id
from deltaproto.planning.search.copy_by_name import loss_names
from deltaproto.planning.statement import Action
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from deltaproto.render.plan_words import losses_text
from deltaproto.sql.quoting import split_name
from deltaproto.tables.open import OpenedLog
from deltaproto.tables.storage import open_log
from tests.execution.scripted import SilentObserver
from tests.render.runbook.test_truth import told
from tests.support.logs import Log, add, commit_info, metadata, protocol

NAME = "c.s.t"
LISTED = protocol(1, 7, None, ["appendOnly", "checkConstraints", "identityColumns", "invariants"])
PROPERTIES = {"delta.constraints.positive": "id > 0", "k": "v"}
_NAME = r"((?:`[^`]+`\.?)+)"
_FROM = re.compile(
    rf"FROM {_NAME}(?: VERSION AS OF (\d+))?(?: WHERE _metadata.file_name IN \((.*)\))?"
)


class Killed(BaseException):
    pass


class Catalog:
    """Tables with one column, whose rows are known by the names of their files."""

    def __init__(self, folder: Path, *, managed: bool) -> None:
        self.folder, self.managed = folder, managed
        self.tables: dict[str, Log] = {}
        self.rows: dict[str, list[int]] = {}
        self.files = itertools.count()
        self.before: Callable[[str], None] = lambda sql: None
        self.after: Callable[[str], None] = lambda sql: None
        self.sent: list[str] = []
        self.once: set[tuple[str, str, str]] = set()
        self.tables["t"] = Log(folder / "t")
        self.commit("t", LISTED, metadata(PROPERTIES), operation="CREATE TABLE")
        self.append("t", [1, 2])

    def open(self, table: str, *_: object) -> OpenedLog:
        last = split_name(table)[-1]
        if last not in self.tables:
            raise TableError(ErrorCode.NOT_FOUND, f"no {table}", "")
        location = locate(str(self.tables[last].root))
        return OpenedLog(location._replace(text=table), open_log(location, {}))

    def version(self, name: str) -> int:
        return len(list(self.tables[name].folder.glob("*.json"))) - 1

    def commit(
        self,
        name: str,
        *actions: dict[str, Any],
        mark: str = "",
        operation: str = "WRITE",
        **info: Any,
    ) -> None:
        tag = {"userMetadata": mark} if mark else {}
        said = commit_info(operation, **tag, **info)
        self.tables[name].commit(self.version(name) + 1, said, *actions)

    def file(self, ids: list[int]) -> dict[str, Any]:
        name = f"f'{next(self.files)}.parquet"
        self.rows[name] = ids
        return add(name, stats=json.dumps({"numRecords": len(ids)}))

    def append(self, name: str, ids: list[int], **info: Any) -> None:
        self.commit(name, *([self.file(ids)] if ids else []), **info)

    def delete(self, name: str, id_: int) -> None:
        kept = [each for each in self.ids(name) if each != id_]
        self.commit(name, *self.removals(name), self.file(kept))

    def removals(self, name: str) -> list[dict[str, Any]]:
        return [{"remove": {"path": path, "dataChange": True}} for path in self.live(name)]

    def live(self, name: str, version: int | None = None) -> list[str]:
        found: dict[str, None] = {}
        paths = sorted(self.tables[name].folder.glob("*.json"))
        for path in paths if version is None else paths[: version + 1]:
            for action in map(json.loads, path.read_text().splitlines()):
                if "add" in action:
                    found[action["add"]["path"]] = None
                if "remove" in action:
                    found.pop(action["remove"]["path"])
        return list(found)

    def ids(self, name: str, version: int | None = None) -> list[int]:
        return sorted(i for path in self.live(name, version) for i in self.rows[path])

    def metadata(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in sorted(self.tables[name].folder.glob("*.json")):
            for action in map(json.loads, path.read_text().splitlines()):
                found = action.get("metaData", found)
        return found

    # The engine.

    def facts(self) -> EngineFacts:
        return EngineFacts(EngineName.DELTA_SPARK, "4.4.0", "4.2.0", True, {})

    def exists(self, uri: str) -> bool:
        return Path(uri.removeprefix("file://")).exists()

    def selected(self, sql: str) -> tuple[list[str], int | None]:
        found = _FROM.search(sql)
        assert found is not None
        version = None if found[2] is None else int(found[2])
        paths = self.live(split_name(found[1])[-1], version)
        if found[3] is not None:
            names = [
                name.replace("\\'", "'") for name in re.findall(r"'((?:\\'|[^'])*)'", found[3])
            ]
            paths = [path for path in paths if path in names]
        return paths, version

    def query(self, sql: str) -> tuple[list[tuple[Any, ...]], str]:
        if sql.startswith("DESCRIBE"):
            return [("Type", "MANAGED" if self.managed else "EXTERNAL", "")], ""
        paths, _ = self.selected(sql)
        ids = [id_ for path in paths for id_ in self.rows[path]]
        if "file_path" in sql:
            return [(len(ids), len(paths))], ""
        if sql.endswith("LIMIT 0"):
            return [], "struct<id:bigint>"
        return [(len(ids), sum(ids), sum(ids))], ""

    def run(
        self,
        sql: str,
        mark: str,
        progress: object = None,
        conf: Mapping[str, str] = MappingProxyType({}),
    ) -> StatementResult:
        self.sent.append(sql)
        self.before(sql)
        failed = self.execute(sql, mark, conf)
        self.after(sql)
        return failed or StatementResult()

    def execute(self, sql: str, mark: str, conf: Mapping[str, str]) -> StatementResult | None:
        name = split_name(re.findall(_NAME, sql)[0])[-1]
        if sql.startswith("CREATE TABLE"):
            place = re.findall(r"LOCATION '([^']*)'", sql)[0].removeprefix("file://")
            properties = dict(
                re.findall(r"'([^']*)' = '([^']*)'", sql.partition("TBLPROPERTIES")[2])
            )
            self.tables[name] = Log(Path(place))
            self.commit(
                name, protocol(1, 2), metadata(properties, id="new"), mark=mark, operation="CREATE"
            )
        elif " ADD CONSTRAINT " in sql:
            known = self.metadata(name)
            known["configuration"]["delta.constraints.positive"] = "id > 0"
            self.commit(name, protocol(1, 3), {"metaData": known}, mark=mark)
        elif sql.startswith("INSERT"):
            key = (name, conf.get(_APP, ""), conf.get(_TXN, ""))
            if key in self.once:
                return None
            self.once.add(key)
            paths, _ = self.selected(sql)
            ids = [id_ for path in paths for id_ in self.rows[path]]
            gone = self.removals(name) if sql.startswith("INSERT OVERWRITE") else []
            if ids or gone:
                made = [self.file(ids)] if ids else []
                rows = {"numOutputRows": str(len(ids))}
                self.commit(name, *gone, *made, mark=mark, operationMetrics=rows)
        elif " RENAME TO " in sql:
            to = split_name(re.findall(_NAME, sql)[1])[-1]
            if to in self.tables:
                return StatementResult("TABLE_ALREADY_EXISTS", f"{to} exists")
            self.tables[to] = self.tables.pop(name)
            if self.managed and self.tables[to].root.name in ("t", "t__before"):
                moved = self.folder / to
                shutil.move(self.tables[to].root, moved)
                self.tables[to].root, self.tables[to].folder = moved, moved / "_delta_log"
        else:
            known = self.metadata(name)
            for key, value in re.findall(r"'([^']*)' = '([^']*)'", sql):
                known["configuration"][key] = value
            if "UNSET" in sql:
                known["configuration"].pop("deltaproto.replacedBy", None)
            self.commit(name, {"metaData": known}, mark=mark)
        return None


_APP, _TXN = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"


class Bench:
    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog, self.records = catalog, folder / "records"
        inputs = from_log.load_plan_input(NAME, {}, SparkSettings(), 0.0)
        plan = plan_downgrade(inputs, DowngradeRequest(drop=("identityColumns",), rewrite=True))
        assert not plan.blocked
        times = (None,) * len(plan.steps)
        self.planned = LoadedPlan(plan_id(plan), plan, str(folder / "plan.json"), times)
        self.context = ApplyContext(
            {},
            SparkSettings(),
            folder=lambda _: str(self.records),
            accepted_losses=frozenset(loss_names(plan.steps)),
        )

    def apply(self, planned: LoadedPlan | None = None, **context: Any) -> ApplyResult:
        redact = Redactor({}, {})
        session = ApplySession(
            self.context._replace(**context),
            lambda: self.catalog,  # type: ignore[arg-type, return-value]
            lambda _: str(self.records / "audit.jsonl"),
            redact,
            SilentObserver(),
            WaitLimits(sleep=lambda _: None),
        )
        plans = [planned or self.planned]
        (result,) = apply_plans(plans, session, lambda _: None, ask_all_first=False)
        return result

    def undo(self) -> ApplyResult:
        return self.apply(load_or_create_undo_plan(self.planned, self.context, keep=True))


@pytest.fixture(params=[False, True], ids=["external", "managed"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    catalog = Catalog(tmp_path, managed=request.param)
    for module in (copy_state, from_log):
        monkeypatch.setattr(module, "open_table_log", _open_with(catalog, module.open_table_log))
    return Bench(catalog, tmp_path)


def _open_with(catalog: Catalog, real: Callable[..., OpenedLog]) -> Callable[..., OpenedLog]:
    def opened(table: str, *rest: Any) -> OpenedLog:
        return real(table, *rest) if "/" in table else catalog.open(table)

    return opened


def shape(sql: str) -> str:
    return sql.partition("(")[0]


def test_a_table_is_replaced_and_put_back(bench: Bench) -> None:
    catalog = bench.catalog
    result = bench.apply()
    assert (result.status, result.message) == (
        ApplyStatus.DONE,
        "every step is finished, and the table is as predicted",
    )
    assert catalog.tables.keys() == {"t", "t__before"}
    assert catalog.ids("t") == catalog.ids("t__before") == [1, 2]
    assert [shape(sql) for sql in catalog.sent] == [
        "CREATE TABLE `c`.`s`.`t__new` ",
        "ALTER TABLE `c`.`s`.`t__new` ADD CONSTRAINT `positive` CHECK ",
        "INSERT INTO `c`.`s`.`t__new` ",
        "ALTER TABLE `c`.`s`.`t` RENAME TO `c`.`s`.`t__before`",
        "ALTER TABLE `c`.`s`.`t__before` SET TBLPROPERTIES ",
        "ALTER TABLE `c`.`s`.`t__new` RENAME TO `c`.`s`.`t`",
    ]
    assert result.protocol == bench.planned.plan.protocol_after
    catalog.append("t__before", [7])
    again = bench.apply()
    assert again.code is ExitCode.OK
    assert catalog.ids("t") == [1, 2]
    back = bench.undo()
    assert (back.code, back.message) == (ExitCode.OK, result.message)
    assert catalog.tables.keys() == {"t", "t__new"}
    assert catalog.ids("t") == [1, 2, 7]
    assert "deltaproto.replacedBy" not in catalog.metadata("t")["configuration"]
    assert bench.undo().code is ExitCode.OK


def test_an_append_before_and_after_each_statement_is_copied_once(bench: Bench) -> None:
    catalog = bench.catalog
    written, seen = [1, 2], dict[tuple[str, str], None]()

    def append(phase: str, sql: str) -> None:
        if (phase, shape(sql)) in seen:
            return
        seen[phase, shape(sql)] = None
        written.append(len(written) + 100)
        catalog.append("t__before" if "t__before" in catalog.tables else "t", written[-1:])

    catalog.before = lambda sql: append("before", sql)
    catalog.after = lambda sql: append("after", sql)
    result = bench.apply()
    assert (result.code, result.message[:10]) == (ExitCode.OK, "every step")
    # The last kind of statement adds rows to the table that has its name already.
    assert "INSERT INTO `c`.`s`.`t` " in {name for _, name in seen}
    assert catalog.ids("t") == sorted(written)
    assert catalog.ids("t") == catalog.ids("t__before")


def test_a_run_killed_before_and_after_each_statement_is_resumed(bench: Bench) -> None:
    catalog = bench.catalog
    killed, written = set[tuple[str, str]](), [1, 2]

    def kill(phase: str, sql: str) -> None:
        if (phase, shape(sql)) not in killed:
            killed.add((phase, shape(sql)))
            raise Killed

    catalog.before = lambda sql: kill("before", sql)
    catalog.after = lambda sql: kill("after", sql)
    while True:
        shutil.rmtree(bench.records, ignore_errors=True)
        try:
            result = bench.apply()
        except Killed:
            written.append(len(written) + 100)
            catalog.append("t__before" if "t__before" in catalog.tables else "t", written[-1:])
            continue
        break
    assert (result.code, result.message[:10]) == (ExitCode.OK, "every step")
    assert len(killed) == 14
    assert catalog.ids("t") == sorted(written)


def test_no_statement_is_sent_that_the_audit_log_would_lack(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here and in a later run, until the audit log can be completed."""
    catalog = bench.catalog
    with monkeypatch.context() as patch:
        patch.setattr(AuditLog, "add", lambda *_, **__: "the audit log is full")
        for _ in range(2):
            result = bench.apply()
            assert (result.code, "audit log is full" in result.message) == (ExitCode.FAILED, True)
            assert [shape(sql) for sql in catalog.sent] == ["CREATE TABLE `c`.`s`.`t__new` "]
    assert bench.apply().code == ExitCode.OK


@pytest.mark.parametrize(
    ("statement", "code"), [("INSERT", ExitCode.OK), ("t` RENAME", ExitCode.FAILED)]
)
def test_removed_rows_are_copied_anew_or_the_old_table_is_kept(
    bench: Bench, statement: str, code: ExitCode
) -> None:
    catalog, done = bench.catalog, list[str]()

    def delete(sql: str) -> None:
        if statement in sql and not done:
            done.append(sql)
            catalog.delete("t", 1)

    catalog.before = delete
    result = bench.apply()
    assert result.code is code
    assert catalog.ids("t") == [2]
    if code is ExitCode.FAILED:
        assert "at the last moment" in result.message
        assert catalog.tables.keys() == {"t", "t__new"}
        assert bench.apply().code is ExitCode.OK
    assert catalog.ids("t") == [2]
    assert sum(sql.startswith("INSERT OVERWRITE") for sql in catalog.sent) == 1
    assert "t__before" in catalog.tables


def test_a_table_that_always_changes_is_not_replaced(bench: Bench) -> None:
    catalog = bench.catalog

    def delete(sql: str) -> None:
        if sql.startswith("INSERT"):
            catalog.append("t", [5])
            catalog.delete("t", 5)

    catalog.before = delete
    result = bench.apply()
    assert result.code is ExitCode.FAILED
    assert "faster than they are copied" in result.message
    assert catalog.tables.keys() == {"t", "t__new"}


@pytest.mark.parametrize("statement", ["CREATE", "INSERT", "t` RENAME", "SET TBLPROPERTIES"])
def test_a_changed_definition_is_refused(bench: Bench, statement: str) -> None:
    catalog, done = bench.catalog, list[str]()

    def change(sql: str) -> None:
        if statement in sql and not done:
            done.append(sql)
            name = "t" if "t" in catalog.tables else "t__before"
            catalog.commit(name, metadata({**PROPERTIES, "new": "x"}))

    catalog.before = change
    result = bench.apply()
    assert result.code is ExitCode.FAILED
    assert catalog.tables.keys() == {"t", "t__new"}
    assert catalog.metadata("t")["id"] != "new"
    again = bench.apply()
    assert again.code is ExitCode.STALE
    assert "properties changed since" in again.message


def test_a_change_after_the_swap_is_reported(bench: Bench) -> None:
    catalog = bench.catalog

    def delete(sql: str) -> None:
        if "t__new` RENAME" in sql:
            catalog.delete("t__before", 1)

    catalog.after = delete
    result = bench.apply()
    assert result.code is ExitCode.FAILED
    assert "changed after the new one replaced it" in result.message
    assert catalog.ids("t") == [1, 2]
    assert bench.undo().code is ExitCode.OK
    assert catalog.ids("t") == [2]


def test_rows_of_the_new_table_are_not_undone(bench: Bench) -> None:
    catalog = bench.catalog
    assert bench.apply().code is ExitCode.OK
    catalog.before = lambda sql: catalog.append("t", [9]) if "`t` RENAME" in sql else None
    late = bench.undo()
    assert late.code is ExitCode.FAILED
    assert catalog.ids("t") == [1, 2, 9]
    catalog.before = lambda sql: None
    assert bench.undo().code is ExitCode.STALE
    assert catalog.ids("t") == [1, 2, 9]


def test_an_undo_is_resumed(bench: Bench) -> None:
    catalog = bench.catalog
    assert bench.apply().code is ExitCode.OK
    killed = set[tuple[str, str]]()

    def kill(phase: str, sql: str) -> None:
        if (phase, sql) not in killed:
            killed.add((phase, sql))
            raise Killed

    catalog.before = lambda sql: kill("before", sql)
    catalog.after = lambda sql: kill("after", sql)
    for _ in range(6):
        with pytest.raises(Killed):
            bench.undo()
    assert bench.undo().code is ExitCode.OK
    assert catalog.tables.keys() == {"t", "t__new"}
    assert catalog.ids("t") == [1, 2]


def test_a_wrong_copy_is_not_swapped(bench: Bench) -> None:
    catalog = bench.catalog

    def damage(sql: str) -> None:
        if sql.startswith("INSERT"):
            catalog.rows[catalog.live("t__new")[0]] = [1, 3]

    catalog.after = damage
    result = bench.apply()
    assert result.code is ExitCode.FAILED
    assert "is not an exact copy: the values differ in rows as a whole, id" in result.message
    assert catalog.tables.keys() == {"t", "t__new"}


def test_files_that_cannot_be_found_by_name_are_copied_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, real = bench.catalog, bench.catalog.query

    def query(sql: str) -> tuple[list[tuple[Any, ...]], str]:
        if "file_path" in sql:
            raise EngineError("no such column", "")
        return real(sql)

    monkeypatch.setattr(catalog, "query", query)
    once = [[3]]
    catalog.before = lambda sql: (
        catalog.append("t", once.pop()) if sql.startswith("INSERT") and once else None
    )
    assert bench.apply().code is ExitCode.OK
    assert catalog.ids("t") == [1, 2, 3]
    assert sum(sql.startswith("INSERT OVERWRITE") for sql in catalog.sent) == 1


def test_an_empty_table(bench: Bench) -> None:
    bench.catalog.delete("t", 1)
    bench.catalog.delete("t", 2)
    assert bench.apply().code is ExitCode.OK
    assert bench.catalog.ids("t") == []


def test_other_commits_to_the_new_table_are_refused(bench: Bench) -> None:
    catalog = bench.catalog

    def stop(sql: str) -> None:
        raise Killed

    catalog.after = stop
    with pytest.raises(Killed):
        bench.apply()
    catalog.append("t__new", [4])
    result = bench.apply()
    assert result.code is ExitCode.STALE
    assert "is not of this plan" in result.message


def test_every_loss_is_accepted_by_name(bench: Bench) -> None:
    names = bench.context.accepted_losses
    for name in sorted(names):
        result = bench.apply(accepted_losses=names - {name})
        assert (result.status, result.code) == (ApplyStatus.REFUSED, ExitCode.USAGE)
        assert result.message.startswith(f"{name}: ")
        assert result.hint == f"pass --accept-loss {name} to accept this"
    assert bench.catalog.sent == []


@pytest.mark.parametrize("suffix", ["__new", "__before"])
def test_a_name_that_is_taken(bench: Bench, suffix: str) -> None:
    catalog = bench.catalog
    catalog.tables[f"t{suffix}"] = Log(catalog.folder / "other")
    catalog.commit(f"t{suffix}", protocol(1, 2), metadata(id="other"))
    result = bench.apply()
    assert result.code is ExitCode.UNREADABLE
    assert "another table" in result.message
    assert catalog.sent == []


def test_an_edited_plan_is_refused(bench: Bench) -> None:
    plan = bench.planned.plan
    for number, step in enumerate(plan.steps):
        edited = step._replace(sql=f"{step.sql} ")
        steps = (*plan.steps[:number], edited, *plan.steps[number + 1 :])
        other = plan._replace(steps=steps)
        result = bench.apply(bench.planned._replace(plan=other, id=plan_id(other)))
        assert result.code is ExitCode.USAGE
        assert "contradicts itself" in result.message
    assert bench.catalog.sent == []


def test_the_runbook_has_the_command_and_the_way_back(bench: Bench) -> None:
    out = told(bench.planned)
    names = ",".join(loss_names(bench.planned.plan.steps))
    assert f"--accept-loss {names}" in out
    assert "--allow-irreversible" not in out
    assert "does not execute" not in out
    assert "ALTER TABLE `c`.`s`.`t__before` RENAME TO `c`.`s`.`t`" in out


def test_the_losses_of_a_copy_are_not_called_irreversible(bench: Bench) -> None:
    """The old table is kept, and `apply --undo` gives it its name again."""
    (losing,) = (step for step in bench.planned.plan.steps if step.losses)
    assert [*losses_text(losing)] == [*losing.losses]
    truncating = losing._replace(action=Action.DROP)
    assert [*losses_text(truncating)] == [f"irreversible: {loss}" for loss in losing.losses]


def checker(folder: Path, settings: str) -> Checker:
    file = folder / "policy.yaml"
    file.write_text(f"policy_version: 1\nclients: []\ntables: {{'{NAME}': {{{settings}}}}}\n")
    policy = load_local_policy(str(file))
    return Checker(policy, load_local_catalog((), policy))


@pytest.mark.parametrize(
    ("settings", "violated"),
    [
        ("forbid_features: [identityColumns]", ""),
        ("require_features: [checkConstraints]", ""),
        ("require_properties: {k: v}", ""),
        ("max_writer_version: 3", ""),
        ("require_features: [identityColumns]", "the policy requires identityColumns"),
        ("min_writer_version: 7", "writer version 3 is below the policy's 7"),
    ],
)
def test_a_policy_decides_about_the_new_table(
    bench: Bench, tmp_path: Path, settings: str, violated: str
) -> None:
    result = bench.apply(checker=checker(tmp_path, settings))
    if not violated:
        assert (result.code, result.message[:10]) == (ExitCode.OK, "every step")
        return
    assert (result.status, result.code) == (ApplyStatus.REFUSED, ExitCode.FINDINGS)
    assert violated in result.message
    assert bench.catalog.sent == []


def test_a_policy_does_not_stop_a_copy_whose_names_change_places(
    bench: Bench, tmp_path: Path
) -> None:
    """Statements on the table fail until the new one has the name."""
    catalog, strict = bench.catalog, checker(tmp_path, "require_features: [identityColumns]")

    def kill(sql: str) -> None:
        if "t__new` RENAME" in sql:
            catalog.before = lambda sql: None
            raise Killed

    catalog.before = kill
    with pytest.raises(Killed):
        bench.apply()
    assert catalog.tables.keys() == {"t__new", "t__before"}
    assert bench.apply(checker=strict).code is ExitCode.OK
    assert catalog.tables.keys() == {"t", "t__before"}


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("forbid_features: [identityColumns]", ExitCode.FINDINGS),
        ("require_features: [identityColumns]", ExitCode.OK),
    ],
)
def test_a_policy_decides_about_the_old_table_before_an_undo(
    bench: Bench, tmp_path: Path, settings: str, code: ExitCode
) -> None:
    assert bench.apply().code is ExitCode.OK
    back = load_or_create_undo_plan(bench.planned, bench.context, keep=True)
    assert bench.apply(back, checker=checker(tmp_path, settings)).code is code
