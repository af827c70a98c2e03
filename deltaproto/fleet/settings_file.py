"""`deltaproto.yaml`: options of a scan that are missing on the command line.

    scan:
      roots: [s3://lake/gold, ./local]
      catalogs: [main]
      inventory: s3://lake/_inventory
      policy: policy.yaml
      storage_options:
        AWS_REGION: eu-west-1
        AWS_SECRET_ACCESS_KEY: ${LAKE_SECRET}

Paths are relative to the file; `${NAME}` in storage options is an environment variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from deltaproto.policy.document import PolicyError, reader, source
from deltaproto.policy.document.errors import Fault
from deltaproto.policy.document.source import Node, Scalar

NAME = "deltaproto.yaml"
_PATHS = ("roots", "lists")
_LISTS = (*_PATHS, "catalogs", "include", "exclude")
_OLD = {"to": "inventory"}
"""keys of earlier releases, which still work"""
_PATH = ("inventory", "policy")
_ENGINES = ("local", "spark")
NUMBERS = {"parallel": 512, "timeout": 86_400, "keep": 100_000}
"""upper limits; parallel is a count, timeout in seconds, keep in days"""
_FIELDS = (*_LISTS, *_PATH, "engine", *NUMBERS, "storage_options", "spark_conf")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def read_settings(path: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The keys that the file sets, with their values: strings, numbers, lists, mappings.

    Raises:
        PolicyError: naming the invalid place in the file.
    """
    folder = os.path.dirname(os.path.abspath(path))
    try:
        root = reader.fields(source.read(path), ("scan",), ("scan",))
        values = reader.fields(root["scan"], (*_FIELDS, *_OLD))
        values = {_OLD.get(key, key): node for key, node in values.items()}
        return {key: _value(key, node, folder, environment) for key, node in values.items()}
    except Fault as fault:
        hint = "start it with scan:" if fault.problem == source.EMPTY else fault.hint
        raise PolicyError(path, fault.position, fault.problem, hint) from None


def _value(key: str, node: Node, folder: str, environment: Mapping[str, str]) -> Any:
    if key in _LISTS:
        named = reader.address if key in _PATHS else reader.text
        texts = tuple(named(each) for each in reader.items(node))
        return tuple(_below(folder, text) for text in texts) if key in _PATHS else texts
    if key in _PATH:
        return _below(folder, reader.address(node))
    if key in NUMBERS:
        return reader.integer(node, 1, NUMBERS[key])
    if key == "engine":
        return reader.choice(node, _ENGINES, "engine")
    return {name.text: _filled(each, environment) for name, each in reader.pairs(node)}


def _below(folder: str, text: str) -> str:
    return text if "://" in text else os.path.normpath(os.path.join(folder, text))


def _filled(node: Node, environment: Mapping[str, str]) -> str:
    if not isinstance(node, Scalar):
        raise reader.wrong(node, "a string")
    missing = [name for name in _VARIABLE.findall(node.text) if name not in environment]
    if missing:
        raise Fault(
            f"environment variable {missing[0]} is not set",
            "set it, or write the value",
            node.position,
        )
    return _VARIABLE.sub(lambda found: environment[found[1]], node.text)
