"""The mark that every commit of a plan carries as user metadata."""

from __future__ import annotations

import json
from typing import NamedTuple

from deltaproto.tables.log.commits import Commit

_KEY = "deltaproto"


class Mark(NamedTuple):
    """Which run of which plan's step made a commit."""

    plan: str
    step: str
    run: str
    """another for each call of `apply`"""
    actor: str | None = None
    """who ran it; None in commits of earlier versions"""

    def text(self) -> str:
        """As `commitInfo.userMetadata` holds it."""
        return json.dumps({_KEY: self._asdict()}, separators=(",", ":"))


def mark_of(commit: Commit) -> Mark | None:
    """The mark of a commit; None when it carries none."""
    text = commit.info.get("userMetadata")
    if not isinstance(text, str) or _KEY not in text:
        return None
    try:
        found = json.loads(text)[_KEY]
        plan, step, run = (str(found[name]) for name in ("plan", "step", "run"))
        actor = found.get("actor")
        return Mark(plan, step, run, actor if isinstance(actor, str) else None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
