"""Who runs this, also where nobody has a name."""

from __future__ import annotations

import os
import sys

import pytest

from deltaproto.identity import current_actor


def test_without_a_list_of_users_there_is_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "pwd", None)
    found = current_actor()
    assert found.actor == str(os.getuid())
    assert found.pid == os.getpid()
    assert found.host


def test_a_user_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    assert current_actor().actor == "ann"
