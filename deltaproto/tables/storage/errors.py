"""Access errors of object stores, as a one-line cause and a hint.

Sources: the lists of error codes in the documentation of S3, Azure Blob Storage and Google Cloud
Storage; object_store's and Hadoop's texts quote them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError

_CHECK = "check the credentials: environment, profile, or --storage-option"
_GONE = "check the bucket and the path"
_NEW = "get new credentials, or renew those of the profile"
_RIGHTS = "grant permission to list the folder and to read its files"
_DENIED = ErrorCode.PERMISSION_DENIED


class StorageRefusal(NamedTuple):
    """Why a store denied access."""

    code: ErrorCode
    cause: str
    hint: str

    def on(self, uri: str) -> TableError:
        """Return the error for the table or folder at `uri`."""
        if self.code is ErrorCode.NOT_FOUND:
            return TableError(self.code, f"{uri} does not exist{_because(self.cause)}", self.hint)
        said = f"no permission to read {uri}{_because(self.cause)}"
        return TableError(self.code, said, self.hint)


def _because(cause: str) -> str:
    return f": {cause}" if cause else ""


_WORDS: dict[str, StorageRefusal] = {
    "InvalidAccessKeyId": StorageRefusal(_DENIED, "the access key is unknown", _CHECK),
    "SignatureDoesNotMatch": StorageRefusal(
        _DENIED, "the secret key does not match the access key", _CHECK
    ),
    "ExpiredToken": StorageRefusal(_DENIED, "the session token has expired", _NEW),
    "RequestExpired": StorageRefusal(_DENIED, "the credentials have expired", _NEW),
    "TokenRefreshRequired": StorageRefusal(_DENIED, "the session token has expired", _NEW),
    "InvalidToken": StorageRefusal(_DENIED, "the session token is invalid", _NEW),
    "InvalidClientTokenId": StorageRefusal(_DENIED, "the access key is unknown", _CHECK),
    "RequestTimeTooSkewed": StorageRefusal(
        _DENIED, "this machine's clock is wrong", "set the clock; signatures contain the time"
    ),
    "AccessDenied": StorageRefusal(_DENIED, "access denied", _RIGHTS),
    "AllAccessDisabled": StorageRefusal(_DENIED, "all access is disabled", _RIGHTS),
    "NoSuchBucket": StorageRefusal(ErrorCode.NOT_FOUND, "the bucket does not exist", _GONE),
    "AuthenticationFailed": StorageRefusal(
        _DENIED, "the account key or signature is invalid", _CHECK
    ),
    "AuthorizationFailure": StorageRefusal(
        _DENIED, "the account key or signature is invalid", _CHECK
    ),
    "NoAuthenticationInformation": StorageRefusal(_DENIED, "no credentials were sent", _CHECK),
    "InvalidAuthenticationInfo": StorageRefusal(_DENIED, "the credentials are malformed", _CHECK),
    "AuthorizationPermissionMismatch": StorageRefusal(_DENIED, "access denied", _RIGHTS),
    "AuthorizationResourceTypeMismatch": StorageRefusal(
        _DENIED, "the signature does not cover it", _RIGHTS
    ),
    "AuthorizationServiceMismatch": StorageRefusal(
        _DENIED, "the signature does not cover it", _RIGHTS
    ),
    "InsufficientAccountPermissions": StorageRefusal(_DENIED, "access denied", _RIGHTS),
    "AccountIsDisabled": StorageRefusal(_DENIED, "the account is disabled", _CHECK),
    "ContainerNotFound": StorageRefusal(ErrorCode.NOT_FOUND, "no such container", _GONE),
    "FilesystemNotFound": StorageRefusal(ErrorCode.NOT_FOUND, "no such container", _GONE),
}
DENIED = StorageRefusal(_DENIED, "", _CHECK)
"""denied without a known reason"""
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b")
_NOBODY = re.compile(
    r"169\.254\.169\.254|169\.254\.170\.|metadata\.google\.internal|metadata/identity|"
    r"failed to load (?:IMDS|credentials)|NoAuthWithAWSException|No AWS Credentials provided|"
    r"Unable to load credentials"
)
_MALFORMED = re.compile(
    r"Invalid Access Key|SAS query pair|decod\w+ service account|Invalid symbol"
)
_STATUS = re.compile(r"(?i)status code:? ?(\d{3})|\b(403) Forbidden|\b(401) Unauthorized")


def refusal(text: str) -> StorageRefusal | None:
    """Recognize a denied access in a library's message, or return None."""
    if _NOBODY.search(text):
        return StorageRefusal(
            _DENIED,
            "no credentials are configured, and this machine has no role",
            "pass credentials: environment, profile, or --storage-option",
        )
    if _MALFORMED.search(text):
        return StorageRefusal(_DENIED, "the credentials are malformed", _CHECK)
    answer = _STATUS.search(text)
    status = int(next(filter(None, answer.groups()))) if answer else 0
    # The request is quoted before the status, and may contain any name.
    word = _WORD.search(text, answer.end() if answer else 0)
    if word and status in (0, 400, 401, 403, 404):
        known = _WORDS[word[1]]
        return known._replace(cause=f"{known.cause} ({word[1]})")
    if status in (401, 403):
        return DENIED
    return StorageRefusal(ErrorCode.NOT_FOUND, "", _GONE) if status == 404 else None
