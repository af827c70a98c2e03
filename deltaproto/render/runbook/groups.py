"""Plans that differ in nothing but the table that they are for: they share one chapter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from deltaproto.planning.checksum import CHECKSUM_FIELD
from deltaproto.planning.plan import Plan
from deltaproto.render.plan_json import plan_fields

TABLE = "TABLE"
"""stands for each table of a group in texts that they share"""
_OWN = (CHECKSUM_FIELD, "plan_id", "table", "location", "sql_name", "fingerprint", "cost")


class _Planned(Protocol):
    @property
    def plan(self) -> Plan: ...


_Entry = TypeVar("_Entry", bound=_Planned)


class Group(NamedTuple, Generic[_Entry]):
    """Plans that one chapter describes."""

    entries: tuple[_Entry, ...]

    @property
    def first(self) -> _Entry:
        """The one whose steps stand for those of all."""
        return self.entries[0]

    @property
    def plan(self) -> Plan:
        """The plan of each, its texts about no table in particular where there are several."""
        plan = self.first.plan
        if len(self.entries) == 1:
            return plan

        def shared(value: Any) -> Any:
            return _mapped(value, lambda text: _nameless(text, plan, lambda _: TABLE))

        return plan._replace(
            steps=tuple(
                step._replace(
                    why=shared(step.why),
                    losses=shared(step.losses),
                    warnings=shared(step.warnings),
                )
                for step in plan.steps
            ),
            blocked=shared(plan.blocked),
            alternatives=shared(plan.alternatives),
            kept=shared(plan.kept),
            warnings=shared(plan.warnings),
        )


def kind(plan: Plan, facts: Any) -> str:
    """Equal for plans that differ only in their tables, versions, and numbers of files.

    Args:
        facts: whatever else must be equal, as JSON takes it.
    """
    fields = {key: value for key, value in plan_fields(plan, 0).items() if key not in _OWN}
    for way in (fields, *fields["alternatives"]):
        way.pop("cost", None)
        for step in way["steps"]:
            step["rewrites"] = step["rewrites"]["which"]
    told: Any = json.loads(json.dumps([fields, facts, plan.fingerprint.metadata is None]))
    return json.dumps(_mapped(told, lambda text: _nameless(text, plan, lambda n: f"\0{n}")))


def _nameless(text: str, plan: Plan, instead: Callable[[int], str]) -> str:
    for number, name in enumerate((plan.sql_name, plan.location, plan.table)):
        # A bare name may be any word of a text, which is then no name.
        if name in text and ("/" in name or "." in name):
            parts = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", text)
            text = instead(number).join(parts)
    return text


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The same with every text changed; what is neither text nor a tuple, list or dict stays."""
    if type(value) is str:
        return change(value)
    if isinstance(value, tuple):
        parts = [_mapped(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_mapped(part, change) for part in value]
    if isinstance(value, dict):
        return {key: _mapped(part, change) for key, part in value.items()}
    return value
