"""Small promises of `check`: identities of findings, marks of editors, streams, hostile names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.logs import metadata, protocol

Cli = Callable[..., Ran]
MAPPED = {"delta.columnMapping.mode": "name"}


def test_two_sides_of_one_rule_are_two_alerts(
    cli: Cli, make: Callable[..., str], policy: Callable[[str], str]
) -> None:
    table = make("t", protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    text = (
        'tables: {"*": {max_reader_version: 1, max_writer_version: 2, '
        'require_properties: {a: "it\'s", b: y}}}\n'
    )
    ran = cli("check", table, "--policy", policy(text), "--format", "sarif")
    results = ran.json["runs"][0]["results"]
    rules = [result["ruleId"] for result in results]
    assert rules.count("DP204") == rules.count("DP209") == 2
    prints = [result["partialFingerprints"]["deltaproto/v1"] for result in results]
    assert len(set(prints)) == len(prints)
    assert "'a' = 'it\\'s'" in cli("check", table, "--policy", policy(text)).out


def test_a_byte_order_mark_does_not_hide_a_saved_inspection(
    cli: Cli, make: Callable[..., str], save: Callable[..., str]
) -> None:
    file = Path(save(make("t", protocol(1, 2))))
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    ran = cli("check", str(file), "--client", "trino@476")
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(("access", "rules"), [("stream", ["DP210"]), ("read", [])])
def test_a_client_that_streams_is_a_stream(
    cli: Cli, make: Callable[..., str], access: str, rules: list[str]
) -> None:
    table = make("t", protocol(2, 5), metadata(MAPPED))
    words = ("--client", "delta-spark@4.0.0", "--access", access, "--format", "json")
    found: list[dict[str, Any]] = cli("check", table, *words).json["findings"]
    assert [finding["rule"] for finding in found if finding["rule"] == "DP210"] == rules


def test_an_empty_catalog_file_is_told_what_belongs_there(
    cli: Cli, write: Callable[..., str]
) -> None:
    ran = cli("clients", "--client-file", write("", "own.yaml"))
    assert ran.code == 2
    assert "policy_version" not in ran.err
    assert "ranges" in ran.err


def test_no_name_reaches_the_terminal_as_a_command(cli: Cli) -> None:
    ran = cli("check", "t", "--client", "a\x1b[31mb@1")
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert json.loads(json.dumps(ran.err))
