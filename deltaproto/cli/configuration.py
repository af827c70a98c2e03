"""Options that are missing on the command line, from `deltaproto.yaml`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import NO_SETTINGS, Argument, Command, Option, option_name
from deltaproto.errors import UsageError
from deltaproto.input_file import SETTINGS_FILE

_OUTPUT_FLAGS = ("--output", "--write-baseline", "--write-policy", "--entry", "--results")
"""options that name a file to write"""


def add_settings(command: Command, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values, completed by the settings file; the command line takes precedence.

    The file is the one in --config, else ./deltaproto.yaml. An option that it may set is None or
    empty if not given, so an explicitly given default counts as given. A line on standard error
    names what was taken from a file that the command line does not name.

    Raises:
        PolicyError: when the file is invalid.
        UsageError: when the command's argument is missing in both, or an output would overwrite
            the file.
    """
    path = _find_file(command, values)
    merged = dict(values)
    if path is not None:
        merged["config"] = path
        for flag in _OUTPUT_FLAGS:
            options.refuse_overwrite(merged.get(option_name(flag)), (path,), flag)
        from deltaproto.fleet.settings_file import read_settings

        settings = read_settings(path, os.environ)
        wanted = [each for each in command.options if not any(values[o] for o in each.unless)]
        used = [str(option.setting) for option in wanted if _set_option(option, settings, merged)]
        argument = command.argument
        if argument is not None and not any(values[name] for name in argument.unless):
            used[:0] = [str(argument.setting)] if _set_argument(argument, settings, merged) else []
        if used and values["config"] is None and not values.get("quiet"):
            print(f"using {', '.join(used)} from {path}", file=sys.stderr)
        if "inventory" in used and command.name != "scan":
            _warn_of_no_inventory(str(settings["inventory"]))
    _require_argument(command, merged)
    return merged


def _warn_of_no_inventory(inventory: str) -> None:
    """Print what creates the inventory of the settings file, if there is none yet."""
    if "://" not in inventory and not os.path.lexists(inventory):
        print(
            f"warning: there is no inventory at {inventory} yet: run `deltaproto scan` first",
            file=sys.stderr,
        )


def _find_file(command: Command, values: Mapping[str, Any]) -> str | None:
    if "config" not in values:
        return None
    named: str | None = values["config"]
    if named is not None:
        return None if named == NO_SETTINGS else named
    if any(values[name] for name in command.sources) or not os.path.lexists(SETTINGS_FILE):
        return None
    return SETTINGS_FILE


def _set_option(option: Option, settings: Mapping[str, Any], values: dict[str, Any]) -> bool:
    """Set one option, unless it is given. Return whether the file had a value for it."""
    found = settings.get(option.setting or "")
    if not found:
        return False
    if isinstance(found, Mapping):
        # The last of equal keys wins.
        values[option.name] = (*(f"{k}={v}" for k, v in found.items()), *values[option.name])
        return True
    if values[option.name] not in (None, ()):
        return False
    if option.many:
        values[option.name] = (found,) if isinstance(found, str) else found
    else:
        values[option.name] = option.type(found)
    return True


def _set_argument(argument: Argument, settings: Mapping[str, Any], values: dict[str, Any]) -> bool:
    found = settings.get(argument.setting or "")
    if not found or values[argument.name] not in (None, ()):
        return False
    values[argument.name] = (found,) if argument.many and isinstance(found, str) else found
    return True


def _require_argument(command: Command, values: Mapping[str, Any]) -> None:
    argument = command.argument
    if argument is None or argument.setting is None or not argument.required:
        return
    if values[argument.name] in (None, ()):
        raise UsageError(
            f"Missing argument '{argument.metavar}'.",
            f"run deltaproto {command.name} --help, or set {argument.setting} in {SETTINGS_FILE}",
        )
