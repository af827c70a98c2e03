"""Folders for the reference tables, which Spark takes minutes to create."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.certification.fixtures.case import load_kit
from deltaproto.certification.fixtures.make import require_new_folder
from deltaproto.cli import certify
from deltaproto.errors import UsageError
from tests.conftest import Ran


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(certify, "_start_spark", start)


@pytest.mark.parametrize("client", [(), ("deltalake/engine@1.6.6",)])
@pytest.mark.parametrize(
    ("place", "cause"),
    [("full", "is not empty"), ("file", "cannot create"), ("file/kit", "is not a folder")],
)
def test_a_folder_that_cannot_be_used_is_refused_before_spark_starts(
    client: tuple[str, ...], place: str, cause: str, cli: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    (tmp_path / "file").write_text("mine")
    ran = cli("certify", *client, "--make-kit", str(tmp_path / place))
    assert ran.code == 2
    assert f"{tmp_path / place}" in ran.err
    assert cause in ran.err
    assert "hint: choose a folder that is new or empty" in ran.err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("nobody@1",), "no adapter for nobody"),
        (("deltalake/engine@1.6.6", "--operation", "dance"), 'unknown operation "dance"'),
    ],
)
def test_mistakes_are_found_before_the_tables_are_created(
    words: tuple[str, ...], cause: str, cli: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = cli("certify", *words, "--make-kit", str(tmp_path / "kit"))
    assert (ran.code, ran.out) == (2, "")
    assert cause in ran.err


@pytest.mark.parametrize(
    "content", ["{", '{"cases": [], "kit_version": 0, "digest": "", "made_with": {}}']
)
def test_the_hint_for_an_unusable_kit_names_a_folder_that_can_be_used(
    content: str, tmp_path: Path
) -> None:
    folder = tmp_path / "my kit"
    folder.mkdir()
    (folder / "kit.json").write_text(content)
    with pytest.raises(UsageError) as raised:
        load_kit(folder)
    command = raised.value.hint.partition(": ")[2]
    *_, option, named = shlex.split(command)
    assert option == "--make-kit"
    require_new_folder(Path(named))
