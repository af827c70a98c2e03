"""The tag that every commit of a plan has as user metadata."""

from __future__ import annotations

import json
from typing import NamedTuple

from deltaproto.tables.log.commits import Commit

_KEY = "deltaproto"


class CommitTag(NamedTuple):
    """The plan, step and run that made a commit."""

    plan: str
    step: str
    run: str
    """unique for each call of `apply`"""
    actor: str | None = None
    """the user who ran it; None in commits of earlier releases"""

    def text(self) -> str:
        """Return the text for `commitInfo.userMetadata`."""
        return json.dumps({_KEY: self._asdict()}, separators=(",", ":"))


def commit_tag_of(commit: Commit) -> CommitTag | None:
    """Return the tag of a commit, or None."""
    text = commit.info.get("userMetadata")
    if not isinstance(text, str) or _KEY not in text:
        return None
    try:
        found = json.loads(text)[_KEY]
        plan, step, run = (str(found[name]) for name in ("plan", "step", "run"))
        actor = found.get("actor")
        return CommitTag(plan, step, run, actor if isinstance(actor, str) else None)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
