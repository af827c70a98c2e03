"""No text of a table, policy, inventory, path or argument is obeyed by a terminal or a CI system.

Hostile texts stand in every place that can hold one. What each command writes in each format is
looked at byte by byte: standard output, standard error and the file of `--output`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltaproto.certification.entry import Discrepancy
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
)
from deltaproto.clients.model import Access, Verdict
from deltaproto.render.certification import Certified, write_certified
from deltaproto.render.interface import PageFormat
from tests.certification.made import case
from tests.conftest import Ran
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
CONTROLS = "\r\x0b\x0c\x1b[31m\x1b]0;x\x07\x7f\x85\x9b31m\u2028\u2029\u202e\u2066\u200f\ufeff"
ENDS = f"x\n::error title=owned::a{CONTROLS}\n  ::warning::b ##[error]c ##vso[task.setvariable]d"
STARTS = "::error title=owned::first"
# Folded at any column, a line may begin anywhere in them.
LONG = "::stop-commands::owned " * 9
JOINED = "::add-mask::owned" * 9
EVIL = (ENDS, STARTS, LONG, JOINED)
NAMED = [name.replace("/", "_") for name in EVIL]

FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
)
COMMAND = re.compile(r"^\s*::.*", re.MULTILINE)
ANYWHERE = re.compile(r"##\w*\[")
_PLACE = r"(?:file=[^:,\n]*,line=\d+,col=\d+,)?"
OWN = re.compile(rf"^::(?:error|warning|notice) {_PLACE}title=[^:\n]*::")


def obeyed(text: str, format_: str) -> list[str]:
    """The lines that a terminal or a CI system would obey."""
    text = text.encode("utf-8", "backslashreplace").decode()
    found = [line for line in text.split("\n") if FORBIDDEN.search(line) or ANYWHERE.search(line)]
    if format_ == "github":
        return found + [line for line in text.splitlines() if not OWN.match(line)]
    return found + COMMAND.findall(text)


def assert_inert(ran: Ran, format_: str) -> None:
    assert obeyed(ran.out, format_)[:3] == []
    assert obeyed(ran.err, "text")[:3] == []
    if format_ in ("json", "sarif", "gitlab") and ran.out:
        json.loads(ran.out)
    if format_ == "jsonl":
        assert [json.loads(line) for line in ran.out.splitlines()]
    assert "internal error" not in ran.out + ran.err


def hostile_table(root: Path, evil: str, *, name: str) -> str:
    """A table with `evil` wherever a log can hold a text."""
    log = Log(root / name)
    info = commit_info(
        evil,
        engineInfo=evil,
        userName=evil,
        userId=evil,
        clusterId=evil,
        isolationLevel=evil,
        txnId=evil,
        operationParameters={evil: evil, "predicate": evil, "properties": json.dumps({evil: evil})},
        userMetadata=evil,
        job={"jobName": evil, "jobId": evil},
        notebook={"notebookId": evil},
    )
    described = metadata(
        {
            evil: evil,
            "delta.isolationLevel": evil,
            "delta.columnMapping.mode": evil,
            "delta.enableDeletionVectors": evil,
            "delta.logRetentionDuration": evil,
            f"delta.constraints.{evil}": f"id > '{evil}'",
        },
        schema_string(
            column(evil, evil, **{evil: evil, "delta__generationExpression": evil}),
            column("nested", {"type": "struct", "fields": [column(evil, "variant")]}),
            column("default", "long", CURRENT_DEFAULT=evil),
        ),
        [evil],
        id=evil,
    )
    described["metaData"] |= {"name": evil, "description": evil, "format": {"provider": evil}}
    domain = {"domainMetadata": {"domain": evil, "configuration": evil, "removed": False}}
    clustering = {
        "domainMetadata": {
            "domain": "delta.clustering",
            "configuration": json.dumps({"clusteringColumns": [[evil]], "domainName": evil}),
            "removed": False,
        }
    }
    log.commit(0, info, protocol(1, 2), metadata(), add(evil))
    log.commit(1, info, protocol(3, 7, [evil, "deletionVectors"], [evil, "deletionVectors"]))
    log.commit(2, info, described, domain, clustering, add(evil), {"txn": {"appId": evil}})
    return log.table


def damaged_table(root: Path, evil: str, *, name: str) -> Iterator[str]:
    """Tables whose errors quote the log."""
    commits: tuple[Any, ...] = (
        {"protocol": {"minReaderVersion": evil, "minWriterVersion": 2}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": evil}},
        {"protocol": {"minReaderVersion": 9, "minWriterVersion": 9, "writerFeatures": [evil]}},
        {"metaData": {"id": "a", "schemaString": "{}", "configuration": [evil]}},
        {evil: evil},
    )
    for number, action in enumerate(commits):
        yield Log(root / f"{name}{number}").commit(0, protocol(1, 2), action).table
    yield Log(root / f"{name}-raw").raw(0, evil.encode("utf-8", "surrogatepass")).table


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile tables in folders with hostile names."""
    root = tmp_path_factory.mktemp("hostile-text")
    for number, evil in enumerate(EVIL):
        below = root / f"{NAMED[number]}"
        below.mkdir()
        hostile_table(below, evil, name=NAMED[number])
        list(damaged_table(below, evil, name=f"damaged{number}"))
    return root


@pytest.fixture(scope="module")
def tables(lake: Path) -> list[str]:
    return [str(log.parent) for log in sorted(lake.rglob("_delta_log"))]


@pytest.fixture(scope="module")
def policy(lake: Path) -> str:
    """A policy with hostile texts wherever it takes any."""
    document = {
        "policy_version": 1,
        "clients": [
            {"client": "trino@476", "access": ["read"], "as": LONG},
            {"client": "duckdb@1.4.1", "access": ["read"], "as": STARTS},
            {"client": "ours@1", "access": ["read"], "as": STARTS},
        ],
        "tables": {
            "*": {
                "forbid_features": ["deletionVectors"],
                "require_properties": {STARTS: LONG, "delta.isolationLevel": JOINED},
            },
            STARTS: {"max_reader_version": 1},
        },
        "waivers": [
            {"rule": "DP201", "table": STARTS, "reason": LONG, "expires": date(2099, 1, 1)},
            {"rule": "DP101", "table": "*", "reason": STARTS, "expires": date(2099, 1, 1)},
            {"rule": "DP101", "table": "*", "reason": JOINED, "expires": date(1999, 1, 1)},
        ],
        "define": {
            "ours": {
                "name": STARTS,
                "versions": "dotted",
                "ranges": [
                    {
                        "from": "1",
                        "note": LONG,
                        "read": {"legacy": [1], "features": [STARTS]},
                        "access": ["read"],
                        "evidence": [{"kind": "documentation", "reference": JOINED}],
                    }
                ],
            }
        },
    }
    file = lake / f"{STARTS}.yaml"
    file.write_text(yaml.safe_dump(document, allow_unicode=False))
    return str(file)


PER_TABLE = {
    ("inspect",): ("text", "json", "jsonl", "markdown", "html"),
    ("inspect", "--activity"): ("text", "json", "markdown", "html"),
    ("inspect", "--reader", "delta-rs"): ("text", "json", "markdown"),
    ("check", "--client", "trino@476"): ("text", "json", "jsonl", "markdown", "sarif", "junit"),
    ("check", "--client", "duckdb@1.4.1", "--show-suppressed"): ("text", "markdown", "github"),
    ("plan-downgrade", "--lowest"): ("text", "markdown", "html"),
    ("plan-upgrade", "--enable", "deletionVectors"): ("text", "markdown", "html"),
}
ONE_TABLE = {
    ("history",): ("text", "json", "jsonl", "markdown", "html"),
    ("discover",): ("text", "json", "jsonl", "markdown", "html"),
    ("conflicts",): ("text", "json", "jsonl", "markdown"),
    ("conflicts", "--sql", f"DELETE FROM t WHERE a = '{ENDS}'"): ("text", "json", "markdown"),
    ("conflicts", "--at", "1970-01-01T00:00:01Z", "--exception", "ConcurrentAppendException"): (
        "text",
        "json",
        "markdown",
    ),
}


@pytest.mark.parametrize("words", PER_TABLE, ids=" ".join)
def test_all_tables_at_once(cli: Cli, tables: list[str], words: tuple[str, ...]) -> None:
    for format_ in PER_TABLE[words]:
        ran = cli(*words, *tables, f"{tables[0]}-missing", STARTS, ENDS, "--format", format_)
        assert ran.out, ran.err
        assert_inert(ran, format_)


@pytest.mark.parametrize("words", ONE_TABLE, ids=lambda words: " ".join(words[:2]).split("\n")[0])
def test_one_table_at_a_time(cli: Cli, tables: list[str], words: tuple[str, ...]) -> None:
    for table in (*tables, f"{tables[0]}-missing", STARTS, ENDS):
        for format_ in ONE_TABLE[words]:
            ran = cli(*words, f"./{table}" if table in EVIL else table, "--format", format_)
            assert ran.out + ran.err
            assert_inert(ran, format_)


@pytest.mark.parametrize(
    "format_", ["text", "json", "jsonl", "markdown", "sarif", "junit", "github", "gitlab"]
)
def test_a_check_with_a_hostile_policy(
    cli: Cli, tables: list[str], policy: str, format_: str
) -> None:
    ran = cli("check", *tables, "--policy", policy, "--show-suppressed", "--format", format_)
    assert ran.out, ran.err
    assert "owned" in ran.out
    assert_inert(ran, format_)


def wrong_policies() -> Iterator[dict[str, Any]]:
    for evil in EVIL:
        yield {evil: evil}
        yield {"policy_version": evil}
        yield {"clients": [{"client": evil}]}
        yield {"clients": [{"client": "trino@476", "access": [evil]}]}
        yield {"clients": [{"client": "trino@476", evil: 1}]}
        yield {"tables": {f"{{{evil}": {}}}
        yield {"tables": {"*": {"isolation": evil, evil: 1, "require_properties": {evil: evil}}}}
        yield {"tables": {"*": {"maintenance_windows": [{"days": [evil], "timezone": evil}]}}}
        yield {"waivers": [{"rule": evil, "table": "*", "reason": evil, "until": evil}]}
        yield {"approvals": [{"client": evil, "table": evil, "approver": evil, "until": evil}]}
        yield {"severities": {evil: evil, "DP101": evil}}
        yield {"define": {evil: {"name": evil}, "ours": {"name": evil, "versions": evil}}}


def test_errors_of_policies_and_catalogs(cli: Cli, tables: list[str], tmp_path: Path) -> None:
    file = tmp_path / f"{STARTS}\n{STARTS}"
    for document in wrong_policies():
        file.write_text(yaml.safe_dump({"policy_version": 1, **document}))
        for format_ in ("text", "json"):
            ran = cli("check", tables[0], "--policy", str(file), "--format", format_)
            assert ran.code == 2
            assert_inert(ran, format_)
        assert_inert(cli("clients", "--client-file", str(file)), "text")
    for evil in EVIL:
        file.write_text(evil)
        assert_inert(cli("check", tables[0], "--policy", str(file)), "text")


def test_inventories_and_reports(
    cli: Cli, lake: Path, policy: str, tmp_path: Path, tables: list[str]
) -> None:
    inventory = tmp_path / STARTS
    roots = [str(lake / name) for name in NAMED]
    for format_ in ("text", "json"):
        ran = cli(
            "scan", *roots, "--inventory", str(inventory), "--policy", policy, "--format", format_
        )
        assert ran.out, ran.err
        assert_inert(ran, format_)
        for table in (table for table in tables if "damaged" not in table):
            Log.commit.__get__(_At(table))(
                3 if format_ == "text" else 4,
                commit_info(STARTS, engineInfo=ENDS, userName=LONG),
                protocol(3, 7, list(EVIL), [*EVIL, format_]),
            )
    for format_ in ("text", "json", "jsonl", "markdown"):
        ran = cli("drift", str(inventory), "--format", format_)
        assert ran.out, ran.err
        assert_inert(ran, format_)
        assert_inert(cli("check", str(inventory), "--policy", policy, "--format", format_), format_)
    for format_ in ("html", "markdown", "json"):
        for more in ((), ("--policy", policy)):
            ran = cli("report", str(inventory), *more, "--format", format_)
            assert ran.out, ran.err
            assert "owned" in ran.out
            assert_inert(ran, format_)
    for words in (
        ("drift", str(inventory), "--since", STARTS),
        ("report", str(inventory), "--scan", ENDS),
        ("scan", *roots, "--include", ENDS),
        ("scan", *roots, "--exclude", STARTS, "--include", STARTS),
        ("scan", ENDS),
        ("scan", f"./{STARTS}"),
        ("drift", ENDS),
        ("report", STARTS),
    ):
        assert_inert(cli(*words), "text")


class _At:
    """A log that is there already."""

    def __init__(self, table: str) -> None:
        self.folder = Path(table, "_delta_log")

    def path(self, version: int, suffix: str) -> Path:
        return self.folder / f"{version:020d}{suffix}"


def test_saved_inspections(cli: Cli, tables: list[str], tmp_path: Path) -> None:
    file = tmp_path / f"{NAMED[0]}.json"
    file.write_text(cli("inspect", *tables, "--format", "json").out)
    for format_ in ("text", "markdown", "junit", "github", "sarif"):
        ran = cli("check", str(file), "--client", "trino@476", "--format", format_)
        assert ran.out, ran.err
        assert_inert(ran, format_)
    ran = cli("check", *tables, "--client", "trino@476", "--baseline", str(file))
    assert_inert(ran, "text")
    for evil in EVIL:
        file.write_text(json.dumps({"schema_version": evil, "command": evil, "tables": [evil]}))
        assert_inert(cli("check", str(file), "--client", "trino@476"), "text")


ARGUMENTS = (
    ("features", "{}"),
    ("explain", "{}"),
    ("clients", "{}"),
    ("clients", "trino@{}"),
    ("clients", "--client-file", "{}"),
    ("certify", "{}"),
    ("certify", "trino@{}"),
    ("certify", "x@1", "--adapter", "{}"),
    ("certify", "x@1", "--command", "true", "--operation", "{}"),
    ("certify", "x@1", "--command", "true", "--kit", "{}", "--only", "{}"),
    ("conflicts", "--operation", "{}"),
    ("conflicts", "--exception", "{}"),
    ("conflicts", "--runtime", "{}"),
    ("conflicts", "--isolation", "{}"),
    ("conflicts", "--sql", "{}"),
    ("conflicts", "--at", "{}", "--exception", "ConcurrentAppendException", "t"),
    ("inspect", "t", "--storage-option", "{}"),
    ("inspect", "t", "--format", "{}"),
    ("inspect", "t", "--version", "{}"),
    ("inspect", "t", "--output", "{}/x"),
    ("history", "t", "--since", "{}"),
    ("check", "t", "--client", "{}"),
    ("check", "t", "--client", "trino@476", "--access", "{}"),
    ("check", "t", "--client", "trino@476", "--baseline", "{}"),
    ("check", "t", "--policy", "{}"),
    ("scan", "--list", "{}"),
    ("scan", "--config", "{}"),
    ("scan", ".", "--parallel", "{}"),
    ("plan-upgrade", "t", "--set", "{}"),
    ("plan-upgrade", "t", "--enable", "{}"),
    ("plan-downgrade", "t", "--for-client", "{}"),
    ("inspect", "--{}"),
    ("{}",),
)


@pytest.mark.parametrize("words", ARGUMENTS, ids=" ".join)
def test_arguments(
    cli: Cli, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for evil in EVIL:
        ran = cli(*(word.format(evil) for word in words))
        assert_inert(ran, "text")


def test_lists_and_settings(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for evil in EVIL:
        (tmp_path / "list").write_text(evil)
        assert_inert(cli("scan", "--list", "list"), "text")
        for document in ({evil: evil}, {"scan": {evil: evil}}, {"scan": {"roots": [evil]}}):
            (tmp_path / "scan.yaml").write_text(yaml.safe_dump(document))
            assert_inert(cli("scan", "--config", "scan.yaml"), "text")
        monkeypatch.setenv("DELTAPROTO_FORMAT", evil.replace("\0", ""))
        assert_inert(cli("inspect", "t"), "text")
        monkeypatch.delenv("DELTAPROTO_FORMAT")


def test_catalogs_of_clients(cli: Cli, tmp_path: Path) -> None:
    for number, evil in enumerate(EVIL):
        name = f"ours{number}"
        gate = {"legacy": [1], "features": ["deletionVectors"]}
        bad = {"features": ["deletionVectors"], "access": ["read"], "what": evil, "reference": evil}
        entry = {
            "id": name,
            "name": evil,
            "versions": "dotted",
            "ranges": [
                {
                    "from": "1",
                    "note": evil,
                    "path": NAMED[number],
                    "read": gate,
                    "known_bad": [bad],
                    "evidence": [{"kind": "documentation", "reference": evil}],
                }
            ],
        }
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(entry))
        for words in ((), (name,), (f"{name}@1",), ("--matrix",), (name, "--matrix")):
            for format_ in ("text", "markdown", "json", *(["html"] if "--matrix" in words else [])):
                ran = cli("clients", *words, "--client-file", str(file), "--format", format_)
                assert ran.out, ran.err
                assert_inert(ran, format_)


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("format_", list(PageFormat))
def test_what_a_certified_client_says(format_: PageFormat, evil: str) -> None:
    for outcomes in (
        (MeasuredOutcome.WRONG,),
        (MeasuredOutcome.WRONG, MeasuredOutcome.CRASHED, MeasuredOutcome.REFUSED),
    ):
        cells = [
            MeasurementCell(evil, operation, outcome, evil)
            for operation, outcome in zip(ResultColumn, outcomes, strict=False)
        ]
        measured = Measurement(
            evil, evil, evil, evil, 1, evil, evil, evil, evil, (evil,), 2, 12.3, tuple(cells)
        )
        left = Discrepancy(evil, Access.READ, Verdict.OK, MeasuredOutcome.WRONG, evil)
        made = Certified(measured, {evil: case(evil)}, (evil, "--kit", evil), (left,))
        file = io.StringIO()
        write_certified(made, format_, file, color=False)
        assert_inert(Ran(0, file.getvalue(), ""), str(format_))
