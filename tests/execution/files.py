"""Plan files for tests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from deltaproto.planning.plan import CHECKSUM_FIELD, Plan, compute_checksum
from deltaproto.render.interface import dump_json, envelope
from deltaproto.render.plan_json import plan_fields


def written(plan: Plan, path: Path, now: float | None = None) -> str:
    """The plan as `plan-… --format json` writes it."""
    fields = plan_fields(plan, time.time() if now is None else now)
    path.write_text(dump_json(envelope(plan.command, fields, complete=plan.complete)))
    return str(path)


def changed(path: str, *, sealed: bool = False, **members: Any) -> None:
    """Change members of a plan file; with `sealed`, as somebody who can seal."""
    document = json.loads(Path(path).read_text())
    document.update(members)
    if sealed:
        document[CHECKSUM_FIELD] = compute_checksum(document)
    Path(path).write_text(json.dumps(document))
