"""What releases of Delta Spark did to their writers in flight, against what we say of it.

`benchmarks/measure_conflicts.py` recorded it, one release after the other; the suite itself runs
one Spark only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.clash import clashes
from deltaproto.planning.ddl.parse import parse
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.logged_schema import from_log
from deltaproto.planning.plan import Clash
from deltaproto.planning.route import carried_out
from deltaproto.planning.survival import Writers
from deltaproto.planning.table import Table
from deltaproto.protocol.conflicts.matrix import MatrixEngine, cells
from deltaproto.protocol.conflicts.operation import Operation
from deltaproto.protocol.isolation import IsolationLevel
from deltaproto.protocol.protocol import Protocol
from tests.support.failures import collect_failures

RECORDED = json.loads(Path(__file__).with_name("measured_writers.json").read_text())
RELEASES = [each["delta-spark"] for each in RECORDED]
WRITERS = {"delta-spark"}
LOSERS = {
    "insert": Operation.INSERT,
    "update": Operation.UPDATE,
    "delete": Operation.DELETE,
    "merge": Operation.MERGE,
}


def cases(*, keyed: bool) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        (each, case)
        for each in RECORDED
        for case in each["measured"]
        if (case["table"] == "keys") is keyed and not case["winner"].startswith("{")
    ]


def exceptions(each: dict[str, Any], case: dict[str, Any], writers: Writers) -> set[str]:
    """The exceptions that a plan names for writers that make data commits on Delta Spark."""
    made = each["tables"][case["table"]]
    table = Table(
        Protocol.stored(made["protocol"]),
        made["configuration"],
        vectors=False,
        widened=False,
        v2_checkpoint=False,
        row_ids=False,
        traced=frozenset(),
        aged=frozenset(),
    ).with_schema(from_log(made["schema"]))
    engine = parse_engine(f"delta-spark@{each['delta-spark']}")
    (parsed,) = parse(case["winner"].format(t="t"))
    outcome = carried_out(parsed.statement, table, engine)
    found = clashes(parsed.statement, table, outcome, writers)
    return {clash.exception for clash in found if _every_data_write(clash)}


def _every_data_write(clash: Clash) -> bool:
    return (clash.engine, clash.loser) == ("delta-spark", "writer") and "appends" in clash.who


def test_writers_of_each_release_fail_as_recorded() -> None:
    with collect_failures() as failures:
        for each, case in cases(keyed=False):
            release = each["delta-spark"]
            with failures.of(release, case["table"], case["winner"], *case["settings"].values()):
                writers = Writers(frozenset({release}), case["settings"])
                found = exceptions(each, case, writers)
                raised = case["raised"]
                assert (raised in found) if raised else not found, found


def test_a_release_that_is_not_known_may_be_any() -> None:
    """A plan for writers that are not known names the exception if any release raised it."""
    by_probe: dict[str, dict[str, str | None]] = {}
    for each, case in cases(keyed=False):
        if not case["settings"]:
            probe = json.dumps([case["table"], case["winner"]])
            by_probe.setdefault(probe, {})[each["delta-spark"]] = case["raised"]
    newest = RECORDED[-1]
    with collect_failures() as failures:
        for each, case in cases(keyed=False):
            probe = json.dumps([case["table"], case["winner"]])
            if each is not newest or case["settings"]:
                continue
            with failures.of(probe):
                raised = set(by_probe[probe].values()) - {None}
                assert raised <= exceptions(each, case, Writers())


def test_a_feature_that_the_writers_release_does_not_know_is_refused() -> None:
    raised = {
        case["raised"]
        for each in RECORDED
        for case in each["measured"]
        if case["winner"].startswith("{")
    }
    assert raised == {"DeltaUnsupportedTableFeatureException"}


@pytest.mark.parametrize("release", RELEASES)
def test_identity_columns_are_as_recorded(release: str) -> None:
    found = {
        (str(cell.operation), str(cell.against)): cell
        for cell in cells(MatrixEngine.DELTA_SPARK, IsolationLevel.SERIALIZABLE, identity=True)
    }
    seen = 0
    with collect_failures() as failures:
        for each, case in cases(keyed=True):
            if each["delta-spark"] != release:
                continue
            loser, winner = (case[name].split()[0].upper() for name in ("loser", "winner"))
            winner = {"ALTER": "METADATA CHANGE"}.get(winner, winner)
            cell = found[loser, winner]
            seen += 1
            with failures.of(case["loser"], case["winner"]):
                if case["raised"]:
                    assert case["raised"] in cell.exceptions
                else:
                    assert cell.conflict != "yes"
    assert seen > 30 or release < "3.3"


def test_two_inserts_that_make_identity_values_conflict_in_every_release() -> None:
    raised = {
        case["raised"]
        for _, case in cases(keyed=True)
        if case["loser"].startswith("insert into {t} (id")
        and case["winner"].startswith("insert into {t} (id")
    }
    assert raised == {"MetadataChangedException"}
    unknown = {
        (cell.operation, cell.against): cell
        for cell in cells(MatrixEngine.DELTA_SPARK, IsolationLevel.SERIALIZABLE, identity=None)
    }
    cell = unknown[Operation.INSERT, Operation.INSERT]
    assert (cell.conflict, cell.exceptions) == ("maybe", ("MetadataChangedException",))
    assert "identity columns" in cell.when


def test_every_line_of_releases_was_recorded() -> None:
    lines = {release.rpartition(".")[0] for release in RELEASES}
    assert lines == {"3.2", "3.3", "4.0", "4.1", "4.2", "4.3", "4.4"}
    assert all(len(each["measured"]) > 60 for each in RECORDED)
