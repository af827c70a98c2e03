"""What an engine said to a statement, and which errors mean what. Pure.

Source: Delta Spark 4.4's `delta-error-classes.json` and its `io.delta.exceptions`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LATER = frozenset(
    {
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
        "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
    }
)
"""a drop that has to wait for history to grow old"""
NOT_PRESENT = "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
_CONFLICTS = frozenset(
    {
        "DELTA_CONCURRENT_APPEND",
        "DELTA_CONCURRENT_DELETE_READ",
        "DELTA_CONCURRENT_DELETE_DELETE",
        "DELTA_CONCURRENT_TRANSACTION",
        "DELTA_CONCURRENT_WRITE",
        "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
        "DELTA_METADATA_CHANGED",
        "DELTA_PROTOCOL_CHANGED",
    }
)
_EXCEPTIONS = re.compile(
    r"\b(Concurrent(?:Append|DeleteRead|DeleteDelete|Transaction|Write|Modification)Exception|"
    r"MetadataChangedException|ProtocolChangedException)\b"
)
_DENIED = re.compile(
    r"(?i)\b(?:permission[ _]?denied|access[ _]?denied|AccessControlException|"
    r"read-only file ?system|(?:HTTP|status code)[ :]*403|403 Forbidden|INSUFFICIENT_PERMISSIONS|"
    r"AuthorizationPermissionMismatch|AuthorizationFailure|not authori[sz]ed|"
    r"does not have storage\.objects\.\w+|Mkdirs failed|Operation not permitted)\b"
)
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


class Answer(NamedTuple):
    """The answer to one statement."""

    error: str | None = None
    """the error class; empty where the engine names none; None: the statement succeeded"""
    message: str = ""
    lost: bool = False
    """the connection to the engine broke, so that nobody knows what came of the statement"""

    @property
    def conflict(self) -> bool:
        """Whether a concurrent transaction won."""
        return self.error is not None and (
            self.error.split(".")[0] in _CONFLICTS or bool(_EXCEPTIONS.search(self.message))
        )


def denied(message: str) -> bool:
    """Whether the storage or the catalog did not let the engine write."""
    return _DENIED.search(message) is not None


def error_class(text: str) -> str:
    """The error class that a message begins with or holds; empty where it holds none."""
    found = _CLASS.search(text)
    return found[1] if found else ""
