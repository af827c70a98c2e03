"""deltaproto: inspect and change the protocol of Delta Lake tables without breaking anyone.

    from deltaproto import Table

    orders = Table("lake/orders")
    print(orders.inspect().protocol)
    plan = orders.plan_downgrade(for_clients=["trino@400"], access=["read"])

A function about one table raises a `DeltaprotoError` if it has no result; its text is the cause
and a hint. A function about many tables never stops at one of them: the result of that table has
an `error`. The content of a result never raises: use `ok`, or call `raise_for_status()`.

A table is a path, a URI, a catalog name, a `pathlib.Path` or a `deltalake.DeltaTable`. An active
SparkSession, as in notebooks and jobs, is used. Everything can be called from several threads.
Progress and warnings go to the logger `deltaproto`.
"""

from __future__ import annotations

__version__ = "0.1.0"

# Every start imports this file, and `typing` would take longer than all of it. Type checkers know
# the constant by its name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from deltaproto.app.checking import CheckResult, CheckResults, Verdict, check
    from deltaproto.app.discovering import ClientUse, Discovery, discover
    from deltaproto.app.drifting import Drift
    from deltaproto.app.executing import ApplyEvent, ApplyResult, EventKind, apply, rehearse
    from deltaproto.app.forecasting import Forecast
    from deltaproto.app.inventory import Inventory, Report
    from deltaproto.app.plan import Plan
    from deltaproto.app.planning import plan_downgrade, plan_policy, plan_upgrade
    from deltaproto.app.reading import (
        ConflictReport,
        History,
        Inspection,
        find_conflicts,
        history,
        inspect_table,
    )
    from deltaproto.app.result import Result, Rows, to_dict
    from deltaproto.app.rollout import Rollout, RolloutProgress
    from deltaproto.app.scanning import ScanResult, scan
    from deltaproto.app.table import Table
    from deltaproto.clients.model import Access
    from deltaproto.clients.model import Verdict as Outcome
    from deltaproto.errors import (
        DeltaprotoError,
        EngineError,
        ExitCode,
        ResultError,
        TableError,
        UsageError,
    )
    from deltaproto.execution.result import ApplyStatus, StepRecord, StepStatus
    from deltaproto.execution.rollout_state import RolloutStatus, TableProgress, WaveProgress
    from deltaproto.fleet.drift.diff import Difference
    from deltaproto.fleet.scan_history import PastScan
    from deltaproto.inspection.history_events import Event
    from deltaproto.planning.plan import Alternative, Blocked, ClientChange, Step
    from deltaproto.planning.rollout import RolloutTable
    from deltaproto.policy.finding import Finding, Severity
    from deltaproto.protocol.layers import FeatureState
    from deltaproto.protocol.protocol import Protocol
else:
    _HOMES = {
        "app.checking": ("CheckResult", "CheckResults", "Verdict", "check"),
        "app.discovering": ("ClientUse", "Discovery", "discover"),
        "app.executing": ("ApplyEvent", "ApplyResult", "EventKind", "apply", "rehearse"),
        "app.forecasting": ("Forecast",),
        "app.drifting": ("Drift",),
        "app.inventory": ("Inventory", "Report"),
        "app.plan": ("Plan",),
        "app.planning": ("plan_downgrade", "plan_policy", "plan_upgrade"),
        "app.reading": (
            *("ConflictReport", "History", "Inspection"),
            *("find_conflicts", "history", "inspect_table"),
        ),
        "app.result": ("Result", "Rows", "to_dict"),
        "app.rollout": ("Rollout", "RolloutProgress"),
        "app.scanning": ("ScanResult", "scan"),
        "app.table": ("Table",),
        "clients.model": ("Access", "Outcome"),
        "errors": (
            *("DeltaprotoError", "EngineError", "ExitCode"),
            *("ResultError", "TableError", "UsageError"),
        ),
        "execution.result": ("ApplyStatus", "StepRecord", "StepStatus"),
        "execution.rollout_state": ("RolloutStatus", "TableProgress", "WaveProgress"),
        "fleet.drift.diff": ("Difference",),
        "fleet.scan_history": ("PastScan",),
        "inspection.history_events": ("Event",),
        "planning.plan": ("Alternative", "Blocked", "ClientChange", "Step"),
        "planning.rollout": ("RolloutTable",),
        "policy.finding": ("Finding", "Severity"),
        "protocol.layers": ("FeatureState",),
        "protocol.protocol": ("Protocol",),
    }
    _MODULES = {name: module for module, names in _HOMES.items() for name in names}

    def __getattr__(name: str) -> object:
        # Imported on first use. Type checkers see the imports above, and so report a name that does
        # not exist.
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        home = importlib.import_module(f"deltaproto.{_MODULES[name]}")
        value = getattr(home, "Verdict" if name == "Outcome" else name)
        globals()[name] = value
        return value


__all__ = [
    "Access",
    "Alternative",
    "ApplyEvent",
    "ApplyResult",
    "ApplyStatus",
    "Blocked",
    "CheckResult",
    "CheckResults",
    "ClientChange",
    "ClientUse",
    "ConflictReport",
    "DeltaprotoError",
    "Difference",
    "Discovery",
    "Drift",
    "EngineError",
    "Event",
    "EventKind",
    "ExitCode",
    "FeatureState",
    "Finding",
    "Forecast",
    "History",
    "Inspection",
    "Inventory",
    "Outcome",
    "PastScan",
    "Plan",
    "Protocol",
    "Report",
    "Result",
    "ResultError",
    "Rollout",
    "RolloutProgress",
    "RolloutStatus",
    "RolloutTable",
    "Rows",
    "ScanResult",
    "Severity",
    "Step",
    "StepRecord",
    "StepStatus",
    "Table",
    "TableError",
    "TableProgress",
    "UsageError",
    "Verdict",
    "WaveProgress",
    "apply",
    "check",
    "discover",
    "find_conflicts",
    "history",
    "inspect_table",
    "plan_downgrade",
    "plan_policy",
    "plan_upgrade",
    "rehearse",
    "scan",
    "to_dict",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
