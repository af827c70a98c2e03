"""Errors cross processes: executors of Spark and worker processes send them back."""

from __future__ import annotations

import copy
import pickle

import pytest

from deltaproto.clients.members import EntryError
from deltaproto.errors import (
    DeltaprotoError,
    EngineError,
    ErrorCode,
    SavedError,
    TableError,
    UsageError,
)
from deltaproto.policy.document.errors import PolicyError, Position
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import UnsupportedProtocol

ERRORS = (
    UsageError("a", "b"),
    TableError(ErrorCode.CORRUPT_LOG, "a", "b"),
    EngineError("a", "b"),
    EntryError("a", "b"),
    PolicyError("policy.yaml", Position(1, 2), "a", "b"),
    SavedError("t", ErrorCode.TIMEOUT, "a", "b"),
    UnsupportedProtocol("a", "b", 7, Protocol(1, 2)),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_in_another_process(error: DeltaprotoError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert vars(again) == vars(error)
        assert (str(again), again.args) == (str(error), error.args)
