"""Documents that the command line writes, held against the shipped schemas."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from deltaproto.render.schemas import load_schema
from tests.conftest import Ran


def validate(command: str, document: dict[str, Any]) -> None:
    _validator(command).validate(document)


@cache
def _validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(load_schema(command), validate_formats=True)


def documents(ran: Ran, command: str) -> list[dict[str, Any]]:
    """Every document of a JSON or JSONL output, all of them valid."""
    try:
        found = [json.loads(ran.out)]
    except ValueError:
        found = [json.loads(line) for line in ran.out.splitlines()]
    for document in found:
        validate(command, document)
    return found


def plan(ran: Ran, command: str = "plan-downgrade") -> dict[str, Any]:
    """The only plan of an output."""
    (document,) = documents(ran, command)
    return document
