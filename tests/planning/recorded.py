"""What Spark did to tables, statement by statement, so that it can be asked without Spark.

The tests on Spark write it anew, into `recorded_statements.json`:

    RECORD_SPARK=1 python -m pytest -m spark tests/planning

Of each table its commits are kept, with what planning reads of them, and of each statement its
text, the versions before and after it, and its refusal.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("recorded_statements.json")
RECORDING = bool(os.environ.get("RECORD_SPARK"))
_KEPT = {
    "protocol": None,
    "domainMetadata": None,
    "metaData": ("schemaString", "partitionColumns", "configuration", "format"),
    "commitInfo": ("operation", "inCommitTimestamp"),
    "add": ("path", "size", "dataChange", "baseRowId", "deletionVector"),
    "remove": ("path", "dataChange", "deletionVector"),
}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILE = re.compile(r"part-[\w.-]+?\.parquet")
_VECTOR = re.compile(r'("pathOrInlineDv": ")[^"]*')


class Did(NamedTuple):
    """One statement: `{path}` in its text is the table's."""

    statement: str
    before: int
    after: int
    error: str | None


_tables: dict[str, dict[str, Any]] = {}


def keep(path: str, statement: str, before: int, after: int, error: str | None) -> None:
    """Keep what Spark did just now; tables with V2 checkpoints are left out, as these are files."""
    folder = Path(path) / "_delta_log"
    if any(file.name.count(".") > 2 for file in folder.glob("*.checkpoint.*")):
        return
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].partition(" ")[0]
    table = _tables.setdefault(path, {"test": test, "did": []})
    table["did"].append(Did(statement.replace(path, "{path}"), before, after, error))
    files = (folder / f"{version:020d}.json" for version in range(after + 1))
    table["commits"] = [[*_actions(file.read_text())] for file in files]


def write() -> None:
    """Write what was kept, with the same names whenever it is recorded."""
    ordered = sorted(_tables.values(), key=lambda table: str(table["test"]))
    lines = ",\n".join(_plain(table) for table in ordered)
    FILE.write_text(f"[\n{lines}\n]\n")


def tables() -> list[dict[str, Any]]:
    """What was recorded."""
    found: list[dict[str, Any]] = json.loads(FILE.read_text())
    return found


def lay(table: dict[str, Any], path: Path, version: int) -> None:
    """Write the log as it was at a version; what is there already stays."""
    folder = path / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    for number, actions in enumerate(table["commits"][: version + 1]):
        file = folder / f"{number:020d}.json"
        if not file.exists():
            file.write_text("".join(json.dumps(_whole(action)) + "\n" for action in actions))


def _actions(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        ((kind, action),) = json.loads(line).items()
        if kind in _KEPT:
            members = _KEPT[kind]
            yield {kind: {k: v for k, v in action.items() if members is None or k in members}}


def _whole(action: dict[str, Any]) -> dict[str, Any]:
    """The action with the members again that the format asks for and nothing depends on."""
    ((kind, members),) = action.items()
    always = {"timestamp": 1} if kind == "commitInfo" else {"id": "1"} if kind == "metaData" else {}
    return {kind: {**always, **members}}


def _plain(table: dict[str, Any]) -> str:
    """The table in a line, with names that are the same whenever it is recorded."""
    text = _numbered(_FILE, "part-{}.parquet", json.dumps(table))
    return _VECTOR.sub(r"\1v", _numbered(_UUID, "u{}", text))


def _numbered(pattern: re.Pattern[str], name: str, text: str) -> str:
    names: dict[str, str] = {}
    return pattern.sub(lambda found: names.setdefault(found[0], name.format(len(names))), text)
