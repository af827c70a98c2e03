"""Keeping credentials out of everything that is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "***"
_NAMES = r"key|secret|token|passw(?:or)?d|credential|signature|sas|sig|authorization|account_key"
_KEY = re.compile(rf"(?i)({_NAMES})")
# What comes before a mark is bounded, as texts of engines may be long: else each letter of a word
# would be tried as its beginning.
_PATTERNS = (
    # user:password@ in a URI
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,30}://)[^/@\s:]+:[^/@\s]+@"), rf"\1{HIDDEN}@"),
    # query parameters of signed URLs
    (
        re.compile(
            r"(?i)([?&;](?:sig|signature|token|x-amz-[a-z-]+|x-goog-[a-z-]+|se|sp|skoid|"
            r"access_token)=)[^&\s'\"`;]+"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (re.compile(r"\bdapi[0-9a-f]{32}(?:-\d+)?\b"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*"), HIDDEN),
    # key = value, in SQL, JSON or a list of options
    (
        re.compile(
            r"(?i)(['\"]?[\w.-]{0,40}(?:secret|token|passw(?:or)?d|account[._]key|access[._]key|"
            r"credential)[\w.-]{0,200}['\"]?\s*[=:]\s*)(?:'[^']*'|\"[^\"]*\"|[^\s,;)}]+)"
        ),
        rf"\1{HIDDEN}",
    ),
)
_SHORTEST = 4


class Redactor:
    """Hides what looks like a credential, and the values of `options` that are known to be ones."""

    def __init__(self, *options: Mapping[str, str]) -> None:
        self._secrets = sorted(set(_secrets(options)), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """`text` without credentials."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def _secrets(options: Iterable[Mapping[str, str]]) -> Iterable[str]:
    for mapping in options:
        for name, value in mapping.items():
            if _KEY.search(name) and len(value) >= _SHORTEST:
                yield value
