"""Values as the commands' JSON holds them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltaproto.checking.check import Checked
    from deltaproto.execution.result import Applied
    from deltaproto.inspection.interface import Inspection
    from deltaproto.planning.plan import Plan


def to_dict(value: Inspection | Checked | Plan | Applied) -> dict[str, Any]:
    """What a function returned, as the JSON of the command of the same name holds it.

    A plan's times count from now.

    Raises:
        TypeError: for anything else.
    """
    from deltaproto.checking.check import Checked
    from deltaproto.execution.result import Applied
    from deltaproto.inspection.interface import Inspection
    from deltaproto.planning.plan import Plan

    match value:
        case Inspection():
            from deltaproto.report.inspection_json import table_fields

            return table_fields(value)
        case Checked():
            from deltaproto.report.check_json import checked_fields

            return checked_fields(value)
        case Plan():
            from deltaproto.report.plan_json import plan_fields

            return plan_fields(value, time.time())
        case Applied():
            from deltaproto.report.apply_json import applied_fields

            return applied_fields(value)
    raise TypeError(f"{type(value).__name__} is no result of this package")
