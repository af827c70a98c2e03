"""deltaproto: inspect and change the protocol of Delta Lake tables without breaking anyone.

    from deltaproto import plan_downgrade
    plan = plan_downgrade("/data/orders", for_clients=["trino@452"])

The functions are described in `deltaproto.app`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "DeltaprotoError",
    "EngineError",
    "TableError",
    "UsageError",
    "apply",
    "check",
    "inspect_table",
    "plan_downgrade",
    "plan_upgrade",
    "to_dict",
]

if TYPE_CHECKING:
    from deltaproto.app import apply, check, inspect_table, plan_downgrade, plan_upgrade, to_dict
    from deltaproto.errors import DeltaprotoError, EngineError, TableError, UsageError


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported here, so that commands start without it.
    home = "errors" if name.endswith("Error") else "app"
    return getattr(importlib.import_module(f"deltaproto.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
