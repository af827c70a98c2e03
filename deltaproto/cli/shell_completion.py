"""Completion of values that each shell splits differently: `--client trino@4`, `--client=trino`.
bash ends a word at each character of COMP_WORDBREAKS, and replaces what follows the last of them,
or the last `@` itself.

Typer's script passes these parts as separate words. zsh and fish replace the whole word, including
its option.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TypeVar

_WORDS, _POSITION = "COMP_WORDS", "COMP_CWORD"
_BREAKS = "@=:"
_SCRIPT_END = "    return 0\n"
# bash adds a space after the only completion; the bash of macOS has no compopt.
_OMIT_SPACE = "    [[ $COMPREPLY == *= ]] && compopt -o nospace 2> /dev/null\n"
_T = TypeVar("_T")


def join_words(words: list[str]) -> list[str]:
    """Join the parts of each word that bash has split."""
    joined: list[str] = []
    for word in words:
        follows = bool(joined) and joined[-1][-1:] in tuple(_BREAKS)
        if joined and word and joined[-1] and (follows or word[0] in _BREAKS):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def with_whole_words(complete: Callable[[], _T]) -> _T:
    """Run a completion for bash on whole words, and print the part of each that bash replaces."""
    text = os.environ[_WORDS]
    words = text.split("\n") if "\n" in text else text.split()
    position = int(os.environ[_POSITION])
    typed = [*words, ""][: position + 1]
    whole = join_words(typed)
    os.environ[_WORDS], os.environ[_POSITION] = "\n".join(whole), str(len(whole) - 1)
    value = re.sub("^--[a-z-]+=", "", whole[-1])
    known = max(value.rfind("@"), value.rfind("=") + 1, value.rfind(":") + 1, 0)
    return _print_changed(
        complete, lambda text: "".join(line[known:] for line in text.splitlines(keepends=True))
    )


def with_options(complete: Callable[[], _T], *, zsh: bool) -> _T:
    """Run a completion for zsh or fish, and print values with the option in the same word."""
    last = os.environ.get("_TYPER_COMPLETE_ARGS", "").rpartition(" ")[2]
    option = found[0] if (found := re.match("--[a-z-]+=", last)) else ""
    return _print_changed(
        complete,
        lambda text: _zsh_values(text, option) if zsh else re.sub("(?m)^(?=.)", option, text),
    )


def _print_changed(complete: Callable[[], _T], change: Callable[[str], str]) -> _T:
    """Run a completion, which may exit, and change what it prints."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            return complete()
    finally:
        sys.stdout.write(change(printed.getvalue()))


def _zsh_values(printed: str, option: str) -> str:
    """Return what typer printed for zsh, with the option in each value.

    Values that all end with an equals sign are added without a space after them; fish needs
    nothing for that.
    """
    # A command of zsh, with one quoted value on each line.
    text = re.sub(r"^(_arguments '\*: :\(\()?\"", rf"\g<0>{option}", printed, flags=re.MULTILINE)
    values = re.findall(r"^(?:_arguments '\*: :\(\()?\"([^\"]*=)\"(?:\)\)')?$", text, re.MULTILINE)
    if values and len(values) == len(text.splitlines()):
        return f"compadd -S '' -- {' '.join(values)}\n"
    return text


def omit_space_after_equals_sign() -> None:
    """Change typer's script for bash: no space follows `--set delta.appendOnly=`."""
    from typer import _completion_classes, _completion_shared

    script = _completion_shared.COMPLETION_SCRIPT_BASH
    changed = script.replace(_SCRIPT_END, f"{_OMIT_SPACE}{_SCRIPT_END}")
    _completion_shared._completion_scripts["bash"] = changed
    _completion_classes.BashComplete.source_template = changed
