"""What one checker remembers between tables, and which approvals change a finding."""

from __future__ import annotations

import pickle
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet import spark_checks  # noqa: F401 - how a policy is sent
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.policy import evaluate
from deltaproto.policy.context import PolicyContext, TableFacts
from deltaproto.policy.document import PolicyError
from deltaproto.policy.document.model import PolicySettings
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.policy.rules import drifted
from deltaproto.policy.table_check import TableCheck
from tests.support.logs import Log, metadata, protocol

DV, CM = "deletionVectors", "columnMapping"
TEXT = f"""\
policy_version: 1
clients:
- {{client: trino@400, access: [read]}}
- {{client: delta-spark@4.0.0, stream: true}}
tables:
  '**': {{forbid_features: [{CM}]}}
  '**/a': {{max_writer_version: 5}}
  '**/b': {{max_reader_version: 2, severities: {{DP205: 'off'}}}}
  '**/c': {{clients: [deltalake@1.6.6], clients_replace: true}}
waivers:
- {{rule: DP202, table: '**/a', reason: old, expires: 2999-01-01}}
approvals:
- {{client: delta-spark@4.0.0, access: [read], table: '**', feature: {CM}, approver: Ann,
   reason: r, expires: 2999-01-01}}
"""
PROTOCOLS = {
    "a": (
        protocol(3, 7, [DV], [DV, "appendOnly"]),
        metadata({"delta.enableDeletionVectors": "true"}),
    ),
    "b": (protocol(2, 5), metadata({"delta.columnMapping.mode": "name"})),
    "c": (protocol(1, 2), metadata()),
}


@pytest.fixture
def tables(tmp_path: Path) -> list[TableFacts]:
    """The three tables, each twice."""

    def made() -> Iterator[TableFacts]:
        for name, actions in PROTOCOLS.items():
            found = inspect_table(Log(tmp_path / name).commit(0, *actions).table, ReadRequest())
            assert isinstance(found, Inspection)
            yield facts_from_inspection(found)

    return [*made()] * 2


@pytest.fixture
def policy(tmp_path: Path) -> str:
    file = tmp_path / "policy.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return str(file)


def _new(policy: str) -> Checker:
    loaded = load_local_policy(policy)
    catalog = load_local_catalog((), loaded)
    return Checker(loaded, catalog, survey=catalog.clients())


def _rules(checked: TableCheck) -> set[tuple[str, str | None]]:
    return {(each.rule, each.client) for each in checked.findings}


def test_earlier_tables_do_not_change_a_result(
    policy: str, tables: list[TableFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One checker for all tables, with and without room in its caches, equals one for each."""
    alone = [_new(policy).check(each) for each in tables]
    together = _new(policy)
    assert [together.check(each) for each in tables] == alone
    assert alone[:3] == alone[3:]
    monkeypatch.setattr(evaluate, "_CACHE_SIZE", 1)
    forgetful = _new(policy)
    assert [forgetful.check(each) for each in tables] == alone
    assert all(each.usability for each in alone)
    a, b, c = map(_rules, alone[:3])
    assert ("DP204", None) in a
    assert ("DP202", "trino@400") not in a
    assert ("DP210", "delta-spark@4.0.0") in b
    assert ("DP205", None) not in b
    assert not {each for each in c if each[0].startswith("DP2")}


def test_tables_with_the_same_verdicts_get_their_own_findings(tmp_path: Path) -> None:
    """Hints contain commands for the table, although equal verdicts are evaluated once."""
    file = tmp_path / "policy.yaml"
    file.write_text("policy_version: 1\nclients: [trino@400, delta-spark@2.4.0, presto@0.290]\n")
    names = ["a", "it's"]
    made = [
        Log(tmp_path / name).commit(0, protocol(3, 7, [DV], [DV, "appendOnly"]), metadata())
        for name in names
    ]
    inspections = [inspect_table(log.table, ReadRequest()) for log in made]
    facts = [facts_from_inspection(each) for each in inspections if isinstance(each, Inspection)]
    checker = _new(str(file))
    first, second = map(checker.check, facts)
    assert first.verdicts is second.verdicts
    assert [_new(str(file)).check(each) for each in facts] == [first, second]
    for checked in (first, second):
        found = [each for each in checked.findings if each.client]
        assert {each.rule for each in found} > {"DP201"}
        assert {each.table for each in found} == {checked.table}
        hints = " ".join(each.hint for each in found)
        assert (shlex.quote(first.table) in hints) is (checked is first)
        assert (shlex.quote(second.table) in hints) is (checked is second)


def test_a_stream_is_not_approved_as_a_loss_of_access(
    policy: str, tables: list[TableFacts]
) -> None:
    """An approval covers lost access; what a stream must restart for is no lost access."""
    checked = _new(policy).check(tables[1])
    (stream,) = (each for each in checked.findings if each.rule == "DP210")
    assert "approv" not in stream.hint
    assert [each.finding.rule for each in checked.suppressed] == []


def test_a_sent_checker_gives_the_same_results(policy: str, tables: list[TableFacts]) -> None:
    """Executors get a pickled checker, and send back which parts of the policy they used."""
    here = _new(policy)
    for each in tables:
        here.observe(here.check(each))
    sent = pickle.loads(pickle.dumps(here))
    halves = []
    for part in (tables[:2], tables[2:]):
        executor = pickle.loads(pickle.dumps(sent))
        results = [executor.check(each) for each in part]
        assert results == [_new(policy).check(each) for each in part]
        for each in results:
            executor.observe(each)
        halves.append(executor.use)
    merged = _new(policy)
    for use in halves:
        merged.use.merge(pickle.loads(pickle.dumps(use)))
    assert [*merged.use.findings()] == [*here.use.findings()]
    assert [*halves[0].findings()] != [*here.use.findings()]


def test_an_unreadable_log_leaves_the_versions_as_evidence(tables: list[TableFacts]) -> None:
    def fails() -> tuple[()]:
        raise TableError(ErrorCode.TIMEOUT, "no reply", "try again")

    after = tables[0]._replace(changes=fails, version=4)
    case = PolicyContext(after, PolicySettings(), (), baseline=tables[2])
    found = {each.feature: each.evidence for each in drifted.examine(case)}
    assert found == {DV: "between versions 0 and 4"}


def test_a_verdict_has_the_members_of_its_record(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "policy_version: 1\nclients: [{client: deltalake/engine@0.25.0, access: [append], "
        "as: nightly}]\n"
    )
    policy = load_local_policy(str(file))
    log = Log(tmp_path / "t")
    names = ["appendOnly", "deletionVectors", "invariants"]
    log.commit(0, protocol(3, 7, ["deletionVectors"], names), metadata())
    found = inspect_table(log.table, ReadRequest())
    assert isinstance(found, Inspection)
    checked = Checker(policy, load_local_catalog((), policy)).check(facts_from_inspection(found))
    (verdict,) = checked.verdicts
    record = verdict.verdict
    assert (verdict.client, verdict.version, verdict.path) == ("deltalake", "0.25.0", "engine")
    assert (verdict.access, verdict.outcome) == ("append", "refused")
    assert verdict.because == ("deletionVectors",)
    assert (verdict.reason, verdict.remedies) == (record.reason, record.remedies)
    assert verdict.reason
    assert (verdict.confidence, verdict.label) == (record.confidence, "nightly")
    assert repr(verdict) == "<Verdict deltalake/engine@0.25.0 append: refused>"


def test_unknown_clustering_columns_do_not_meet_a_policy(
    tables: list[TableFacts], tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    for wanted, required in (("[id]", "clustering by id"), ("[]", "a table without clustering")):
        file.write_text(f"policy_version: 1\ntables: {{'*': {{cluster_by: {wanted}}}}}\n")
        policy = load_local_policy(str(file))
        checker = Checker(policy, load_local_catalog((), policy))
        found = checker.check(tables[0]._replace(clustering=None)).findings
        assert [each.message for each in found if each.rule == "DP212"] == [
            f"the policy requires {required}; the clustering columns are unknown"
        ]
    file.write_text("policy_version: 1\ntables: {'*': {cluster_by: [id, ID]}}\n")
    with pytest.raises(PolicyError, match="ID is listed twice"):
        load_local_policy(str(file))


def test_what_of_a_policy_applies_to_a_table(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "policy_version: 1\ntables: {'*': {max_reader_version: 2}, a: {max_writer_version: 6}}\n"
        "waivers: [{rule: DP204, table: b, reason: r, expires: 2099-01-01}]\n"
        "approvals: [{client: trino@455, access: [read], table: c, goal: '--lowest', reason: r, "
        "expires: 2099-01-01, approver: ada}]\n"
    )
    policy = load_local_policy(str(file))
    checker = Checker(policy, load_local_catalog((), policy))
    parts = {name: checker.applicable_key(f"main.{name}", None) for name in "abcde"}
    assert parts["d"] == parts["e"]
    assert len({*parts.values()}) == 4


def test_findings_of_tables_and_logs_together_are_findings_of_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("policy_version: 1\n")
    policy = load_local_policy(str(file))
    checker = Checker(policy, load_local_catalog((), policy))
    finding = Finding("DP309", Severity.WARNING, "a message", "a hint", str(file))
    checker.use.add_finding(finding)
    assert finding in [*checker.use.findings()]
