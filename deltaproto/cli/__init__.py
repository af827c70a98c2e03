"""The command line: parse, call, render."""

from deltaproto.cli.main import main

__all__ = ["main"]
