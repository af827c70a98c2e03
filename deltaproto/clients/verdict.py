"""The verdict on a client, and why."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What happens when the client tries, the worst first."""

    WRONG = "wrong"
    """it may read wrong rows, or lose data or promises"""
    UNKNOWN = "unknown"
    """not known, and so not counted on"""
    REFUSED = "refused"
    """it fails, safely"""
    OK = "ok"


class PathVerdict(NamedTuple):
    """The verdict on one way through a client, with the features that decide and one sentence.

    While they are collected, `{}` in a reason stands for the features.
    """

    verdict: Verdict
    because: tuple[str, ...] = ()
    reason: str = ""
