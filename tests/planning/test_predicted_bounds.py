"""Plans predict which bounds readers misread (DP144), and `check` finds the same afterwards.

The statements of these plans change nothing but the metadata, so a hand-made commit stands for
what Spark does.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from deltaproto.clients import requirements
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.bounds import OF_BOUNDS
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import TableClient, cached_verdicts
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.statement import DropFeature, Purge, SetProperties, Statement
from tests.clients.test_filtered_reads import INDEXED, KINDS, NAMED, File, build, tables
from tests.planning.predicted_needs import load, needs_in
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

NOBODY = frozenset[str]()
STORED = frozenset({"long", "text"})
OF_SPARK = File(NOBODY, NOBODY, STORED, STORED, frozenset({"long", "text", "flag"}), True)
NAMES = ["long", "text", "flag"]
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 1,
    "cardinality": 1,
}


def predict(given: PlanInput, *statements: Statement) -> TableRequirements:
    return needs_in(given, predict_table(given, *statements))


def predict_table(given: PlanInput, *statements: Statement) -> Table:
    table = given.table
    for statement in statements:
        outcome = predict_statement(statement, table, Engine())
        if outcome.refusal is not None:
            # Delta refuses columns without statistics.
            reject()
        table = outcome.table
    return table


def of_bounds(needs: TableRequirements) -> tuple[frozenset[str], frozenset[str]]:
    return needs.hazards & OF_BOUNDS, needs.unseen & OF_BOUNDS


def commit_metadata(table: str, names: list[str], properties: dict[str, str]) -> None:
    folder = Path(table) / "_delta_log"
    schema = schema_string(*(column(name, KINDS[name][0]) for name in names))
    actions = (commit_info(), metadata(properties, schema))
    newest = max(int(path.stem) for path in folder.glob("*.json"))
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / f"{newest + 1:020}.json").write_text(text)


def indexing(names: list[str]) -> st.SearchStrategy[dict[str, str]]:
    some = st.lists(st.sampled_from(names), unique=True)
    return st.integers(-1, 5).map(lambda number: {INDEXED: str(number)}) | some.map(
        lambda chosen: {NAMED: ",".join(chosen)}
    )


@settings(max_examples=60, deadline=None)
@given(tables(), st.data())
def test_check_finds_what_a_plan_says_of_other_indexed_columns(
    drawn: tuple[list[str], list[File], dict[str, str]], data: st.DataObject
) -> None:
    names, made, before = drawn
    wanted = data.draw(indexing(names))
    with tempfile.TemporaryDirectory() as folder:
        table = build(Path(folder), names, made, before)
        given = load(table)
        said = predict(given, SetProperties(wanted))
        commit_metadata(table, names, {**before, **wanted})
        assert of_bounds(said) == of_bounds(load(table).needs)


@settings(max_examples=40, deadline=None)
@given(tables(), st.data())
def test_check_finds_what_a_plan_says_of_a_new_column(
    drawn: tuple[list[str], list[File], dict[str, str]], data: st.DataObject
) -> None:
    names, made, before = drawn
    *names, new = names
    types = {"long": "bigint", "text": "string", "ratio": "double", "plain": "double"}
    types |= {"list": "array<bigint>", "struct": "struct<x: bigint, y: boolean>"}
    types |= {"amount": "decimal(20,10)", "cents": "decimal(9,2)", "flag": "boolean"}
    assume(names and new not in before.get(NAMED, ""))
    first = data.draw(st.sampled_from(["", " FIRST"]))
    with tempfile.TemporaryDirectory() as folder:
        table = build(Path(folder), names, made, before)
        given = load(table)
        sql = f"alter table delta.`{table}` add column {new} {types.get(new, new)}{first}"
        (parsed,) = parse_script(sql)
        said = predict(given, parsed.statement)
        commit_metadata(table, [new, *names] if first else [*names, new], before)
        assert of_bounds(said) == of_bounds(load(table).needs)


def verdicts(needs: TableRequirements) -> list[Verdict]:
    found = []
    for name in ("deltalake/pyarrow@1.6.6", "polars@1.12.0"):
        client = ClientCatalog().resolve(name)
        found += [each.verdict for _, each in cached_verdicts(client, Access.READ, needs)]
    return found


@pytest.mark.parametrize(
    ("properties", "verdict"),
    [
        ({NAMED: "long,text"}, Verdict.OK),
        ({INDEXED: "2"}, Verdict.OK),
        ({INDEXED: "3"}, Verdict.WRONG),
    ],
)
def test_a_plan_says_whether_clients_will_misread_bounds(
    properties: dict[str, str], verdict: Verdict, tmp_path: Path
) -> None:
    given = load(build(tmp_path, NAMES, [OF_SPARK], {}))
    assert set(verdicts(given.needs)) == {Verdict.WRONG}
    said = predict(given, SetProperties(properties))
    assert set(verdicts(said)) == {verdict}
    commit_metadata(str(tmp_path), NAMES, properties)
    assert set(verdicts(load(str(tmp_path)).needs)) == {verdict}


def test_what_was_not_read_is_unknown(tmp_path: Path) -> None:
    """A commit adds more files than are read, and none that was read lacks the new column."""
    table = build(tmp_path, ["long", "text"], [], {INDEXED: "1"})
    bounds = {"long": 1, "text": "a"}
    stats = json.dumps({"numRecords": 3, "minValues": bounds, "maxValues": bounds})
    actions = (commit_info(), *(add(f"f{number}", stats=stats) for number in range(101)))
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(text)
    given = load(table)
    assert of_bounds(predict(given, SetProperties({INDEXED: "0"}))) == (NOBODY, NOBODY)
    said = predict(given, SetProperties({INDEXED: "2"}))
    assert of_bounds(said) == (NOBODY, {requirements.UNBOUNDED_COLUMNS})
    assert Verdict.OK not in verdicts(said)


def test_bounds_of_booleans_that_were_not_read_are_unknown(tmp_path: Path) -> None:
    """Every file that was read has bounds, as delta-rs stores them."""
    table = build(tmp_path, ["flag"], [], {})
    stats = json.dumps({"numRecords": 3, "minValues": {"flag": False}, "maxValues": {"flag": True}})
    actions = (commit_info(), *(add(f"f{number}", stats=stats) for number in range(101)))
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(text)
    given = load(table)
    unread = ({requirements.UNREAD_BOOLEAN_BOUNDS}, NOBODY)
    assert of_bounds(given.needs) == unread
    assert of_bounds(predict(given, SetProperties({INDEXED: "5"}))) == unread
    assert of_bounds(predict(given, SetProperties({INDEXED: "0"}))) == (NOBODY, NOBODY)


OF_DELTA_RS = OF_SPARK._replace(least=frozenset(NAMES), most=frozenset(NAMES))


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("insert into {t} values (1, 'a', true)", True),
        ("update {t} set text = 'b' where long = 1", True),
        ("restore table {t} to version as of 0", False),
        ("replace table {t} (long bigint, flag boolean) using delta", False),
    ],
)
def test_new_rows_have_unknown_bounds(sql: str, known: bool, tmp_path: Path) -> None:
    """Delta Spark stores no bounds of booleans, and delta-rs does."""
    (parsed,) = parse_script(sql.format(t=f"delta.`{tmp_path}`"))
    given = load(build(tmp_path, NAMES, [OF_DELTA_RS], {}))
    assert set(verdicts(given.needs)) == {Verdict.OK}
    said = predict(given, parsed.statement)
    assert set(verdicts(said)) == {Verdict.UNKNOWN}
    if known:
        said = predict(given, parsed.statement, SetProperties({NAMED: "long,text"}))
        assert set(verdicts(said)) == {Verdict.OK}


def test_without_statistics_nothing_is_predicted(tmp_path: Path) -> None:
    """A saved inspection and an inventory have no statistics and no schema."""
    given = load(build(tmp_path, NAMES, [OF_SPARK], {NAMED: "long"}))
    saved = given._replace(table=given.table._replace(bounds=None, schema=None))
    after = predict(saved, SetProperties({NAMED: "long,text"}))
    assert of_bounds(after) == (NOBODY, OF_BOUNDS)
    after = predict(saved, SetProperties({"delta.appendOnly": "true"}))
    assert of_bounds(after) == of_bounds(given.needs)


def test_rewriting_an_empty_table_changes_nothing(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    log = Log(tmp_path)
    ids = [
        {"delta__columnMapping__id": n, "delta__columnMapping__physicalName": name}
        for n, name in enumerate(NAMES, 1)
    ]
    fields = (column(name, KINDS[name][0], **each) for name, each in zip(NAMES, ids, strict=True))
    log.commit(0, commit_info(), protocol(2, 5), metadata(mapped, schema_string(*fields)))
    given = load(str(tmp_path))
    assert set(verdicts(predict(given, DropFeature("columnMapping")))) == {Verdict.OK}


def clone(root: Path, *vectors: bool) -> PlanInput:
    log = Log(root)
    features = ["deletionVectors"]
    log.commit(0, commit_info("CLONE"), protocol(3, 7, features, features), metadata({}))
    for number, vector in enumerate(vectors):
        more = {"deletionVector": VECTOR} if vector else {}
        log.commit(number + 1, commit_info(), add(f"file:///source/{number}", **more))
    return load(str(root))


@pytest.mark.parametrize(
    ("vectors", "left"), [((True, True), False), ((True, False), True), ((False,), True)]
)
def test_a_purge_leaves_the_absolute_paths_of_files_without_vectors(
    vectors: tuple[bool, ...], left: bool, tmp_path: Path
) -> None:
    given = clone(tmp_path, *vectors)
    assert requirements.ABSOLUTE_PATHS in given.needs.hazards
    for statement in (DropFeature("deletionVectors"), Purge()):
        assert (requirements.ABSOLUTE_PATHS in predict(given, statement).hazards) is left
    part = f"reorg table delta.`{tmp_path}` where true apply (purge)"
    assert requirements.ABSOLUTE_PATHS in predict(given, parse_script(part)[0].statement).hazards


def test_dropping_vectors_lets_clients_read_a_clone_without_absolute_paths(tmp_path: Path) -> None:
    use = TableClient(ClientCatalog().resolve("athena@3"), (Access.READ,))
    for vectors, blocked in (((True,), False), ((True, False), True)):
        given = clone(tmp_path / str(blocked), *vectors)
        plan = plan_downgrade(given, DowngradeRequest(clients=(use,)))
        assert bool(plan.blocked) is blocked
