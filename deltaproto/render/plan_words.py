"""Phrases for the cost of plans, and who is affected by their steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltaproto.planning.plan import Step, StreamEffect
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.cost import Cost
from deltaproto.render.terminal import counted, duration

_WHICH = {
    Rewrite.VECTORS: "the files with deletion vectors",
    Rewrite.WIDENED: "the files from before a type change",
    Rewrite.SOME: "some files",
    Rewrite.ALL: "every file",
}
_TITLES = {
    "writer": "Concurrent writes that will fail",
    "step": "Concurrent writes that will fail a step",
}
_EFFECTS = {
    StreamEffect.ENDS: "end permanently",
    StreamEffect.LOSES: "may lack history",
    StreamEffect.RESTART: "need a restart",
}


def cost_text(cost: Cost, steps: Sequence[Step]) -> str:
    """Return the commits, waits, rewritten files and history of some steps together."""
    hours = sum(step.wait_hours for step in steps)
    waits = f"{counted(cost.waits, 'wait')} of {duration(hours)}"
    parts = [
        f"at most {counted(cost.commits, 'commit')}",
        waits if cost.waits else "no wait",
        _rewritten(steps),
        "history truncated" if cost.history else "history kept",
    ]
    if cost.irreversible:
        parts.append(f"{cost.irreversible} irreversible")
    return "; ".join(parts)


def rewrites_text(step: Step) -> str:
    """Return the files that a step rewrites."""
    which = _WHICH[step.rewrites.which]
    if step.rewrites.files is None or step.rewrites.bytes is None:
        return f"{which}; their number is unknown"
    return f"{which}: at most {step.rewrites.files:,}, {size(step.rewrites.bytes)}"


def wait_text(step: Step, end: str | None) -> str:
    """Return how long a step waits, why, and when the wait ends."""
    return f"{duration(step.wait_hours)}, by {step.setting}; ends at {end} if started now"


def size(number: int) -> str:
    """Return a number of bytes in a readable unit."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError(number)


def _rewritten(steps: Sequence[Step]) -> str:
    rewriting = [step.rewrites for step in steps if step.rewrites.which is not Rewrite.NONE]
    if not rewriting:
        return "no file rewritten"
    total = 0
    for each in rewriting:
        if each.bytes is None:
            return "rewrites files"
        total += each.bytes
    return f"rewrites at most {size(total)}"


def affected(
    plan_steps: Iterable[Step], *, reasons: bool = False
) -> Iterable[tuple[str, list[tuple[str, str]]]]:
    """Yield who is affected by which steps: writers by exception, then streams.

    Args:
        reasons: whether to show why each stream is affected.
    """
    groups: dict[str, dict[tuple[str, str], dict[str, list[str]]]] = {"writer": {}, "step": {}}
    streams: dict[StreamEffect, dict[tuple[str, str], list[str]]] = {}
    for step in plan_steps:
        for clash in step.clashes:
            found = groups[clash.loser].setdefault((clash.engine, clash.who), {})
            found.setdefault(clash.exception, []).append(step.id)
        for stream in step.streams:
            key = stream.reads, stream.why if reasons else ""
            streams.setdefault(stream.effect, {}).setdefault(key, []).append(step.id)
    for loser, title in _TITLES.items():
        rows = [
            (engine, f"{who}: {_gathered(where)}") for (engine, who), where in groups[loser].items()
        ]
        if rows:
            yield title, rows
    rows = [
        (text, f"{reads}: {', '.join(ids)}" + (f" ({why})" if why else ""))
        for effect, text in _EFFECTS.items()
        for (reads, why), ids in streams.get(effect, {}).items()
    ]
    if rows:
        yield "Streaming reads", rows


def _gathered(where: dict[str, list[str]]) -> str:
    """Group exceptions by the steps that cause them: `A and B in s1; C in s2, s3`."""
    by_steps: dict[str, list[str]] = {}
    for exception, steps in where.items():
        by_steps.setdefault(", ".join(dict.fromkeys(steps)), []).append(exception)
    return "; ".join(f"{' and '.join(names)} in {steps}" for steps, names in by_steps.items())
