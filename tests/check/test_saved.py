"""Saved inspections: the same verdicts as of the tables themselves, and never a guess."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import ErrorCode, SavedError, UsageError
from deltaproto.inspection.saved import read_saved
from deltaproto.policy.context import TableFacts
from deltaproto.render.interface import SCHEMA_VERSION
from tests.conftest import Ran
from tests.support.failures import each_row
from tests.support.logs import Log, add, metadata, protocol

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
Checked = Callable[..., dict[str, Any]]
CLIENTS = (
    "trino@400",
    "trino@476",
    "deltalake@1.6.6",
    "polars@1.39.0",
    "databricks-runtime@14.3 LTS",
    "bigquery",
    "nightly",
)
VECTORS = protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])


@pytest.fixture
def fleet(make: Callable[..., str], tmp_path: Path) -> list[str]:
    """Tables of every sort: legacy, in use or not, mapped, forbidden, unreadable."""
    by_id = ["columnMapping", "deletionVectors"]
    unknown = protocol(3, 7, ["zzzReaderThing"], ["zzzReaderThing", "zzzWriterThing"])
    return [
        make("legacy", protocol(1, 2)),
        make("mapped", protocol(2, 5), metadata({"delta.columnMapping.mode": "id"})),
        make("unused", VECTORS),
        make("used", VECTORS, metadata({"delta.enableDeletionVectors": "true"})),
        make("by_id", protocol(3, 7, by_id, by_id), metadata({"delta.columnMapping.mode": "Id"})),
        make("unknown", unknown),
        make("invalid", protocol(1, 7, None, ["deletionVectors"])),
        make("future", protocol(4, 8)),
        make("level", protocol(1, 2), metadata({"delta.isolationLevel": "nonsense"})),
        Log(tmp_path / "empty").table,
        str(tmp_path / "missing"),
    ]


@pytest.fixture
def strict(policy: Callable[[str], str]) -> str:
    return policy(
        "define:\n  nightly:\n    name: ours\n    versions: none\n    ranges:\n"
        "      - read: {legacy: [1, 2], features: [deletionVectors], unused: [columnMapping]}\n"
        "        write: {legacy: [1, 2], legacy_unused: [checkConstraints]}\n"
        "        access: [read, append]\n        confidence: measured\n"
        "        evidence: [{kind: measured, reference: a trial, date: '2026-11-01'}]\n"
        "clients: [nightly]\n"
        "tables:\n  '*':\n    max_writer_version: 6\n    forbid_features: [columnMapping]\n"
        "    isolation: Serializable\n    require_properties: {delta.appendOnly: true}\n"
    )


def said(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "generated_at"}


def words(clients: tuple[str, ...] = CLIENTS) -> list[str]:
    return [word for client in clients for word in ("--client", client)]


@pytest.mark.parametrize("format_", ["json", "jsonl"])
def test_the_same_verdicts_as_live(
    fleet: list[str], save: Callable[..., str], checked: Checked, strict: str, format_: str
) -> None:
    file = save(*fleet, format_=format_)
    asked = [*words(), "--policy", strict, "--access", "read,append,dml,maintain,stream"]
    live, from_file = checked(*fleet, *asked, code=3), checked(file, *asked, code=3)
    assert said(from_file) == said(live)
    assert {verdict["verdict"] for verdict in live["verdicts"]} >= {"ok", "refused", "wrong"}
    assert len(live["errors"]) == 3
    assert {error["error"]["code"] for error in live["errors"]} >= {"not-found"}


@pytest.mark.parametrize("format_", ["text", "markdown", "sarif", "junit", "github", "gitlab"])
def test_in_every_other_format_too(
    fleet: list[str], save: Callable[..., str], cli: Cli, strict: str, format_: str
) -> None:
    file = save(*fleet)
    asked = (*words(CLIENTS[:2]), "--policy", strict, "--format", format_)
    live, from_file = cli("check", *fleet, *asked), cli("check", file, *asked)
    assert from_file.code == live.code == 3
    started = "startTimeUtc"
    assert from_file.out.split(started)[0] == live.out.split(started)[0]
    assert "legacy" in live.out


def test_tables_that_were_read_by_name_are_reached_by_name(
    make: Callable[..., str], save: Callable[..., str], checked: Checked, write: Callable[..., str]
) -> None:
    managed = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]
    protocol_ = protocol(3, 7, ["catalogManaged", "vacuumProtocolCheck"], managed)
    document = json.loads(Path(save(make("t", protocol_))).read_text())
    (entry,) = document["tables"]
    document["complete"] = True
    entry |= {"table": "main.sales.orders", "complete": True}
    found = {}
    for reader in ("spark", "log"):
        entry["reader"] = reader
        (facts,) = read_saved(write(json.dumps(document), "named.json"))
        assert isinstance(facts, TableFacts)
        found[reader] = facts.needs.by_name
    assert found == {"spark": True, "log": False}


def test_an_unreadable_table_stays_an_error(
    save: Callable[..., str], checked: Checked, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing")
    file = save(missing)
    document = checked(file, "--client", "trino@476", "--fail-on", "never", code=3)
    (error,) = document["errors"]
    assert (error["table"], error["error"]["code"]) == (missing, "not-found")
    assert (document["verdicts"], document["complete"]) == ([], False)
    (found,) = read_saved(file)
    assert isinstance(found, SavedError)
    assert found.code is ErrorCode.NOT_FOUND


def test_an_incomplete_answer_stays_incomplete(
    make: Callable[..., str], save: Callable[..., str], cli: Cli, checked: Checked
) -> None:
    managed = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]
    table = make("t", protocol(3, 7, ["catalogManaged", "vacuumProtocolCheck"], managed))
    file = save(table)
    for given in (table, file):
        document = checked(given, "--client", "bigquery", "--fail-on", "never", code=3)
        assert document["complete"] is False
        assert document["errors"] == []
        assert document["verdicts"]
        ran = cli("check", given, "--client", "bigquery")
        assert (ran.code, "NOT COMPLETE" in ran.out) == (3, True)


def test_traces_that_were_looked_for_are_used(log: Log, cli: Cli, checked: Checked) -> None:
    log.commit(0, VECTORS, metadata())
    log.commit(1, add(deletionVector={"storageType": "u", "pathOrInlineDv": "x"}))
    file = str(log.root / "looked.json")
    cli("inspect", log.table, "--look-in-files", "--format", "json", "-o", file)
    asked = ("--client", "trino@400", "--access", "read")
    (verdict,) = checked(file, *asked)["verdicts"]
    assert (verdict["verdict"], verdict["because"]) == ("wrong", ["deletionVectors"])


FEATURE = {"name": "appendOnly", "enabled": False, "present": False}
ENTRY: dict[str, Any] = {
    "table": "orders",
    "location": "file:///orders",
    "reader": "log",
    "version": 3,
    "protocol": {
        "minReaderVersion": 1,
        "minWriterVersion": 2,
        "readerFeatures": None,
        "writerFeatures": None,
    },
    "features": [FEATURE],
    "isolation": {"effective": {"databricks": "WriteSerializable", "delta-rs": None}},
    "configuration": {"a": "b"},
    "findings": [],
    "complete": True,
}
FINDING = {"rule": "DP106", "severity": "info", "message": "m", "hint": "", "table": "orders"}
ERROR = {"code": "not-found", "message": "gone", "hint": ""}


def document(*tables: Any, **members: Any) -> dict[str, Any]:
    head = {"schema_version": SCHEMA_VERSION, "command": "inspect", "complete": True}
    return {**head, "tables": list(tables), **members}


def without(member: str) -> dict[str, Any]:
    return {key: value for key, value in ENTRY.items() if key != member}


def test_what_these_tests_start_from_is_taken(checked: Checked, write: Callable[..., str]) -> None:
    for shape in ("1.1", "1.7", "1.10"):
        later = document(ENTRY, schema_version=shape, something={"new": [1]})
        file = write(json.dumps(later), "saved.json")
        checked(file, "--client", "trino@476", "--access", "read", code=0)
    earlier = json.dumps(document(ENTRY, schema_version="1.0"), indent=2)
    checked(write(earlier, "saved.json"), "--client", "trino@476", "--access", "read", code=0)


WRONG: dict[str, Any] = {
    "no tables": {"schema_version": SCHEMA_VERSION, "command": "inspect"},
    "tables that are no list": {
        "schema_version": SCHEMA_VERSION,
        "command": "inspect",
        "tables": {},
    },
    "another command": document(ENTRY, command="check"),
    "no command": {"schema_version": SCHEMA_VERSION, "tables": [ENTRY]},
    "an error": {"schema_version": SCHEMA_VERSION, "command": "inspect", "error": ERROR},
    "a list": [document(ENTRY)],
    "shape 2": document({"any": "thing"}, schema_version="2.0"),
    "a known table in shape 2.1": document(ENTRY, schema_version="2.1"),
    "shape 10": document(ENTRY, schema_version="10.0"),
    "no shape": {"command": "inspect", "tables": [ENTRY]},
    "a strange shape": document(ENTRY, schema_version="\x1b[31m" * 99),
    "a table that is null": document(None),
    "a table that is a text": document("an error"),
    "a table that is a list": document(["error"]),
    **{f"a table without {member}": document(without(member)) for member in ENTRY},
    "a table that is no text": document({**ENTRY, "table": None}),
    "an empty name": document({**ENTRY, "table": "", "reader": "spark"}),
    "a location that is no text": document({**ENTRY, "location": 1}),
    "a version that is no number": document({**ENTRY, "version": "3"}),
    "a version without end": document({**ENTRY, "version": float("inf")}),
    "a version that is a truth": document({**ENTRY, "version": True}),
    "complete as a text": document({**ENTRY, "complete": "false"}),
    "complete as a number": document({**ENTRY, "complete": 1}),
    "a property that is no text": document({**ENTRY, "configuration": {"a": 1}}),
    "properties in a list": document({**ENTRY, "configuration": ["a"]}),
    "protocol null": document({**ENTRY, "protocol": None}),
    "a text for a protocol version": document({**ENTRY, "protocol": {"minReaderVersion": "1"}}),
    "a feature without a name": document({**ENTRY, "features": [{"enabled": True}]}),
    "a use that is a text": document({**ENTRY, "features": [{**FEATURE, "enabled": "false"}]}),
    "traces that are a list": document({**ENTRY, "features": [{**FEATURE, "present": []}]}),
    "a feature whose name is a number": document({**ENTRY, "features": [{**FEATURE, "name": 5}]}),
    "a requirement in a list": document({**ENTRY, "features": [{**FEATURE, "required_by": [[1]]}]}),
    "a feature that the protocol lacks": document(
        {**ENTRY, "features": [{**FEATURE, "name": "deletionVectors", "listed": True}]}
    ),
    "a finding of no severity": document({**ENTRY, "findings": [{**FINDING, "severity": "bad"}]}),
    "a finding without a message": document({**ENTRY, "findings": [{**FINDING, "message": 7}]}),
    "an error of no kind": document({"table": "t", "error": {**ERROR, "code": "\x1b[0m"}}),
    "an error without a message": document({"table": "t", "error": {**ERROR, "message": None}}),
    "an error that is null": document({"table": "t", "error": None}),
    "an error of no table": document({"error": ERROR}),
}


@each_row("format_", ["json", "text", "sarif"])
@each_row("name", WRONG)
def test_a_wrong_file(cli: Cli, write: Callable[..., str], name: str, format_: str) -> None:
    file = write(json.dumps(WRONG[name]), "saved.json")
    with pytest.raises(UsageError):
        list(read_saved(file))
    ran = cli("check", file, "--client", "trino@476", "--format", format_)
    assert ran.code == 2, ran
    assert len(ran.err.splitlines()) == 2
    assert ran.err.startswith(f"error: {file} ")
    assert "\x1b" not in ran.err
    if format_ == "json":
        assert ran.json["error"]["code"] == "usage"


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\x00\x01\xff", b"PAR1", b"\xff\xfe{\x00"])
def test_a_file_of_something_else(cli: Cli, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "something"
    file.write_bytes(content)
    ran = cli("check", str(file), "--client", "trino@476")
    assert (ran.code, len(ran.err.splitlines())) == (2, 2)


def test_other_commands_outputs(
    cli: Cli, make: Callable[..., str], tmp_path: Path, save: Callable[..., str]
) -> None:
    table = make("t", protocol(1, 2))
    for given in (["check", table, "--client", "bigquery"], ["history", table], ["features"]):
        file = str(tmp_path / "other.json")
        cli(*given, "--format", "json", "-o", file)
        ran = cli("check", file, "--client", "trino@476")
        assert (ran.code, ran.err.splitlines()[0]) == (
            2,
            f"error: {file} is not the output of `inspect --format json`",
        )


def test_a_file_that_is_cut_off_leaves_no_half_document(
    cli: Cli, make: Callable[..., str], save: Callable[..., str]
) -> None:
    tables = [make(f"t{number}", protocol(1, 2)) for number in range(3)]
    file = Path(save(*tables))
    file.write_text(file.read_text()[:-20])
    ran = cli("check", str(file), "--client", "trino@476", "--format", "json")
    assert ran.code == 2
    assert (ran.json["error"]["code"], ran.json["complete"]) == ("usage", False)
    assert cli("check", tables[0], "--baseline", str(file)).code == 2


def test_a_file_that_must_not_be_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(UsageError, match=r"cannot read saved\.json: Permission denied"):
        list(read_saved("saved.json"))


VALUES = (None, True, 5, -1, 1.5, "x", [], [None], [[1]], {}, {"a": None})
PYTHON = re.compile(
    r"internal error|NoneType|<class|object is not|has no attribute|out of range"
    r"|not subscriptable|unhashable"
    r"|is not a valid|argument|expected str|KeyError|'(?:str|int|dict|list|float|bool)'"
)


@pytest.mark.parametrize(
    "words", [("check", "--client", "trino@476"), ("plan-downgrade", "--lowest")]
)
def test_no_message_is_in_the_words_of_python(
    cli: Callable[..., Ran], log: Log, tmp_path: Path, words: tuple[str, ...]
) -> None:
    log.commit(0, protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), metadata({"a": "b"}))
    whole = cli("inspect", log.table, "--format", "json").json
    file = tmp_path / "saved.json"
    said = set()
    places = [(False, name) for name in whole["tables"][0]]
    places += [(True, name) for name in whole["tables"][0]["features"][0]]
    for feature, name in places:
        for value in VALUES:
            document = json.loads(json.dumps(whole))
            (table,) = document["tables"]
            (table["features"][0] if feature else table)[name] = value
            file.write_text(json.dumps(document))
            ran = cli(words[0], str(file), *words[1:])
            lines = (ran.out + ran.err).splitlines()
            said |= {line for line in lines if PYTHON.search(line)}
    assert said == set()


def test_older_inspections_did_not_look_for_hazards(
    cli: Cli, make: Callable[..., str], tmp_path: Path
) -> None:
    table, saved = make("plain", protocol(1, 2), metadata(), add()), tmp_path / "saved.json"
    document = cli("inspect", table, "--format", "json").json
    ask = ("--client", "duckdb@1.5.5", "--access", "read", "--format", "json")
    saved.write_text(json.dumps(document))
    (now,) = cli("check", str(saved), *ask).json["verdicts"]
    assert now["verdict"] == "ok"
    for key in ("hazards", "hazards_not_looked_at"):
        del document["tables"][0][key]
    saved.write_text(json.dumps(document))
    (older,) = cli("check", str(saved), *ask).json["verdicts"]
    assert older["verdict"] == "unknown"
    assert "it is unknown whether data files are named by absolute paths" in older["reason"]


@pytest.mark.parametrize("complete", [None, False, "true", 1])
def test_only_a_file_that_says_so_is_complete(
    cli: Callable[..., Ran], write: Callable[..., str], complete: Any
) -> None:
    """Every table of it is, so a table that could not be read was left out."""
    saved = document(ENTRY, complete=complete)
    if complete is None:
        del saved["complete"]
    ran = cli("check", write(json.dumps(saved), "saved.json"), "--client", "trino@476")
    assert (ran.code, "was not complete when it was saved" in ran.out) == (3, True)
