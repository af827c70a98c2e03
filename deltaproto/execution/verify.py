"""Verifies a step: the engine's result, the table's state, and a second reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import DeltaprotoError
from deltaproto.execution.progress import TableObservation, without_features
from deltaproto.planning.plan import Step
from deltaproto.planning.statement import Action
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.delta_rs import DeltaRsReader

RETENTION_WAIT_ERRORS = frozenset(
    {
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
        "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
    }
)
"""error class of a drop that has to wait until history expires"""
FEATURE_NOT_PRESENT = "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"
_CONFLICT_ERRORS = frozenset(
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
_CONFLICT_EXCEPTIONS = re.compile(
    r"\b(Concurrent(?:Append|DeleteRead|DeleteDelete|Transaction|Write|Modification)Exception|"
    r"MetadataChangedException|ProtocolChangedException)\b"
)
_PERMISSION_DENIED = re.compile(
    r"(?i)\b(?:permission[ _]?denied|access[ _]?denied(?:exception)?|AccessControlException|"
    r"read-only file ?system|(?:HTTP|status code)[ :]*403|403 Forbidden|INSUFFICIENT_PERMISSIONS|"
    r"AuthorizationPermissionMismatch|AuthorizationFailure|not authori[sz]ed|"
    r"does not have storage\.objects\.\w+|Mkdirs failed|operation (?:is )?not permitted)\b"
)
_STORAGE_FULL = re.compile(
    r"(?i)\b(?:no space left on device|(?:disk )?quota[ _]?exceeded|\w*QuotaExceededException|"
    r"insufficient ?storage)\b"
)
_ERROR_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


class StatementResult(NamedTuple):
    """The result of one statement."""

    error: str | None = None
    """the error class; empty if the engine names none; None: the statement succeeded"""
    message: str = ""
    lost: bool = False
    """the connection to the engine broke, so the statement's effect is unknown"""

    @property
    def conflict(self) -> bool:
        """True if a concurrent transaction won."""
        return self.error is not None and (
            self.error.split(".")[0] in _CONFLICT_ERRORS
            or bool(_CONFLICT_EXCEPTIONS.search(self.message))
        )


def is_permission_denied(message: str) -> bool:
    """Return True if the storage or the catalog denied the engine write access."""
    return _PERMISSION_DENIED.search(message) is not None


def is_storage_full(message: str) -> bool:
    """Return True if the engine ran out of space or exceeded a quota."""
    return _STORAGE_FULL.search(message) is not None


def find_error_class(text: str) -> str:
    """Return the error class that a message begins with or contains; empty if none."""
    found = _ERROR_CLASS.search(text)
    return found[1] if found else ""


class StepVerdict(StrEnum):
    """The outcome of a step."""

    AS_PREDICTED = "as-predicted"
    EARLY = "early"
    """the first of two calls was enough"""
    NOT_NEEDED = "not-needed"
    WAIT = "wait"
    """the engine requires more history to expire first"""
    CONFLICT = "conflict"
    """a concurrent transaction won"""
    LOST = "lost"
    """the engine disconnected"""
    REFUSED = "refused"
    UNEXPECTED = "unexpected"
    """it was executed, but the table is not as predicted"""


class VerifiedStep(NamedTuple):
    """A verdict, with an explanation."""

    verdict: StepVerdict
    message: str = ""
    remarks: tuple[str, ...] = ()
    """harmless differences"""
    hint: str = ""
    """what to do, if it depends on more than the verdict"""


VECTORS_LEFT = VerifiedStep(
    StepVerdict.UNEXPECTED,
    "deletionVectors is dropped, but data files still have deletion vectors: readers return "
    "deleted rows",
    hint="add deletionVectors again at once, so that readers honor them: ALTER TABLE … SET "
    "TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')",
)


def find_left_vectors(steps: Iterable[Step], observed: TableObservation) -> VerifiedStep | None:
    """Return the verdict on steps that dropped deletionVectors and left some in data files."""
    drops = any(step.action is Action.DROP and step.feature == "deletionVectors" for step in steps)
    return VECTORS_LEFT if drops and observed.unlisted_vectors else None


def verify_step(
    step: Step,
    result: StatementResult,
    operations: Sequence[str],
    now: Protocol,
    early: frozenset[str],
    *,
    resumed: bool = False,
) -> VerifiedStep:
    """Determine the outcome of a step.

    Args:
        operations: operations of the step's commits.
        now: the table's protocol afterwards.
        early: features dropped earlier than planned.
        resumed: an earlier run has already made commits of the step.
    """
    if result.lost:
        return VerifiedStep(StepVerdict.LOST, result.message)
    if result.conflict:
        return VerifiedStep(StepVerdict.CONFLICT, result.message)
    if step.optional and result.error == FEATURE_NOT_PRESENT and step.feature in early:
        return VerifiedStep(StepVerdict.NOT_NEEDED, f"{step.feature} was dropped in the first call")
    wanted = without_features(step.protocol_after, early)
    feature = step.feature or ""
    if (
        step.expects in RETENTION_WAIT_ERRORS
        and result.error is None
        and feature in wanted.supported
    ):
        sooner = without_features(wanted, frozenset({feature}))
        if now == sooner:
            return VerifiedStep(
                StepVerdict.EARLY, f"{feature} was dropped at once: no history uses it"
            )
        wanted = sooner
    elif result.error in RETENTION_WAIT_ERRORS and step.expects not in RETENTION_WAIT_ERRORS:
        return VerifiedStep(StepVerdict.WAIT, result.message)
    elif not _is_expected_error(step.expects, result.error):
        message = "it succeeded" if result.error is None else result.message
        return VerifiedStep(StepVerdict.REFUSED, message)
    if now != wanted:
        return VerifiedStep(StepVerdict.UNEXPECTED, _describe_protocol_difference(wanted, now))
    if step.commits[0] and not operations and not resumed:
        predicted = ", ".join(step.operations)
        message = f"the table has no commit of {step.id}; predicted: {predicted}"
        return VerifiedStep(StepVerdict.UNEXPECTED, message)
    return VerifiedStep(
        StepVerdict.AS_PREDICTED, remarks=tuple(_describe_commit_count(step, operations))
    )


def _is_expected_error(expected: str | None, error: str | None) -> bool:
    # Delta can miscount deletion vectors, and then reports another reason to wait.
    return error == expected or (
        expected in RETENTION_WAIT_ERRORS and error in RETENTION_WAIT_ERRORS
    )


def _describe_commit_count(step: Step, operations: Sequence[str]) -> list[str]:
    least, most = step.commits
    if least <= len(operations) <= most:
        return []
    made = ", ".join(operations) or "none"
    return [f"commits: {made}; {least} to {most} were predicted"]


def _describe_protocol_difference(wanted: Protocol, now: Protocol) -> str:
    more = sorted(now.supported - wanted.supported)
    less = sorted(wanted.supported - now.supported)
    parts = [f"{', '.join(more)} should not be there"] if more else []
    parts += [f"{', '.join(less)} should be there"] if less else []
    difference = "; ".join(parts) or "the same features"
    return f"{difference}: the protocol is {now} and should be {wanted}"


def cross_check_with_delta_rs(
    uri: str, storage_options: Mapping[str, str], protocol: Protocol
) -> tuple[bool, str]:
    """Compare with delta-rs. Return False if it contradicts; and `agrees` or why it does not."""
    try:
        seen = DeltaRsReader(storage_options).read(uri).protocol
    except DeltaprotoError as error:
        return True, f"no result: {error.message}"
    if _comparable_fields(seen) == _comparable_fields(protocol):
        return True, "agrees"
    return False, f"delta-rs reads {seen.in_words}"


def _comparable_fields(protocol: Protocol) -> tuple[object, ...]:
    # delta-rs does not distinguish an empty list from a missing one.
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        protocol.reader_features or frozenset(),
        protocol.writer_features or frozenset(),
    )
