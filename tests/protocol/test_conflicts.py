"""The conflict matrices against the documents' tables, typed in here once more, cell by cell."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.conflicts import (
    Cell,
    Conflict,
    ExceptionName,
    MatrixEngine,
    Operation,
    build_cells,
    exceptions,
    operation,
    releases,
)
from deltaproto.conflicts.matrix import default_level
from deltaproto.conflicts.notes import layout_advice, matrix_notes
from deltaproto.conflicts.operation import CHANGE_OPERATIONS, ExceptionRecord
from deltaproto.protocol.isolation import DECLARABLE_LEVELS, IsolationLevel
from tests.support.failures import each_row

S, WS = IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE
DATABRICKS, SPARK = MatrixEngine.DATABRICKS, MatrixEngine.DELTA_SPARK

# The page's lower triangle: INSERT, UDM (UPDATE, DELETE, MERGE INTO), OPTIMIZE with and without
# ZORDER BY. Keys: level, row-level concurrency, deletion vectors.
GROUPS = {
    "INSERT": ["INSERT"],
    "UDM": ["UPDATE", "DELETE", "MERGE"],
    "OPTIMIZE": ["OPTIMIZE"],
    "ZORDER": ["OPTIMIZE ZORDER"],
}
DOCUMENTED = {
    ("Serializable", True, True): """
        INSERT   no
        UDM      maybe maybe
        OPTIMIZE no    no    no
        ZORDER   no    maybe maybe maybe""",
    ("WriteSerializable", True, True): """
        INSERT   no
        UDM      no    maybe
        OPTIMIZE no    no    no
        ZORDER   no    maybe maybe maybe""",
    ("Serializable", False, True): """
        INSERT   no
        UDM      maybe maybe
        OPTIMIZE no    no    no
        ZORDER   no    maybe maybe maybe""",
    ("WriteSerializable", False, True): """
        INSERT   no
        UDM      no    maybe
        OPTIMIZE no    no    no
        ZORDER   no    maybe maybe maybe""",
    ("Serializable", False, False): """
        INSERT   no
        UDM      maybe maybe
        OPTIMIZE no    maybe maybe
        ZORDER   no    maybe maybe maybe""",
    ("WriteSerializable", False, False): """
        INSERT   no
        UDM      no    maybe
        OPTIMIZE no    maybe maybe
        ZORDER   no    maybe maybe maybe""",
}
LAYOUTS = list(
    itertools.product(DECLARABLE_LEVELS, (False, True), (None, False, True), (False, True))
)


def documented() -> list[tuple[str, bool, bool, str, str, str]]:
    found = []
    for (level, row_level, vectors), text in DOCUMENTED.items():
        rows = [line.split() for line in text.strip().splitlines()]
        for row, *answers in rows:
            for column, answer in zip(GROUPS, answers, strict=False):
                for pair in itertools.product(GROUPS[row], GROUPS[column]):
                    found.append((level, row_level, vectors, *pair, answer))
    return found


def laid_out(
    engine: MatrixEngine, level: IsolationLevel, *, row_level: bool | None = False, **layout: Any
) -> tuple[Cell, ...]:
    return build_cells(
        engine, level, by_row=CHANGE_OPERATIONS if row_level else frozenset(), **layout
    )


def matrix(
    engine: MatrixEngine, level: IsolationLevel, **layout: bool | None
) -> dict[tuple[str, str], Cell]:
    return {
        (str(cell.operation), str(cell.against)): cell for cell in laid_out(engine, level, **layout)
    }


def every_matrix() -> list[tuple[Cell, ...]]:
    found = [
        laid_out(DATABRICKS, level, row_level=row, deletion_vectors=dv, identity=identity)
        for level, row, dv, identity in LAYOUTS
    ]
    found += [
        build_cells(SPARK, level, identity=i) for level in DECLARABLE_LEVELS for i in (False, True)
    ]
    return found


class TestEveryMatrix:
    def test_it_has_each_pair_once_and_every_cell_is_explained(self) -> None:
        pairs = list(itertools.product(Operation, Operation))
        for found in every_matrix():
            assert [(cell.operation, cell.against) for cell in found] == pairs
            for cell in found:
                assert cell.source
                assert cell.when.endswith(".")
                assert cell.avoid
                assert (cell.conflict is Conflict.NO) == (not cell.exceptions), cell
                assert len(set(cell.exceptions)) == len(cell.exceptions)

    def test_every_exception_can_be_met_somewhere(self) -> None:
        met = {name for found in every_matrix() for cell in found for name in cell.exceptions}
        assert met == set(ExceptionName)

    @pytest.mark.parametrize("engine", MatrixEngine)
    @given(st.sampled_from(Operation), st.sampled_from(Operation), st.booleans())
    def test_serializable_never_allows_more(
        self, engine: MatrixEngine, one: Operation, other: Operation, identity: bool
    ) -> None:
        order = [Conflict.NO, Conflict.MAYBE, Conflict.YES, Conflict.WRONG]
        strict = matrix(engine, S, identity=identity)[one, other]
        loose = matrix(engine, WS, identity=identity)[one, other]
        assert order.index(loose.conflict) <= order.index(strict.conflict)
        assert set(loose.exceptions) <= set(strict.exceptions)

    def test_a_level_that_no_table_may_declare_has_no_matrix(self) -> None:
        with pytest.raises(ValueError, match="SnapshotIsolation"):
            build_cells(DATABRICKS, IsolationLevel.SNAPSHOT_ISOLATION)

    def test_item_6_the_levels_of_tables_that_declare_none(self) -> None:
        assert default_level(DATABRICKS) is WS
        assert default_level(SPARK) is S


class TestDatabricks:
    @each_row(("level", "row_level", "vectors", "one", "other", "answer"), documented())
    def test_item_12_the_documented_matrices(
        self, level: str, row_level: bool, vectors: bool, one: str, other: str, answer: str
    ) -> None:
        found = matrix(
            DATABRICKS, IsolationLevel(level), row_level=row_level, deletion_vectors=vectors
        )
        assert found[one, other].conflict == answer
        assert found[other, one].conflict == answer
        assert found[one, other].source.startswith("Databricks")

    @each_row(("level", "row", "dv", "identity"), LAYOUTS)
    def test_the_matrix_is_symmetric_as_the_page_speaks_of_pairs(
        self, level: IsolationLevel, row: bool, dv: bool | None, identity: bool
    ) -> None:
        found = matrix(DATABRICKS, level, row_level=row, deletion_vectors=dv, identity=identity)
        for (one, other), cell in found.items():
            mirrored = found[other, one]
            assert cell[2:] == mirrored[2:]
            assert "pair" in cell.when

    def test_item_8_and_60_identity_columns_rule_out_concurrency(self) -> None:
        for level, row, dv, _ in LAYOUTS:
            layout = {"row_level": row, "deletion_vectors": dv, "identity": True}
            for cell in laid_out(DATABRICKS, level, **layout):
                assert cell.conflict is Conflict.YES
        assert "no concurrent transactions" in " ".join(
            matrix_notes(DATABRICKS, WS, row_level=False, identity=True)
        )

    def test_item_23_an_insert_that_reads_is_a_merge(self) -> None:
        assert "behaves like MERGE" in operation.OPERATION_MEANINGS[Operation.INSERT]
        assert "INSERT that reads" in operation.OPERATION_MEANINGS[Operation.MERGE]

    def test_items_24_25_29_59_62_67_row_level_limits_are_told(self) -> None:
        told = " ".join(matrix_notes(DATABRICKS, WS, row_level=True, identity=False))
        for words in (
            "struct, array or map",
            "non-deterministic",
            "correlated",
            "14.2 a MERGE requires Photon and an explicit predicate",
            "from 14.3 LTS on it requires neither",
            "14.0 and 14.1",
            "rowLevelConcurrencyPreview",
            "costs run time",
            "limitations of deletion vectors",
        ):
            assert words in told
        off = " ".join(matrix_notes(DATABRICKS, WS, row_level=False, identity=False))
        assert "Partitioned tables" in off
        cell = matrix(DATABRICKS, WS, row_level=True)["MERGE", "UPDATE"]
        assert "row-level resolution" in cell.when
        assert "same row" in cell.when

    @pytest.mark.parametrize("level", DECLARABLE_LEVELS)
    @pytest.mark.parametrize("row_level", [False, True])
    def test_item_26_zorder_may_conflict_with_deletion_vectors(
        self, level: IsolationLevel, row_level: bool
    ) -> None:
        found = matrix(DATABRICKS, level, row_level=row_level, deletion_vectors=True)
        for other in ("UPDATE", "DELETE", "MERGE", "OPTIMIZE", "OPTIMIZE ZORDER", "REORG"):
            assert found["OPTIMIZE ZORDER", other].conflict is Conflict.MAYBE
            assert "ZORDER BY" in found["OPTIMIZE ZORDER", other].avoid
        assert found["OPTIMIZE ZORDER", "INSERT"].conflict is Conflict.NO

    @each_row(("level", "row", "dv", "identity"), LAYOUTS)
    def test_reorg_behaves_as_optimize_unless_it_upgrades(
        self, level: IsolationLevel, row: bool, dv: bool | None, identity: bool
    ) -> None:
        found = matrix(DATABRICKS, level, row_level=row, deletion_vectors=dv, identity=identity)
        for other in map(str, Operation):
            assert found["REORG", other].conflict == found["OPTIMIZE", other].conflict
            if found["REORG", other].conflict is not Conflict.YES:
                assert "UNIFORM" in found["REORG", other].when
        assert "UNIFORM" in found["PROTOCOL CHANGE", "REORG"].when

    def test_items_51_54_metadata_and_protocol_changes_conflict_with_everything(self) -> None:
        for found in (matrix(DATABRICKS, S), matrix(DATABRICKS, WS, row_level=True)):
            for name, other in itertools.product(
                ("METADATA CHANGE", "PROTOCOL CHANGE"), map(str, Operation)
            ):
                assert found[name, other].conflict is Conflict.YES
            assert "evolves the schema" in found["INSERT", "METADATA CHANGE"].when

    def test_item_27_two_runs_of_one_stream(self) -> None:
        for engine in MatrixEngine:
            cell = matrix(engine, WS)["STREAMING APPEND", "STREAMING APPEND"]
            assert cell.exceptions == (ExceptionName.TRANSACTION,)
            assert "checkpoint location" in cell.avoid

    def test_items_41_42_and_61_partitions_or_row_level(self) -> None:
        cell = matrix(DATABRICKS, WS)["UPDATE", "UPDATE"]
        assert "literal" in cell.avoid
        assert "deletion vectors" in cell.avoid
        (jobs, merge) = layout_advice(DATABRICKS, ["day", "a`b"], row_level=False)
        assert "`day`, `a``b`" in jobs
        assert "target.`day` = <literal> AND target.`a``b` = <literal>" in merge
        for engine in MatrixEngine:
            assert "many distinct values" in layout_advice(engine, [], row_level=False)[0]
        assert "different rows" in layout_advice(DATABRICKS, [], row_level=True)[0]

    def test_tables_with_identity_columns_are_not_advised_to_enable_deletion_vectors(self) -> None:
        for columns in ([], ["day"]):
            (line,) = layout_advice(DATABRICKS, columns, row_level=False, identity=True)
            assert "one at a time" in line
            assert "Enable deletion vectors" not in line
        assert layout_advice(SPARK, ["day"], row_level=False, identity=True)[0].startswith(
            "Concurrent jobs"
        )

    def test_where_identity_columns_are_not_known_the_documented_cells_say_so(self) -> None:
        found = matrix(DATABRICKS, WS, identity=None)
        for pair, cell in matrix(DATABRICKS, WS, identity=False).items():
            assert found[pair].conflict == cell.conflict
            spared = cell.conflict is Conflict.NO
            assert ("identity columns" in found[pair].when) is spared, pair

    def test_item_56_history_and_content_may_disagree(self) -> None:
        told = " ".join(matrix_notes(DATABRICKS, WS, row_level=False, identity=False))
        assert "history and content may disagree" in told
        assert "was never in the log" in told

    def test_item_57_serializable_makes_blind_appends_conflict(self) -> None:
        assert matrix(DATABRICKS, S)["UPDATE", "INSERT"].exceptions == (ExceptionName.APPEND,)
        assert "blind appends" in " ".join(
            matrix_notes(DATABRICKS, S, row_level=False, identity=False)
        )

    @pytest.mark.parametrize("one", ["UPDATE", "DELETE", "MERGE"])
    def test_item_58_several_changes_may_read_a_blind_append(self, one: str) -> None:
        for row_level in (False, True):
            cell = matrix(DATABRICKS, WS, row_level=row_level)[one, "INSERT"]
            assert cell.conflict is Conflict.NO
            assert "several concurrent UPDATE, DELETE or MERGE" in cell.when
            assert "at most one" in cell.avoid


# Rows lose, columns win: INS UDM REWRITES(OPTIMIZE, ZORDER, REORG) META PROTO STREAM
SPARK_GROUPS = {
    "I": ["INSERT"],
    "U": ["UPDATE", "DELETE", "MERGE"],
    "O": ["OPTIMIZE", "OPTIMIZE ZORDER", "REORG"],
    "M": ["METADATA CHANGE"],
    "P": ["PROTOCOL CHANGE"],
    "T": ["STREAMING APPEND"],
}
# A ConcurrentAppend, R ConcurrentDeleteRead, D ConcurrentDeleteDelete, M MetadataChanged,
# P ProtocolChanged, T ConcurrentTransaction, W ConcurrentWrite; ! always, - never.
SPARK_SERIALIZABLE = """
      I   U   O   M   P   T
    I -   -   -   M   PM  -
    U A   ARD ARD M   PM  A
    O -   RD  RD  M   PM  -
    M ARD ARD ARD M!  PM  ARD
    P W   W   W   MP  P!  W
    T -   -   -   M   PM  T
"""
LETTERS = dict(zip("ARDMPTW", ExceptionName, strict=True))


class TestDeltaSpark:
    @pytest.mark.parametrize("level", DECLARABLE_LEVELS)
    def test_the_matrix_is_that_of_the_conflict_checker(self, level: IsolationLevel) -> None:
        found = matrix(SPARK, level)
        header, *lines = SPARK_SERIALIZABLE.strip().splitlines()
        for line in lines:
            row, *answers = line.split()
            for column, answer in zip(header.split(), answers, strict=True):
                # WriteSerializable spares blind appends, and nothing else.
                spared = level is WS and row == "U" and column in "IT"
                expected = "-" if spared else answer
                for pair in itertools.product(SPARK_GROUPS[row], SPARK_GROUPS[column]):
                    names = tuple(LETTERS[c] for c in expected if c in LETTERS)
                    assert found[pair].exceptions == names, pair
                    always = expected.endswith("!")
                    wanted = "no" if expected == "-" else "yes" if always else "maybe"
                    assert found[pair].conflict == wanted, pair

    def test_winner_and_loser_are_not_the_same(self) -> None:
        found = matrix(SPARK, S)
        assert found["UPDATE", "INSERT"].conflict is Conflict.MAYBE
        assert found["INSERT", "UPDATE"].conflict is Conflict.NO

    def test_what_writers_survive_and_what_aborts_them_is_named(self) -> None:
        found = matrix(SPARK, WS)
        metadata = found["INSERT", "METADATA CHANGE"].when
        protocol = found["UPDATE", "PROTOCOL CHANGE"].when
        assert len(releases.SURVIVED_METADATA) == 5
        for change in releases.SURVIVED_METADATA:
            assert change.what in metadata
            assert change.what in protocol
        for change in releases.SURVIVED_PROTOCOL:
            assert change.what in protocol
        for text in releases.ABORTING_METADATA:
            assert text in metadata
        assert "DROP FEATURE" in protocol

    def test_a_compaction_starts_its_commit_again_by_itself(self) -> None:
        for other in ("UPDATE", "METADATA CHANGE", "PROTOCOL CHANGE"):
            assert "automatically" in matrix(SPARK, S)["OPTIMIZE", other].when

    def test_identity_values_are_metadata(self) -> None:
        found = matrix(SPARK, WS, identity=True)
        makers = ("INSERT", "MERGE", "STREAMING APPEND")
        for pair in itertools.product((*makers, "METADATA CHANGE", "PROTOCOL CHANGE"), makers):
            assert ExceptionName.METADATA in found[pair].exceptions
            assert found[pair].conflict is Conflict.MAYBE
        plain = matrix(SPARK, WS)
        assert found["UPDATE", "INSERT"] == plain["UPDATE", "INSERT"]
        assert found["OPTIMIZE", "INSERT"] == plain["OPTIMIZE", "INSERT"]

    def test_where_identity_columns_are_not_known_inserts_may_conflict(self) -> None:
        found, plain = matrix(SPARK, S, identity=None), matrix(SPARK, S)
        cell = found["INSERT", "INSERT"]
        assert (cell.conflict, cell.exceptions) == ("maybe", (ExceptionName.METADATA,))
        assert cell.when.startswith("If the table has identity columns")
        assert found["UPDATE", "INSERT"] == plain["UPDATE", "INSERT"]

    def test_it_has_no_row_level_concurrency(self) -> None:
        with pytest.raises(ValueError, match="row-level"):
            build_cells(SPARK, S, by_row=CHANGE_OPERATIONS)

    def test_delta_rs_is_not_promised_to_abort(self) -> None:
        for engine in MatrixEngine:
            last = matrix_notes(engine, S, row_level=False, identity=False)[-1]
            assert "pause" in last
            assert "delta-rs#3665" in last


def record_of(name: ExceptionName) -> ExceptionRecord:
    return next(record for record in exceptions.RECORDS if record.name is name)


class TestExceptions:
    @pytest.mark.parametrize("name", ExceptionName)
    def test_item_68_each_has_causes_and_remedies(self, name: ExceptionName) -> None:
        record = record_of(name)
        assert record.causes
        for cause in record.causes:
            assert all(cause)
        assert record.error_class.startswith("DELTA_")
        assert ("databricks" in record.engines) == (name is not ExceptionName.WRITE)

    def test_items_28_and_69_the_three_causes_of_a_changed_protocol(self) -> None:
        upgrade, replace, empty = record_of(ExceptionName.PROTOCOL).causes
        assert (upgrade.name, replace.name, empty.name) == (
            "upgrade",
            "concurrent create or replace",
            "empty path",
        )
        assert "newer runtime" in upgrade.avoid
        assert "create the table" in empty.avoid

    def test_item_70_an_append_is_avoided_with_disjoint_predicates(self) -> None:
        first = record_of(ExceptionName.APPEND).causes[0]
        assert "explicit, disjoint predicates" in first.avoid
        assert "literal" in first.avoid

    def test_item_54_a_write_that_updates_the_schema(self) -> None:
        causes = record_of(ExceptionName.METADATA).causes
        assert any(cause.name == "a write that updates the schema" for cause in causes)

    @pytest.mark.parametrize("name", ExceptionName)
    def test_names_are_found_in_any_spelling(self, name: ExceptionName) -> None:
        record = record_of(name)
        short = name.removesuffix("Exception")
        for text in (
            str(name),
            name.upper(),
            short,
            short.lower(),
            f"io.delta.exceptions.{name}",
            f"delta.exceptions.captured.{name}",
            record.error_class,
            f"[{record.error_class}]",
            f"{record.error_class}.WITHOUT_HINT",
        ):
            assert exceptions.find_exception(text)[0] is record, text

    @given(st.text(max_size=40))
    def test_no_text_breaks_the_look_ups(self, text: str) -> None:
        for search in (exceptions.find_exception, operation.find_operation):
            found, near = search(text)
            assert found is None or near == ()

    def test_the_nearest_names_are_offered(self) -> None:
        assert exceptions.find_exception("ConcurentApend")[1][0] == "ConcurrentAppendException"
        assert operation.find_operation("UPSERT")[1]
        assert operation.find_operation("OPTIMISE")[1][0] == "OPTIMIZE"

    @pytest.mark.parametrize("name", Operation)
    def test_operations_are_found_in_any_spelling(self, name: Operation) -> None:
        for text in (str(name), name.lower(), name.replace(" ", "-"), name.replace(" ", "_")):
            assert operation.find_operation(text) == (name, ())
        assert operation.find_operation("merge into")[0] is Operation.MERGE
