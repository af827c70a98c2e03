"""The sample of a commit: reproducible, and complete after some commits."""

from __future__ import annotations

import pytest

from tests.recording import sample
from tests.recording.sample import ROTATIONS, SAMPLES, TURNS, Sample, parse_sample

NAMES = [f"tests/test_{number}.py::test_it[{number}]" for number in range(500)]


def test_the_samples_hold_every_test_once() -> None:
    samples = [parse_sample(str(number)) for number in range(1, SAMPLES + 1)]
    for name in NAMES:
        assert sum(each is not None and each.holds(name) for each in samples) == 1
    sizes = [sum(Sample(number, "").holds(name) for name in NAMES) for number in range(SAMPLES)]
    assert min(sizes) > 3


def test_five_commits_in_a_row_run_every_rotating_test() -> None:
    for first in range(SAMPLES):
        samples = [Sample((first + number) % SAMPLES, "") for number in range(ROTATIONS)]
        for name in NAMES:
            assert any(sample.holds_rotating(name) for sample in samples), (first, name)
    sizes = [
        sum(Sample(number, "").holds_rotating(name) for name in NAMES)
        for number in range(ROTATIONS)
    ]
    assert sum(sizes) == len(NAMES)
    assert min(sizes) > 60


def test_four_commits_in_a_row_give_each_test_its_turn() -> None:
    for first in range(SAMPLES):
        samples = [Sample((first + number) % SAMPLES, "") for number in range(TURNS)]
        for name in NAMES:
            assert sum(sample.holds_in_turn(name) for sample in samples) == 1, (first, name)
    for number in range(SAMPLES):
        assert sum(Sample(number, "").holds_in_turn(name) for name in NAMES) > 90


def git(answers: dict[str, str | None]) -> object:
    return lambda *words: answers[words[0] if "--is-shallow" not in words[-1] else "shallow"]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"rev-parse": "00000000000b", "rev-list": "1234", "shallow": "false"}, 34),
        ({"rev-parse": "00000000000b", "rev-list": "1235", "shallow": "false"}, 35),
        ({"rev-parse": "00000000000b", "rev-list": "1", "shallow": "true"}, 11),
        ({"rev-parse": None}, 0),
    ],
)
def test_the_commit_decides(
    answers: dict[str, str | None], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "_git", git(answers))
    found = parse_sample("commit")
    assert found is not None
    assert found.number == expected
    assert str(found).startswith(f"live sample {expected + 1} of {SAMPLES}, rotating tests ")


def test_other_words() -> None:
    assert parse_sample("none") is None
    for text in ("0", "41", "all"):
        with pytest.raises(ValueError, match=text):
            parse_sample(text)
