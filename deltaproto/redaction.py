"""Redaction of credentials from all output."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from deltaproto.caches import cache_by_text

HIDDEN = "***"

# Compiled on first use: every start imports this module.
_NAMES = r"key|secret|token|passw(?:or)?d|credential|signature|sas|sig|authorization|account_key"
_KEY = rf"(?i)({_NAMES})"
_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_", "DATABRICKS_", "UC_")
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
    r"[a-z][\w.-]{0,40}(?:token|passw(?:or)?d|pwd|passphrase|secret|credential|signature|pvt[_-]?key|"
    r"(?:access|account|secret|private|api|storage|shared|master|encryption)[._-]?key(?:[._-]?id)?)|"
    r"fs\.(?:azure|s3a|gs)\.[\w.-]{1,120}|"
    r"[a-z]{0,20}[_-]?(?:token|passw(?:or)?d|pwd|passphrase|secret|credential|"
    r"access[_-]?key(?:[_-]?id)?|account[_-]?key|secret[_-]?key|private[_-]?key|api[_-]?key)|"
    r"x-amz-[a-z-]+|x-goog-[a-z-]+|awsaccesskeyid|googleaccessid|se|sp|skoid)"
    rf"{_BLANKS}(?:=|%(?:25)*3D){_BLANKS})"
    r"(?:\\*'[^'\s]+'|\\*\"[^\"\s]+\"|`[^`\s]+`|[^&\s'\"`;]+)"
    # A long value may continue on the next line.
    r"(?:[\r\n]+[A-Za-z0-9+/=%_-]{16,}(?![^\s&'\"`;]))*"
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
_KEYS_ALONE = (
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", HIDDEN),
    (r"\bdapi[0-9a-f]{32}(?:-\d+)?\b", HIDDEN),
    (r"\beyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]*", HIDDEN),
)
_PATTERNS = (
    (r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}", rf"\1 {HIDDEN}"),
    # key = value, in SQL, JSON or a list of options
    (
        (
            r"(?i)((?:secret|token|passw(?:or)?d|account[._]key|access[._]key|api[._-]?key|"
            # The error of a file, such as secret.yaml, begins with its name.
            r"credential)[\w.-]{0,200}['\"]?(?:\s*=\s*|(?<!\.yaml)(?<!\.yml)\s*:\s*|>))"
            r"(?:'[^']*'|\"[^\"]*\"|[^\s,;)}<]+)"
        ),
        rf"\1{HIDDEN}",
    ),
    (
        r"(?i)(\b(?:sig|signature|sas)(?:=|['\"]\s*[=:]\s*))(?:'[^'\s]+'|\"[^\"\s]+\"|[^&\s,;)}'\"]+)",
        rf"\1{HIDDEN}",
    ),
)
_ESCAPED = r"(?<!\\)\\{1,8}(?:u(?![dD][89a-fA-F])([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))"
"""characters as JSON and Python write them"""
_BLANK_ESCAPES = r"(?<!\\)\\{1,8}[tnr]"
_ESCAPED_SIGNS = r"(?<!\\)\\{1,8}(?=['\"`/])"
_BROKEN_ADDRESS = (
    r"\b[A-Za-z][\w+.-]{1,30}:[/\\]{2}[^\s'\"`*]*(?:[\t\r\n]+[^\s'\"`*]+){1,20}(?![^\s'\"`])"
)
"""an address with line breaks in it, and nothing in it redacted"""
_SIGNS = ("=", "@", "%", "&", "\\", "jdbc:", "akia", "asia", "dapi", "eyj")
"""every address with credentials contains one of these, and so does every key"""
# Compiling the patterns takes longer than reading a small table, and every commit names an engine.
_TEXT_SIGNS = (
    *("=", "%", "&", "\\", "jdbc:", "akia", "asia", "dapi", "eyj", "bearer", "basic"),
    *("key", "secret", "token", "passw", "credential", "sig", "sas"),
)
_ENDINGS = (
    r"(?:secret|passw(?:or)?d|pwd|passphrase|token|credentials?|"
    r"(?:access|account|api|private|secret|shared)[._-]?key|\b(?:sas|sig|signature))"
)
"""endings of the names of table properties with secret values"""
_PROPERTY_IN_SQL = rf"(?is)\bTBLPROPERTIES\s*\(.*?{_ENDINGS}['\"`]?\s*=\s*['\"]"
_HIDDEN_IN_SQL = r"(?:[=:'\"]|//|3D)\*\*\*(?!\*)"
_ENCODING_SIGNS = "%&\\\t\r\n"
_PLAIN_ADDRESS = r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9_./-]*"
"""an address without any sign that precedes a credential"""
_LOCAL = ("file:", "delta.`file:")
_SHORTEST = 4
_ENCODED_ADDRESS = r"\b[A-Za-z][\w+.-]{1,30}://[^\s'\"`]*%[^\s'\"`]*"
_HIDDEN_ALREADY = r"(?i)//\*\*\*@|(?:=|3D|:)(?:[\s+]|%[0-9A-F]{2})*\*\*\*"
_ENCODED = 3
"""how many times a text may be encoded"""


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
        return _redact_encoded(text, self._redact)

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return _redact_all(text)


def redact_addresses_in(text: str) -> str:
    """Return a text, such as SQL, without credentials in addresses, and without access keys."""
    lower = text.lower()
    if text.isascii() and not any(sign in lower for sign in _SIGNS):
        return text
    return _redact_encoded(text, _redact_addresses)


def redact_text(text: str) -> str:
    """Return a text of a log without anything that looks like a credential."""
    lower = text.lower()
    address = ":" in lower and ("/" in lower or "@" in lower)
    if text.isascii() and not address and not any(sign in lower for sign in _TEXT_SIGNS):
        return text
    return _redact_encoded(text, _redact_all)


@cache_by_text(256)
def holds_credentials(sql: str) -> bool:
    """Return True if a statement contains a credential, or the placeholder of a hidden one."""
    hidden = re.search(_HIDDEN_IN_SQL, sql) or re.search(_PROPERTY_IN_SQL, sql)
    return hidden is not None or redact_addresses_in(sql) != sql


def is_secret_property(key: str) -> bool:
    """Return True if a table property of this name has a secret value."""
    return re.search(rf"(?i){_ENDINGS}$", key) is not None


def _redact_all(text: str) -> str:
    text = _redact_addresses(text)
    for pattern, replacement in _PATTERNS:
        text = re.sub(pattern, replacement, text)
    return text


def _redact_encoded(text: str, redact: Callable[[str], str]) -> str:
    """Return a text without anything that `redact` finds in it or in its decoded forms.

    The text is returned decoded only if a decoded form shows a credential.
    """
    shown = plain = redact(text)
    if plain.isascii() and not any(sign in plain for sign in _ENCODING_SIGNS):
        return shown
    for _ in range(_ENCODED + 1):
        decoded = _decoded(plain)
        found = redact(re.sub(_BROKEN_ADDRESS, lambda at: _joined(at[0], redact), decoded))
        if found != decoded:
            shown = found
        elif decoded == plain:
            break
        plain = found
    return shown


def _joined(address: str, redact: Callable[[str], str]) -> str:
    """Return an address without line breaks if that shows a credential."""
    whole = re.sub(r"[\t\r\n]+", "", address)
    return whole if redact(whole) != whole else address


def _redact_addresses(text: str) -> str:
    for pattern, replacement in (*_IN_ADDRESSES, *_KEYS_ALONE):
        text = re.sub(pattern, replacement, text)
    return (
        re.sub(_ENCODED_ADDRESS, lambda found: redact_address(found[0]), text)
        if "%" in text
        else text
    )


def _decoded(text: str) -> str:
    """Decode one layer of HTML entities, escapes and percent signs, and normalize characters."""
    if "&" in text:
        from html import unescape

        text = unescape(text)
    if "\\" in text:
        text = re.sub(_ESCAPED, lambda found: chr(int(found[1] or found[2], 16)), text)
        text = re.sub(_ESCAPED_SIGNS, "", re.sub(_BLANK_ESCAPES, "\n", text))
    if "%" in text:
        from urllib.parse import unquote

        text = unquote(text)
    return _without_invisible(text)


def _without_invisible(text: str) -> str:
    """Return a text as it appears: without zero-width characters, and in compatible forms."""
    if text.isascii() and text.isprintable():
        return text
    import unicodedata

    return "".join(
        " " if each not in "\t\r\n" and unicodedata.category(each) == "Cc" else each
        for each in unicodedata.normalize("NFKC", text)
        if unicodedata.category(each) != "Cf"
    )


def may_have_credentials(address: str) -> bool:
    """Return True if an address can hold credentials by its form; local paths cannot."""
    return (
        ":" in address
        or ";" in address
        or any(sign in address.lower() for sign in ("key=", "%3a", "%253a"))
    )


def redact_address(address: str) -> str:
    """Return a table's address for display: without a password, token or signature.

    Local paths are never changed.
    """
    if not may_have_credentials(address) or address.lower().startswith(_LOCAL):
        return address
    if re.fullmatch(_PLAIN_ADDRESS, address):
        return address
    shown = plain = _without_credentials(address)
    for _ in range(_ENCODED + 1):
        decoded = _decoded(plain)
        looks = decoded
        if not decoded.isascii() or re.search(r"[\x00-\x20\x7f\\]", decoded):
            looks = re.sub(r"[\s\x00-\x1f\x7f]", "", decoded).replace("\\", "/")
        if looks.lower().startswith(_LOCAL):
            return shown
        if (found := re.match(_SCHEME, looks)) and _without_credentials(looks) != looks:
            return f"{found[0]}//{HIDDEN}@"
        if decoded == plain:
            break
        plain = decoded
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
    """Return True if `redact_address` hides something in the address, or has already done so."""
    return redact_address(address) != address or re.search(_HIDDEN_ALREADY, address) is not None


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
            decoded = json.loads(value)
        except ValueError:
            return
        for name, part in decoded.items():
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
