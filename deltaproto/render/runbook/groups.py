"""Groups of plans that differ only in their tables and share one chapter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from deltaproto.planning.plan import CHECKSUM_FIELD, Plan
from deltaproto.render.interface import map_texts
from deltaproto.render.plan_json import plan_fields

TABLE = "TABLE"
"""placeholder for the table name in texts shared by a group"""
_OWN = (
    *(CHECKSUM_FIELD, "plan_id", "table", "other_names", "location", "sql_name", "fingerprint"),
    "cost",
)


class _Planned(Protocol):
    @property
    def plan(self) -> Plan: ...


_Entry = TypeVar("_Entry", bound=_Planned)


class Group(NamedTuple, Generic[_Entry]):
    """A group of plans described in one chapter."""

    entries: tuple[_Entry, ...]

    @property
    def first(self) -> _Entry:
        """The plan whose steps represent the steps of all plans."""
        return self.entries[0]

    @property
    def plan(self) -> Plan:
        """The shared plan; for several tables, its texts name no particular table."""
        plan = self.first.plan
        if len(self.entries) == 1:
            return plan

        def shared(value: Any) -> Any:
            return map_texts(value, lambda text: without_names(text, plan, lambda _: TABLE))

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
            unmet=shared(plan.unmet),
            alternatives=shared(plan.alternatives),
            kept=shared(plan.kept),
            warnings=shared(plan.warnings),
        )


def kind(plan: Plan, facts: Any) -> str:
    """Return a key, equal for plans that differ only in tables, versions, and numbers of files.

    Args:
        facts: other values that must be equal, as JSON.
    """
    fields = {key: value for key, value in plan_fields(plan, 0).items() if key not in _OWN}
    for way in (fields, *fields["alternatives"]):
        way.pop("cost", None)
        for step in way["steps"]:
            step["rewrites"] = step["rewrites"]["which"]
    text = json.dumps([fields, facts, plan.fingerprint.metadata is None], ensure_ascii=False)
    return without_names(text, plan, lambda n: f"\0{n}", _in_json)


def _in_json(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)[1:-1]


def without_names(
    text: str,
    plan: Plan,
    instead: Callable[[int], str],
    encoded: Callable[[str], str] = lambda name: name,
) -> str:
    """Return the text with the names of the plan's table replaced.

    Args:
        encoded: returns a name as it is written in the text.
    """
    for number, own in enumerate((plan.sql_name, plan.location, plan.table)):
        name = encoded(own)
        # A bare name may be an ordinary word in a text, which must not be replaced.
        if name in text and ("/" in name or "." in name):
            parts = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", text)
            text = instead(number).join(parts)
    return text
