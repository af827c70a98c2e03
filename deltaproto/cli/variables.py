"""Environment variables: each has the same meaning in every command that reads it.

An option's variable is `DELTAPROTO_` and its flag in capitals. A flag whose meaning differs
between commands has a variable for each meaning. Options that lower safety have none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from deltaproto.cli.declare import Command, environment_name
from deltaproto.errors import UsageError

COMMAND_LINE_ONLY = frozenset(
    {
        "--yes",
        "--allow-irreversible",
        "--accept-loss",
        "--outside-window",
        "--allow-empty",
        "--write-baseline",
        "--list-tables",
        "--write-policy",
        "--hooks",
        "--skip-rehearsal",
    }
)
"""options that lower safety or run programs, which must be passed explicitly in each run"""

_FAIL_ON = "--fail-on"
_INVENTORY_ENGINE = "DELTAPROTO_INVENTORY_ENGINE"
_GROUP_LIMIT = "DELTAPROTO_GROUP_LIMIT"
_PLAN_ENGINE = "DELTAPROTO_PLAN_ENGINE"
COMMAND_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "--protocol": {
        "plan-upgrade": "DELTAPROTO_UPGRADE_PROTOCOL",
        "plan-downgrade": "DELTAPROTO_DOWNGRADE_PROTOCOL",
    },
    "--limit": {
        "history": "DELTAPROTO_HISTORY_LIMIT",
        "check": _GROUP_LIMIT,
        "discover": _GROUP_LIMIT,
        "forecast": _GROUP_LIMIT,
        "plan": _GROUP_LIMIT,
        "plan-upgrade": _GROUP_LIMIT,
        "plan-downgrade": _GROUP_LIMIT,
    },
    "--engine": {
        "scan": _INVENTORY_ENGINE,
        "discover": _INVENTORY_ENGINE,
        "drift": _INVENTORY_ENGINE,
        "check": _INVENTORY_ENGINE,
        "report": _INVENTORY_ENGINE,
        "forecast": _INVENTORY_ENGINE,
        "plan": _PLAN_ENGINE,
        "plan-upgrade": _PLAN_ENGINE,
        "plan-downgrade": _PLAN_ENGINE,
        "conflicts": "DELTAPROTO_CONFLICTS_ENGINE",
    },
    "--for-client": {
        "plan-upgrade": "DELTAPROTO_UPGRADE_FOR_CLIENT",
        "plan-downgrade": "DELTAPROTO_DOWNGRADE_FOR_CLIENT",
    },
    "--isolation": {
        "plan-upgrade": "DELTAPROTO_UPGRADE_ISOLATION",
        "conflicts": "DELTAPROTO_CONFLICTS_ISOLATION",
    },
    "--operation": {
        "conflicts": "DELTAPROTO_CONFLICTS_OPERATION",
        "certify": "DELTAPROTO_CERTIFY_OPERATION",
    },
    "--parallel": {"scan": "DELTAPROTO_SCAN_PARALLEL", "apply": "DELTAPROTO_APPLY_PARALLEL"},
    "--since": {"drift": "DELTAPROTO_DRIFT_SINCE", "history": "DELTAPROTO_HISTORY_SINCE"},
    "--sql": {"plan-upgrade": "DELTAPROTO_UPGRADE_SQL", "conflicts": "DELTAPROTO_CONFLICTS_SQL"},
    "--timeout": {"scan": "DELTAPROTO_SCAN_TIMEOUT", "certify": "DELTAPROTO_CERTIFY_TIMEOUT"},
}
"""variables by flag and command, for flags with several meanings"""

PREFIX = "DELTAPROTO_"
_ALIKE = 0.7
"""similarity from which a name counts as misspelled"""
RENAMED_VARIABLES: Mapping[str, str] = {
    "DELTAPROTO_CATALOGUE": "DELTAPROTO_CLIENT_FILE",
    "DELTAPROTO_SCAN_TO": "DELTAPROTO_INVENTORY",
    "DELTAPROTO_UPGRADE_TO": "DELTAPROTO_UPGRADE_PROTOCOL",
    "DELTAPROTO_DOWNGRADE_TO": "DELTAPROTO_DOWNGRADE_PROTOCOL",
}
"""current names of variables from earlier releases, which still work"""


def environment_variable(command: str, flag: str) -> str | None:
    """Return the environment variable of a command's long flag, or None if it has none."""
    if flag in COMMAND_LINE_ONLY:
        return None
    return COMMAND_VARIABLES.get(flag, {}).get(command) or environment_name(flag)


def modernize_variables(command: Command) -> list[str]:
    """Copy variables with an old name to the current name in this process; return notices.

    A variable with the current name wins.
    """
    read = {environment_variable(command.name, option.flags[0]) for option in command.options}
    notices = []
    for old, new in RENAMED_VARIABLES.items():
        if new in read and os.environ.get(old):
            os.environ.setdefault(new, os.environ[old])
            notices.append(f"{old} is now called {new}; the old name will be removed")
    return notices


def find_weakened_gates(command: Command, words: Sequence[str]) -> list[str]:
    """Describe which checks of the command the environment disables."""
    on_command_line = any(word == _FAIL_ON or word.startswith(f"{_FAIL_ON}=") for word in words)
    name = environment_name(_FAIL_ON)
    if on_command_line or os.environ.get(name) != "never":
        return []
    if all(_FAIL_ON not in option.flags for option in command.options):
        return []
    return [f"{name}=never is set in the environment: findings do not change the exit code"]


def find_misspelled_variables(
    command: Command, load_all: Callable[[], Iterable[Command]]
) -> list[str]:
    """Describe variables that no command reads and that are named almost like one of this command.

    Args:
        load_all: returns all commands, which takes longer than most commands.
    """
    read = _variables_of(command)
    others = [
        name
        for name in os.environ
        if name.startswith(PREFIX) and os.environ[name] and name not in read
    ]
    if not others:
        return []
    import difflib

    # A short name with several meanings is refused, so the notice names the one for this command.
    current: dict[str, str] = {}
    for option in command.options:
        if name := environment_variable(command.name, option.flags[0]):
            current |= dict.fromkeys((name, environment_name(option.flags[0])), name)
    bare = {name.removeprefix(PREFIX): meant for name, meant in sorted(current.items())}
    near = {
        name: bare[found[0]]
        for name in others
        if (found := difflib.get_close_matches(name.removeprefix(PREFIX), bare, 1, _ALIKE))
    }
    known = {name for each in load_all() for name in _variables_of(each)} if near else set()
    return [
        f"{name} is set, but no command reads it: did you mean {meant}?"
        for name, meant in near.items()
        if name not in known
    ]


def find_empty_variables(command: Command) -> list[str]:
    """Describe variables of options with a value that are set to nothing, as CI systems do."""
    names = (
        environment_variable(command.name, option.flags[0])
        for option in command.options
        if option.type is not bool
    )
    return [
        f"{name} is set, but empty, so it has no effect"
        for name in names
        if name is not None and os.environ.get(name) == ""
    ]


def _variables_of(command: Command) -> set[str]:
    """Return the variables that name an option of the command, including old names."""
    flags = [option.flags[0] for option in command.options]
    read = {environment_variable(command.name, flag) for flag in flags}
    return {*filter(None, read), *map(environment_name, flags), *RENAMED_VARIABLES}


def refuse_ambiguous_variables(command: Command) -> None:
    """Refuse variables that are named like an option of the command but are not read for it.

    Raises:
        UsageError: names the variable and what to use instead.
    """
    for option in command.options:
        flag = option.flags[0]
        read, names = environment_variable(command.name, flag), {environment_name(flag)}
        if option.old:
            names |= {environment_name(option.old)} - RENAMED_VARIABLES.keys()
        name = next((name for name in names - {read} if os.environ.get(name)), None)
        if name is None:
            continue
        if read is None:
            raise UsageError(
                f"{name} is set, but {flag} has no environment variable because it lowers safety",
                f"unset it, and pass {flag} on the command line",
            )
        raise UsageError(
            f"{name} is set, but it would mean different things in different commands",
            f"set {read} for {command.name}",
        )
