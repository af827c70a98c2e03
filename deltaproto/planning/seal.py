"""The seal of a plan file: whether anything in it was changed after it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

KEY = "seal"
# A plan for one table stands among the members that every output has.
_OUTSIDE = {KEY, "schema_version", "tool", "command", "generated_at"}


def seal(fields: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal digits, over every member of a plan but the seal itself.

    It shows slips and damage. It is no signature: whoever can write a plan can seal it.
    """
    told = {key: value for key, value in fields.items() if key not in _OUTSIDE}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
