"""The file `rollout.json` in a folder of plans: the plans of each wave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deltaproto.execution.rollout_file import SETTINGS
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from deltaproto.planning.rollout import Wave
from deltaproto.policy.document.model import RolloutSettings
from deltaproto.render.interface import dump_json, envelope
from deltaproto.render.plan_json import write_plan_text


def save_rollout_file(
    settings: RolloutSettings,
    waves: Sequence[Wave],
    path: str,
    *,
    windows: bool,
    complete: bool,
) -> None:
    """Write the file atomically.

    Args:
        windows: True if the policy has maintenance windows for any of the tables.
        complete: False while plans are still being saved, so that none of them can be applied.

    Raises:
        UsageError: if it cannot be written.
    """
    fields: dict[str, Any] = {
        **{name: getattr(settings, name) for name in SETTINGS},
        "windows": windows,
        "waves": [
            {"name": wave.name, "plans": [table._asdict() for table in wave.tables]}
            for wave in waves
        ],
        "complete": complete,
    }
    fields[CHECKSUM_FIELD] = compute_checksum(fields)
    write_plan_text(dump_json(envelope("rollout", fields, complete=complete)) + "\n", path)
