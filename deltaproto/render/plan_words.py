"""Phrases for the cost of plans."""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.planning.plan import Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.search.cost import Cost
from deltaproto.render.terminal import duration

_WHICH = {
    Rewrite.VECTORS: "the files with deletion vectors",
    Rewrite.WIDENED: "the files from before a type change",
    Rewrite.SOME: "some files",
    Rewrite.ALL: "every file",
}


def cost_text(cost: Cost, steps: Sequence[Step]) -> str:
    """Return the commits, waits, rewritten files and history of some steps together."""
    hours = sum(step.wait_hours for step in steps)
    waits = f"{cost.waits} wait{'' if cost.waits == 1 else 's'} of {duration(hours)}"
    parts = [
        f"{cost.commits} commits at most",
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
        return f"{which}; their number was not looked at"
    return f"{which}: at most {step.rewrites.files:,}, {size(step.rewrites.bytes)}"


def wait_text(step: Step, end: str | None) -> str:
    """Return how long a step waits, why, and when the wait ends."""
    return f"{duration(step.wait_hours)}, by {step.setting}; if begun now, over at {end}"


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
