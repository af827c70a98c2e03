"""What people read, docstrings included, is plain American English without the words of the list.

The list names idioms that a native editor would not write, each with what to write instead.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
_KINDS = (
    "boundary|client|column|date|feature|file|folder|index|integer|inventory|journal|JSON|list|"
    "mapping|name|number|object|operation|pair|path|plan|policy|rule|scan|signature|string|table|"
    "text|time|TOML|URI|UTF-8|version|YAML"
)
WORDS = {
    "catalog": r"(?<!--)\bcatalogues?\b",
    "instead of": r"\bin place of\b",
    "N, as in: show at most N rows": r"\bso many\b",
    "because … is missing": r"\bfor want of\b",
    "byte-for-byte": r"\bbyte by byte\b",
    "who to notify; anyone who": r"\bwhom to\b|\bwhoever\b",
    "name the actor": r"\b(?:nobody|somebody)\b",
    "is not a …": rf"(?<!\b[Tt]here )\b(?:is|are) no (?:{_KINDS})s?\b",
    "blocked": r"\bshuts? out\b",
    "unblocked, restore access": r"\blets? (?:\w+ )?back in\b|\blet in\b",
    "apply, execute": r"\bcarr(?:y|ies|ied|ying) out\b",
    "roll back, undo": r"\bways? back\b|\bt(?:ake|akes|aken|aking|ook) back\b",
    "continue, resume": r"\bgo(?:es)? on\b",
    "is added to, is removed from": r"\b(?:joins?|joined|leaves?) the protocol\b",
    "require, enable implicitly": r"\bpull(?:s|ed)? in\b",
    "default: …": r"\bunless (?:it says|given|told)\b",
    "custom": r"\b(?:clients?|statements?|phrases|templates?|files?) of (?:your|their|its) own\b",
    "layer, package": r"\bstore(?:y|ys|ies of the)\b|\bthe house\b",
    "fix, recreate": r"\bmend(?:s|ed)?\b|\banew\b",
    "silently return incorrect results": r"\bsilently do wrong\b",
    "the result": r"\bwhat (?:came|comes) of\b",
    "requested": r"\basked (?:for|of)\b",
    "is reported, read from": r"\b(?:is|are|was|were|be) told\b|\btold (?:from|of|apart|by)\b",
    "shows, reports": r"\b(?:tells?) (?:of|from|which|who|nothing|more)\b",
    "shows, contains": r"\bsays? (?:so|nothing|otherwise|which|who|of)\b",
    "read, inspect": r"\blook(?:s|ed|ing)? at\b",
    "idle": r"(?<![-\w])quiet(?:er)?\b",
    "is affected": r"\b(?:is|are) hit\b|\bwhom? (?:it|each step|steps?) hits?\b",
    "upgrade the client": r"\b[Rr]aise (?:the|these|that) clients?\b",
    "is missing, was dropped, disconnected": r"\b(?:is|are|was|were) gone\b",
    "behavior, color, honor": r"\b(?:behaviour|colour|favour|honour|neighbour)\w*",
    "license, judgment, canceled": r"\b(?:licence|grey|judgements?|labelled|cancelled|fulfils?)\b",
    "-ize": r"\b(?:normal|recogn|organ|optim|serial|initial)is(?:e[dsr]?|ing|ations?)\b(?!=)",
}
"""what to write, and a regular expression of what not to write"""
ANY_WORD = re.compile("|".join(WORDS.values()), re.IGNORECASE)

GENERATED = ("reference", "commands")
"""folders of `docs` that `make docs` writes"""

STILL_TO_REWRITE: dict[str, tuple[str, ...]] = {
    # Covered by the digest of a kit, or quoted by published measurements.
    "deltaproto/certification": (
        "name the actor",
        "is missing, was dropped, disconnected",
    ),
    "deltaproto/protocol": ("byte-for-byte",),
}
"""Idioms that are still in a folder or file. This list only shrinks: an entry that nothing needs
any more fails."""


class Literal(NamedTuple):
    line: int
    text: str
    """an f-string as one text"""
    docstring: bool


@cache
def literals(path: Path) -> tuple[Literal, ...]:
    """Return every literal of a Python file with a space in it, and every f-string."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found = []
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            pieces = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
            found.append(Literal(node.lineno, "".join(map(str, pieces)), docstring=False))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in parts
            and " " in node.value.strip()
        ):
            found.append(Literal(node.lineno, node.value, id(node) in docs))
    return tuple(found)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of what a user, or a reader of the code, reads in a file."""
    if path.suffix == ".py":
        yield from ((each.line, each.text) for each in literals(path))
        return
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            yield from enumerate(cell["source"], 1)
        return
    if path.suffix == ".json":
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.fullmatch(r'\s*"(?:description|title)": (".*"),?', line):
                yield number, json.loads(match[1])
        return
    if name == "CHANGELOG.md":
        text = text.partition("\n## [0")[0]
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith("<!--"):
            yield number, line


def without_code(text: str) -> str:
    """Return the text without code spans, addresses of links and names of arguments."""
    return re.sub(r"(?m)`[^`]*`|\]\([^)]*\)|^ +\w+: ", "", text)


@cache
def found() -> dict[str, dict[str, list[str]]]:
    """The places of each idiom, by folder or file."""
    files = [
        *ROOT.glob("deltaproto/**/*.py"),
        *ROOT.glob("deltaproto/render/runbook/languages/en.yaml"),
        *ROOT.glob("deltaproto/render/schemas/*.json"),
        *ROOT.glob("*.md"),
        # The reference is made from docstrings and data.
        *(path for path in ROOT.glob("docs/**/*.md") if path.parent.name not in GENERATED),
        *ROOT.glob("policies/*"),
        *ROOT.glob("examples/*.*"),
        ROOT / "action.yml",
        ROOT / ".pre-commit-hooks.yaml",
    ]
    places: dict[str, dict[str, list[str]]] = {}
    for path in sorted(files):
        name = path.relative_to(ROOT).as_posix()
        group = "/".join(name.split("/")[:2]) if name.startswith("deltaproto/") else name
        for line, text in prose(path):
            plain = without_code(text)
            for word, pattern in WORDS.items() if ANY_WORD.search(plain) else ():
                if match := re.search(pattern, plain, re.IGNORECASE):
                    where = f"{name}:{line}: {match[0]!r}: write {word}"
                    places.setdefault(group, {}).setdefault(word, []).append(where)
    return places


def test_text_for_users_has_no_word_of_the_list() -> None:
    wrong = [
        place
        for group, words in found().items()
        for word, places in words.items()
        if word not in STILL_TO_REWRITE.get(group, ())
        for place in places
    ]
    assert wrong == []


def test_exceptions_are_needed() -> None:
    needless = [
        (group, word)
        for group, words in STILL_TO_REWRITE.items()
        for word in words
        if word not in found().get(group, {})
    ]
    assert needless == [], "remove these"


@pytest.mark.parametrize(
    "text",
    [
        "'abc' is no pair of versions",
        "the catalogue of clients",
        "Carry out plans",
        "columnMapping joins the protocol",
        "normalised",
        "run the same command: it goes on",
    ],
)
def test_a_word_of_the_list_is_found(text: str) -> None:
    assert ANY_WORD.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "there is no table called orders",
        "the log is no longer complete",
        "--catalogue is now called --client-file",
        "optimistic concurrency",
        "print only errors with --quiet",
        "the catalog has no column x",
    ],
)
def test_good_english_is_not(text: str) -> None:
    assert not ANY_WORD.search(text)


_NOUNS = (
    "cell|change|character|client|column|commit|error|feature|file|finding|gate|group|line|"
    "operation|other|plan|reason|request|row|scan|schema|statement|step|stream|table|value|"
    "version|view"
)
PLURAL = re.compile(rf"\{{\}} (?:of \{{\}} )?(?:more |other )?(?:(?:{_NOUNS})s|entries)\b")
"""something inserted into a text, and after it the plural of what may be its noun"""
NEVER_ONE = {
    "{} of {} tables are not ok; {}",
    " (first of {} errors)",
    "it has {} statements instead of one",
    "all {} steps",
    "({} characters)",
    "line {} of the list of tables has more than {} characters",
    "Setting the versions {} and {} changes nothing: table features come with the first feature "
    "that requires them (--enable).",
    "{} changes the metadata before the drop",
    "more than {} entries",
    "{} has a name of {} characters; the longest accepted is {}",
    "{} features",
    "it has {} rows in {} bytes",
    # Their numbers have decimal places.
    "a change of {} min would meet {} commits (at most {}); {} of such windows had none",
    "quietest hour {}:00 UTC ({} commits a day), busiest {}:00 ({}), over {} days",
}
"""texts in which the number is never 1, or is not a number"""


def test_numbers_agree_with_their_nouns() -> None:
    """The function `counted` knows both forms; a plural in the text is wrong for 1."""
    found = {
        text: f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.glob("deltaproto/**/*.py"))
        if path.relative_to(ROOT).parts[1] != "certification"
        for line, text, docstring in literals(path)
        if not docstring and PLURAL.search(text)
    }
    assert [place for text, place in found.items() if text not in NEVER_ONE] == [], "use counted()"
    assert NEVER_ONE - found.keys() == set(), "remove these"


TWO_SPACES = re.compile(r"[\w.,;:)]  +[A-Za-z(]")
COLUMNS = {"{}  access: [{}]", "{}  clients:", "after:  {}"}
"""literals with lines that are indented or aligned"""


def test_no_sentence_has_two_spaces() -> None:
    catalog = ROOT / "deltaproto/clients/data"
    sources = [*catalog.glob("*.yaml"), ROOT / "deltaproto/render/runbook/languages/en.yaml"]
    texts = [
        (path, line, text)
        for path in sources
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]
    for path in ROOT.glob("deltaproto/**/*.py"):
        texts += [
            (path, line, text)
            for line, text, docstring in literals(path)
            if not docstring and "\n" not in text and text not in COLUMNS
        ]
    wrong = [f"{path}:{line}: {text}" for path, line, text in texts if TWO_SPACES.search(text)]
    assert wrong == []
