"""What a copy into a new table loses, and which of that the user accepts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.preflight import GateResult
from deltaproto.planning.plan import Step
from deltaproto.planning.search.copy_by_name import LOSSES, loss_names


def parse_losses(words: Iterable[str]) -> frozenset[str]:
    """Return the names of accepted losses; one word may contain several, separated by commas.

    Raises:
        UsageError: for a name that no loss has.
    """
    names = frozenset(name.strip() for word in words for name in word.split(","))
    if unknown := sorted(names - LOSSES.keys()):
        raise UsageError(f"unknown loss {', '.join(unknown)}", f"the names are {', '.join(LOSSES)}")
    return names


def loss_gate(left: Sequence[Step], accepted: frozenset[str]) -> GateResult:
    """Check that everything that a copy loses was accepted by name."""
    names = loss_names(left)
    missing = [name for name in names if name not in accepted]
    if not missing:
        message = f"accepted: {', '.join(names)}" if names else "nothing is lost"
        return GateResult("losses", True, message)
    return GateResult(
        "losses",
        False,
        "; ".join(f"{name}: {LOSSES[name]}" for name in missing),
        f"pass --accept-loss {','.join(missing)} to accept this",
        ExitCode.USAGE,
    )
