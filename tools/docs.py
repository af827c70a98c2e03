"""Make what the documentation takes from the code: the reference, and what commands print.

And the client catalog as JSON, of which the documentation shows much.

`python -m tools.docs` writes it, `--check` says what is not current. In a guide,

    <!-- tables: orders=vectors -->       makes tables by recipes of `cli/demo.py`
    <!-- file: policy.yaml -->            keeps the block that follows as a file
    <!-- run: deltaproto inspect orders -->   runs a command; the blocks that follow are the
                                          command, as it is copied, and its output
    <!-- run 12: … -->                    the same, of which the first 12 lines are shown
    <!-- run 0: … -->                     the same without its output

all in one folder of its own, so that a guide is a story that holds.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltaproto.cli.demo import RECIPES
from deltaproto.cli.main import main
from deltaproto.clients.catalog import parsed_clients
from deltaproto.render.schemas import load_schema
from tools import command_pages, python_api
from tools.man import manual

DOCS = Path(__file__).parents[1] / "docs"
_STEP = re.compile(
    r"<!-- (?P<what>run)(?: (?P<lines>\d+))?: (?P<words>.*?) -->"
    r"(?:\n```bash\n.*?\n```)?(?:\n+```text\n.*?\n```)?"
    r"|<!-- (?P<kind>tables|file): (?P<names>.*?) -->(?P<block>\n```\w*\n.*?\n```)?",
    re.S,
)
_GUIDES = ("guides", "tutorials", "how-to")
_PAGES_WITH_OUTPUT = ("first-plan.md",)
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|\s+UTC)")
# When the guides were carried out, as their readers see it.
_SHOWN = datetime(2026, 11, 22, 22, 0, 0, tzinfo=UTC).timestamp()
_NEAR = 3 * 86_400
_PRINTED = {
    "features": ("features",),
    "clients": ("clients",),
    "matrix": ("clients", "--matrix"),
}
"""pages that are the output of a command"""
_SCHEMAS = (
    *(
        "inspect",
        "history",
        "discover",
        "discover-settings",
        "forecast",
        "check",
        "plan",
        "apply",
        "status",
        "conflicts",
        "scan",
        "scan-list",
        "drift",
        "report",
    ),
    *("catalogs", "features", "clients", "certify", "explain", "error"),
)


def made() -> Iterator[tuple[Path, str]]:
    """Every file that is made, and what belongs in it."""
    # First, as other pages show the clients.
    yield from parsed_clients()
    for path in sorted(
        (
            *(each for name in _GUIDES for each in (DOCS / name).glob("*.md")),
            *(DOCS / name for name in _PAGES_WITH_OUTPUT),
        )
    ):
        yield path, guide(path.read_text(encoding="utf-8"))
    yield DOCS / "reference" / "commands.md", command_pages.index()
    for name, text in command_pages.pages():
        yield DOCS / "reference" / "commands" / f"{name}.md", text
    yield DOCS / "man" / "deltaproto.1", manual()
    yield DOCS / "reference" / "python.md", python_api.page()
    yield DOCS / "reference" / "rules.md", rules()
    for name, words in _PRINTED.items():
        yield DOCS / "reference" / f"{name}.md", printed([*words, "--format", "markdown"]) + "\n"
    yield DOCS / "reference" / "json.md", schemas()


def guide(text: str) -> str:
    """A guide with the outputs of its commands."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            return _STEP.sub(lambda step: _carried_out(step, Path(scratch).resolve()), text)
        finally:
            os.chdir(home)


def _carried_out(step: re.Match[str], folder: Path) -> str:
    if step["kind"] == "tables":
        for pair in step["names"].split():
            name, _, recipe = pair.partition("=")
            RECIPES[recipe](Path(name))
        return step[0]
    if step["kind"] == "file":
        content = (step["block"] or "").strip().partition("\n")[2].removesuffix("```")
        Path(step["names"]).write_text(content, encoding="utf-8")
        return step[0]
    words = step["words"]
    lines = f" {step['lines']}" if step["lines"] else ""
    head = f"<!-- run{lines}: {words} -->\n```bash\n{words}\n```"
    shown = _settled(printed(shlex.split(words)[1:]), folder).splitlines()
    most = int(step["lines"] or len(shown))
    cut = [*shown[:most], "…"] if len(shown) > most else shown
    return "\n".join([head, "", "```text", *cut, "```"]) if most and cut else head


def printed(words: list[str]) -> str:
    """What a command writes to standard output, and to standard error after it."""
    out, err = io.StringIO(), io.StringIO()
    with (
        _environment(COLUMNS="96"),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        main(words)
    lines = (line.rstrip() for line in (out.getvalue() + err.getvalue()).splitlines())
    return "\n".join(lines).strip("\n")


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _settled(text: str, folder: Path) -> str:
    now = time.time()

    def moved(stamp: re.Match[str]) -> str:
        told = datetime.fromisoformat(f"{stamp[1]}T{stamp[3]}{stamp[4] or ''}+00:00").timestamp()
        if abs(told - now) > _NEAR:
            return stamp[0]
        # To the hour, so that a slow machine writes the same.
        shifted = datetime.fromtimestamp(round((told - now) / 3600) * 3600 + _SHOWN, UTC)
        seconds = ":00" if stamp[4] else ""
        return f"{shifted:%Y-%m-%d}{stamp[2]}{shifted:%H:%M}{seconds}{stamp[5]}"

    text = _STAMP.sub(moved, text.replace(str(folder), "/data"))
    # Two scans, as their ids below.
    text = re.sub(r"(:00:0)0Z to (.*\1)0Z", r"\g<1>0Z to \g<2>1Z", text)
    text = re.sub(r"\bplan [0-9a-f]{16}\b", "plan 7c0e1d2f4b6a8c95", text)
    text = re.sub(r"in \d+\.\d s, [\d,]+ per second", "in 0.1 s", text)
    found = dict.fromkeys(re.findall(r"\d{8}T\d{6}Z-[0-9a-f]{8}", text))
    for number, scan in enumerate(found):
        text = text.replace(scan, f"20261122T22000{number}Z-1f2e3d4{number}")
    return text


def rules() -> str:
    """The page of every rule."""
    index = printed(["explain", "--format", "markdown"])
    parts = [index]
    for rule in re.findall(r"^\| (DP\d+) ", index, re.MULTILINE):
        page = printed(["explain", rule, "--format", "markdown"])
        parts.append(re.sub(r"^(#+) ", r"#\1 ", page, flags=re.MULTILINE))
    return "\n\n".join(parts) + "\n"


def schemas() -> str:
    """The members of every JSON output."""
    parts = [
        "# JSON",
        "Every output has a JSON Schema; the package brings them in `deltaproto/render/schemas`.",
    ]
    for name in _SCHEMAS:
        document = load_schema(name)
        rows = [
            f"| `{member}` | {_kind(told)} | {told.get('description', '')} |"
            for member, told in document["properties"].items()
        ]
        table = "\n".join(["| member | type | what it is |", "|---|---|---|", *rows])
        parts += [f"## {name}", document["description"], table]
    return "\n\n".join(parts) + "\n"


def _kind(told: dict[str, Any]) -> str:
    kind = told.get("type") or ("constant" if "const" in told else "")
    return " or ".join(kind) if isinstance(kind, list) else str(kind or "see the schema")


def run(check: bool) -> int:
    """Write what has changed, or tell of it."""
    stale = 0
    for path, text in made():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"{path.relative_to(DOCS.parent)} {'is not current' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(run("--check" in sys.argv[1:]))
