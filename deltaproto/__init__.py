"""deltaproto: inspect and change the protocol of Delta Lake tables without breaking anyone.

    from deltaproto import plan_downgrade
    plan = plan_downgrade("/data/orders", for_clients=["trino@452"])

The functions are described in `deltaproto.api`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
_FUNCTIONS = ("apply", "check", "inspect_table", "plan_downgrade", "plan_upgrade", "to_dict")
_ERRORS = ("DeltaprotoError", "EngineError", "TableError", "UsageError")
__all__ = [  # noqa: RUF022 - functions first
    "apply",
    "check",
    "inspect_table",
    "plan_downgrade",
    "plan_upgrade",
    "to_dict",
    "DeltaprotoError",
    "EngineError",
    "TableError",
    "UsageError",
]

if TYPE_CHECKING:
    from deltaproto.api import (
        apply,
        check,
        inspect_table,
        plan_downgrade,
        plan_upgrade,
        to_dict,
    )
    from deltaproto.errors import DeltaprotoError, EngineError, TableError, UsageError


def __getattr__(name: str) -> Any:
    # The commands start without any of this.
    if name in _FUNCTIONS:
        from deltaproto import api

        return getattr(api, name)
    if name in _ERRORS:
        from deltaproto import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
