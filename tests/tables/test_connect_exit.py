"""A process that used Spark Connect ends although its server does not respond."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CLIENT = """
import atexit, types
from deltaproto.tables.spark_connect import _skip_exit_command

class Client:
    _release_session_on_exit = {releases}
    def _on_exit(self):
        print("a command at exit")

client = Client()
atexit.register(client._on_exit)
_skip_exit_command(types.SimpleNamespace(client=client))
"""


@pytest.mark.parametrize(("releases", "said"), [(False, ""), (True, "a command at exit\n")])
def test_no_command_is_sent_at_exit_unless_asked_for(releases: bool, said: str) -> None:
    code = _CLIENT.format(releases=releases)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == said
