"""What every result has in common: ok, errors, JSON, short texts and pages for notebooks."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto import DeltaprotoError, Outcome, Result, ResultError, Table, TableError
from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from deltaproto.fleet.drift.diff import ChangeKind, Difference
from tests.support.logs import Log, commit_info, metadata, protocol
from tools import python_api

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "lake"
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](folder / name)
    return folder


@pytest.fixture(scope="module")
def results(lake: Path) -> dict[str, Result]:
    table = Table(lake / "orders")
    found = deltaproto.scan(lake, inventory=lake.parent / "inventory")
    assert found.inventory is not None
    return {
        "inspection": table.inspect(activity=True),
        "check": table.check(clients=["trino@400"]),
        "checks": deltaproto.check([lake / "orders", lake / "none"], clients=["trino@400"]),
        "history": table.history(),
        "conflicts": table.conflicts("DELETE FROM orders WHERE id = 1"),
        "plan": table.plan_downgrade(drop=["deletionVectors"]),
        "scan": found,
        "drift": found.inventory.drift(),
        "forecast": found.inventory.forecast(clients=["trino@400"]),
        "discovery": deltaproto.discover(lake),
    }


NAMES = (
    *("inspection", "check", "checks", "history", "conflicts", "plan", "scan", "drift"),
    *("discovery", "forecast"),
)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_json_and_a_short_text_and_a_page(results: dict[str, Result], name: str) -> None:
    result = results[name]
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert re.fullmatch(r"<\w+ .{1,160}>|<CheckResults: .*>", repr(result))
    page = result._repr_html_()
    assert page.count("<div") == page.count("</div>")
    assert "<table>" in page or "<dl>" in page
    assert "<script" not in page


def records(results: dict[str, Any]) -> list[Any]:
    """One of every public record that is part of a result."""
    inspection, plan = results["inspection"], results["plan"]
    difference = Difference("file:/t", "t", ChangeKind.FEATURE_APPEARED, "f", None, "f", 1, 2)
    table = deltaproto.RolloutTable("a1b2", "t", "file:/t", "a1b2.json")
    progress = deltaproto.TableProgress(table, deltaproto.RolloutStatus.READY)
    return [
        *(inspection.protocol, inspection.features["deletionVectors"]),
        *(results["check"].findings[0], results["check"].verdicts[0]),
        *(results["history"].events[0], results["conflicts"].cells[0], results["drift"].since),
        *(plan.steps[0], plan.alternatives[0], plan.clients[0]),
        *(results["discovery"].clients[0], difference, table, progress),
        deltaproto.Blocked(None, "why", "what to do"),
        deltaproto.WaveProgress("canary", deltaproto.RolloutStatus.READY, (progress,)),
        deltaproto.StepRecord("s1", deltaproto.StepStatus.DONE),
        deltaproto.ApplyEvent(deltaproto.EventKind.STARTED, "t: s1", plan.steps[0]),
    ]


def test_the_records_of_a_result_are_short_texts_and_tables(results: dict[str, Any]) -> None:
    public = {
        each for name in deltaproto.__all__ if isinstance(each := getattr(deltaproto, name), type)
    }
    found = records(results)
    for record in found:
        if not isinstance(record, deltaproto.Protocol):
            assert re.fullmatch(r"<\w+ .{1,200}>", repr(record))
        assert "<table>" in record._repr_html_()
    pages = {each for each in public if hasattr(each, "_repr_html_")}
    texts = {each for each in public - pages if not issubclass(each, Enum | Exception)}
    assert {each.__name__ for each in texts} == {"Inventory", "Rollout", "Table"}
    parts = {type(record) for record in found}
    whole = {each for each in pages - parts if not issubclass(each, Result)}
    assert {each.__name__ for each in whole} == {"Report", "Rows"}


@pytest.mark.parametrize("name", NAMES)
def test_ok_and_raise_for_status_say_the_same(results: dict[str, Result], name: str) -> None:
    result = results[name]
    assert result.ok is (name not in ("check", "checks", "forecast"))
    if result.ok:
        assert result.raise_for_status() is result
        return
    with pytest.raises(DeltaprotoError) as raised:
        result.raise_for_status()
    assert isinstance(raised.value, ResultError)
    assert raised.value.result is result
    assert str(raised.value) == f"{raised.value.message}\nhint: {raised.value.hint}"


def test_the_worst_table_decides_the_exit_code_of_many(results: dict[str, Result]) -> None:
    with pytest.raises(
        ResultError, match=r"2 of 2 tables are not ok; .*none does not exist"
    ) as bad:
        results["checks"].raise_for_status()
    assert int(bad.value.exit_code) == 3


def test_no_table_is_not_a_pass() -> None:
    checks = deltaproto.check([], clients=["trino@400"])
    assert not checks.ok
    with pytest.raises(ResultError, match="no table was checked"):
        checks.raise_for_status()


def test_an_incomplete_result_is_never_ok(log: Log) -> None:
    features = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]
    stored = protocol(3, 7, ["catalogManaged", "vacuumProtocolCheck"], features)
    log.commit(0, commit_info(), stored, metadata())
    table = Table(log.table)
    for result in (table.inspect(), table.check(clients=["trino@480"]), table.history()):
        assert not result.ok
        with pytest.raises(ResultError) as raised:
            result.raise_for_status()
        assert int(raised.value.exit_code) == 3


def test_a_blocked_plan_raises_its_reason_when_asked(log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 7, None, ["nobodyKnowsIt"]), metadata())
    plan = Table(log.table).plan_downgrade(to=(1, 2))
    assert not plan.ok
    with pytest.raises(ResultError) as raised:
        plan.raise_for_status()
    assert plan.blocked[0].reason in str(raised.value)
    assert int(raised.value.exit_code) == 1


def test_markup_in_names_is_escaped_in_notebooks(tmp_path: Path) -> None:
    log = Log(tmp_path / "<b>orders")
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    checked = Table(log.table).check(clients=["trino@400"])
    assert "<b>" not in checked._repr_html_()
    assert "&lt;b&gt;" in checked._repr_html_()


def test_results_are_flat(lake: Path) -> None:
    inspection = Table(lake / "orders").inspect()
    assert inspection.protocol.supported == set(inspection.features)
    assert inspection.features["deletionVectors"].enabled is True
    assert (inspection.version, inspection.reader) == (3, "log")
    read, append = Table(lake / "orders").check(clients=["trino@400"]).verdicts
    assert (read.client, read.version, str(read.access)) == ("trino", "400", "read")
    assert read.outcome is Outcome.WRONG
    assert append.outcome == "refused"
    assert read.because == ("deletionVectors",)
    assert read.remedies


def test_results_survive_pickling(results: dict[str, Result]) -> None:
    for name in ("check", "plan"):
        assert pickle.loads(pickle.dumps(results[name])) == results[name]


def test_an_error_says_what_to_do_and_survives_pickling(tmp_path: Path) -> None:
    with pytest.raises(TableError) as raised:
        Table(tmp_path / "none").inspect()
    error = raised.value
    assert str(error) == f"{error.message}\nhint: {error.hint}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


class TestTypes:
    """What an editor and a type checker see."""

    @pytest.mark.parametrize("name", deltaproto.__all__)
    def test_type_hints_resolve(self, name: str) -> None:
        value = getattr(deltaproto, name)
        assert isinstance(typing.get_type_hints(value), dict)
        for function in self.public(value):
            assert "return" in typing.get_type_hints(function)

    def public(self, value: Any) -> Iterator[Any]:
        for name, each in vars(value).items() if isinstance(value, type) else ():
            if not name.startswith("_"):
                each = each.fget if isinstance(each, property) else each
                yield from [each] if inspect.isfunction(each) else []

    @pytest.mark.parametrize("name", deltaproto.__all__)
    def test_every_attribute_is_described(self, name: str) -> None:
        value = getattr(deltaproto, name)
        assert inspect.getdoc(value)
        if isinstance(value, type):
            internal = python_api._INTERNAL.get(name, set())
            found = [e for e in python_api.attributes(value) if e.name not in internal]
            assert [each.name for each in found if not each.text] == []
            for _, function in python_api.methods(value):
                assert inspect.getdoc(function)

    def test_the_page_has_every_name(self) -> None:
        named = [name for names in python_api.GROUPS.values() for name in names]
        assert sorted(named) == sorted(deltaproto.__all__)
        assert deltaproto.__all__ == sorted(deltaproto.__all__)

    def mypy(self, folder: Path, text: str) -> list[str]:
        (folder / "script.py").write_text(textwrap.dedent(text))
        cache = ROOT / ".cache" / "mypy-user"
        words = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={cache}"]
        ran = subprocess.run(
            [sys.executable, "-m", "mypy", *words, "script.py"],
            cwd=folder,
            env={**os.environ, "MYPYPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in ran.stdout.splitlines() if "error:" in line]

    @pytest.mark.slow
    def test_strict_mypy_accepts_a_script_and_reports_misspelled_names(
        self, tmp_path: Path
    ) -> None:
        good = """
            from pathlib import Path
            from deltaproto import Inventory, Outcome, Plan, Table, check, discover, scan

            table = Table(Path("lake/orders"))
            ins = table.inspect()
            print(ins.protocol.min_reader_version, ins.features["deletionVectors"].present)
            bad = [v.client for v in table.check(clients=["trino@400"]).verdicts
                   if v.outcome is not Outcome.OK]
            plan: Plan = table.plan_downgrade(drop=["deletionVectors"])
            plan.save("plan.json")
            print(Plan.load("plan.json").steps[0].sql, plan.to_sql(), bad)
            done = plan.apply(dry_run=True, on_event=lambda event: print(event.message))
            print(done.raise_for_status().status)
            found = scan("lake", inventory="lake/_inventory").raise_for_status().inventory
            assert found is not None
            for row in found.tables("min_reader_version = 3"):
                print(row["table"])
            for use in discover("lake", days=90).clients:
                print(use.client, use.version, use.access, use.last_seen, use.principals)
            print(Inventory("x").drift().changes[0].kind, check(["a"], "p.yaml").ok)
        """
        assert self.mypy(tmp_path, good) == []
        misspelled = (
            "deltaproto.inspct_table('x')",
            "ins.protocolx",
            "ins.features['x'].presentx",
            "table.check(clients=['a@1']).verdicts[0].outcom",
            "table.plan_downgrade(dropp=['x'])",
            "table.plan_downgrade(lowest=True).steps[0].sqll",
            "table.plan_downgrade(lowest=True).apply().statusx",
            "deltaproto.Outcome.REFUSD",
            "deltaproto.scan('x').tabels",
            "deltaproto.Inventory('x').drift().changesx",
            "deltaproto.discover('x').clients[0].commitsx",
        )
        head = "import deltaproto\ntable = deltaproto.Table('x')\nins = table.inspect()\n"
        found = self.mypy(tmp_path, head + "\n".join(misspelled) + "\n")
        lines = [int(line.split(":")[1]) for line in found]
        assert lines == list(range(4, 4 + len(misspelled)))


def test_an_inspection_loads_no_engine(lake: Path) -> None:
    code = """
        import sys
        from deltaproto import Table
        Table(sys.argv[1]).inspect().protocol
        print(sorted({"pyspark", "deltalake", "pyarrow", "pandas", "obstore"} & set(sys.modules)))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(lake / "orders")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "[]"
