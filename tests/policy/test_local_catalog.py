"""Client files of a site: what they may contain, and how they combine."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.errors import UsageError
from deltaproto.policy.local_catalog import load_local_catalog

RANGES = """\
name: Loader
versions: none
ranges: [{read: {legacy: [1, 2]}, access: [read], confidence: measured,
          evidence: [{kind: measured, reference: x, date: '2026-11-01'}]}]
"""


def _entry(id_: str, more: str = "") -> str:
    lines = f"id: {id_}\n{more}{RANGES}".splitlines()
    return "- " + "\n  ".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("- id: a\n", "the file has no clients", "`clients`"),
        ("text\n", "the file has no clients", "`clients`"),
        ("clients: []\n", "the file has no clients", "`clients`"),
        ("clients: {id: a}\n", "the file has no clients", "`clients`"),
        (f"clients:\n{_entry('a')}{_entry('A')}", "a is declared twice", "own id"),
        (f"clients:\n{_entry('a', 'aliases: [Trino]' + chr(10))}", "the alias trino", "id trino"),
        ("clients: [1]\n", "a client", ""),
    ],
)
def test_an_invalid_file_is_refused(tmp_path: Path, text: str, message: str, hint: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_local_catalog([str(file)])
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_later_files_override_earlier_ones(tmp_path: Path) -> None:
    for name, version in (("one", 1), ("two", 2)):
        text = _entry("loader").replace("legacy: [1, 2]", f"legacy: [{version}]")
        (tmp_path / name).write_text(f"clients:\n{text}", encoding="utf-8")
    files = [str(tmp_path / name) for name in ("one", "two")]
    newest = [
        load_local_catalog(order).get("loader").ranges for order in (files, files[::-1], files[:1])
    ]
    assert newest[1] == newest[2] != newest[0]


def test_the_alias_of_an_overridden_client_is_its_own(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(f"clients:\n{_entry('trino', 'aliases: [TRINO]' + chr(10))}", encoding="utf-8")
    assert load_local_catalog([str(file)]).get("trino").name == "Loader"
