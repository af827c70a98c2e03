"""The command line: parses arguments, calls commands and renders their results."""

from deltaproto.cli.main import main

__all__ = ["main"]
