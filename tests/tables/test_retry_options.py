"""The retry options of deltalake mean the same for the log reader."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from deltaproto.errors import UsageError
from deltaproto.tables.storage import opening


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the store is opened with."""
    found: dict[str, Any] = {}
    monkeypatch.setattr("obstore.store.from_url", lambda uri, **given: found.update(given))
    return found


def test_they_reach_the_store(asked: dict[str, Any]) -> None:
    options = {
        "max_retries": "1",
        "AWS_RETRY_TIMEOUT": "2m",
        "backoff_config.init_backoff": "20ms",
        "backoff_config.max_backoff": "1.5s",
        "backoff_config.base": "3",
        "aws_region": "eu",
    }
    opening._open_store("s3://lake", options)
    assert asked["retry_config"] == {
        "max_retries": 1,
        "retry_timeout": timedelta(minutes=2),
        "backoff": {
            "base": 3.0,
            "init_backoff": timedelta(milliseconds=20),
            "max_backoff": timedelta(seconds=1.5),
        },
    }
    assert asked["config"] == {"aws_region": "eu"}
    opening._open_store("s3://lake", {})
    assert asked["retry_config"] == opening._RETRIES


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_retries", "many"),
        ("retry_timeout", "10"),
        ("backoff_config.base", ""),
        ("backoff_config.init_backoff", "-1s"),
    ],
)
def test_a_wrong_value_is_refused(asked: dict[str, Any], key: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"the storage option {key} takes a "):
        opening._open_store("s3://lake", {key: value})
    assert asked == {}
