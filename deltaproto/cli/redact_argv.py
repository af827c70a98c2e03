"""Find the secrets of a command line and its environment, which no output may contain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deltaproto.cli.declare import environment_name

if TYPE_CHECKING:
    from deltaproto.redaction import Redactor

_PAIRS = ("--storage-option", "--spark-conf")
_REMOTE = "--spark-remote"


def redact_addresses(words: Sequence[str]) -> list[str]:
    """Remove credentials from the table addresses in `words`; addresses are shown and stored."""
    from deltaproto.redaction import may_have_credentials, redact_address, redact_addresses_in

    if not any(map(may_have_credentials, words)):
        return list(words)

    def shown(before: str, word: str) -> str:
        flag, equals, value = word.partition("=")
        if flag.startswith("-") and equals:
            return (
                word if flag in secret else f"{flag}={redact_addresses_in(redact_address(value))}"
            )
        return word if before in secret else redact_addresses_in(redact_address(word))

    secret = (*_PAIRS, _REMOTE)
    return [shown(before, word) for before, word in zip(("", *words), words, strict=False)]


def build_redactor(words: Sequence[str]) -> Redactor:
    """Return a redactor for secrets in the words, option variables and cloud variables."""
    from deltaproto.redaction import Redactor

    known: dict[str, str] = {}
    for value in _find_secrets(words):
        name, _, rest = value.partition("=")
        known[name] = rest
    return Redactor(known)


def _find_secrets(words: Sequence[str]) -> Iterator[str]:
    for position, word in enumerate(words):
        flag, equals, rest = word.partition("=")
        value = rest if equals else "".join(words[position + 1 : position + 2])
        if flag in _PAIRS:
            yield value
        if flag == _REMOTE:
            yield from value.split(";")
    for flag in _PAIRS:
        yield from os.environ.get(environment_name(flag), "").split()
    yield from os.environ.get(environment_name(_REMOTE), "").split(";")
