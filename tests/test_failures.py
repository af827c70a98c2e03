"""The helpers that check many rows in one test: they fail, and name every row that failed."""

from __future__ import annotations

import pytest

from tests.support.failures import collect_failures, each_row


def test_every_row_that_fails_is_named_and_no_other() -> None:
    checked = []

    def rows() -> None:
        with collect_failures() as failures:
            for number in range(5):
                with failures.of("row", number):
                    checked.append(number)
                    assert number % 2, f"{number} is even"

    with pytest.raises(AssertionError) as failed:
        rows()
    assert checked == [0, 1, 2, 3, 4]
    head, *named = str(failed.value).splitlines()
    assert head == "3 of 5 rows failed:"
    found = [line.partition(" (")[0] for line in named if line.startswith("row ")]
    assert found == ["row 0", "row 2", "row 4"]
    assert "4 is even" in str(failed.value)


def test_any_exception_and_a_missing_exception_are_failures() -> None:
    def rows() -> None:
        with collect_failures() as failures:
            with failures.of("broken"):
                raise KeyError("x")
            with failures.of("silent"), pytest.raises(ValueError, match="never"):
                pass
            with failures.of("good"):
                pass

    with pytest.raises(AssertionError) as failed:
        rows()
    assert str(failed.value).startswith("2 of 3 rows failed:")
    assert "broken" in str(failed.value)
    assert "KeyError: 'x'" in str(failed.value)
    assert "silent" in str(failed.value)
    assert "good" not in str(failed.value)


def test_rows_that_pass_are_not_failures() -> None:
    with collect_failures() as failures, failures.of("good"):
        pass


def test_a_loop_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no row was checked"), collect_failures():
        pass


def test_an_error_outside_of_rows_is_raised_with_the_failures_before_it() -> None:
    def rows() -> None:
        with collect_failures() as failures:
            with failures.of("broken"):
                raise ValueError("x")
            raise KeyError("y")

    with pytest.raises(KeyError) as failed:
        rows()
    assert "broken" in failed.value.__notes__[0]


@each_row(("text", "length"), [("", 0), ("a", 1), ("bb", 2)])
def test_each_row_runs_the_test_with_every_row_and_its_fixtures(
    text: str, length: int, request: pytest.FixtureRequest
) -> None:
    assert len(text) == length
    assert request.node.name == "test_each_row_runs_the_test_with_every_row_and_its_fixtures"


def test_each_row_names_every_row_that_fails() -> None:
    checked = []

    @each_row("one", [1, 2, 3], ids=lambda number: f"number-{number}")
    @each_row("other", [1, 2])
    def equal(one: int, other: int) -> None:
        checked.append((one, other))
        assert one == other

    with pytest.raises(AssertionError) as failed:
        equal()
    assert checked == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
    head, *named = str(failed.value).splitlines()
    assert head == "3 of 3 rows failed:"
    assert [line.partition(" (")[0] for line in named if "number-" in line] == [
        "number-1",
        "number-2",
        "number-3",
    ]
    assert str(failed.value).count("1 of 2 rows failed:") == 2
    assert str(failed.value).count("2 of 2 rows failed:") == 1
