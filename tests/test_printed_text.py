"""Every `text` block that no command produces is compared with what it shows, or named here.

`tools/docs.py` writes the outputs behind `<!-- run: … -->`, and the usage of each command.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol
from tests.support.unity_server import unity_server

Cli = Callable[..., Ran]
ROOT = Path(__file__).parents[1]
COMPARED = {
    "ARCHITECTURE.md": (1, "tests/test_architecture.py"),
    "README.md": (1, "tests/test_documents.py"),
    "docs/first-plan.md": (1, "the message of another program"),
    "docs/guides/forecast-automatic-upgrades.md": (1, "tests/test_printed_text.py"),
    "docs/how-to/air-gapped.md": (1, "tests/packaging/test_wheel.py"),
    "docs/how-to/schedule.md": (5, "tests/test_printed_schedule.py"),
    "docs/manual/plan-and-apply.md": (1, "tests/test_documents.py"),
    "docs/manual/reading-output.md": (2, "tests/test_documents.py"),
}
"""the number of blocks of a page, and the test"""
RUN = r"<!-- run.*? -->\n```bash\n.*?\n```\n\n```text\n.*?\n```"
TEXT = re.compile(r"^ *```text\n(.*?)^ *```", re.M | re.S)


def text_blocks(page: Path) -> list[str]:
    return TEXT.findall(re.sub(RUN, "", page.read_text(encoding="utf-8"), flags=re.S))


def test_every_block_is_compared() -> None:
    pages = (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    names = {page: str(page.relative_to(ROOT)) for page in pages}
    found = Counter({names[page]: len(text_blocks(page)) for page in pages})
    generated = [name for name in found if name.startswith("docs/reference/commands/")]
    assert all(found.pop(name) == 1 for name in generated)
    assert +found == Counter({name: count for name, (count, _) in COMPARED.items()})


def test_the_forecast_begins_as_printed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two managed tables and an external one, as the guide says."""
    guide = ROOT / "docs/guides/forecast-automatic-upgrades.md"
    (shown,) = text_blocks(guide)
    (command,) = re.findall(r"^deltaproto (forecast databricks .*)$", guide.read_text(), re.M)
    monkeypatch.setenv("UC_TOKEN", "token")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    with unity_server() as unity:
        for name, kind in (("a", "MANAGED"), ("b", "MANAGED"), ("c", "EXTERNAL")):
            log = Log(tmp_path / "lake" / name)
            log.commit(0, commit_info(), protocol(1, 2), metadata(id=name))
            unity.add(f"main.sales.{name}", f"file://{log.table}", table_type=kind)
        inventory = ("--inventory", "databricks", "--quiet")
        assert cli("scan", f"uc://{unity.authority}/main", *inventory).code == 0
        assert cli("discover", "databricks").code == 0
        ran = cli(*command.split())
    assert ran.code in (0, 1), ran.err
    assert ran.out.startswith(shown)
