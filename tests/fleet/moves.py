"""What happens to a fleet between two scans."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from tests.support.logs import Log, add, commit_info, metadata, protocol

_LEGACY = ((1, 2), (1, 3), (1, 4), (2, 5))
_FEATURES = ("appendOnly", "deletionVectors", "rowTracking", "domainMetadata", "v2Checkpoint")
_READERS = ("deletionVectors", "v2Checkpoint")
_LEVELS = (None, "Serializable", "WriteSerializable")


def sound_fleet(root: Path, seed: int, count: int) -> list[Path]:
    """`count` tables that every reader reads."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        log = Log(root / f"area {number % 4}" / f"t{number:03}")
        described = metadata({}, id=f"00000000-0000-0000-0000-{number:012}")
        log.commit(0, commit_info("CREATE TABLE"), _protocol(chance), described, add())
        made.append(log.root)
    return made


def move(tables: list[Path], seed: int) -> None:
    """Let things happen to each table: commits, another isolation level, an end, damage."""
    chance = random.Random(seed)
    for number, path in enumerate(tables):
        match chance.randint(0, 9):
            case 0:
                shutil.rmtree(path)
            case 1:
                _newest(path)[1].write_text("{damaged")
            case 2:
                pass
            case _:
                _commits(path, chance, f"{seed}-{number}")


def _commits(path: Path, chance: random.Random, told: str) -> None:
    log = Log.__new__(Log)
    log.root, log.folder = path, path / "_delta_log"
    newest = _newest(path)[0]
    first = newest + 1
    for version in range(first, first + chance.randint(1, 5)):
        actions: list[dict[str, Any]] = []
        if chance.random() < 0.5:
            actions.append(_protocol(chance))
        if chance.random() < 0.3:
            level = chance.choice(_LEVELS)
            described = {} if level is None else {"delta.isolationLevel": level}
            kept = f"00000000-0000-0000-0000-{int(path.name[1:]):012}"
            again = chance.random() < 0.2
            actions.append(metadata(described, id=f"again-{told}" if again else kept))
        info = commit_info(f"OPERATION {told}-{version}", engineInfo="hand", userName=f"u{version}")
        log.commit(version, info, *actions, add(f"part-{version}"))
        newest = version
    if chance.random() < 0.2:
        _clean_up(log, chance.randint(first, newest))


def _clean_up(log: Log, upto: int) -> None:
    """Forget the commits before a checkpoint, as Delta does after some time."""
    stored: dict[str, Any] = {}
    for version in range(upto + 1):
        path = log.path(version, ".json")
        if not path.exists():
            continue
        for line in path.read_text().splitlines():
            stored.update({k: v for k, v in json.loads(line).items() if k != "commitInfo"})
    checkpointed = ({key: value} for key, value in stored.items())
    if "protocol" in stored and "metaData" in stored:
        log.checkpoint(upto, *checkpointed)
        for version in range(upto):
            log.path(version, ".json").unlink(missing_ok=True)


def _newest(path: Path) -> tuple[int, Path]:
    files = sorted((path / "_delta_log").glob("*.json"))
    return int(files[-1].stem), files[-1]


def _protocol(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.4:
        return protocol(*chance.choice(_LEGACY))
    writer = chance.sample(_FEATURES, chance.randint(0, 4))
    return protocol(3, 7, [each for each in writer if each in _READERS], writer)
