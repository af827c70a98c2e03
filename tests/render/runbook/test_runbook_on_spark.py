"""The commands of a runbook, taken from the text and carried out, lead where it says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from markdown_it import MarkdownIt

from deltaproto.tables.log.reader import LogReader
from tests.conftest import Ran
from tests.planning.random_tables import age
from tests.recording.delta_spark import DeltaSpark, StatementError
from tests.support.engines import needs_drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANSWERS = re.compile(r"the error `(\w+)`")


class Listing(NamedTuple):
    """A fenced block, and the text between it and the next."""

    language: str
    text: str
    after: str


def listings(markdown: str, chapter: str) -> list[Listing]:
    """The fenced blocks of one chapter, by a Markdown parser that is not ours."""
    chapter = re.split(r"^## ", markdown.partition(f"## {chapter}\n")[2], flags=re.M)[0]
    lines = chapter.splitlines()
    tokens = [t for t in MarkdownIt().parse(chapter) if t.type == "fence" and t.map]
    found = []
    for number, token in enumerate(tokens):
        end = tokens[number + 1].map[0] if number + 1 < len(tokens) else len(lines)
        after = "\n".join(lines[token.map[1] : end])
        found.append(Listing(token.info, token.content, after))
    return found


def run_statements(delta_spark: DeltaSpark, markdown: str, path: Path) -> int:
    """Run every statement as a person would; return how many checks showed what was expected."""
    checks = 0
    answer: dict[str, str] = {}
    for language, text, after in listings(markdown, "Commands"):
        if language == "sql":
            statement = text.strip().removesuffix(";")
            expected = _ANSWERS.search(after)
            if statement.startswith("SHOW"):
                answer = {row["key"]: row["value"] for row in delta_spark.sql(statement)}
            elif expected:
                with pytest.raises(StatementError, match=expected[1]):
                    delta_spark.sql(statement)
            else:
                delta_spark.sql(statement)
            if "Wait until" in after:
                age(str(path))
        elif language == "text":
            wanted = dict(line.split(maxsplit=1) for line in text.splitlines())
            told = {k: v for k, v in answer.items() if k in wanted or "delta.feature." in k}
            assert told == wanted
            checks += 1
    return checks


CASES = {
    "vectors": (
        (
            "create table {t} (id bigint) using delta tblproperties "
            "('delta.enableDeletionVectors'='true')",
            "insert into {t} select id from range(0, 100, 1, 1)",
            "delete from {t} where id % 10 = 3",
        ),
        ("plan-downgrade", "--drop", "deletionVectors", "--history", "truncate"),
    ),
    "lowest": (
        (
            "create table {t} (id bigint) using delta tblproperties "
            "('delta.enableTypeWidening'='true','delta.enableChangeDataFeed'='true')",
            "insert into {t} select id from range(0, 20, 1, 1)",
            "alter table {t} add constraint positive check (id >= 0)",
        ),
        ("plan-downgrade", "--lowest", "--include-enabled", "--history", "keep"),
    ),
    "upgrade": (
        ("create table {t} (id bigint) using delta", "insert into {t} values (1), (2)"),
        ("plan-upgrade", "--enable", "rowTracking", "columnMapping"),
    ),
}


NEEDED = {"vectors": [needs_drop("deletionVectors")]}


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDED.get(name, [])) for name in CASES])
def test_the_statements_in_order(
    name: str, delta_spark: DeltaSpark, tmp_path: Path, cli: Callable[..., Ran]
) -> None:
    statements, (command, *words) = CASES[name]
    path = tmp_path / "it's a table"
    for statement in statements:
        delta_spark.sql(statement.format(t=f"delta.`{path}`"))
    count = f"select count(*) from delta.`{path}`"
    rows = delta_spark.sql(count)
    plan = tmp_path / "plan.json"
    made = cli(command, str(path), *words, "--format", "json", "-o", str(plan))
    assert made.code == 0, made.err
    markdown = cli("runbook", str(plan)).out
    assert run_statements(delta_spark, markdown, path) >= 1
    verification = markdown.partition("## Verification")[2]
    versions = re.search(r"expected: \((\d),(\d)\)", verification)
    assert versions is not None
    protocol = LogReader().read(str(path)).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == tuple(
        map(int, versions.groups())
    )
    assert delta_spark.sql(count) == rows


@pytest.mark.slow
@pytest.mark.spark
@needs_drop("deletionVectors")
def test_the_pyspark_script_and_the_shell_commands(
    spark: SparkSession, tmp_path: Path, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("by_script", "by_apply"):
        spark.sql(f"create table delta.`{tmp_path / name}` (id bigint) using delta")
    for name in ("by_script", "by_apply"):
        words = ("--enable", "deletionVectors", "--format", "json", "-o", f"{name}.json")
        assert cli("plan-upgrade", name, *words).code == 0
    book = cli("runbook", "by_script.json").out
    (script,) = [each.text for each in listings(book, "Commands") if each.language == "python"]
    exec(script, {"spark": spark})
    book = cli("runbook", "by_apply.json").out
    shell = [each.text for each in listings(book, "Commands") if each.language == "shell"]
    assert shell == ["deltaproto apply by_apply.json\n"]
    main = f"{sys.executable} -m deltaproto"
    command = shell[0].strip().replace("deltaproto", main, 1)
    ran = subprocess.run(
        f"{command} --yes --no-progress", shell=True, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = [LogReader().read(name).protocol for name in ("by_script", "by_apply")]
    assert found[0] == found[1]
    assert "deletionVectors" in found[0].supported
