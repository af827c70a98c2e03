"""How far a plan has come, told from marked commits: cut off anywhere, with others in between."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from deltaproto.execution.preflight import expected_protocol
from deltaproto.execution.progress import (
    Progress,
    TableObservation,
    TableWatcher,
    progress_from_commits,
)
from deltaproto.plan_inputs.from_log import metadata_digest
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.plan import Fingerprint, Plan, Step
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.statement import Action
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.log.commits import Commit, CommitTag, commit_tag_of
from tests.planning.test_classics import carrying, given
from tests.support.logs import Log, add, metadata, protocol

ID, RUN = "0123456789abcdef", "cafe0001"
METADATA = Metadata("id", schema_string='{"fields": []}', configuration={})
CHANGED, UNMARKED = (
    Metadata("id", schema_string='{"fields": []}', configuration=configuration)
    for configuration in ({"delta.appendOnly": "true"}, {"owner": "ada"})
)

ROW_TRACKING = plan_upgrade(
    given(Protocol(1, 2)),
    UpgradeRequest(
        enable=(FeatureToEnable("rowTracking"),), set={"delta.logRetentionDuration": "60 days"}
    ),
)
DROPS = plan_downgrade(
    given(
        carrying("deletionVectors", "v2Checkpoint"),
        {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"},
        vectors=True,
        v2_checkpoint=True,
        traced=None,
    ),
    DowngradeRequest(lowest=True, include_enabled=True),
)
PLANS = [ROW_TRACKING, DROPS]


def commits_of(step: Step, plan: str = ID) -> list[Commit]:
    """What a step commits when all goes as predicted; the protocol comes with the right one."""
    found = []
    for number, operation in enumerate(step.operations):
        last = number == len(step.operations) - 1
        raised = operation == "UPGRADE PROTOCOL"
        changes = (raised or last) and step.protocol_after != step.protocol_before
        info = {"operation": operation, "userMetadata": CommitTag(plan, step.id, RUN).text()}
        found.append(Commit(0, info, step.protocol_after if changes else None, None))
    return found


def foreign(**members: Any) -> Commit:
    return Commit(0, {"operation": "WRITE"}, members.get("protocol"), members.get("metadata"))


def told(plan: Plan, made: list[Commit], done: int = 0) -> Progress:
    start = plan.fingerprint._replace(metadata=metadata_digest(METADATA))
    numbered = tuple(
        commit._replace(version=version)
        for version, commit in enumerate(made, plan.fingerprint.version + 1)
    )
    protocol = start.protocol
    for commit in numbered:
        protocol = commit.protocol or protocol
    now = start._replace(version=start.version + len(made), protocol=protocol)
    return progress_from_commits(
        ID, plan, done, frozenset(), TableObservation(now, numbered), start
    )


@pytest.mark.parametrize("plan", PLANS)
def test_cut_off_after_any_commit_it_knows_which_step_is_next(plan: Plan) -> None:
    statements = [step for step in plan.steps if step.sql is not None]
    assert len(statements) > 1
    before: list[Commit] = []
    for step in statements:
        made = commits_of(step)
        for count in range(len(made) + 1):
            found = told(plan, before + made[:count])
            assert found.foreign is None
            if 0 < count < len(made):
                # The wait before it is over, or it would not have begun.
                assert plan.steps[found.done].id == step.id
                assert found.partial
            if count == len(made):
                assert found.done > plan.steps.index(step)
                assert not found.partial
                assert found.baseline.protocol == expected_protocol(plan, found)
        before += made


@examples(data=st.data())
def test_commits_of_others_that_change_nothing_are_passed_over(data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(PLANS))
    all_ = [commit for step in plan.steps for commit in commits_of(step)]
    made = all_[: data.draw(st.integers(0, len(all_)))]
    mixed: list[Commit] = []
    for commit in made:
        mixed += [foreign(metadata=UNMARKED)] * data.draw(st.integers(0, 2))
        mixed.append(commit)
    alone, among = told(plan, made), told(plan, mixed)
    assert (alone.done, alone.partial, alone.early) == (among.done, among.partial, among.early)
    assert among.foreign is None


@examples(data=st.data())
def test_a_change_of_somebody_else_is_seen_wherever_it_comes(data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(PLANS))
    all_ = [commit for step in plan.steps for commit in commits_of(step)]
    made = all_[: data.draw(st.integers(0, len(all_)))]
    other = data.draw(
        st.sampled_from(
            [foreign(metadata=CHANGED), foreign(protocol=Protocol(2, 5)), commits_other()]
        )
    )
    place = data.draw(st.integers(0, len(made)))
    found = told(plan, [*made[:place], other, *made[place:]])
    assert found.foreign is not None
    assert found.foreign.commit.operation == other.operation


def test_another_clustering_is_a_change_where_steps_depend_on_it() -> None:
    clustered = foreign()._replace(clusters=True)
    for plan in PLANS:
        found = told(plan, [clustered]).foreign
        drops = any(step.action in (Action.DROP, Action.REORG) for step in plan.steps)
        assert (found.what if found else None) == ("the clustering columns" if drops else None)
        assert told(plan, [foreign()]).foreign is None
    assert any(told(plan, [clustered]).foreign for plan in PLANS)


@pytest.mark.parametrize("plan", PLANS)
def test_a_change_whose_commit_is_gone_is_seen_all_the_same(plan: Plan) -> None:
    start = plan.fingerprint._replace(metadata=metadata_digest(METADATA))
    later = start._replace(version=start.version + 3)

    def stands(now: Fingerprint) -> Progress:
        return progress_from_commits(ID, plan, 0, frozenset(), TableObservation(now, ()), start)

    assert stands(later).foreign is None
    for now in (
        later._replace(protocol=Protocol(2, 5)),
        later._replace(metadata=metadata_digest(CHANGED)),
    ):
        found = stands(now)
        assert found.foreign is not None
        assert found.baseline == now


def commits_other() -> Commit:
    """A commit of another plan, which is somebody else's."""
    info = {"operation": "DROP FEATURE", "userMetadata": CommitTag("f" * 16, "s1", RUN).text()}
    return Commit(0, info, Protocol(1, 1), None)


def test_a_first_call_that_was_enough_is_known_by_its_drop() -> None:
    (first, *_) = DROPS.steps
    assert first.expects is not None
    gone = first.protocol_after.without_feature(first.feature or "")
    info = {"operation": "DROP FEATURE", "userMetadata": CommitTag(ID, first.id, RUN).text()}
    found = told(DROPS, [*commits_of(first)[:-1], Commit(0, info, gone, None)])
    assert (found.done, found.early) == (1, frozenset({first.feature}))
    assert expected_protocol(DROPS, found) == gone


@pytest.mark.parametrize(
    "text",
    [None, "", "x", "{}", '{"deltaproto": 1}', '{"deltaproto": {"plan": "x"}}', 7, "[" * 9999],
)
def test_other_user_metadata_is_no_mark(text: Any) -> None:
    assert commit_tag_of(Commit(0, {"userMetadata": text}, None, None)) is None
    told = json.dumps({"deltaproto": text}) if isinstance(text, str) else text
    assert commit_tag_of(Commit(0, {"userMetadata": told}, None, None)) is None


@examples(st.text(), st.text(), st.text())
def test_a_mark_is_read_as_it_was_written(plan: str, step: str, run: str) -> None:
    mark = CommitTag(plan, step, run)
    assert commit_tag_of(Commit(0, {"userMetadata": mark.text()}, None, None)) == mark


def test_a_watcher_returns_only_the_commits_after_a_version(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata()).commit(1, add()).commit(2, add("b"))
    log.commit(3, {"domainMetadata": {"domain": "delta.clustering", "configuration": "{}"}})
    uri = log.folder.parent.as_uri()
    plan = ROW_TRACKING._replace(table=log.table, sql_name=f"delta.`{log.table}`", location=uri)
    watcher = TableWatcher(plan, {}, SparkSettings())
    for since in range(4):
        found = watcher.observe(since)
        assert [commit.version for commit in found.commits] == list(range(since + 1, 4))
        assert found.now.version == 3
        assert [commit.version for commit in found.commits if commit.clusters] == [3] * (since < 3)
