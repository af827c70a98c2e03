"""`deltaproto clients`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.catalog import shipped_client_ids
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.failures import each_row

Cli = Callable[..., Ran]
FORMATS = ("text", "json", "jsonl", "markdown")
OURS = """
clients:
- id: house-engine
  aliases: [he]
  versions: dotted
  ranges:
  - from: '1.0'
    read: {legacy: [1], features: [deletionVectors]}
    evidence: [{kind: inference, reference: our own}]
"""
OURS_TRINO = """
id: trino
name: Our build of Trino
versions: number
ranges:
- from: '1'
  read: {legacy: [1]}
"""


@pytest.fixture
def ours(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        file = tmp_path / "ours.yaml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


def shown(ran: Ran) -> list[dict[str, Any]]:
    assert (ran.code, ran.err) == (0, "")
    return [client for document in documents(ran, "clients") for client in document["clients"]]


class TestCatalog:
    def test_all_clients_in_every_format(self, cli: Cli) -> None:
        ids = list(shipped_client_ids())
        assert [client["id"] for client in shown(cli("clients", "--format", "json"))] == ids
        assert [client["id"] for client in shown(cli("clients", "--format", "jsonl"))] == ids
        markdown = cli("clients", "--format", "markdown").out
        rows = [line for line in markdown.splitlines() if line.startswith("| `")]
        assert [row.split("|")[1].strip(" `") for row in rows] == ids
        text = cli("clients").out
        assert all(name[:20] in text for name in ids)

    def test_line_by_line_is_the_same_as_the_whole(self, cli: Cli) -> None:
        assert shown(cli("clients", "--format", "jsonl")) == shown(
            cli("clients", "--format", "json")
        )

    @pytest.mark.parametrize("words", [[], ["trino"], ["deltalake@1.6.3"], ["databricks-runtime"],
                                       ["azure-stream-analytics"]], ids=" ".join)  # fmt: skip
    def test_text_fits_a_narrow_terminal(self, cli: Cli, words: list[str]) -> None:
        ran = cli("clients", *words)
        assert ran.code == 0
        assert max(map(len, ran.out.splitlines())) <= 80

    @each_row("name", shipped_client_ids())
    def test_every_client_has_a_valid_document_and_evidence(self, cli: Cli, name: str) -> None:
        (client,) = shown(cli("clients", name, "--format", "json"))
        assert client["id"] == name
        assert all(each["evidence"] for each in client["ranges"])

    def test_one_client_shows_all_its_versions(self, cli: Cli) -> None:
        (client,) = shown(cli("clients", "TRINO", "--format", "json"))
        starts = [each["from"] for each in client["ranges"]]
        assert "471" in starts
        assert "matrix" not in client
        text = cli("clients", "trino").out
        assert all(f"{start} " in text for start in starts)


class TestVersion:
    def test_one_version_has_a_matrix(self, cli: Cli) -> None:
        (client,) = shown(cli("clients", "trino@476", "--format", "json"))
        assert (client["version"], client["known"]) == ("476", True)
        assert [each["from"] for each in client["ranges"]] == ["471"]
        rows = {row["feature"]: row for row in client["matrix"]}
        assert rows["deletionVectors"]["read"] == "yes"
        assert rows["rowTracking"]["read"] == "yes"
        assert rows["rowTracking"]["write"] == "no"

    @pytest.mark.parametrize("format_", ["text", "markdown"])
    def test_people_see_the_matrix_too(self, cli: Cli, format_: str) -> None:
        ran = cli("clients", "trino@476", "--format", format_)
        (row,) = [
            line for line in ran.out.splitlines() if re.match(r"(\| )?`?rowTracking`? ", line)
        ]
        assert re.sub("[|`]", " ", row).split() == ["rowTracking", "writer", "yes", "no"]

    def test_every_path_without_one(self, cli: Cli) -> None:
        (both,) = shown(cli("clients", "deltalake@1.6.3", "--format", "json"))
        assert {row["path"] for row in both["matrix"]} == {"engine", "pyarrow"}
        (one,) = shown(cli("clients", "deltalake/pyarrow@1.6.3", "--format", "json"))
        assert {row["path"] for row in one["matrix"]} == {"pyarrow"}

    def test_a_service_is_its_only_version(self, cli: Cli) -> None:
        (client,) = shown(cli("clients", "bigquery", "--format", "json"))
        assert (client["version"], client["known"]) == (None, True)
        assert client["matrix"]

    @pytest.mark.parametrize("format_", FORMATS)
    def test_an_unknown_version_is_said_to_be_unknown(self, cli: Cli, format_: str) -> None:
        ran = cli("clients", "trino@1", "--format", format_)
        assert ran.code == 0
        if format_ in ("json", "jsonl"):
            (client,) = shown(ran)
            assert (client["known"], client["ranges"], client["matrix"]) == (False, [], [])
        else:
            assert "1 is not a known version of trino" in ran.out


class TestMistakes:
    @pytest.mark.parametrize(
        ("named", "message", "hint"),
        [
            ("trin0", "unknown client trin0", "trino"),
            ("detlalake@1.0", "unknown client detlalake", "deltalake"),
            ("trino@new", "new is not a version of trino", "trino@"),
            ("trino/engine@476", "trino has no path engine", "omit the path"),
            ("bigquery@2", "bigquery has no versions", "bigquery without a version"),
            ("@", "is not a client", "ID@VERSION"),
        ],
    )
    def test_a_wrong_name_is_a_usage_error_with_a_hint(
        self, cli: Cli, named: str, message: str, hint: str
    ) -> None:
        ran = cli("clients", named)
        assert (ran.code, ran.out) == (2, "")
        error, hinted = ran.err.splitlines()
        assert error.startswith("error: ")
        assert message in error
        assert hinted.startswith("hint: ")
        assert hint in hinted

    def test_in_json_as_well(self, cli: Cli) -> None:
        ran = cli("clients", "trin0", "--format", "json")
        assert ran.code == 2
        assert json.loads(ran.out)["error"]["code"] == "usage"


class TestSites:
    def test_a_file_extends_the_catalog(self, cli: Cli, ours: Callable[[str], str]) -> None:
        file = ours(OURS)
        found = shown(cli("clients", "--client-file", file, "--format", "json"))
        assert {client["id"] for client in found} == {*shipped_client_ids(), "house-engine"}
        (client,) = shown(cli("clients", "HE@1.2", "--client-file", file, "--format", "json"))
        assert client["id"] == "house-engine"
        rows = {row["feature"]: row["read"] for row in client["matrix"]}
        assert (rows["deletionVectors"], rows["timestampNtz"]) == ("yes", "no")

    def test_a_file_overrides_the_catalog(self, cli: Cli, ours: Callable[[str], str]) -> None:
        words = ("clients", "trino", "--format", "json")
        (client,) = shown(cli(*words, "--client-file", ours(OURS_TRINO)))
        assert client["name"] == "Our build of Trino"
        assert [each["from"] for each in client["ranges"]] == ["1"]
        (client,) = shown(cli(*words))
        assert client["name"] != "Our build of Trino"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "the file is empty"),
            ("clients: []", "no clients"),
            ("clients: [{id: a, ranges: [{note: x}]}]", "neither read nor write"),
            ("id: a\nranges: [{read: {legacy: [9]}}]", "legacy must be version numbers"),
            ("id: a\nrangs: []\nranges: []", "unknown key rangs"),
            ("id: [", ""),
            ("id: a\nid: b\nranges: []", ""),
        ],
        ids=["empty", "no-clients", "no-gate", "legacy", "key", "no-yaml", "twice"],
    )
    def test_a_mistake_in_a_file_is_named_with_the_file(
        self, cli: Cli, ours: Callable[[str], str], text: str, said: str
    ) -> None:
        file = ours(text)
        ran = cli("clients", "--client-file", file)
        assert (ran.code, ran.out) == (2, "")
        assert file in ran.err
        assert said in ran.err
        assert "Traceback" not in ran.err

    def test_a_missing_file_is_named(self, cli: Cli, tmp_path: Path) -> None:
        file = str(tmp_path / "none.yaml")
        ran = cli("clients", "--client-file", file)
        assert (ran.code, ran.out) == (2, "")
        assert file in ran.err


@pytest.mark.parametrize(
    "words", [["clients"], ["clients", "trino@476"], ["clients", "polars", "--format", "json"]],
    ids=" ".join,
)  # fmt: skip
def test_imports_no_engine(words: list[str]) -> None:
    code = (
        "import sys; from deltaproto.cli import main; main(sys.argv[1:]); "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "heavy = {'pyspark', 'deltalake', 'pyarrow', 'obstore', 'delta', 'pandas'}; "
        "sys.exit(f'imported {loaded & heavy}' if loaded & heavy else 77)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 77, done.stderr
