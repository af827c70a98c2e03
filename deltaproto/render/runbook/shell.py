"""Shell commands of one line each, with all names quoted."""

from __future__ import annotations

import shlex

from deltaproto.render.terminal import single_line


def command(*words: str) -> str:
    """Quote the arguments as one line for a POSIX shell (for bash if they have odd characters)."""
    return " ".join(map(_quoted, words))


def is_plain(word: str) -> bool:
    """Return True if a word has no invisible character and none that ends a line."""
    return single_line(word) == word


def _quoted(word: str) -> str:
    if is_plain(word):
        return shlex.quote(word)
    # Source: the Bash manual, "ANSI-C Quoting".
    shown = "".join(_escaped(character) for character in word)
    return f"$'{shown}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if is_plain(character):
        return character
    encoded = character.encode("utf-8", "surrogateescape")
    return "".join(f"\\{byte:03o}" for byte in encoded)
