"""Convert results to the commands' JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltaproto.execution.result import ApplyResult
    from deltaproto.inspection.interface import Inspection
    from deltaproto.planning.plan import Plan
    from deltaproto.policy.evaluate import TableCheck


def to_dict(value: Inspection | TableCheck | Plan | ApplyResult) -> dict[str, Any]:
    """Convert a function's result to the JSON of the command with the same name.

    A plan's times are relative to now.

    Raises:
        TypeError: for any other value.
    """
    from deltaproto.execution.result import ApplyResult
    from deltaproto.inspection.interface import Inspection
    from deltaproto.planning.plan import Plan
    from deltaproto.policy.evaluate import TableCheck

    match value:
        case Inspection():
            from deltaproto.render.inspection_json import table_fields

            return table_fields(value)
        case TableCheck():
            from deltaproto.render.check_json import checked_fields

            return checked_fields(value)
        case Plan():
            from deltaproto.render.plan_json import plan_fields

            return plan_fields(value, time.time())
        case ApplyResult():
            from deltaproto.render.apply import applied_fields

            return applied_fields(value)
    raise TypeError(f"{type(value).__name__} is not a result of this package")
