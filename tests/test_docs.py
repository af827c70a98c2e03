"""The documentation says what the code does today."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from deltaproto.cli.main import COMMANDS
from tools.docs import DOCS, made

ROOT = DOCS.parent


def test_everything_that_is_made_is_current() -> None:
    stale = [str(path) for path, text in made() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "make docs"


def test_every_page_is_in_the_navigation() -> None:
    told = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(told) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


FOLDERS = ("guides", "tutorials", "how-to", "concepts", "project")
PAGES = sorted(
    (
        *(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md")),
        DOCS / "first-plan.md",
    )
)
TYPED = [page for page in PAGES if "<!-- run" in page.read_text()]


@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.stem)
def test_the_first_command_of_a_guide_writes_the_example_tables(page: Path) -> None:
    first = re.search(r"<!-- run[^:]*: (.*?) -->", page.read_text())
    assert first is not None
    assert first[1].startswith(("deltaproto demo ", "deltaproto clients"))


@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.stem)
def test_a_command_is_copied_without_its_output(page: Path) -> None:
    text = page.read_text()
    for command in re.findall(r"<!-- run[^:]*: (.*?) -->", text):
        assert f"-->\n```bash\n{command}\n```" in text
    assert "\n$ " not in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_guides_are_command_lines_and_yaml(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaproto.cli.main import load_command
    from tests.support.parsed import parsed

    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    if "\ndeltaproto init" in text:
        # From there on, commands need no arguments.
        Path("deltaproto.yaml").write_text("inventory: inventory\n")
    for block in re.findall(r"```bash\n(.*?)```", text, re.S):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if not line.startswith("deltaproto "):
                continue
            name, *words = shlex.split(line.partition(" > ")[0], comments=True)[1:]
            if name == "--version":
                continue
            assert name in COMMANDS
            assert parsed(load_command(name), words), line
    for block in re.findall(r"```yaml\n(.*?)```", text, re.S):
        assert yaml.safe_load(block)
    for block in re.findall(r"```json\n(.*?)```", text, re.S):
        assert json.loads(block)
