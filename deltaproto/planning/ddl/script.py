"""Scripts: several statements, parted by semicolons."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.protocol.conflicts.tokens import Token, scan


class Piece(NamedTuple):
    """One statement of a script."""

    text: str
    """from its first token to its last; comments before and after are left out"""
    line: int
    """where it begins, from 1"""


def split(sql: str) -> list[Piece]:
    """The statements of a script, without empty ones; never raises.

    Semicolons part statements except in strings, quoted names and comments.
    """
    pieces: list[Piece] = []
    group: list[Token] = []
    for token in [*scan(sql), Token(";", ";", len(sql), len(sql))]:
        if token.key != ";":
            group.append(token)
        elif group:
            start = group[0].start
            pieces.append(Piece(sql[start : group[-1].end], sql.count("\n", 0, start) + 1))
            group = []
    return pieces
