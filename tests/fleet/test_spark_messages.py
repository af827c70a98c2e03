"""What executors send back can be sent: a policy's use, and what was checked."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet import spark_checks  # noqa: F401
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy, parse_declared
from deltaproto.policy.table_check import unreadable_table
from tests.support.logs import Log, commit_info, metadata, protocol

POLICIES = sorted(Path("policies").glob("*.yaml"))


@pytest.fixture
def table(log: Log) -> Inspection:
    vectors = protocol(3, 7, ["deletionVectors"], ["deletionVectors", "invariants"])
    log.commit(0, commit_info("CREATE TABLE"), vectors, metadata({"delta.appendOnly": "true"}))
    found = inspect_table(log.table, ReadRequest())
    assert isinstance(found, Inspection)
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.stem)
def test_checks_and_the_use_of_a_policy(table: Inspection, policy: Path) -> None:
    loaded = load_local_policy(str(policy))
    checker = Checker(loaded, load_local_catalog((), loaded))
    checked = checker.check(facts_from_inspection(table))
    checker.observe(checked)
    again = pickle.loads(pickle.dumps([checked]))
    assert again == [checked]
    other = Checker(loaded, load_local_catalog((), loaded))
    other.use.merge(pickle.loads(pickle.dumps(checker.use)))
    assert [*other.use.findings()] == [*checker.use.findings()]


def test_who_can_use_a_table(table: Inspection) -> None:
    catalog = load_local_catalog(())
    checker = Checker(Policy(source=""), catalog, survey=catalog.clients())
    checked = checker.check(facts_from_inspection(table))
    assert checked.usability
    assert pickle.loads(pickle.dumps(checked)) == checked


def test_errors() -> None:
    found = pickle.loads(
        pickle.dumps(unreadable_table("t", TableError(ErrorCode.TIMEOUT, "a", "b")))
    )
    assert (found.error.code, found.error.message, found.error.hint) == ("timeout", "a", "b")


def test_declared_clients(table: Inspection) -> None:
    checker = Checker(
        Policy(source=""), load_local_catalog(()), named=(parse_declared("trino@476"),)
    )
    checked = checker.check(facts_from_inspection(table))
    assert pickle.loads(pickle.dumps(checked)) == checked
