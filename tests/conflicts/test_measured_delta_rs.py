"""What releases of delta-rs did to a commit that came late, against the matrix.

`benchmarks/measure_delta_rs_conflicts.py` recorded it, one release after the other.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure_delta_rs_conflicts import BY_HAND, measure
from benchmarks.measure_delta_rs_conflicts import MESSAGES as MEASURED_MESSAGES
from deltaproto.conflicts import Conflict, MatrixEngine, Operation, build_cells, exceptions
from deltaproto.conflicts.delta_rs import NEWEST, VARIANTS, parse_release
from deltaproto.conflicts.operation import Cell
from deltaproto.planning.conflict_impact import find_step_conflicts
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.writer_survival import EVERY_WRITE
from deltaproto.protocol.isolation import IsolationLevel
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.support.failures import collect_failures

RECORDED = json.loads(Path(__file__).with_name("measured_delta_rs.json").read_text())
RELEASES = sorted(
    {release for case in RECORDED for release in case["became"]},
    key=lambda text: parse_release(text) or (),
)
FIRST_WORDS = {
    "append that": Operation.METADATA_CHANGE,
    "append of": Operation.STREAMING_APPEND,
    "append": Operation.INSERT,
    "overwrite": Operation.DELETE,
    "delete": Operation.DELETE,
    "update": Operation.UPDATE,
    "merge": Operation.MERGE,
    "optimize.compact": Operation.OPTIMIZE,
    "optimize.z_order": Operation.OPTIMIZE_ZORDER,
    "restore": Operation.RESTORE,
    "set_table_properties": Operation.METADATA_CHANGE,
    "add_constraint": Operation.METADATA_CHANGE,
    "add_columns": Operation.METADATA_CHANGE,
    "create or replace": Operation.METADATA_CHANGE,
    "add_feature": Operation.PROTOCOL_CHANGE,
    "protocol": Operation.PROTOCOL_CHANGE,
}
NAMES = {text: name for name, text in VARIANTS.items()}
NAMES["VersionAlreadyExists"] = NAMES["MaxCommitAttempts"]


def operation(name: str) -> Operation:
    return next(found for words, found in FIRST_WORDS.items() if name.startswith(words))


def matrix(release: str) -> dict[tuple[Operation, Operation], Cell]:
    found = parse_release(release)
    assert found is not None
    level = IsolationLevel.SERIALIZABLE
    every = build_cells(MatrixEngine.DELTA_RS, level, release=found)
    return {(cell.operation, cell.against): cell for cell in every}


def reloads(release: str, loser: str) -> bool:
    """Whether the loser reloads the table before it writes, so that it met nothing."""
    writes = loser.startswith(("append", "overwrite"))
    return loser == "create or replace" or (writes and (parse_release(release) or ()) < (1, 1))


def test_item_8_every_release_does_what_its_matrix_says() -> None:
    with collect_failures() as failures:
        for release in RELEASES:
            known = matrix(release)
            for case in RECORDED:
                if (said := case["became"].get(release)) is None:
                    continue
                if reloads(release, case["loser"]):
                    assert said in ("ok", "refused") or said.startswith("other")
                    continue
                with failures.of(release, case["loser"], case["winner"], said):
                    cell = known[operation(case["loser"]), operation(case["winner"])]
                    if said == "ok":
                        assert cell.conflict is not Conflict.YES
                    elif said == "wrong":
                        assert cell.conflict is Conflict.WRONG
                    else:
                        assert NAMES[said] in cell.exceptions


def test_item_8_no_cell_claims_more_than_was_seen() -> None:
    """Each exception and each verdict of a cell was met, save those that take another engine."""
    with collect_failures() as failures:
        for release in RELEASES:
            seen: dict[tuple[Operation, Operation], set[str]] = {}
            for case in RECORDED:
                said = case["became"].get(release)
                if said is not None and not reloads(release, case["loser"]):
                    pair = operation(case["loser"]), operation(case["winner"])
                    seen.setdefault(pair, set()).add(said)
            for pair, met in seen.items():
                cell = matrix(release)[pair]
                with failures.of(release, *pair, met):
                    assert (cell.conflict is Conflict.NO) == (met == {"ok"})
                    assert (cell.conflict is Conflict.WRONG) == ("wrong" in met)


def test_item_8_the_matrix_of_at_least_two_releases_differs() -> None:
    assert RELEASES[-1] == ".".join(map(str, NEWEST))
    verdicts = {
        tuple((cell.conflict, cell.exceptions) for cell in matrix(release).values())
        for release in RELEASES
    }
    assert len(verdicts) >= 5


def test_item_8_every_message_is_recognized() -> None:
    for text, name in MEASURED_MESSAGES.items():
        if name not in VARIANTS.values():
            continue
        said = {"MetadataChanged": " since last commit.", "ProtocolChanged": " since last commit:"}
        said["ConcurrentDeleteDelete"] = " your transaction deletes."
        found, _ = exceptions.find_exception(f"Commit failed: {text}{said.get(name, '')}")
        assert found is not None, text
        assert found.name is NAMES[name]


def test_item_8_plans_agree_with_the_matrix() -> None:
    """A plan names delta-rs writers for a step that stores metadata, as every writer fails."""
    table = bare_table(Protocol(1, 2), {})
    (parsed,) = parse_script("ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    outcome = predict_statement(parsed.statement, table, parse_engine("delta-spark@4.4.0"))
    (found,) = (
        clash
        for clash in find_step_conflicts(parsed.statement, table, outcome)
        if clash.engine == "delta-rs"
    )
    assert (found.exception, found.loser) == ("CommitFailedError", "writer")
    assert found.who == EVERY_WRITE
    known = matrix(RELEASES[-1])
    for loser in (Operation.INSERT, Operation.UPDATE, Operation.MERGE, Operation.OPTIMIZE):
        assert known[loser, Operation.METADATA_CHANGE].conflict is Conflict.YES


def test_item_8_the_installed_release_does_what_was_recorded() -> None:
    installed = version("deltalake")
    recorded = {
        (case["loser"], case["winner"]): case["became"][installed]
        for case in RECORDED
        if installed in case["became"]
    }
    losers = ["append", "delete", "merge of id 1", "optimize.compact", "set_table_properties"]
    winners = ["append", "delete where id = 1", "optimize.compact", "add_columns", *BY_HAND]
    found = measure(losers, winners)
    assert len(found) == len(losers) * len(winners)
    assert {pair: recorded[pair] for pair in found} == found
