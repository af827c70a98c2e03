"""The JSON Schemas (2020-12) of the JSON outputs: one file per command; some share one."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

_SHARED = {"rehearse": "apply"}


def load_schema(command: str) -> dict[str, Any]:
    """Return the schema of `deltaproto COMMAND --format json` and of each line of `jsonl`.

    Raises:
        FileNotFoundError: if the command has no JSON output.
    """
    name = "plan" if command.startswith("plan-") else _SHARED.get(command, command)
    text = files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
