"""The documentation says what the code does today, and its site can be made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deltaproto.cli.main import COMMANDS
from tools.docs import DOCS, made

ROOT = DOCS.parent


def test_everything_that_is_made_is_current() -> None:
    stale = [str(path) for path, text in made() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "make docs"


def test_the_site_can_be_made(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for page in DOCS.rglob("*.md"):
        made_ = page.relative_to(DOCS).with_suffix("")
        folder = tmp_path if made_.name == "index" else tmp_path / made_
        assert (folder / "index.html").exists()


def test_every_page_is_in_the_navigation() -> None:
    told = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(told) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("guide", sorted((DOCS / "guides").glob("*.md")), ids=lambda g: g.stem)
def test_the_examples_of_guides_are_command_lines_and_yaml(guide: Path) -> None:
    from deltaproto.cli.main import load_command
    from tests.support.parsed import parsed

    text = guide.read_text()
    for block in re.findall(r"```bash\n(.*?)```", text, re.S):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if not line.startswith("deltaproto "):
                continue
            name, *words = line.partition(" > ")[0].partition("#")[0].split()[1:]
            assert name in COMMANDS
            assert parsed(load_command(name), words), line
    for block in re.findall(r"```yaml\n(.*?)```", text, re.S):
        assert yaml.safe_load(block)
