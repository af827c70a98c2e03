"""What a runbook says holds, also of plans that are not the usual ones."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.clients.model import Access, Verdict
from deltaproto.execution.plan_file import LoadedPlan, load_plans
from deltaproto.planning.plan import ClientChange
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.phrases import phrases
from deltaproto.render.runbook.write import RunbookFormat, render_runbook
from tests.conftest import Ran
from tests.render.runbook.ten import CASES, planned
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
BY_NAME = {case.name: case for case in CASES}
START = 1_796_335_200.0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def one(cli: Cli) -> Callable[[str], LoadedPlan]:
    def made(name: str) -> LoadedPlan:
        (found,), _ = load_plans([str(planned(BY_NAME[name], cli))])
        return found

    return made


def told(*plans: LoadedPlan, start: float = START) -> str:
    book = Book([RunbookEntry(plan) for plan in plans], (), ("plans",), start, START)
    return render_runbook(book, phrases("en"), RunbookFormat.MARKDOWN)


def moved(plan: LoadedPlan, location: str) -> LoadedPlan:
    return plan._replace(plan=plan.plan._replace(table=location, location=location))


class TestCopiesIntoANewTable:
    def test_nothing_is_offered_that_apply_refuses(self, cli: Cli) -> None:
        log = Log(Path("orders"))
        log.commit(0, commit_info(), protocol(1, 4), metadata({"delta.enableChangeDataFeed": "1"}))
        words = ("--drop", "changeDataFeed", "--rewrite", "--format", "json", "-o", "plan.json")
        assert cli("plan-downgrade", "orders", *words).code == 0
        out = cli("runbook", "plan.json").out
        assert "does not execute the plan for `orders`" in out
        assert "deltaproto apply" not in unquoted(out)
        assert "Do this manually" in out
        assert "Wait until" not in out
        assert "1 wait" not in out


class TestWayBack:
    @pytest.mark.parametrize("name", ["enable", "fast-drop", "mapping-away"])
    def test_what_leaves_traces_is_not_said_to_go_back(
        self, one: Callable[[str], LoadedPlan], name: str
    ) -> None:
        out = told(one(name))
        assert "Not all of this can be rolled back exactly" in out
        assert "everything can be rolled back" not in out
        assert "this change needs no backup" not in out
        assert "cp -a" in out

    def test_a_property_goes_back(self, one: Callable[[str], LoadedPlan]) -> None:
        out = told(one("isolation"))
        assert "everything can be rolled back" in out
        assert "this change needs no backup" in out


class TestWaits:
    def test_a_wait_that_has_begun_ends_when_the_plan_says(self, cli: Cli) -> None:
        """Of checkpointProtection, left by an earlier drop."""
        log = Log(Path("orders"))
        names = ["checkpointProtection", "invariants", "appendOnly"]
        settings = {"delta.requireCheckpointProtectionBeforeVersion": "1"}
        log.commit(0, commit_info(), protocol(1, 7, None, names), metadata(settings))
        words = ("--lowest", "--format", "json", "-o", "plan.json")
        assert cli("plan-downgrade", "orders", *words).code == 0
        (plan,), _ = load_plans(["plan.json"])
        if plan.plan.steps[0].sql is not None:
            pytest.skip("this table needs no wait")
        (end, *_) = plan.not_before
        assert end is not None
        late = told(plan, start=end + 5 * 86_400)
        assert "an earlier change of this table started this wait" in late
        assert "If the start is put off" not in late
        begun = told(plan, start=end - 3600)
        shown = re.search(r"Wait until \*\*(.*?)\*\*", begun)
        again = re.search(r"Wait until \*\*(.*?)\*\*", told(plan, start=end - 7200))
        assert shown is not None
        assert again is not None
        assert shown[1] == again[1]


class TestManyTables:
    def test_every_table_is_in_every_command(self, one: Callable[[str], LoadedPlan]) -> None:
        plan = one("truncating")
        places = [f"file:///data/t{number}" for number in range(60)]
        plans = [moved(plan, place)._replace(id=f"{n:016}") for n, place in enumerate(places)]
        book = Book(
            [RunbookEntry(each) for each in plans], (), ("plans",), START, START, "policy.yaml"
        )
        out = render_runbook(book, phrases("en"), RunbookFormat.MARKDOWN)
        assert out.count("cp -a -- ") == 60
        for command in ("inspect - --reader all", "check - --policy policy.yaml", "inspect -"):
            (listing,) = re.findall(
                rf"deltaproto {re.escape(command)} <<'TABLES'\n(.*?)\nTABLES", out, re.S
            )
            assert listing.splitlines() == places

    def test_tables_are_named_so_that_they_are_found_from_anywhere(
        self, one: Callable[[str], LoadedPlan]
    ) -> None:
        plan = one("enable")
        for line in re.findall(r"^deltaproto inspect .*$", told(plan), re.MULTILINE):
            assert shlex.split(line)[2] == plan.plan.location


@pytest.mark.parametrize(
    ("location", "copy"),
    [
        ("s3a://lake/t", "aws s3 cp --recursive s3://lake/t s3://lake/t.backup"),
        ("gs://lake/t", "gcloud storage rsync --recursive gs://lake/t gs://lake/t.backup"),
        (
            "abfss://c@a.dfs.core.windows.net/x/t",
            "azcopy copy https://a.dfs.core.windows.net/c/x/t "
            "https://a.dfs.core.windows.net/c/x/t.backup --recursive --as-subdir=false",
        ),
        ("hdfs://name/t", "- `hdfs://name/t`"),
        (
            "file:///data/a%20b",
            "mkdir -- '/data/a b.backup' && cp -a -- '/data/a b/.' '/data/a b.backup'",
        ),
    ],
)
def test_the_copy_is_made_with_the_tool_of_the_store(
    one: Callable[[str], LoadedPlan], location: str, copy: str
) -> None:
    assert copy in told(moved(one("truncating"), location)).splitlines()


class TestClients:
    def change(self, access: Access) -> ClientChange:
        return ClientChange("x@1", None, access, Verdict.OK, Verdict.REFUSED, (), "")

    def test_only_equal_losses_are_told_of_together(self, one: Callable[[str], LoadedPlan]) -> None:
        plan = one("enable")
        tables = {"a": Access.APPEND, "b": Access.READ, "c": Access.READ}
        plans = [
            plan._replace(
                id=name,
                plan=plan.plan._replace(
                    table=name, clients=(self.change(access),), everybody=False
                ),
            )
            for name, access in tables.items()
        ]
        out = told(*plans)
        assert "`x@1`: append of `a` changes" in out
        assert "`x@1`: read of `b`, `c` changes" in out
        assert "append, read" not in out

    def test_tables_without_a_client_are_named(self, one: Callable[[str], LoadedPlan]) -> None:
        plan = one("enable")
        same = self.change(Access.READ)._replace(after=Verdict.OK)
        plans = [
            plan._replace(
                id="1", plan=plan.plan._replace(table="asked", clients=(same,), everybody=False)
            ),
            plan._replace(
                id="2", plan=plan.plan._replace(table="unasked", clients=(), everybody=False)
            ),
        ]
        assert "No client was checked for `unasked`" in told(*plans)


def test_incomplete_and_blocked_plans_are_left_out_of_the_commands(
    one: Callable[[str], LoadedPlan],
) -> None:
    good, blocked, other = one("enable"), one("blocked"), one("isolation")
    incomplete = other._replace(plan=other.plan._replace(complete=False))
    out = told(good, blocked, incomplete)
    assert "deltaproto apply enable.json\n" in out
    assert "does not execute the plan for `tables/isolation`" in out


def unquoted(markdown: str) -> str:
    """Without what stands between single backticks."""
    return re.sub(r"(?<!`)`[^`\n]+`(?!`)", "", markdown)


@pytest.mark.parametrize(
    ("setting", "source"),
    [
        ("delta.enableDeletionVectors=false", "Databricks may re-enable deletionVectors"),
        ("delta.enableDeletionVectors=true", None),
        ("delta.logRetentionDuration=10 days", None),
    ],
)
def test_what_enables_a_disabled_feature_again_is_named(
    cli: Cli, setting: str, source: str | None
) -> None:
    on = str(not setting.endswith("true")).lower()
    stored = {"delta.enableDeletionVectors": on}
    log = Log(Path("orders"))
    listed = ["deletionVectors"]
    log.commit(0, commit_info(), protocol(3, 7, listed, listed), metadata(stored))
    words = ("--set", setting, "--format", "json", "-o", "plan.json")
    assert cli("plan-upgrade", "orders", *words).code == 0
    out = cli("runbook", "plan.json").out
    assert ("so none can be enabled again" in out) is (source is None)
    assert source is None or source in out
