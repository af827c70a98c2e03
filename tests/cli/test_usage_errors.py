"""Usage errors that typer finds read like all others: a cause, and a hint that helps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import Ran

Cli = Callable[..., Ran]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("inspect x --forma json", "No such option: --forma", "did you mean --format?"),
        ("inspect x --zzz", "No such option: --zzz", "run deltaproto inspect --help"),
        ("inspct x", "No such command 'inspct'", "did you mean inspect, init?"),
        ("nosuch", "No such command 'nosuch'", "run deltaproto --help"),
        ("history x -n 1.5", '--limit: "1.5" is not a number', "run deltaproto history --help"),
        (
            "check x --fail-on bad",
            '--fail-on: unknown value "bad"',
            "use one of error, warning, never",
        ),
        ("inspect x --version", "Option '--version' requires an argument", "run deltaproto"),
        ("explain DP201 extra", "unexpected argument: extra", "run deltaproto explain --help"),
        ("explain DP201 a b", "unexpected argument: a b", "run deltaproto explain --help"),
        (
            "plan-downgrade x --lowest --script sql --format json",
            "--script and --format json are different outputs",
            "leave out one of them",
        ),
        ("inspect", "Missing argument 'TABLE...'", "run deltaproto inspect --help"),
    ],
)
def test_a_usage_error(cli: Cli, words: str, message: str, hint: str) -> None:
    ran = cli(*words.split())
    assert ran.code == 2
    error, advice, *_ = ran.err.splitlines()
    assert error == f"error: {message}"
    assert advice.startswith(f"hint: {hint}")


def test_a_variable_is_named_only_if_it_has_the_value(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert '--limit: "x" is not a number' in cli("check", "y", "--limit", "x").err
    monkeypatch.setenv("DELTAPROTO_FAIL_ON", "bad")
    assert 'DELTAPROTO_FAIL_ON: unknown value "bad"' in cli("check", "y").err


def test_a_value_with_quotes_and_lines_is_shown(cli: Cli) -> None:
    ran = cli("check", "y", "--fail-on", "a'b' is not\nx")
    assert ran.code == 2
    assert ran.err.startswith("error: --fail-on: unknown value ")
    assert ran.err.count("\n") == 2
