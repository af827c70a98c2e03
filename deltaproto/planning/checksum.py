"""The id of a plan, and the seal that shows whether its file was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from deltaproto.planning.plan import Plan

CHECKSUM_FIELD = "seal"
_ID_LENGTH = 16
# A plan for one table has these members that every output has.
_EXCLUDED_FIELDS = {CHECKSUM_FIELD, "schema_version", "tool", "command", "generated_at"}


def plan_id(plan: Plan) -> str:
    """Return an id that depends on the table, its version, the goal and the steps.

    A plan that was applied and undone can be planned again: the version then differs.
    """
    before = plan.protocol_before
    protocol = {
        "minReaderVersion": before.min_reader_version,
        "minWriterVersion": before.min_writer_version,
        "readerFeatures": _sorted(before.reader_features),
        "writerFeatures": _sorted(before.writer_features),
    }
    content = json.dumps(
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
    return hashlib.sha256(content.encode()).hexdigest()[:_ID_LENGTH]


def compute_checksum(fields: Mapping[str, Any]) -> str:
    """Return a SHA-256 hex digest over every member of a plan except the seal itself.

    It detects mistakes and damage. It is not a signature: anyone who can edit a plan can reseal it.
    """
    content = {key: value for key, value in fields.items() if key not in _EXCLUDED_FIELDS}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)
