"""Access and connection errors of object stores, as a one-line cause and a hint.

Sources: the lists of error codes in the documentation of S3, Azure Blob Storage and Google Cloud
Storage; object_store's and Hadoop's texts quote them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError

_CHECK_CREDENTIALS = "check the credentials: environment, profile, or --storage-option"
_CHECK_PATH = "check the bucket and the path"
_RENEW_CREDENTIALS = "get new credentials, or renew those of the profile"
_NEEDS_RIGHTS = "grant permission to list the folder and to read its files"
UNKNOWN_AUTHORITY_HINT = "set SSL_CERT_FILE to a file with the certificates of its authority"
_DENIED = ErrorCode.PERMISSION_DENIED


class StorageRefusal(NamedTuple):
    """Why a store denied access, or could not be reached."""

    code: ErrorCode
    cause: str
    hint: str
    final: bool = False
    """the same request always fails"""

    def as_error(self, uri: str) -> TableError:
        """Return the error for the table or folder at `uri`."""
        if self.code is ErrorCode.NOT_FOUND:
            return TableError(
                self.code, f"{uri} does not exist{_cause_suffix(self.cause)}", self.hint
            )
        if self.code is ErrorCode.STORAGE:
            error = TableError(self.code, f"cannot read {uri}: {self.cause}", self.hint)
            error.final = self.final
            return error
        message = f"no permission to read {uri}{_cause_suffix(self.cause)}"
        return TableError(self.code, message, self.hint)


def _cause_suffix(cause: str) -> str:
    return f": {cause}" if cause else ""


_WORDS: dict[str, StorageRefusal] = {
    "InvalidAccessKeyId": StorageRefusal(_DENIED, "the access key is unknown", _CHECK_CREDENTIALS),
    "SignatureDoesNotMatch": StorageRefusal(
        _DENIED, "the secret key does not match the access key", _CHECK_CREDENTIALS
    ),
    "ExpiredToken": StorageRefusal(_DENIED, "the session token has expired", _RENEW_CREDENTIALS),
    "RequestExpired": StorageRefusal(_DENIED, "the credentials have expired", _RENEW_CREDENTIALS),
    "TokenRefreshRequired": StorageRefusal(
        _DENIED, "the session token has expired", _RENEW_CREDENTIALS
    ),
    "InvalidToken": StorageRefusal(_DENIED, "the session token is invalid", _RENEW_CREDENTIALS),
    "InvalidClientTokenId": StorageRefusal(
        _DENIED, "the access key is unknown", _CHECK_CREDENTIALS
    ),
    "RequestTimeTooSkewed": StorageRefusal(
        _DENIED, "this machine's clock is wrong", "set the clock; signatures contain the time"
    ),
    "AccessDenied": StorageRefusal(_DENIED, "access denied", _NEEDS_RIGHTS),
    "AllAccessDisabled": StorageRefusal(_DENIED, "all access is disabled", _NEEDS_RIGHTS),
    "NoSuchBucket": StorageRefusal(ErrorCode.NOT_FOUND, "the bucket does not exist", _CHECK_PATH),
    "AuthenticationFailed": StorageRefusal(
        _DENIED, "the account key or signature is invalid", _CHECK_CREDENTIALS
    ),
    "AuthorizationFailure": StorageRefusal(
        _DENIED, "the account key or signature is invalid", _CHECK_CREDENTIALS
    ),
    "NoAuthenticationInformation": StorageRefusal(
        _DENIED, "no credentials were sent", _CHECK_CREDENTIALS
    ),
    "InvalidAuthenticationInfo": StorageRefusal(
        _DENIED, "the credentials are malformed", _CHECK_CREDENTIALS
    ),
    "AuthorizationPermissionMismatch": StorageRefusal(_DENIED, "access denied", _NEEDS_RIGHTS),
    "AuthorizationResourceTypeMismatch": StorageRefusal(
        _DENIED, "the signature does not cover it", _NEEDS_RIGHTS
    ),
    "AuthorizationServiceMismatch": StorageRefusal(
        _DENIED, "the signature does not cover it", _NEEDS_RIGHTS
    ),
    "InsufficientAccountPermissions": StorageRefusal(_DENIED, "access denied", _NEEDS_RIGHTS),
    "AccountIsDisabled": StorageRefusal(_DENIED, "the account is disabled", _CHECK_CREDENTIALS),
    "ContainerNotFound": StorageRefusal(ErrorCode.NOT_FOUND, "no such container", _CHECK_PATH),
    "FilesystemNotFound": StorageRefusal(ErrorCode.NOT_FOUND, "no such container", _CHECK_PATH),
}
DENIED = StorageRefusal(_DENIED, "", _CHECK_CREDENTIALS)
"""denied without a known reason"""
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b")
_NO_CREDENTIALS = re.compile(
    r"169\.254\.169\.254|169\.254\.170\.|metadata\.google\.internal|metadata/identity|"
    r"failed to load (?:IMDS|credentials)|NoAuthWithAWSException|No AWS Credentials provided|"
    r"Unable to load credentials"
)
_MALFORMED = re.compile(
    r"Invalid Access Key|SAS query pair|decod\w+ service account|Invalid symbol"
)
_STATUS = re.compile(r"(?i)status code:? ?(\d{3})|\b(403) Forbidden|\b(401) Unauthorized")


_ENDPOINT = re.compile(r"\b(?:GET|HEAD|PUT|POST|DELETE) (https?://[^/\s]+)")
# obstore shows the state of its client, deltalake the messages of all causes.
_CERTIFICATE = re.compile(r"(?:InvalidCertificate\(|invalid peer certificate) *(\w+)")
_NO_HOST = re.compile(r'failed to lookup address information:? ?([^",]+)')
_NOT_CONNECTED = re.compile(
    r'tcp connect error(?:",.*?message: "([^"]+)"| ((?:(?! \(os error).)+) \(os error)'
)


def classify_connection(text: str) -> StorageRefusal | None:
    """Recognize a store that cannot be reached in a library's message, or return None.

    Args:
        text: on one line, with all causes.
    """
    endpoint = _ENDPOINT.search(text)
    if endpoint and endpoint[1].startswith("http:") and "builder error" in text:
        cause = "its endpoint is not encrypted, and allow_http is not set"
        hint = "pass --storage-option allow_http=true"
        return StorageRefusal(ErrorCode.STORAGE, cause, hint, final=True)
    to = f"cannot connect to {endpoint[1]}" if endpoint else "cannot connect to the endpoint"
    if (found := _CERTIFICATE.search(text)) is not None:
        hint = "check the endpoint's certificate, and this machine's clock"
        if found[1] == "UnknownIssuer":
            hint = UNKNOWN_AUTHORITY_HINT
        cause = f"{to}: its certificate is not trusted ({found[1]})"
        return StorageRefusal(ErrorCode.STORAGE, cause, hint, final=True)
    if "InvalidContentType" in text:
        hint = "pass the endpoint with http://, and --storage-option allow_http=true"
        return StorageRefusal(ErrorCode.STORAGE, f"{to}: it does not use TLS", hint, final=True)
    found = _NO_HOST.search(text) or _NOT_CONNECTED.search(text)
    if found is None:
        return None
    cause = f"{to}: {next(filter(None, found.groups())).strip()}"
    return StorageRefusal(ErrorCode.STORAGE, cause, "check the endpoint and the network")


def classify_refusal(text: str) -> StorageRefusal | None:
    """Recognize a denied access in a library's message, or return None."""
    if _NO_CREDENTIALS.search(text):
        return StorageRefusal(
            _DENIED,
            "no credentials are configured, and this machine has no role",
            "set them in the environment or in a profile, or pass --storage-option",
        )
    if _MALFORMED.search(text):
        return StorageRefusal(_DENIED, "the credentials are malformed", _CHECK_CREDENTIALS)
    answer = _STATUS.search(text)
    status = int(next(filter(None, answer.groups()))) if answer else 0
    # The request is quoted before the status, and may contain any name.
    word = _WORD.search(text, answer.end() if answer else 0)
    if word and status in (0, 400, 401, 403, 404):
        known = _WORDS[word[1]]
        return known._replace(cause=f"{known.cause} ({word[1]})")
    if status in (401, 403):
        return DENIED
    return StorageRefusal(ErrorCode.NOT_FOUND, "", _CHECK_PATH) if status == 404 else None
