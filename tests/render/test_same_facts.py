"""Every format of a result states the same facts: what JSON holds, text, Markdown and HTML show."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from deltaproto.certification.entry import Discrepancy
from deltaproto.clients.measurement import MeasuredOutcome
from deltaproto.clients.model import Access, Verdict
from deltaproto.errors import ErrorCode, ExitCode, TableError
from deltaproto.execution.plan_file import load_plans
from deltaproto.execution.prepare import ApplyContext, prepare_plan
from deltaproto.execution.result import ApplyResult, ApplyStatus, StepRecord, StepStatus
from deltaproto.execution.run_log import default_journal_dir
from deltaproto.execution.warning import build_warning
from deltaproto.inspection import Inspection, ReadRequest, Unreadable, inspect_table
from deltaproto.inspection.activity import read_activity
from deltaproto.inspection.interface import ReaderChoice
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Window
from deltaproto.policy.finding import Finding, Severity
from deltaproto.protocol.table_state import ReaderName, SparkSettings
from deltaproto.render.apply import ApplyText, applied_fields
from deltaproto.render.apply_section import finished_line, result_section, warning_section
from deltaproto.render.document.blocks import Document
from deltaproto.render.document.render import document_text
from deltaproto.render.inspection_json import table_fields
from deltaproto.render.inspection_report import InspectionReport
from deltaproto.render.interface import PageFormat
from tests.conftest import Ran
from tests.render.document.test_any_text import Page, is_shown
from tests.render.test_certification import CELLS, certified, written
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
POLICY = """\
policy_version: 1
clients:
  - {client: deltalake/engine@0.25.0, access: [read, append], as: nightly}
  - {client: trino@476, access: [read]}
  - {client: delta-spark@4.4.0, access: [read]}
waivers:
  - {table: "**", rule: DP204, reason: "moves soon", expires: 2999-01-01}
tables:
  "**": {max_reader_version: 1}
"""
PAGES = ("text", "markdown", "html")
START = 1_796_335_200.0
WINDOWS = (Window((5,), 20 * 60, 23 * 60, "UTC", Position(1, 1)),)
FEATURES = ["deletionVectors", "columnMapping", "typeWidening"]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A width at which no cell of a table is folded."""
    monkeypatch.setenv("COLUMNS", "2000")


@pytest.fixture
def table(log: Log) -> str:
    """A table with features in use, some of which can be dropped."""
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "1",
        "delta.enableRowTracking": "true",
        "delta.isolationLevel": "Serializable",
    }
    writers = [*FEATURES, "rowTracking", "domainMetadata", "appendOnly"]
    log.commit(
        0,
        commit_info("CREATE TABLE"),
        protocol(3, 7, FEATURES, writers),
        metadata(properties, schema=schema_string(column("id"))),
    )
    return log.table


@pytest.fixture
def policy(log: Log) -> str:
    path = log.root.parent / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return str(path)


def seen(made: str, format_: str) -> str:
    """What a reader sees of an answer."""
    if format_ == "text":
        return made
    page = Page()
    markup = made if format_ == "html" else MarkdownIt("gfm-like", {"linkify": False}).render(made)
    page.feed(markup)
    page.close()
    return "".join(page.texts)


def missing(facts: Iterable[object], text: str) -> list[str]:
    """The facts that a text does not show, letter case apart."""
    folded = text.casefold()
    return [str(fact) for fact in facts if fact and not is_shown(str(fact).casefold(), folded)]


def pair(fields: dict[str, Any]) -> str:
    return f"({fields['minReaderVersion']},{fields['minWriterVersion']})"


def error_facts(error: dict[str, Any]) -> Iterator[object]:
    yield from (error["code"], error["message"], error["hint"])


def finding_facts(findings: list[dict[str, Any]]) -> Iterator[object]:
    for finding in findings:
        yield from (finding["severity"], finding["rule"], finding["message"], finding["hint"])


def inspection_facts(each: dict[str, Any]) -> Iterator[object]:
    yield each["table"]
    if "error" in each:
        yield from error_facts(each["error"])
    else:
        yield from (each["location"], each["version"], each["reader"], pair(each["protocol"]))
        yield pair(each["lowest_protocol"])
        yield from each["isolation"]["effective"].values()
        for feature in each["features"]:
            yield from (feature["name"], *feature["required_by"])
    for name, answer in (each.get("readers") or {}).items():
        yield name
        if "error" in answer:
            yield from (answer["error"]["code"], answer["error"]["message"])
        else:
            yield from (answer["version"], pair(answer["protocol"]))
    yield from finding_facts(each.get("findings", []))


def check_facts(document: dict[str, Any]) -> Iterator[object]:
    for each in document["verdicts"]:
        yield from (each["client"], each["version"], each["path"], each["declared_as"])
        yield from (each["access"], each["verdict"])
    yield from finding_facts(document["findings"])
    for each in document["suppressed"]:
        yield from (each["rule"], each["message"], each["hint"])
        yield from (each["waived"]["reason"], each["waived"]["expires"])
    for each in document["errors"]:
        yield from error_facts(each["error"])
    for each in document["usability"]:
        yield from (each["client"], each["access"], each["verdict"] if each["offered"] else "-")
    yield from document["notes"]


def plan_facts(document: dict[str, Any]) -> Iterator[object]:
    for plan in document.get("plans", [document]):
        yield plan["table"]
        if "error" in plan:
            yield from error_facts(plan["error"])
            continue
        yield from (plan["goal"]["text"], "@".join(plan["engine"].values()))
        yield from (pair(plan["protocol_before"]), pair(plan["protocol_after"]))
        for step in plan["steps"]:
            yield from (step["id"], step["why"], step["sql"], step["undo"], *step["losses"])
            yield from step["warnings"]
        for each in (*plan["blocked"], *plan["kept"]):
            yield from (each["feature"], each["reason"], each["remedy"])
        for each in plan["clients"]:
            if each["before"] != each["after"]:
                yield from (each["client"], each["access"], each["before"], each["after"])
        for each in plan["alternatives"]:
            yield from (each["name"], each["text"])


@pytest.mark.parametrize("format_", PAGES)
def test_an_inspection(cli: Cli, table: str, format_: str) -> None:
    words = ("inspect", table, f"{table}-gone", "--reader", "log")
    tables = cli(*words, "--format", "json").json["tables"]
    assert tables[0]["features"]
    facts = [fact for each in tables for fact in inspection_facts(each)]
    assert missing(facts, seen(cli(*words, "--format", format_).out, format_)) == []


@pytest.mark.parametrize("format_", PAGES)
def test_what_three_readers_say(table: str, format_: str) -> None:
    found = inspect_table(table, ReadRequest(reader=ReaderChoice.LOG))
    assert isinstance(found, Inspection)
    error = TableError(ErrorCode.CORRUPT_LOG, "commit 0 is no JSON", "restore the file")
    readers = {ReaderName.LOG: found.state, ReaderName.DELTA_RS: error}
    finding = Finding("DP001", Severity.ERROR, "the readers disagree", "ask again", table)
    result = found._replace(readers=readers, findings=(finding,), complete=False)
    gone = Unreadable(f"{table}-gone", error, readers)
    facts = [f for each in (result, gone) for f in inspection_facts(table_fields(each))]
    file = io.StringIO()
    report = InspectionReport(PageFormat(format_), file, color=False, summary=True)
    report.add(result)
    report.add(gone)
    report.close()
    assert missing([*facts, "NOT COMPLETE"], seen(file.getvalue(), format_)) == []


@pytest.mark.parametrize("format_", ["text", "markdown"])
@pytest.mark.parametrize(
    "more", [(), ("--client", "trino"), ("--policy", "P", "--show-suppressed")]
)
def test_a_check(cli: Cli, table: str, policy: str, format_: str, more: tuple[str, ...]) -> None:
    words = ("check", table, f"{table}-gone", *(policy if word == "P" else word for word in more))
    document = cli(*words, "--format", "json").json
    assert (document["findings"] and document["suppressed"]) or "--policy" not in more
    assert missing(check_facts(document), seen(cli(*words, "--format", format_).out, format_)) == []


@pytest.mark.parametrize("format_", PAGES)
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    ("command", "goal", "caution"),
    [
        ("plan-downgrade", ("--lowest", "--include-enabled"), "Some of this cannot be rolled back"),
        ("plan-downgrade", ("--drop", "typeWidening"), "Not all of this can be rolled back"),
        ("plan-downgrade", ("--drop", "appendOnly"), ""),
        ("plan-upgrade", ("--enable", "inCommitTimestamp"), "Every step can be rolled back"),
    ],
)
def test_a_plan(
    cli: Cli,
    table: str,
    command: str,
    goal: tuple[str, ...],
    caution: str,
    many: bool,
    format_: str,
) -> None:
    tables = (table, f"{table}-gone") if many else (table,)
    words = (command, *tables, *goal, "--client", "deltalake/engine@0.25.0")
    document = cli(*words, "--format", "json").json
    facts = [*plan_facts(document), caution]
    assert missing(facts, seen(cli(*words, "--format", format_).out, format_)) == []


@pytest.mark.parametrize("format_", PAGES)
def test_equal_plans(cli: Cli, table: str, tmp_path: Path, format_: str) -> None:
    """Tables with equal plans share a section of a page, and none is missing."""
    tables = [shutil.copytree(table, tmp_path / f"copy{number}") for number in range(3)]
    words = ("plan-downgrade", *map(str, tables), "--drop", "typeWidening")
    document = cli(*words, "--format", "json").json
    facts = [plan["table"] for plan in document["plans"]]
    facts += [step["sql"] for plan in document["plans"] for step in plan["steps"]]
    assert len(facts) > len(tables)
    shown = seen(cli(*words, "--format", format_).out, format_)
    assert missing(facts, shown) == []
    assert shown.count("Steps") == (3 if format_ == "text" else 1)


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_an_exception(cli: Cli, format_: str) -> None:
    words = ("conflicts", "--exception", "ConcurrentAppendException")
    told = cli(*words, "--format", "json").json["exception"]
    facts = [told["name"], told["error_class"], told["sqlstate"], *told["engines"]]
    facts += [each[key] for each in told["causes"] for key in ("name", "when", "avoid", "source")]
    assert missing(facts, seen(cli(*words, "--format", format_).out, format_)) == []


@pytest.mark.parametrize("format_", ["text", "markdown"])
@pytest.mark.parametrize("client", ["deltalake", "trino"])
def test_a_client(cli: Cli, client: str, format_: str) -> None:
    words = ("clients", client)
    (told,) = cli(*words, "--format", "json").json["clients"]
    paths = [path for each in told["ranges"] for path in each["paths"]]
    facts = [bad["what"] for path in paths for bad in path["known_bad"]]
    hazards = [hazard for path in paths for hazard in path["hazards"]]
    facts += [each["verdict"] for each in hazards if each["verdict"] != "ok"]
    facts += [proof["reference"] for each in told["ranges"] for proof in each["evidence"]]
    assert facts
    assert missing(facts, seen(cli(*words, "--format", format_).out, format_)) == []


@pytest.fixture
def drifted(log: Log, cli: Cli) -> tuple[str, str]:
    """A lake and its inventory, with one scan before and one after a change and a damage."""
    lake, where = log.root.parent / "lake", str(log.root.parent / "inventory")
    first, second = (Log(lake / name).commit(0, protocol(1, 2), metadata()) for name in ("a", "b"))
    Log(lake / "c").commit(0, protocol(3, 7, FEATURES, FEATURES), metadata())
    assert cli("scan", str(lake), "--inventory", where).code == 0
    first.commit(1, protocol(1, 4), commit_info("UPGRADE PROTOCOL"))
    (second.root / "_delta_log" / f"{0:020}.json").write_text("{")
    cli("scan", str(lake), "--inventory", where)
    return str(lake), where


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_drift(cli: Cli, drifted: tuple[str, str], format_: str) -> None:
    words = ("drift", drifted[1])
    told = cli(*words, "--format", "json").json
    assert told["changes"]
    facts = [
        "1 table or place could not be read in the later scan: what changed there is not known"
    ]
    facts += [told[which]["scan_id"] for which in ("since", "until")]
    for each in told["changes"]:
        facts += [each[key] for key in ("table", "change", "severity", "feature", "after")]
        if each["commit"]:
            facts += [f"commit {each['commit']['version']}", each["commit"]["operation"]]
    assert missing(facts, seen(cli(*words, "--format", format_).out, format_)) == []


def test_a_scan(cli: Cli, drifted: tuple[str, str], policy: str) -> None:
    words = ("scan", drifted[0], "--policy", policy, "--inventory", drifted[1])
    cli(*words)
    found = cli(*words, "--format", "json").json
    assert found["by_error"]
    assert found["policy"]["verdicts"]
    assert found["features"]
    facts = [f"{found['tables']} tables", *found["notes"]]
    facts += [f"{count} {code}" for code, count in found["by_error"].items()]
    for each in found["first_errors"]:
        facts += [each["table"], each["message"].removeprefix(f"{each['table']}: "), each["hint"]]
    facts += [f"({e['min_reader_version']},{e['min_writer_version']})" for e in found["protocols"]]
    facts += [each["name"] for each in found["features"]]
    for each in found["policy"]["verdicts"]:
        facts += [each["client"], each["access"]]
        facts += [f"{each['tables']} {each['verdict']}"] if each["verdict"] != "ok" else []
    for each in found["policy"]["by_rule"]:
        facts += [each["severity"], each["rule"]]
    facts += [f"{found['policy']['waived']} waived"] if found["policy"]["waived"] else []
    assert missing(facts, cli(*words).out) == []


@pytest.mark.parametrize("format_", ["text", "markdown"])
@pytest.mark.parametrize("name", ["columnMapping", "typeWidening-preview", "checkpointProtection"])
def test_a_feature(cli: Cli, name: str, format_: str) -> None:
    (feature,) = cli("features", name, "--format", "json").json["features"]
    facts = [feature[key] for key in ("name", "kind", "status", "summary", "switch_off")]
    facts += [*feature["since"].values(), *feature["aliases"], *feature["notes"]]
    facts += [*feature["sources"], feature["droppable"]["note"], feature["renamed_to"]]
    facts += [each["act"] for each in feature["enabled_by"]]
    facts += [each["feature"] for each in feature["requires"]]
    for each in feature["droppable"]["refusals"]:
        facts += [each["when"], each["error"], each["remedy"]]
    facts = ["all supported versions" if fact == "all supported" else fact for fact in facts]
    assert missing(facts, seen(cli("features", name, "--format", format_).out, format_)) == []


@pytest.mark.parametrize("format_", ["text", "markdown"])
@pytest.mark.parametrize("command", ["features", "explain"])
def test_a_catalog(cli: Cli, command: str, format_: str) -> None:
    document = cli(command, "--format", "json").json
    facts: list[object] = []
    for each in document.get("features", ()):
        facts += [each["name"], each["status"], each["since"]["delta_spark"]]
    for each in document.get("rules", ()):
        facts += [each["id"], each["name"], each["severity"], each["since"]]
    assert len(facts) > 100
    assert missing(facts, seen(cli(command, "--format", format_).out, format_)) == []


@pytest.mark.parametrize("format_", ["text", "markdown"])
def test_a_rule(cli: Cli, format_: str) -> None:
    (rule,) = cli("explain", "DP140", "--format", "json").json["rules"]
    shown = " ".join(seen(cli("explain", "DP140", "--format", format_).out, format_).split())
    page = re.sub(r"^(## |- )|`", "", rule["page"], flags=re.MULTILINE)
    parts = [" ".join(part.split()) for part in re.split("\n\n|\n(?=#)", page)]
    sentences = [each for part in parts for each in re.split(r"(?<=[.;:]) ", part)]
    assert missing([rule["id"], rule["name"], rule["severity"], *sentences], shown) == []


@pytest.mark.parametrize("format_", PAGES)
def test_a_matrix(cli: Cli, format_: str) -> None:
    words = ("clients", "trino", "--matrix")
    cells = cli(*words, "--format", "json").json["matrix"]
    shown = seen(cli(*words, "--format", format_).out, format_)
    facts = {each["feature"] for each in cells}
    facts |= {each[side] for each in cells for side in ("read", "write") if each[side]}
    if format_ != "text":  # Text shows the versions upright.
        facts |= {f"trino@{each['version']}" for each in cells}
    assert missing(facts, shown) == []
    assert "measured" in shown


@pytest.mark.parametrize("format_", PAGES)
def test_a_certification(format_: str) -> None:
    left = Discrepancy("plain", Access.READ, Verdict.OK, MeasuredOutcome.WRONG, "because")
    found = certified(*CELLS, differences=(left,))
    document = json.loads(written(PageFormat.JSON, found))
    facts = [document["release"], document["kit"]["digest"], document["measured_on"]]
    facts += [f"{n} {outcome}" for outcome, n in document["counts"].items()]
    for each in document["cells"]:
        facts += [each["table"]]
        facts += [each["why"], each["reproduce"]] if each["outcome"] == "WRONG" else []
        facts += [] if each["outcome"] == "not offered" else [each["outcome"], each["operation"]]
    shown = seen(written(PageFormat(format_), found), format_)
    assert missing(facts, shown) == []
    assert ("promises too much on 1" if format_ == "text" else "because") in shown


def apply_facts(result: dict[str, Any]) -> Iterator[object]:
    yield from (result["table"], result["status"], result["message"], result["hint"])
    yield from (result["not_before"], pair(result["protocol_after"]), *result["remarks"])
    for step in result["steps"]:
        yield from (step["id"], *step["operations"], step["message"], *step["remarks"])
        yield from (step["versions"][:1] + step["versions"][-1:])
        yield step["delta_rs"]
    for gate in result["gates"]:
        yield from (gate["name"], gate["message"])
    warning = result["warning"]
    for hit in warning["hits"]:
        yield from (hit["engine"], hit["who"], *hit["exceptions"], *hit["steps"])
    for stream in warning["streams"]:
        yield from (stream["step"], stream["reads"], stream["why"])
    for writer in warning["activity"]["writers"]:
        yield from (writer["engine"], writer["operation"])
    yield from (f"{warning['activity']['commits']} commit", "the next opens", *warning["notes"])


@pytest.mark.parametrize("format_", PAGES)
def test_an_execution(cli: Cli, table: str, tmp_path: Path, format_: str) -> None:
    file = tmp_path / "plan.json"
    words = ("plan-downgrade", table, "--lowest", "--include-enabled", "--format", "json")
    assert cli(*words, "-o", str(file)).code == 0
    (planned,), _ = load_plans([str(file)])
    context = ApplyContext({}, SparkSettings(), default_journal_dir)
    prepared = prepare_plan(planned, context, None, START)
    plan, activity = planned.plan, read_activity(table, {}, SparkSettings())
    assert not isinstance(activity, TableError)
    warning = build_warning(plan, plan.steps, activity, None, WINDOWS, START)
    prepared = prepared._replace(warning=warning)
    steps = (
        StepRecord("s1", StepStatus.DONE, (1, 2), ("UNSET",), remarks=("a remark",)),
        StepRecord("s2", StepStatus.FAILED, message="refused by Spark", delta_rs="agrees"),
    )
    applied = ApplyResult(
        *(planned, ApplyStatus.FAILED, ExitCode.FAILED, "s2 failed", "run it again", steps),
        *(prepared.gates, warning, 2, plan.protocol_after, START, None, ("no audit log",)),
    )
    text = io.StringIO()
    out = ApplyText(text, color=False, redact=str)
    out.warned(prepared)
    for record in steps:
        out.finished(planned, record, many=False)
    out.result(applied)
    blocks = [warning_section(prepared), *(finished_line(record, "") for record in steps)]
    document = Document("Apply", (), [*blocks, result_section(applied)])
    made = text.getvalue() if format_ == "text" else document_text(document, html=format_ == "html")
    assert prepared.gates
    assert missing(apply_facts(applied_fields(applied)), seen(made, format_)) == []


def test_a_refusal(cli: Cli, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    file = str(tmp_path / "plan.json")
    cli("plan-downgrade", table, "--drop", "typeWidening", "--format", "json", "-o", file)
    words = ("apply", file, "--yes", "--quiet")
    (result,) = cli(*words, "--format", "json").json["results"]
    facts = [result["table"], result["status"], result["message"], result["hint"]]
    facts += [fact for gate in result["gates"] for fact in (gate["name"], gate["message"])]
    assert len(facts) > 4
    assert missing(facts, cli(*words).out) == []
