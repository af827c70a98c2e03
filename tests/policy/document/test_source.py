"""Reading the file: what is refused, where, and that nothing else ever happens."""

from __future__ import annotations

import datetime
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ExitCode, UsageError
from deltaproto.policy.document import PolicyError, Position
from deltaproto.policy.document.errors import Fault
from deltaproto.policy.document.load import load_policy
from deltaproto.policy.document.source import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    Mapping,
    Node,
    Scalar,
    Sequence,
    parse_file,
    parse_text,
)


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with libyaml, and with the parser in Python that stands in for it."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader")


def refused(data: str | bytes, tmp_path: Path) -> tuple[str, str]:
    """Where the file is refused, and why; what a user sees has the file's name before it."""
    file = tmp_path / "p.yaml"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(PolicyError) as caught:
        load_policy(str(file), rules=(), today=datetime.date(2026, 11, 21))
    error = caught.value
    assert error.hint
    assert "\n" not in error.message
    place, problem = error.message.split(": ", 1)
    assert place.startswith(f"{file}:")
    return place.removeprefix(f"{file}:"), problem


class TestTree:
    def test_nodes_know_where_they_stand(self) -> None:
        root = parse_text("# c\na: 1\nb:\n  - x\n  - 'é': \"on\"\n")
        assert isinstance(root, Mapping)
        assert root.position == Position(2, 1)
        (a, one), (b, items) = root.pairs
        assert (a.text, a.position, one) == ("a", (2, 1), Scalar("1", True, Position(2, 4)))
        assert b.position == (3, 1)
        assert isinstance(items, Sequence)
        assert items.items[0].position == (4, 5)
        inner = items.items[1]
        assert isinstance(inner, Mapping)
        assert inner.pairs == (
            (Scalar("é", False, Position(5, 5)), Scalar("on", False, Position(5, 10))),
        )

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_lines_are_those_of_editors(self, newline: str) -> None:
        root = parse_text(newline.join(["a: 1", "", "b: 2"]))
        assert isinstance(root, Mapping)
        assert root.pairs[1][0].position == (3, 1)

    def test_what_is_deep_but_not_too_deep_is_taken(self) -> None:
        node: Node = parse_text("[" * MAX_DEPTH + "x" + "]" * MAX_DEPTH)
        while isinstance(node, Sequence):
            (node,) = node.items
        assert node.position == (1, MAX_DEPTH + 1)


REFUSED = [
    ("empty", "", "1:1", "the file is empty"),
    ("comments", "# a\n\n", "1:1", "the file is empty"),
    ("a marker alone", "---\n", "1:1", "the file is empty"),
    ("byte order mark", b"\xef\xbb\xbfa: 1", "1:1", "the file begins with a byte order mark"),
    ("utf-16", "a: 1".encode("utf-16"), "1:1", "the file begins with a byte order mark"),
    ("mark inside", "a: \ufeff1", "1:4", "control character U+FEFF"),
    ("latin-1", b"a: 1\nb: gr\xfcn", "2:6", "the file is not UTF-8: byte 0xFC"),
    ("nul", "a: 1\r\nb: \0", "2:4", "control character U+0000"),
    ("escape", "a: \x1b[0m", "1:4", "control character U+001B"),
    ("line separator", "a: x\u2028b: y", "1:5", "control character U+2028"),
    ("tab", "a:\n\tb: 1\n", "2:1", "a tab where YAML requires spaces"),
    ("tab after value", "a: 1\n\tb: 2\n", "2:1", "a tab where YAML requires spaces"),
    ("anchor", "a: &x 1\n", "1:4", "anchors are not supported"),
    ("anchored list", "a:\n- &x [1]\n", "2:3", "anchors are not supported"),
    ("alias", "a: *x\n", "1:4", "aliases are not supported"),
    ("star", "tables:\n  *: {}\n", "2:3", "text that begins with * must be in quotes"),
    ("stars", "tables:\n  **: {}\n", "2:3", "text that begins with * must be in quotes"),
    ("at", "a: @b\n", "1:4", "text that begins with @ must be in quotes"),
    ("python tag", "a: !!python/object:os.system x", "1:4", "tags are not supported"),
    ("own tag", "a: !foo {b: 1}", "1:4", "tags are not supported"),
    ("string tag", "a: !!str 1", "1:4", "tags are not supported"),
    ("bare tag", "! a: 1", "1:1", "tags are not supported"),
    ("merge", "a: 1\n<<: {b: 2}", "2:1", "merge keys are not supported"),
    ("two documents", "a: 1\n---\nb: 2\n", "2:1", "a second document begins"),
    ("duplicate", "a: 1\nb: 2\n'a': 3\n", "3:1", 'the key "a" is already at 1:1'),
    ("inner duplicate", "x: {k: 1, k: 2}", "1:11", 'the key "k" is already at 1:5'),
    ("list as key", "? [a]\n: 1\n", "1:3", "a key must be text"),
    ("mapping as key", "{{a: 1}: 2}", "1:2", "a key must be text"),
    ("deep", "[" * (MAX_DEPTH + 1), f"1:{MAX_DEPTH + 1}", "nested deeper than 20 levels"),
    ("open quote", 'a: 1\nb: "x\n\n', "2:4", "a quote that is never closed"),
    ("colon", "a: b: c\n", "1:5", "a colon where no value can follow"),
    ("100,000 brackets", "[" * 100_000, "1:21", "nested deeper than 20 levels"),
    ("100,000 dashes", "- " * 100_000, "1:41", "nested deeper than 20 levels"),
    ("100,000 questions", "? " * 100_000, "1:41", "nested deeper than 20 levels"),
    ("many", "[" + "a," * MAX_NODES + "]", "1:100000", "more than 50,000 entries"),
    ("large", b"a: " + b"x" * MAX_BYTES, "1:1", "the file is larger than 1 MiB"),
    ("10 MB", b"- a\n" * 2_500_000, "1:1", "the file is larger than 1 MiB"),
]


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "place", "problem"),
        [case[1:] for case in REFUSED],
        ids=[case[0] for case in REFUSED],
    )
    def test_says_where_and_why(
        self, data: str | bytes, place: str, problem: str, tmp_path: Path
    ) -> None:
        assert refused(data, tmp_path) == (place, problem)

    def test_a_billion_laughs_end_at_the_first(self, tmp_path: Path) -> None:
        laughs = "a: &a [lol, lol]\n" + "".join(
            f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
            for before, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        assert refused(laughs, tmp_path) == ("1:4", "anchors are not supported")

    @pytest.mark.parametrize("problem", ["exceeded max nesting", "maximum depth exceeded"])
    def test_a_limit_of_the_parser_is_reported_as_ours(
        self, problem: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Some versions of libyaml refuse brackets before they report those that open first."""

        def refuse(*_args: object, **_named: object) -> NoReturn:
            mark = yaml.Mark("", 0, 0, 999, None, 0)
            raise yaml.scanner.ScannerError(None, None, problem, mark)

        monkeypatch.setattr(yaml, "parse", refuse)
        with pytest.raises(Fault) as caught:
            parse_text("a:\n  " + "[ " * 5_000)
        assert caught.value.problem == "nested deeper than 20 levels"
        assert caught.value.position == (2, 43)
        with pytest.raises(Fault) as other:
            parse_text("a: [b]")
        assert other.value.problem != caught.value.problem

    @pytest.mark.parametrize("data", ["a: [1, 2\n", "a: }\n", "a: 1\n b: 2\n", 'a: "\\U00110000"'])
    def test_other_mistakes_get_a_place_too(self, data: str, tmp_path: Path) -> None:
        place, problem = refused(data, tmp_path)
        assert place.count(":") == 1
        assert problem

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError) as caught:
            load_policy(str(tmp_path / "no.yaml"), rules=(), today=datetime.date(2026, 11, 21))
        assert caught.value.message == f"{tmp_path}/no.yaml: file not found"
        assert caught.value.position is None
        assert isinstance(caught.value, UsageError)
        assert caught.value.exit_code is ExitCode.USAGE

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(Fault) as caught:
            parse_file(str(tmp_path))
        assert caught.value.problem == "a folder, not a file"

    @pytest.mark.parametrize("path", ["/dev/full/x", "a\0b", "\ud800", "x" * 5000])
    def test_paths_that_no_system_opens(self, path: str) -> None:
        with pytest.raises(Fault) as caught:
            parse_file(path)
        assert caught.value.position is None
        assert caught.value.hint

    def test_no_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("os.open", denied)
        with pytest.raises(Fault) as caught:
            parse_file(str(tmp_path / "p.yaml"))
        assert caught.value.problem == "cannot be read: Permission denied"

    def test_an_endless_file_is_refused(self) -> None:
        with pytest.raises(Fault, match="not a regular file"):
            parse_file("/dev/zero")

    def test_a_large_file_is_read_to_the_limit_only(self, tmp_path: Path) -> None:
        with (tmp_path / "p.yaml").open("wb") as file:
            file.truncate(50 << 30)
        with pytest.raises(Fault, match="larger than 1 MiB"):
            parse_file(str(tmp_path / "p.yaml"))

    def test_the_name_of_the_file_cannot_break_the_line(self) -> None:
        assert "\n" not in PolicyError("a\nb", Position(1, 2), "x", "y").message


class TestAnything:
    @given(st.text() | st.text(alphabet="ab:-?[]{}*&!<>|'\"#%@` \n\t,.0"))
    def test_any_text_gives_a_tree_or_a_fault(self, text: str) -> None:
        with suppress(Fault):
            parse_text(text)
