"""Real tables, files and inventories for one situation, and the command lines that meet it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Words = tuple[str, ...]
Builder = Callable[["World"], Words | list[Words]]
CHECK = ("check", "--client", "trino@476")
COMMANDS: dict[str, list[Words]] = {
    "check": [CHECK],
    "scan": [("scan",)],
    "plan-upgrade and plan-downgrade": [
        ("plan-upgrade", "--set", "delta.appendOnly=true"),
        ("plan-downgrade", "--lowest"),
    ],
    "apply": [("apply", "--yes")],
    "report": [("report",)],
    "drift": [("drift",)],
    "forecast": [("forecast", "--client", "duckdb@1.4.0")],
    "discover": [("discover",)],
}
"""the sections of the document, and how their commands begin"""
PLANS = "plan-upgrade and plan-downgrade"
BUILDERS: dict[tuple[str, str], Builder] = {}
"""what makes a situation, by section and situation"""


def situation(text: str, *sections: str) -> Callable[[Builder], Builder]:
    """Register what makes the situation of one row in each of the sections.

    It returns the operands of the section's commands, or whole command lines in a list.
    """

    def register(builder: Builder) -> Builder:
        for section in sections:
            assert section in COMMANDS
            assert (section, text) not in BUILDERS, text
            BUILDERS[section, text] = builder
        return builder

    return register


class World:
    """A folder in which a situation is made; `patch` is undone after the test."""

    def __init__(
        self, folder: Path, section: str, cli: Callable[..., Ran], patch: pytest.MonkeyPatch
    ) -> None:
        folder.mkdir(parents=True)
        self.folder, self.section, self.cli, self.patch = folder, section, cli, patch
        self.stdin: str | None = None
        self.names: dict[str, str] = {}
        """words of the document that stand for something that is known only now"""

    def lines(self, text: str) -> Iterator[Words]:
        """Build a situation, and give every command line that meets it."""
        found = BUILDERS[self.section, text](self)
        if isinstance(found, list):
            yield from found
        else:
            yield from ((*words, *found) for words in COMMANDS[self.section])

    def made(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        """Run a command that prepares the situation."""
        ran = self.cli(*words)
        assert ran.code in codes, ran

    def log(self, name: str = "table") -> Log:
        """An empty log."""
        return Log(self.folder / name)

    def table(self, name: str = "table", *actions: dict[str, Any], **settings: str) -> str:
        """A table whose first commit has these actions; a simple one without any."""
        log = self.log(name)
        given = [*actions] or [protocol(1, 2)]
        if not any("metaData" in action for action in given):
            given.append(metadata(settings, id=name))
        return log.commit(0, commit_info("CREATE TABLE"), *given).table

    def catalog_managed(self, name: str = "table") -> str:
        """A table whose newest commits only its catalog may know."""
        features = ["catalogManaged"]
        settings = {"delta.enableInCommitTimestamps": "true"}
        stored = protocol(3, 7, features, [*features, "inCommitTimestamp"])
        return self.table(name, stored, metadata(settings, id=name))

    def corrupt(self, name: str = "table") -> str:
        """A table whose newest commit is no JSON."""
        table = self.table(name)
        (Path(table) / "_delta_log" / f"{1:020d}.json").write_text("{not json\n")
        return table

    def file(self, name: str, text: str) -> str:
        """A file with this text."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return str(self.folder / name)

    def policy(self, text: str) -> str:
        """A policy with this text after its version."""
        return self.file("policy.yaml", f"policy_version: 1\n{text}")

    def saved(self, *tables: str, format_: str = "json", more: Words = ()) -> str:
        """A saved inspection of the tables."""
        file = str(self.folder / f"saved.{format_}")
        words = ("inspect", *tables, "--format", format_, "--output", file, *more)
        self.made(*words, codes=(0, 1, 3))
        return file

    def edited(self, file: str, **members: Any) -> str:
        """A JSON file with other members."""
        document = json.loads(Path(file).read_text())
        Path(file).write_text(json.dumps({**document, **members}))
        return file

    def inventory(self, *roots: str, times: int = 1, more: Words = ()) -> str:
        """An inventory with scans of these roots; two where two are compared."""
        where = str(self.folder / "inventory")
        for _ in range(times + (self.section == "drift")):
            self.made("scan", *roots, "--inventory", where, *more, codes=(0, 1, 3))
        return where

    def lake(self) -> Path:
        """A folder with three tables below two folders."""
        for name in ("a/one", "a/two", "b/three"):
            self.table(f"lake/{name}")
        return self.folder / "lake"

    def plan(self, *tables: str, goal: Words = ("plan-upgrade", "--set", "a=b")) -> str:
        """A plan file for the tables; for a new simple one where none is named."""
        file = str(self.folder / "plan.json")
        words = (*goal, *(tables or (self.table(),)), "--format", "json", "--output", file)
        self.made(*words, codes=(0, 1, 3))
        return file
