"""Totals over many plans."""

from __future__ import annotations

from collections import Counter
from typing import Any

from deltaproto.clients.model import Verdict
from deltaproto.planning.impact import is_better, is_worse
from deltaproto.planning.plan import Plan


class Summary:
    """The totals over plans."""

    def __init__(self) -> None:
        self.tables = self.with_steps = self.nothing_to_do = self.blocked = self.unreadable = 0
        self.waits = 0
        """plans that wait for retention periods"""
        self.longest_wait_hours = 0.0
        self.irreversible = 0
        """plans with a point of no return"""
        self.rewriting = 0
        """plans that rewrite data files"""
        self.truncating = 0
        """plans that delete history"""
        self.commits = 0
        """commits of all plans together, at most"""
        self.reasons: Counter[tuple[str, str]] = Counter()
        """number of tables by feature (may be empty) and reason why the plan is blocked"""
        self.gained: Counter[tuple[str, str]] = Counter()
        """number of tables that become usable, by client and access"""
        self.lost: Counter[tuple[str, str]] = Counter()

    def add(self, plan: Plan) -> None:
        """Add one plan."""
        self.tables += 1
        self.with_steps += bool(plan.steps)
        self.blocked += bool(plan.blocked)
        self.nothing_to_do += not plan.steps and not plan.blocked
        self.waits += plan.cost.waits > 0
        hours = sum(step.wait_hours for step in plan.steps)
        self.longest_wait_hours = max(self.longest_wait_hours, hours)
        self.irreversible += plan.point_of_no_return is not None
        self.rewriting += any(str(step.rewrites.which) != "none" for step in plan.steps)
        self.truncating += any(step.truncates for step in plan.steps)
        self.commits += plan.cost.commits
        self.reasons.update({(each.feature or "", each.reason) for each in plan.blocked})
        changed = [change for change in plan.clients if Verdict.OK in (change.before, change.after)]
        self.gained.update((c.client, str(c.access)) for c in changed if is_better(c))
        self.lost.update((c.client, str(c.access)) for c in changed if is_worse(c))

    def add_unreadable(self) -> None:
        """Add one table that could not be planned."""
        self.tables += 1
        self.unreadable += 1

    def fields(self) -> dict[str, Any]:
        """Return the totals as JSON."""
        return {
            "tables": self.tables,
            "with_steps": self.with_steps,
            "nothing_to_do": self.nothing_to_do,
            "blocked": self.blocked,
            "unreadable": self.unreadable,
            "waits": self.waits,
            "longest_wait_hours": self.longest_wait_hours,
            "irreversible": self.irreversible,
            "rewriting": self.rewriting,
            "truncating": self.truncating,
            "commits": self.commits,
            "clients_gained": _uses(self.gained),
            "clients_lost": _uses(self.lost),
            "blocked_because": [
                {"feature": feature or None, "reason": reason, "tables": count}
                for (feature, reason), count in sorted(
                    self.reasons.items(), key=lambda each: (-each[1], *each[0])
                )
            ],
        }


def _uses(counter: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"client": client, "access": access, "tables": count}
        for (client, access), count in sorted(counter.items())
    ]
