"""Messages of usage errors that typer finds, in the words of all other errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from deltaproto.cli.options import did_you_mean

_VALUE = re.compile(
    r"(['\"])(?P<value>.*)\1 is not (?:one of .*|a valid (?P<number>int|float).*)", re.DOTALL
)
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)


def describe(error: Any, otherwise: str) -> tuple[str, str]:
    """Return the message and the hint of an error of typer, whose classes have no fixed module.

    Args:
        otherwise: the hint to return if none fits better.
    """
    plain = " ".join(error.format_message().split()).removesuffix(".")
    match type(error).__name__:
        case "BadParameter":
            return _bad_value(error, otherwise)
        case "NoSuchOption":
            near = sorted(error.possibilities or ())
            return f"No such option: {error.option_name}", did_you_mean(near, otherwise)
        case _:
            pass
    if extra := _EXTRA.fullmatch(plain):
        return f"unexpected argument: {extra[1]}", otherwise
    message, _, suggested = plain.partition(". Did you mean ")
    return message, did_you_mean(re.findall(r"'([^']+)'", suggested), otherwise)


def _bad_value(error: Any, otherwise: str) -> tuple[str, str]:
    parameter = error.param
    source = error.ctx.get_parameter_source(parameter.name)
    flag = max(parameter.opts, key=len)
    name = parameter.envvar if source is not None and source.name == "ENVIRONMENT" else flag
    message = " ".join(error.message.split()).removesuffix(".")
    found = _VALUE.fullmatch(message)
    if found is None:
        return f"{name}: {message}", otherwise
    value = f'"{found["value"]}"'
    if found["number"]:
        return f"{name}: {value} is not a number", otherwise
    choices: Sequence[Any] = getattr(parameter.type, "choices", ())
    return f"{name}: unknown value {value}", f"use one of {', '.join(map(str, choices))}"
