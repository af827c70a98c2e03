"""The id and the seal of a plan: which plan it is, and whether its file was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from deltaproto.planning.plan import Plan

KEY = "seal"
_ID_LENGTH = 16
# A plan for one table stands among the members that every output has.
_OUTSIDE = {KEY, "schema_version", "tool", "command", "generated_at"}


def plan_id(plan: Plan) -> str:
    """The same for the same table at the same version, goal and steps; else another.

    What was done and undone can so be planned and done again: it is another plan.
    """
    before = plan.protocol_before
    protocol = {
        "minReaderVersion": before.min_reader_version,
        "minWriterVersion": before.min_writer_version,
        "readerFeatures": _sorted(before.reader_features),
        "writerFeatures": _sorted(before.writer_features),
    }
    told = json.dumps(
        [
            plan.command,
            plan.location,
            plan.fingerprint.table_id,
            plan.fingerprint.version,
            plan.fingerprint.metadata,
            protocol,
            dict(plan.goal),
            str(plan.engine),
            [step.sql for step in plan.steps],
        ],
        sort_keys=True,
    )
    return hashlib.sha256(told.encode()).hexdigest()[:_ID_LENGTH]


def seal(fields: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal digits, over every member of a plan but the seal itself.

    It shows slips and damage. It is no signature: whoever can write a plan can seal it.
    """
    told = {key: value for key, value in fields.items() if key not in _OUTSIDE}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
