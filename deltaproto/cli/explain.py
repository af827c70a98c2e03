"""`deltaproto explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import completion, options
from deltaproto.cli.declare import Argument, Command
from deltaproto.errors import ExitCode, UsageError
from deltaproto.policy.rules import all_rules, find_rule, similar_rules
from deltaproto.render.rules import write_rule, write_rules


def run(values: Mapping[str, Any]) -> int:
    """Render one rule's page, or the list of rules."""
    name, format_, color = values["rule"], values["format"], not values["no_color"]
    found = None if name is None else find_rule(name)
    if name is not None and found is None:
        raise UsageError(f'unknown rule "{name}"', _unknown_rule_hint(name))
    with options.open_output(values["output"]) as file:
        if found is None:
            write_rules(all_rules(), format_, file, color=color)
        else:
            write_rule(*found, format_, file, color=color)
    return int(ExitCode.OK)


def _unknown_rule_hint(name: str) -> str:
    near = [f"{rule.id} {rule.name}" for rule in similar_rules(name)]
    return options.did_you_mean(near, "run `deltaproto explain` to list all rules")


COMMAND = Command(
    "explain",
    "Explain a rule: what it finds, what breaks, and how to fix it.",
    run,
    Argument(
        "rule",
        "[RULE]",
        "Id or name of a rule. Default: list all rules.",
        required=False,
        words=completion.rules,
    ),
    (options.FORMAT, options.OUTPUT, options.NO_COLOR, options.DEBUG),
    examples=(
        "explain DP102",
        "explain client-refused",
    ),
    more_exits=(),
)
