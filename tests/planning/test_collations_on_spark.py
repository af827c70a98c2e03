"""Tables with collated strings, which other engines write, and statements that Spark's grammar
or types refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from tests.planning.oracle import agree, came_true, execute, look, planned, predict
from tests.planning.test_unlisted_on_spark import ID, a_struct, an_array, column, write_commit
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

LOWER = "spark.UTF8_LCASE"


def collated(type_: Any, **at: str) -> dict[str, Any]:
    return column(type_, __COLLATIONS={name.replace("_", "."): text for name, text in at.items()})


A_MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
TABLES: dict[str, dict[str, Any]] = {
    "string": collated("string", c=LOWER),
    "of a library": collated("string", c="icu.UNICODE_CI"),
    "default": collated("string", c="spark.UTF8_BINARY"),
    "default in an array": collated(an_array("string"), c_element="spark.UTF8_BINARY"),
    "array": collated(an_array("string"), c_element=LOWER),
    "array of arrays": collated(an_array(an_array("string")), c_element_element=LOWER),
    "map": collated(A_MAP, c_value=LOWER),
    "struct": column(a_struct({**collated("string", n=LOWER), "name": "n"})),
    "of another path": collated("string", d=LOWER),
    "plain": column("string"),
    "text of a length": column("string", __CHAR_VARCHAR_TYPE_STRING="varchar(3)"),
    "number": column("integer"),
    "variant": column("variant"),
}
UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "provider": (collated("string", c="nope.X"), "COLLATION_INVALID_PROVIDER"),
    "no provider": (collated("string", c="UTF8_LCASE"), "INTERNAL_ERROR"),
    "name": (collated("string", c="spark.NOPE"), "COLLATION_INVALID_NAME"),
    "version": (collated(an_array("string"), c_element="icu.de.75.1"), "COLLATION_INVALID_NAME"),
}
OF_UNKNOWN = (
    "alter table {t} set tblproperties ('team' = 'a')",
    "alter table {t} add columns (n int)",
    "alter table {t} add constraint small check (id < 9)",
    "alter table {t} cluster by (id)",
    "insert into {t} (id) values (1)",
    "delete from {t} where id = 1",
    "update {t} set id = 2",
    "truncate table {t}",
    "optimize {t}",
)
STATEMENTS = (
    "alter table {t} set tblproperties ('team' = 'a')",
    "alter table {t} add columns (n int)",
    "alter table {t} alter column c comment 'x'",
    "alter table {t} alter column c type string",
    "alter table {t} alter column c type string collate UTF8_LCASE",
    "alter table {t} alter column c type string collate UNICODE_CI",
    "alter table {t} alter column c type string collate unicode",
    "insert into {t} (id) values (1)",
    "insert into {t} values ()",
    "insert into {t} () values (1)",
    "insert into {t} (id) values (), ()",
    "optimize {t} zorder by (c)",
    "alter table {t} cluster by (c)",
    "alter table {t} alter column c type string collate utf8_binary",
    "alter table {t} add columns (s struct<a: string collate utf8_binary>)",
    "alter table {t} add columns (m map<string collate UTF8_BINARY, int>)",
)


OLD: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}


def write_log(path: Path, name: str) -> str:
    """A table without rows."""
    protocol: dict[str, Any] = OLD
    if name == "variant":
        listed = {"readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **listed}
    return write_commit(path, "collated", protocol, {}, ID, TABLES[name])


@needs_delta("4.4", "the types of the tables")
@pytest.mark.parametrize("name", TABLES)
def test_each_statement_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    of_elements = ("alter table {t} alter column c.element type string collate unicode",)
    statements = (*STATEMENTS, *(of_elements if name == "array" else ()))
    for number, statement in enumerate(statements):
        path = write_log(tmp_path / str(number), name)
        sql = statement.format(t=f"delta.`{path}`")
        _, said = predict(path, sql)
        happened = execute(delta_spark, path, sql)
        if said.refusal is not None and not said.refusal.sure:
            continue
        agree(said, happened)
        if said.commits and said.refusal is None:
            came_true(said, look(path), statement)


@pytest.mark.parametrize("name", TABLES)
def test_plans_are_blocked_where_spark_stores_no_collation(name: str, tmp_path: Path) -> None:
    plan = plan_upgrade(planned(write_log(tmp_path / "t", name)), UpgradeRequest(set={"team": "a"}))
    kept = {
        "default",
        "default in an array",
        "of another path",
        "plain",
        "text of a length",
        "number",
        "variant",
    }
    errors = [each.error for each in plan.blocked]
    assert errors == ([] if name in kept else ["DELTA_UNSUPPORTED_DATA_TYPES"])


def test_verdicts_are_unknown_after_a_statement_that_writes_the_default_collation(
    tmp_path: Path,
) -> None:
    path = write_commit(tmp_path / "t", "collated", OLD, {}, ID)
    for kind in ("string collate utf8_binary", "array<string collate utf8_binary>"):
        _, said = predict(path, f"alter table delta.`{path}` add columns (c {kind})")
        assert said.refusal is None
        assert "collation" in said.table.unpredicted
    _, said = predict(path, f"alter table delta.`{path}` add columns (c string)")
    assert said.table.unpredicted == ""


@needs_delta("4.4", "the types of the tables")
@pytest.mark.parametrize("name", UNKNOWN)
def test_spark_reads_no_table_whose_collation_it_does_not_have(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    stored, error = UNKNOWN[name]
    path = write_commit(tmp_path / "t", "collated", OLD, {}, ID, stored)
    for statement in OF_UNKNOWN:
        sql = statement.format(t=f"delta.`{path}`")
        _, said = predict(path, sql)
        agree(said, execute(delta_spark, path, sql))
        assert said.refusal is not None
        assert said.refusal.error == error


PARTS = (
    "alter table {t} alter column c.element first",
    "alter table {t} alter column c.element after id",
    "alter table {t} alter column c.element comment 'x'",
    "alter table {t} alter column c.element drop not null",
    "alter table {t} alter column m.key drop not null",
    "alter table {t} alter column m.value drop not null",
    "alter table {t} alter column m.key type bigint",
    "alter table {t} alter column c.nope comment 'x'",
    "alter table {t} alter column id.x type int",
    "alter table {t} rename column c.element to x",
    "alter table {t} rename column m.value to x",
    "alter table {t} rename column c.nope to x",
    "alter table {t} drop column c.element",
    "alter table {t} drop column m.key",
    "alter table {t} drop column id.x",
    "alter table {t} drop column nope.x",
)


@needs_delta("4.4", "the checks of this release")
@pytest.mark.parametrize("mode", ["none", "name"])
def test_parts_of_collections(mode: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    for number, statement in enumerate(PARTS):
        stored = {"delta.columnMapping.mode": mode}
        protocol: dict[str, Any] = {"minReaderVersion": 2, "minWriterVersion": 5}
        columns = (ID, column(an_array("integer")), {**column(A_MAP), "name": "m"})
        path = write_commit(tmp_path / str(number), "parts", protocol, stored, *columns)
        sql = statement.format(t=f"delta.`{path}`")
        _, said = predict(path, sql)
        agree(said, execute(delta_spark, path, sql))


# Each with letters that only backticks allow, or a number as a name.
NAMES = (
    "alter table {t} add column ü int",
    "alter table {t} add columns (x int, x_ß string)",
    "alter table {t} add column s struct<é: int>",
    "alter table {t} add column 中 int",
    "alter table {t} add column a٣ int",
    "alter table {t} rename column id to ê",
    "alter table {t} drop column é",
    "alter table {t} alter column é comment 'x'",
    "alter table {t} add constraint cé check (id > 0)",
    "alter table {t} add constraint c check (é > 0)",
    "alter table {t} drop constraint é",
    "alter table {t} drop constraint if exists é",
    "alter table {t} set tblproperties (é = 'x')",
    "alter table {t} unset tblproperties (a.é)",
    "alter table {t} cluster by (é)",
    "alter table {t} drop feature é",
    "optimize {t} zorder by (é)",
    "optimize {t} where é = 1",
    "reorg table {t} where é = 1 apply (purge)",
    "update {t} set id = é",
    "delete from {t} where é = 3",
    "insert into {t} (é) values (1)",
    "insert into {t} select 1 as é",
    "merge into {t} as é using (select 1 id) s on é.id = s.id when matched then delete",
    "replace table {t} (é int) using delta",
    "alter table {t} add constraint a.b check (id > 0)",
    "alter table {t} add constraint a-b check (id > 0)",
    "alter table {t} add constraint a primary key (id)",
)


@needs_delta("4.4", "the grammar of this release")
def test_names_that_the_grammar_refuses(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = write_commit(tmp_path / "t", "names", OLD, {}, ID)
    for statement in NAMES:
        sql = statement.format(t=f"delta.`{path}`")
        _, said = predict(path, sql)
        agree(said, execute(delta_spark, path, sql))
        assert said.refusal is not None
        assert said.refusal.sure


@needs_delta("4.4", "the grammar of this release")
def test_other_letters_in_backticks_and_strings(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = write_commit(tmp_path / "t", "names", OLD, {}, ID)
    for statement in (
        "alter table {t} add columns (`ü` int comment 'é', 1a int)",
        "alter table {t} add constraint `A.é` check (`ü` > 0 and 'ß' <> 'é')",
        "insert into {t} (id, `ü`) values (1, 2) -- é",
        "alter table {t} drop constraint `a.É`",
        "alter table {t} set tblproperties ('é' = 'ü')",
    ):
        sql = statement.format(t=f"delta.`{path}`")
        _, said = predict(path, sql)
        agree(said, execute(delta_spark, path, sql))
        assert said.refusal is None, statement


@needs_delta("4.4", "the versions of IcebergCompat")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_iceberg_has_no_string_with_a_collation_since_version_2(
    version: int, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    protocol: dict[str, Any] = {"minReaderVersion": 2, "minWriterVersion": 5}
    path = write_commit(tmp_path / "t", "collated", protocol, {}, ID, TABLES["default"])
    sql = (
        f"alter table delta.`{path}` set tblproperties ('delta.columnMapping.mode' = 'name', "
        f"'delta.enableIcebergCompatV{version}' = 'true')"
    )
    _, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))
    assert (said.refusal is not None) is (version > 1)
