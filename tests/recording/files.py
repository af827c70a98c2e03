"""Files of recordings: one compressed file per test module, for one set of engine versions."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.recording.delta_spark import Action, File, Recording

DATA = Path(__file__).with_name("data")
PINS = Path(__file__).parents[2] / "constraints.txt"
RECORD = "run make record"
_PINNED = {
    "delta-spark": r"^delta[_-]spark==(.+)$",
    "pyspark": r"^pyspark==(.+)$",
    "java": r"^# java==(.+)$",
}
# Ids, data files, folders of mapped tables, files of deletion vectors, numbers in predicates.
_RANDOM = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:\b[0-9A-Za-z]{2}/)?part-[\w.-]+?\.parquet"
    r"|(?<=deletion_vector_)[\w-]+(?=\.bin)|(?<=#)\d+L?"
)
# Members that depend on the clock, or on the order and the bytes of files that tasks write at once.
_VARYING = re.compile(
    r"timestamp|inCommitTimestamp(Opt)?|delta\.inCommitTimestampEnablementTimestamp|deletionTimestamp"
    r"|modificationTime|lastModified|created(Time|At)|\w+TimeMs|\w+_time_ms"
    r"|size|sizeInBytes|\w+Bytes|\w+FileSize|fileSizeHistogram|histogramOpt"
    r"|pathOrInlineDv|offset|baseRowId|checksum"
)
# Members of the metrics of OPTIMIZE and REORG about the sizes of files.
_OF_SIZES = re.compile("min|max|avg|totalSize")


class RecordingError(Exception):
    """A file of recordings cannot be used."""


class Recordings(NamedTuple):
    """The recordings of one test module."""

    header: dict[str, str]
    """engine versions, the day of the newest recording, and the digest of `tests`"""
    tests: dict[str, Recording]
    """by the test's name with its parameters"""


def pinned() -> dict[str, str]:
    """Return the engine versions in constraints.txt, as a header has them."""
    text = PINS.read_text()
    found = {name: re.search(pattern, text, re.M) for name, pattern in _PINNED.items()}
    return {name: match[1] if match else "" for name, match in found.items()}


def path_of(module: str, folder: Path) -> Path:
    """Return the file of recordings of a test module (`tests/planning/test_x.py`)."""
    name = module.removeprefix("tests/").removesuffix(".py").replace("/", "-")
    return folder / f"{name}.json.gz"


def load(path: Path) -> Recordings:
    """Read a file of recordings.

    Raises:
        RecordingError: if it was edited, or recorded with other engine versions than the pinned.
    """
    try:
        document = read(path)
        header, tests = document["header"], document["tests"]
    except FileNotFoundError:
        return Recordings({}, {})
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise RecordingError(f"{path.name}: damaged ({error}): {RECORD}") from None
    if header.get("digest") != digest(tests):
        raise RecordingError(f"{path.name}: edited by hand, its digest is wrong: {RECORD}")
    for name, version in pinned().items():
        if header.get(name) != version:
            raise RecordingError(
                f"{path.name}: recorded with {name} {header.get(name)}, "
                f"constraints.txt has {version or 'none'}: {RECORD}"
            )
    return Recordings(header, tests)


def save(path: Path, versions: Mapping[str, str], day: str, tests: dict[str, Recording]) -> None:
    """Write a file of recordings; equal content gives equal bytes."""
    ordered = dict(sorted(tests.items()))
    header = {**versions, "recorded": day, "digest": digest(ordered)}
    write(path, {"header": header, "tests": ordered})


def read(path: Path) -> dict[str, Any]:
    """Return the JSON document in a file, unchecked."""
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(document, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def digest(tests: Mapping[str, Recording]) -> str:
    """Return the digest of recordings: statements, results and files."""
    text = json.dumps(tests, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def difference(old: Recording, new: Recording) -> str | None:
    """Describe the first difference between two recordings of one test; None if equal.

    Times, random names and sizes of files do not count.
    """
    before, after = old["actions"], new["actions"]
    for number, (one, other) in enumerate(zip(before, after, strict=False), 1):
        was, now = _comparable(one), _comparable(other)
        for part in was:
            if was[part] != now[part]:
                return (
                    f"action {number}, {one['text'][:200]}: {part} differs\n"
                    f"  recorded: {_around(was[part], now[part])}\n"
                    f"  now:      {_around(now[part], was[part])}"
                )
    if len(before) != len(after):
        return f"{len(before)} actions were recorded, now there are {len(after)}"
    return None


def _comparable(action: Action) -> dict[str, str]:
    """The parts of an action as texts that are equal whenever Spark does the same."""
    contents = [f"{_RANDOM.sub('*', name)} {_content(f)}" for name, f in action["files"].items()]
    return {
        "text": action["text"],
        "error": str(action["error"]),
        "result": _ordered(action["result"]),
        "files": "\n".join(sorted(contents)),
    }


def _content(file: File | None) -> str:
    if file is None:
        return "deleted"
    text = file.get("text")
    if text is None:
        return "binary"
    return "\n".join(sorted(_line(line) for line in text.splitlines()))


def _line(text: str) -> str:
    try:
        return _ordered(json.loads(text))
    except ValueError:
        return text


def _ordered(value: Any) -> str:
    """JSON without what varies from run to run, and with its lists in one order."""
    return json.dumps(_steady(value), sort_keys=True, separators=(",", ":"))


def _steady(value: Any) -> Any:
    match value:
        case str() if value[:1] in "{[" and value:
            try:
                return _steady(json.loads(value))
            except ValueError:
                return _RANDOM.sub("*", value)
        case str():
            return _RANDOM.sub("*", value)
        case list():
            return sorted(map(_steady, value), key=str)
        case dict():
            # Delta writes no tags in two ways.
            members = ((k, v) for k, v in value.items() if (k, v) != ("tags", {}))
            varying = _OF_SIZES if "totalSize" in value else _VARYING
            pairs = ([_steady(k), _steady(v)] for k, v in members if not varying.fullmatch(k))
            return sorted(pairs, key=str)
    return value


def _around(text: str, other: str) -> str:
    """The part of `text` where it begins to differ from `other`."""
    pairs = enumerate(zip(text, other, strict=False))
    start = next((at for at, (a, b) in pairs if a != b), min(len(text), len(other)))
    return text[max(start - 80, 0) : start + 120]


def merged(old: Mapping[str, Recording], new: Mapping[str, Recording]) -> dict[str, Recording]:
    """Return the old recordings with each changed one replaced by the new one."""
    changed = {
        name: recording
        for name, recording in new.items()
        if name not in old or difference(old[name], recording) is not None
    }
    return {**old, **changed}
