"""Commands for a shell: one line each, whatever the names in them hold."""

from __future__ import annotations

import shlex

from deltaproto.render.terminal import single_line


def command(*words: str) -> str:
    """The words as one line that a POSIX shell, or bash for odd characters, takes apart again."""
    return " ".join(map(_quoted, words))


def is_plain(word: str) -> bool:
    """Whether a word holds no character that ends a line or cannot be seen."""
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
