"""Runs the command lines of standard input (JSON), and writes code, output and errors of each."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from deltaproto.cli.main import main
from tests.support.engines import for_running


def ran(words: list[str]) -> tuple[int, str, str]:
    """One command line."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(for_running(tuple(words))))
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    print(json.dumps([ran(words) for words in json.load(sys.stdin)]))
