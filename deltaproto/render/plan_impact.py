"""The writers and readers affected by a plan, over all its steps."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.plan import Plan, StreamEffect


def hits(plan: Plan) -> Iterable[tuple[str, list[tuple[str, str]]]]:
    """Yield who is affected by which steps: writers by exception, then streams."""
    groups: dict[str, dict[tuple[str, str], dict[str, list[str]]]] = {"writer": {}, "step": {}}
    streams: dict[StreamEffect, dict[str, list[str]]] = {}
    for step in plan.steps:
        for clash in step.clashes:
            hit = groups[clash.loser].setdefault((clash.engine, clash.who), {})
            hit.setdefault(clash.exception, []).append(step.id)
        for stream in step.streams:
            streams.setdefault(stream.effect, {}).setdefault(stream.reads, []).append(step.id)
    for loser, title in (("writer", "transactions that fail"), ("step", "what makes a step fail")):
        rows = [
            (engine, f"{who}: {_gathered(where)}") for (engine, who), where in groups[loser].items()
        ]
        if rows:
            yield title, rows
    told = [
        (_EFFECTS[effect], f"{reads}: {', '.join(ids)}")
        for effect in _EFFECTS
        for reads, ids in streams.get(effect, {}).items()
    ]
    if told:
        yield "streaming reads", told


_EFFECTS = {
    StreamEffect.ENDS: "end for good",
    StreamEffect.LOSES: "may lack history",
    StreamEffect.RESTART: "need a restart",
}


def _gathered(where: dict[str, list[str]]) -> str:
    """Group exceptions by the steps that cause them: `A and B in s1; C in s2, s3`."""
    by_steps: dict[str, list[str]] = {}
    for exception, steps in where.items():
        by_steps.setdefault(", ".join(dict.fromkeys(steps)), []).append(exception)
    return "; ".join(f"{' and '.join(names)} in {steps}" for steps, names in by_steps.items())
