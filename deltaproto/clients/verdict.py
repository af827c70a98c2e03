"""The verdict on a client, with the reason."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What happens when the client tries, worst first."""

    WRONG = "wrong"
    """it may read wrong rows, lose data or break guarantees"""
    UNKNOWN = "unknown"
    """unknown, so not relied on"""
    REFUSED = "refused"
    """it fails safely"""
    OK = "ok"
    """it works"""


class PathVerdict(NamedTuple):
    """The verdict on one client path, with the deciding features and a reason.

    While verdicts are collected, `{}` in a reason is a placeholder for the features.
    """

    verdict: Verdict
    because: tuple[str, ...] = ()
    reason: str = ""
