"""Random tables and clients: a check says what each pair says by itself, in every format."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.cli.main import main
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.verdicts import evaluate_clients
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.protocol.protocol import Protocol
from tests.protocol.strategies import NAMES, UNKNOWN, protocols
from tests.support.contract import validate
from tests.support.logs import Log, add, metadata, protocol

pytestmark = pytest.mark.rotating

REFERENCES = [
    client.id if client.versions == "none" else f"{client.id}@{each.start}"
    for client in ClientCatalog().clients()
    for each in client.ranges
    if client.versions == "none" or each.start is not None
]
ON = (
    {"delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.columnMapping.mode": "id"},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.appendOnly": "true"},
    {"delta.constraints.positive": "id > 0"},
    {"delta.enableTypeWidening": "true"},
)
configurations = st.lists(st.sampled_from(ON), max_size=4).map(
    lambda chosen: {key: value for each in chosen for key, value in each.items()}
)
tables = st.lists(
    st.tuples(protocols([*NAMES, *UNKNOWN]), configurations, st.booleans()), min_size=1, max_size=5
)
clients = st.lists(st.sampled_from(REFERENCES), min_size=1, max_size=4, unique=True)
accesses = st.lists(st.sampled_from(Access), min_size=1, max_size=5, unique=True)


def made(folder: Path, chosen: list[tuple[Protocol, dict[str, str], bool]]) -> list[str]:
    """The tables; a later one with the protocol of the first shows what is remembered."""
    names = []
    for number, (given_, configuration, vectors) in enumerate([*chosen, chosen[0]]):
        # As it is stored: with the lists sorted, and absent where the protocol has none.
        action = given_.to_action()
        stored = protocol(
            action["minReaderVersion"],
            action["minWriterVersion"],
            action.get("readerFeatures"),
            action.get("writerFeatures"),
        )
        log = Log(folder / str(number)).commit(0, stored, metadata(configuration))
        vector = {"deletionVector": {"storageType": "u", "pathOrInlineDv": "x"}}
        names.append(log.commit(1, add(**(vector if vectors else {}))).table)
    return names


def alone(table: str, asked: list[str], wanted: list[Access]) -> list[dict[str, Any]]:
    """Each pair's verdict, with nothing shared and nothing remembered."""
    found = inspect_table(table, ReadRequest())
    assert isinstance(found, Inspection)
    return [
        {
            "table": table,
            "client": verdict.client,
            "version": verdict.version,
            "path": verdict.path,
            "access": str(verdict.access),
            "verdict": str(verdict.verdict),
            "because": [*verdict.because],
            "reason": verdict.reason or None,
            "confidence": None if verdict.confidence is None else str(verdict.confidence),
            "declared_as": None,
            "commands": [remedy.command_for(table) for remedy in verdict.remedies],
        }
        for name in asked
        for verdict in evaluate_clients(
            ClientCatalog().resolve(name), wanted, facts_from_inspection(found).needs
        )
    ]


def shown(folder: Path, format_: str, words: list[str]) -> tuple[int, str]:
    file = folder / f"out.{format_}"
    code = main(["check", *words, "--format", format_, "--output", str(file)])
    return code, file.read_text(encoding="utf-8")


@settings(max_examples=60)
@given(tables, clients, accesses)
def test_each_pair_alone_and_all_together(
    chosen: list[tuple[Protocol, dict[str, str], bool]], asked: list[str], wanted: list[Access]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given_ = made(folder, chosen)
        words = [*given_, *(word for client in asked for word in ("--client", client))]
        words += ["--access", ",".join(wanted)]
        code, text = shown(folder, "json", words)
        document = json.loads(text)
        validate("check", document)
        verdicts = document["verdicts"]
        for verdict in verdicts:
            verdict["commands"] = [remedy["command"] for remedy in verdict.pop("remedies")]
        assert verdicts == [each for table in given_ for each in alone(table, asked, wanted)]

        counts = Counter(verdict["verdict"] for verdict in verdicts)
        severities = Counter(finding["severity"] for finding in document["findings"])
        judged = ", ".join(
            f"{counts[word]} {word}"
            for word in ("ok", "refused", "unknown", "wrong")
            if counts[word]
        )
        found = ", ".join(f"{severities[word]} {word}" for word in ("error", "warning", "info"))
        line = f"{len(given_)} tables; verdicts: {judged}; findings: {found}"
        words.append("--details")
        as_text, as_markdown = shown(folder, "text", words), shown(folder, "markdown", words)
        assert as_text[0] == as_markdown[0] == code
        assert as_text[1].endswith(f"\n{line}\n")
        assert as_markdown[1].endswith(f"\n**{line}**\n")
        rows = as_text[1].removesuffix(f"{line}\n")
        words_of_rows = re.findall(r" (ok|REFUSED|UNKNOWN|WRONG)(?=\s)", rows)
        assert Counter(word.lower() for word in words_of_rows) == counts

        expected = 1 if severities["error"] else 0
        assert code == (expected if document["complete"] else 3)


@settings(max_examples=15)
@given(tables, clients)
def test_json_lines_of_an_inspection_say_the_same(
    chosen: list[tuple[Protocol, dict[str, str], bool]], asked: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given_ = made(folder, chosen)
        saved = str(folder / "saved.jsonl")
        main(["inspect", *given_, "--format", "jsonl", "--output", saved])
        words = [word for client in asked for word in ("--client", client)]
        live, again = (
            shown(folder, "text", [*given_, *words]),
            shown(folder, "text", [saved, *words]),
        )
        assert live == again
