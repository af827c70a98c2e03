"""Keeping credentials out of everything that is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "***"
_NAMES = r"key|secret|token|passw(?:or)?d|credential|signature|sas|sig|authorization|account_key"
_KEY = re.compile(rf"(?i)({_NAMES})")
_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_", "DATABRICKS_")
# Whose values are names of files and addresses, which errors should show.
_PLACES = re.compile(r"(?i)(?:_(?:file|path|uri|url)|application_credentials|^aws_profile)$")
_USERINFO = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]{0,30}://)(?:[^/@\s:]*:[^/@\s]+|\*\*\*)@")
# A token alone, where a user's name has no other meaning; abfss: has a container there.
_TOKEN = re.compile(r"(?i)(\b(?:https?|wss?|ftps?|jdbc:[a-z0-9:+.-]{1,60})://)[^/@\s:?#]+@")
# A secret key may hold slashes.
_KEYS = re.compile(r"(?i)(\b(?:s3[an]?|gs|r2|oss|cosn?)://)[^/@\s:]+:[^@\s?#]+@")
# Oracle's thin and oci drivers, among others, take user/password@ without slashes before it.
_SLASHED = re.compile(r"(?i)(\bjdbc:[a-z0-9:+.-]{1,60}:)[^/@\s:]+/[^@\s]+@")
_JDBC = re.compile(r"(?i)([,:/](?:[a-z]{0,20}(?:passw(?:or)?d|pwd|token|secret))=)[^,;&\s]+")
_WITHOUT_HOST = re.compile(
    r"(?i)(?:delta\.`)?(?:jdbc:|(?:s3[an]?|gs|abfss?|wasbs?|az|azure|adl|dbfs|hdfs|https?|r2|oss):/)"
)
_ADDRESS = re.compile(r"(?:delta\.`)?(?:jdbc:)?(?:[A-Za-z][\w+.-]{0,30}:){1,4}//")
_SIGNED = re.compile(
    r"(?i)((?:[?&;#]|%3F|%26|%3B)(?:sig|signature|sas|token|auth|"
    r"[a-z]{0,20}[_-]?(?:token|passw(?:or)?d|pwd|passphrase|secret|credential|"
    r"access[_-]?key(?:[_-]?id)?|account[_-]?key|secret[_-]?key|private[_-]?key|api[_-]?key)|"
    r"x-amz-[a-z-]+|x-goog-[a-z-]+|awsaccesskeyid|googleaccessid|se|sp|skoid)(?:=|%3D))"
    r"[^&\s'\"`;]+"
)
# What comes before a mark is bounded, as texts of engines may be long: else each letter of a word
# would be tried as its beginning.
_PATTERNS = (
    # user:password@ in a URI
    (_USERINFO, rf"\1{HIDDEN}@"),
    (_KEYS, rf"\1{HIDDEN}@"),
    (_TOKEN, rf"\1{HIDDEN}@"),
    (_SLASHED, rf"\1{HIDDEN}@"),
    # query parameters of signed URLs
    (_SIGNED, rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (re.compile(r"\bdapi[0-9a-f]{32}(?:-\d+)?\b"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*"), HIDDEN),
    # key = value, in SQL, JSON or a list of options
    (
        re.compile(
            r"(?i)((?:secret|token|passw(?:or)?d|account[._]key|access[._]key|"
            r"credential)[\w.-]{0,200}['\"]?\s*[=:]\s*)(?:'[^']*'|\"[^\"]*\"|[^\s,;)}]+)"
        ),
        rf"\1{HIDDEN}",
    ),
)
_SHORTEST = 4


class Redactor:
    """Hides what looks like a credential, and the values of `options` that are known to be ones.

    The environment's cloud variables are known as well, as engines read them by themselves.
    """

    def __init__(self, *options: Mapping[str, str]) -> None:
        clouds = {name: value for name, value in os.environ.items() if name.startswith(_CLOUDS)}
        known = {form for secret in _secrets((*options, clouds)) for form in _forms(secret)}
        self._secrets = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """`text` without credentials."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def public(address: str) -> str:
    """A table's address as it may be shown: without a password, a token or a signature.

    Local paths are what they are, whatever they look like.
    """
    if address[:12].lower().removeprefix("delta.`").startswith("jdbc:"):
        address = _JDBC.sub(rf"\1{HIDDEN}", address)
    if _WITHOUT_HOST.match(address) and not _ADDRESS.match(address):
        return _SIGNED.sub(rf"\1{HIDDEN}", _SLASHED.sub(rf"\1{HIDDEN}@", address, count=1))
    if "://" not in address or not (found := _ADDRESS.match(address)):
        return address
    if found[0].lower() in ("file://", "delta.`file://"):
        return address
    host = address[found.end() :].partition("/")[0]
    shown = address
    if "@" in host or (":" in host and _KEYS.match(address.removeprefix("delta.`"))):
        for pattern in (_KEYS, _USERINFO, _TOKEN):
            shown = pattern.sub(rf"\1{HIDDEN}@", shown, count=1)
    return _SIGNED.sub(rf"\1{HIDDEN}", shown)


def confidential(address: str) -> bool:
    """True where `public` hides something, or has done so."""
    return public(address) != address or any(
        mark in address for mark in (f":{HIDDEN}@", f"://{HIDDEN}@", f"={HIDDEN}", f"%3D{HIDDEN}")
    )


def _secrets(options: Iterable[Mapping[str, str]]) -> Iterator[str]:
    for mapping in options:
        for name, value in mapping.items():
            if _KEY.search(name) and not _PLACES.search(name):
                yield value
                yield from _parts(value)


def _parts(value: str) -> Iterator[str]:
    """The secrets within one: of a key file's JSON, and of a shared access signature."""
    import json
    from urllib.parse import unquote

    if value.lstrip().startswith("{"):
        try:
            held = json.loads(value)
        except ValueError:
            return
        for name, part in held.items():
            if isinstance(part, str) and _KEY.search(name):
                yield part
                yield from (line for line in part.splitlines() if "-----" not in line)
    for signature in re.findall(r"(?:^|[?&;])sig=([^&;\s]+)", value):
        yield signature
        yield unquote(signature)


def _forms(secret: str) -> Iterator[str]:
    import base64
    import json
    from urllib.parse import quote

    if len(secret) < _SHORTEST:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    try:
        raw = secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = secret.encode("utf-8", "surrogatepass")
    yield quote(raw, safe="")
    yield base64.b64encode(raw).decode()
