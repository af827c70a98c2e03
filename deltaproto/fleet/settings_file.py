"""`deltaproto.yaml`: options that are missing on the command line.

    roots: [s3://lake/gold, ./local]
    catalogs: [main]
    inventory: s3://lake/_inventory
    policy: policy.yaml
    baseline: known.json
    storage_options:
      AWS_REGION: eu-west-1
      AWS_SECRET_ACCESS_KEY: ${LAKE_SECRET}

Paths are relative to the file; `${NAME}` in storage options is an environment variable. Earlier
releases had all of it below `scan:`, which still works.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from deltaproto.policy.document import PolicyError, reader, source
from deltaproto.policy.document.errors import Fault
from deltaproto.policy.document.source import Node, Scalar

_PATHS = ("roots", "lists")
_LISTS = (*_PATHS, "catalogs", "include", "exclude")
_RENAMED_KEYS = {"to": "inventory"}
"""keys of earlier releases, which still work"""
_PATH = ("inventory", "policy", "baseline")
_ENGINES = ("local", "spark")
NUMBER_LIMITS = {"parallel": 512, "timeout": 86_400, "keep": 100_000}
"""upper limits; parallel is a count, timeout in seconds, keep in days"""
_FIELDS = (*_LISTS, *_PATH, "engine", *NUMBER_LIMITS, "storage_options", "spark_conf")
_SCAN = "scan"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def read_settings(path: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys that the file sets, with their values: strings, numbers, tuples, mappings.

    Raises:
        PolicyError: naming the invalid place in the file.
    """
    return _parse(lambda: source.parse_file(path), path, environment)


def parse_settings(text: str, path: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what `read_settings` would return for a file at `path` with this text."""
    return _parse(lambda: source.parse_text(text), path, environment)


def _parse(
    document: Callable[[], Node], path: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    folder = os.path.dirname(os.path.abspath(path))
    try:
        nodes = _read_keys(document(), *_RENAMED_KEYS, _SCAN)
        below = _read_keys(nodes.pop(_SCAN), *_RENAMED_KEYS) if _SCAN in nodes else {}
        for key, node in below.items():
            if key in nodes:
                raise Fault(
                    f"{key} is set twice", f"keep one of them, without {_SCAN}:", node.position
                )
        values = {_RENAMED_KEYS.get(key, key): node for key, node in {**nodes, **below}.items()}
        return {key: _parse_value(key, node, folder, environment) for key, node in values.items()}
    except Fault as fault:
        hint = "start it with roots:" if fault.problem == source.EMPTY_FILE else fault.hint
        raise PolicyError(path, fault.position, fault.problem, hint) from None


def _read_keys(node: Node, *old: str) -> dict[str, Node]:
    return reader.read_fields(node, _FIELDS, old=old)


def _parse_value(key: str, node: Node, folder: str, environment: Mapping[str, str]) -> Any:
    if key in _LISTS:
        items = reader.read_items(node)
        if key in _PATHS:
            return tuple(_read_path(folder, each) for each in items)
        return tuple(reader.read_text(each) for each in items)
    if key in _PATH:
        return _read_path(folder, node)
    if key in NUMBER_LIMITS:
        return reader.read_integer(node, 1, NUMBER_LIMITS[key])
    if key == "engine":
        return reader.read_choice(node, _ENGINES, "engine")
    return {
        name.text: _substitute_variables(each, environment)
        for name, each in reader.read_pairs(node)
    }


def _read_path(folder: str, node: Node) -> str:
    """Read a path, which is taken literally: a scan would create a folder with this name."""
    text = reader.read_address(node)
    if text == "~" or text.startswith("~/"):
        raise Fault("~ is not expanded", "write the path of the home folder", node.position)
    if variable := _VARIABLE.search(text):
        raise Fault(
            f"{variable[0]} is not replaced in a path",
            "write the path, or pass it on the command line",
            node.position,
        )
    return text if "://" in text else os.path.normpath(os.path.join(folder, text))


def _substitute_variables(node: Node, environment: Mapping[str, str]) -> str:
    if not isinstance(node, Scalar):
        raise reader.unexpected_node(node, "a string")
    missing = [name for name in _VARIABLE.findall(node.text) if name not in environment]
    if missing:
        raise Fault(
            f"environment variable {missing[0]} is not set",
            "set it, or write the value",
            node.position,
        )
    return _VARIABLE.sub(lambda found: environment[found[1]], node.text)
