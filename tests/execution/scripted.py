"""An engine that commits as planned unless told otherwise, and a plan of three steps for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deltaproto.execution.apply import apply_plans
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.plan_file import LoadedPlan
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.result import ApplyResult
from deltaproto.execution.run_log import journal_path
from deltaproto.execution.runner import EngineFacts
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import Step
from deltaproto.policy.document import Policy
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from tests.support.logs import Log, add, commit_info, metadata, protocol

NAMES = ["appendOnly", "deletionVectors", "invariants"]
VECTORS = protocol(3, 7, ["deletionVectors"], NAMES)
ON = metadata({"delta.enableDeletionVectors": "true"})
NOW = 1_999_999_980.0
"""a full minute, as truncations round their cutoff down to one"""
Script = Callable[["ScriptedEngine", Step, str], StatementResult]


class ScriptedEngine:
    """Commits what the plan predicts for each statement; `script` replaces some statements."""

    def __init__(self, log: Log, planned: LoadedPlan) -> None:
        self.log, self.steps = log, {step.id: step for step in planned.plan.steps}
        self.version = 0
        self.sent: list[str] = []
        self.script: dict[str, list[Script]] = {}

    def facts(self) -> EngineFacts:
        return EngineFacts(EngineName.DELTA_SPARK, "4.4.0", "4.2.0", True, {})

    def apart(self) -> ScriptedEngine:
        return self

    def run(self, sql: str, mark: str, progress: object = None) -> StatementResult:
        step = self.steps[json.loads(mark)["deltaproto"]["step"]]
        assert sql == step.sql
        self.sent.append(step.id)
        waiting = self.script.get(step.id)
        return waiting.pop(0)(self, step, mark) if waiting else as_planned(self, step, mark)

    def commit(self, operation: str, *actions: dict[str, Any], mark: str | None = None) -> None:
        self.version += 1
        tag = {} if mark is None else {"userMetadata": mark}
        at = int((NOW + self.version) * 1000)
        info = commit_info(operation, **{**tag, "timestamp": at})
        self.log.commit(self.version, info, *actions)

    def predicted(self, step: Step, mark: str, most: int | None = None) -> None:
        """Make the step's commits: the last one stores the protocol, if it changes."""
        for number, operation in enumerate(step.operations[:most], 1):
            actions = [metadata()] if operation == "UNSET TBLPROPERTIES" else []
            if number == len(step.operations) and step.protocol_after != step.protocol_before:
                actions.append({"protocol": step.protocol_after.to_action()})
            self.commit(operation, *actions, mark=mark)


def as_planned(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
    engine.predicted(step, mark)
    return StatementResult(step.expects, step.expects or "")


def leaves_vectors(engine: ScriptedEngine, step: Step, mark: str) -> StatementResult:
    """Drop the feature, as Delta Spark does, although a data file has a deletion vector."""
    vector = {"storageType": "u", "pathOrInlineDv": "ab", "cardinality": 1}
    result = as_planned(engine, step, mark)
    engine.commit("DROP FEATURE", add(deletionVector=vector), mark=mark)
    return result


class SilentObserver:
    """Ignores all events."""

    def __getattr__(self, event: str) -> Callable[..., None]:
        return lambda *_: None


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = NOW, 0.0

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 600.0)
        self.slept += seconds


class Bench:
    """A plan of three steps (a refused drop, a wait, the drop), an engine and a clock."""

    def __init__(self, planned: LoadedPlan, log: Log, folder: Path) -> None:
        self.planned, self.folder = planned, folder
        self.engine, self.clock = ScriptedEngine(log, planned), Clock()

    def apply(self, **options: Any) -> ApplyResult:
        (result,) = self.apply_all([self.planned], **options)
        return result

    def apply_all(
        self,
        plans: list[LoadedPlan],
        *,
        wait: bool = False,
        retries: int = 5,
        now: Callable[[], float] | None = None,
        halted: Callable[[], bool] | None = None,
        policy: Policy | None = None,
        audit: str = "",
        parallel: int = 1,
    ) -> list[ApplyResult]:
        """Apply the plans with the scripted engine; nobody is asked."""
        limits = WaitLimits(retries, wait, now or (lambda: self.clock.now), self.clock.sleep)
        session = ApplySession(
            ApplyContext({}, SparkSettings(), self._journals, policy, allow_irreversible=True),
            lambda: self.engine,  # type: ignore[arg-type, return-value]
            lambda _: audit or str(self.folder / "audit.jsonl"),
            Redactor({"token": "s3cret-of-mine"}),
            SilentObserver(),  # type: ignore[arg-type]
            limits,
            parallel=parallel,
        )
        with pytest.MonkeyPatch.context() as patch:
            if halted is not None:
                event = SimpleNamespace(is_set=halted, set=lambda: None)
                patch.setattr("deltaproto.execution.apply.threading.Event", lambda: event)
            return [*apply_plans(plans, session, lambda _: None, ask_all_first=False)]

    def _journals(self, _: str) -> str:
        return str(self.folder)

    @property
    def audit(self) -> list[dict[str, Any]]:
        path = self.folder / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def journal(self) -> list[dict[str, Any]]:
        path = journal_path(str(self.folder), self.planned.id)
        return [json.loads(line) for line in path.read_text().splitlines()]
