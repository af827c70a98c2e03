"""Redaction of credentials from all output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "***"

# Compiled on first use: every start imports this module.
_NAMES = r"key|secret|token|passw(?:or)?d|credential|signature|sas|sig|authorization|account_key"
_KEY = rf"(?i)({_NAMES})"
_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_", "DATABRICKS_")
# Their values are file names and addresses, which errors should show.
_PLACES = r"(?i)(?:_(?:file|path|uri|url)|application_credentials|^aws_profile)$"
_USERINFO = (
    r"(?i)(\b[a-z][a-z0-9+.-]{0,30}:[/\\]{2,4})"
    r"(?:[^/\\@\s:]*?\s?(?::|%(?:25)*3A)[^/@\s]+|\*\*\*)@"
)
# A token alone, in schemes without user names; in abfss: this part is the container.
_LOGIN = r"(?i)(\b(?:https?|wss?|ftps?|jdbc:[a-z0-9:+.-]{1,60})://)[^/@\s:?#]+@"
# A secret key may contain slashes.
_KEYS = r"(?i)(\b(?:s3[an]?|gs|r2|oss|cosn?)://)[^/@\s:]+:[^@\s?#]+@"
# Teradata and Db2, among others, separate parameters by a comma, a colon or a slash.
_LISTED = (
    r"(?i)(\bjdbc:[^\s`'\"]{0,400}?[,:/]"
    r"(?:[a-z]{0,20}(?:passw(?:or)?d|pwd|token|secret))=)[^,;&\s]+"
)
_ADDRESS = r"(?:delta\.`)?(?:jdbc:)?(?:[A-Za-z][\w+.-]{0,30}:){1,4}//"
# Without the slashes, everything after the database type may be a password.
_JDBC = r"(?i)(\bjdbc:[a-z0-9+.-]{1,60}:)(?!//|\*\*\*)[^\s`'\"]+"
# A scheme without slashes; a single letter is a drive.
_SCHEME = r"(?:delta\.`)?[A-Za-z][\w+.-]{1,30}:"
_CONNECTION = (
    r"(?i)((?:^|[;?&`\s'\"])(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^;&\s'\"`]+"
)
# Blanks around a name; some clients ignore them.
_BLANKS = r"(?:[\s+]|%(?:25)*(?:20|09|0A|0D))*"
_SIGNED = (
    rf"(?i)((?:[?&;#]|%(?:25)*(?:3F|26|3B|23)){_BLANKS}"
    r"(?:sig|signature|sas|token|auth|authorization|"
    r"key|code|jwt|pass|pw|bearer|assertion|client_assertion|"
    r"[a-z][\w-]{0,40}(?:token|passw(?:or)?d|pwd|passphrase|secret|credential|signature|"
    r"pvt[_-]?key)|[a-z]{0,20}[_-]?(?:token|passw(?:or)?d|pwd|passphrase|secret|credential|"
    r"access[_-]?key(?:[_-]?id)?|account[_-]?key|secret[_-]?key|private[_-]?key|api[_-]?key)|"
    r"x-amz-[a-z-]+|x-goog-[a-z-]+|awsaccesskeyid|googleaccessid|se|sp|skoid)"
    rf"{_BLANKS}(?:=|%(?:25)*3D){_BLANKS})"
    r"[^&\s'\"`;]+"
)
# The text before a match is bounded, as engine messages may be long: otherwise each letter of
# a word would be tried as a start.
_IN_ADDRESSES = (
    # user:password@ in a URI
    (_USERINFO, rf"\1{HIDDEN}@"),
    (_KEYS, rf"\1{HIDDEN}@"),
    (_LOGIN, rf"\1{HIDDEN}@"),
    (_JDBC, rf"\1{HIDDEN}"),
    (_LISTED, rf"\1{HIDDEN}"),
    (_CONNECTION, rf"\1{HIDDEN}"),
    # query parameters of signed URLs
    (_SIGNED, rf"\1{HIDDEN}"),
)
_PATTERNS = (
    (r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}", rf"\1 {HIDDEN}"),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", HIDDEN),
    (r"\bdapi[0-9a-f]{32}(?:-\d+)?\b", HIDDEN),
    (r"\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*", HIDDEN),
    # key = value, in SQL, JSON or a list of options
    (
        (
            r"(?i)((?:secret|token|passw(?:or)?d|account[._]key|access[._]key|"
            r"credential)[\w.-]{0,200}['\"]?\s*[=:]\s*)(?:'[^']*'|\"[^\"]*\"|[^\s,;)}]+)"
        ),
        rf"\1{HIDDEN}",
    ),
)
_ESCAPES = r"(?i)\\+(?:u(?:00ad|20[0-6][0-9a-f]|feff)|xad)"
"""characters without width, as Python and JSON write them"""
_BLANK_ESCAPES = r"\\+[tnr]"
_LOCAL = ("file:", "delta.`file:")
_SHORTEST = 4
_ENCODED_ADDRESS = r"\b[A-Za-z][\w+.-]{1,30}://[^\s'\"`]*%[^\s'\"`]*"
_ENCODED = 3
"""how many times an address may be percent-encoded"""


class Redactor:
    """Hides anything that looks like a credential, and the secret values of `options`.

    Secrets in the clouds' environment variables are hidden too, as engines read them directly.
    """

    def __init__(self, *options: Mapping[str, str]) -> None:
        clouds = {name: value for name, value in os.environ.items() if name.startswith(_CLOUDS)}
        known = {form for secret in _secrets((*options, clouds)) for form in _encoded_forms(secret)}
        self._secrets = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return `text` without credentials."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = redact_addresses_in(text)
        for pattern, replacement in _PATTERNS:
            text = re.sub(pattern, replacement, text)
        return text


def redact_addresses_in(text: str) -> str:
    """Return a text, such as SQL, with the credentials removed from addresses in it."""
    shown = _redact_addresses(text)
    if shown.isascii() and "\\" not in shown:
        return shown
    plain = _without_invisible(shown)
    found = _redact_addresses(plain)
    return found if found != plain else shown


def _redact_addresses(text: str) -> str:
    for pattern, replacement in _IN_ADDRESSES:
        text = re.sub(pattern, replacement, text)
    return (
        re.sub(_ENCODED_ADDRESS, lambda found: redact_address(found[0]), text)
        if "%" in text
        else text
    )


def _without_invisible(text: str) -> str:
    """Return a text as it looks: without characters that have no width, and in compatible forms."""
    import unicodedata

    plain = unicodedata.normalize("NFKC", re.sub(_BLANK_ESCAPES, " ", re.sub(_ESCAPES, "", text)))
    return "".join(each for each in plain if unicodedata.category(each) != "Cf")


def may_have_credentials(address: str) -> bool:
    """Return True if an address can hold credentials by its form; local paths cannot."""
    return ":" in address or ";" in address or "key=" in address.lower()


def redact_address(address: str) -> str:
    """Return a table's address for display: without a password, token or signature.

    Local paths are never changed.
    """
    if not may_have_credentials(address) or address.lower().startswith(_LOCAL):
        return address
    shown = plain = _without_credentials(address)
    for _ in range(_ENCODED + 1):
        if not plain.isascii() or re.search(r"[\x00-\x20\x7f\\]", plain):
            plain = re.sub(r"[\s\x00-\x1f\x7f]", "", _without_invisible(plain)).replace("\\", "/")
        if plain.lower().startswith(_LOCAL) or not (found := re.match(_SCHEME, plain)):
            return shown
        if _without_credentials(plain) != plain:
            return f"{found[0]}//{HIDDEN}@"
        if "%" not in plain:
            break
        from urllib.parse import unquote

        plain = unquote(plain)
    return shown


def _without_credentials(address: str) -> str:
    shown = address
    for pattern in (_JDBC, _LISTED, _CONNECTION):
        shown = re.sub(pattern, rf"\1{HIDDEN}", shown)
    if not (found := re.match(_ADDRESS, shown)):
        signed = shown != address or re.match(_SCHEME, shown)
        return re.sub(_SIGNED, rf"\1{HIDDEN}", shown) if signed else shown
    host = shown[found.end() :].partition("/")[0]
    if "@" in host or (":" in host and re.match(_KEYS, address.removeprefix("delta.`"))):
        for pattern in (_KEYS, _USERINFO, _LOGIN):
            shown = re.sub(pattern, rf"\1{HIDDEN}@", shown, count=1)
    return re.sub(_SIGNED, rf"\1{HIDDEN}", shown)


def has_credentials(address: str) -> bool:
    """Return True if `redact_address` hides something in the address, or already has."""
    return redact_address(address) != address or any(
        mark in address for mark in (f"//{HIDDEN}@", f"={HIDDEN}", f"3D{HIDDEN}", f":{HIDDEN}")
    )


def _secrets(options: Iterable[Mapping[str, str]]) -> Iterator[str]:
    for mapping in options:
        for name, value in mapping.items():
            if re.search(_KEY, name) and not re.search(_PLACES, name):
                yield value
                yield from _nested_secrets(value)


def _nested_secrets(value: str) -> Iterator[str]:
    """Yield the secrets within a value: in a key file's JSON, and in a shared access signature."""
    import json
    from urllib.parse import unquote

    if value.lstrip().startswith("{"):
        try:
            held = json.loads(value)
        except ValueError:
            return
        for name, part in held.items():
            if isinstance(part, str) and re.search(_KEY, name):
                yield part
                yield from (line for line in part.splitlines() if "-----" not in line)
    for signature in re.findall(r"(?:^|[?&;])sig=([^&;\s]+)", value):
        yield signature
        yield unquote(signature)


def _encoded_forms(secret: str) -> Iterator[str]:
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
