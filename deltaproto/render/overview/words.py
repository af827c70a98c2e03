"""What the report's chapters have in common."""

from __future__ import annotations

from urllib.parse import urlencode

from deltaproto.policy.finding import Severity
from deltaproto.render.document import Tone
from deltaproto.render.interface import escape_control_chars

SEVERITIES = {
    str(Severity.ERROR): Tone.DANGER,
    str(Severity.WARNING): Tone.WARNING,
    str(Severity.INFO): None,
}


def versions(pair: tuple[int, int]) -> str:
    """A protocol as people write it."""
    return f"({pair[0]},{pair[1]})"


def query(**values: str) -> str:
    """Where the list of tables shows those that fit."""
    return "tables?" + urlencode(
        {name: escape_control_chars(value) for name, value in values.items()}
    )
