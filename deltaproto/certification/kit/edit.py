"""Changing a finished table's log by hand, into what Spark would not write."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deltaproto.certification.kit.recipe import Edit

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")


def edit(table: Path, wanted: Edit, final: Path | None = None) -> None:
    """Make the changes; checksums go, as they would tell what was before.

    Args:
        final: where the table will be; absolute paths name files there.
    """
    log = table / "_delta_log"
    if wanted.versions is not None:
        protocol = _protocol(wanted)
        _replace(log, "protocol", lambda _: protocol)
    if wanted.invariant is not None:
        column, expression = wanted.invariant
        _replace(log, "metaData", lambda before: _with_invariant(before, column, expression))
    if wanted.column is not None:
        name, kind = wanted.column
        _replace(log, "metaData", lambda before: _with_column(before, name, kind))
    if wanted.partition is not None:
        partition = wanted.partition
        _replace(log, "metaData", lambda before: _with_partition(before, partition))
    if wanted.configuration:
        properties = wanted.configuration
        _replace(log, "metaData", lambda before: _with_properties(before, properties))
    if wanted.absolute:
        place = final or table
        _replace(log, "add", lambda before: {**before, "path": _absolute(place, before["path"])})
    if wanted.mark:
        newest = max(_versions(log, _COMMIT))[1]
        newest.write_bytes(codecs.BOM_UTF8 + newest.read_bytes())
    if wanted.domain is not None:
        name, configuration = wanted.domain
        domain = {"domain": name, "configuration": configuration, "removed": False}
        _commit(log, {"commitInfo": {"timestamp": 0, "operation": "MANUAL UPDATE"}})
        _append(log, {"domainMetadata": domain})
    _forget_checksums(log)


def expire(table: Path) -> None:
    """Remove the commits before the newest checkpoint, as log retention does."""
    log = table / "_delta_log"
    without_commits(table, max(version for version, _ in _versions(log, _CHECKPOINT)))


def without_commits(table: Path, before: int) -> None:
    """Remove what the log holds of versions below `before`, which has a checkpoint."""
    log = table / "_delta_log"
    for pattern in (_COMMIT, _CHECKPOINT):
        for version, file in _versions(log, pattern):
            if version < before:
                file.unlink()
    _forget_checksums(log)


def _protocol(wanted: Edit) -> dict[str, Any]:
    assert wanted.versions is not None
    reader, writer = wanted.versions
    found: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if wanted.readers is not None:
        found["readerFeatures"] = list(wanted.readers)
    if wanted.writers is not None:
        found["writerFeatures"] = list(wanted.writers)
    return found


def _with_invariant(metadata: dict[str, Any], column: str, expression: str) -> dict[str, Any]:
    schema = json.loads(metadata["schemaString"])
    for field in schema["fields"]:
        if field["name"] == column:
            rule = json.dumps({"expression": {"expression": expression}})
            field["metadata"]["delta.invariants"] = rule
    return {**metadata, "schemaString": json.dumps(schema)}


def _with_column(metadata: dict[str, Any], name: str, kind: Any) -> dict[str, Any]:
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": name, "type": kind, "nullable": True, "metadata": {}})
    return {**metadata, "schemaString": json.dumps(schema)}


def _with_partition(metadata: dict[str, Any], name: str) -> dict[str, Any]:
    return {**metadata, "partitionColumns": [*metadata["partitionColumns"], name]}


def _with_properties(metadata: dict[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    return {**metadata, "configuration": {**metadata["configuration"], **properties}}


def _absolute(table: Path, path: str) -> str:
    return f"{table.absolute().as_uri()}/{path}"


def _replace(log: Path, action: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    for _, file in _versions(log, _COMMIT):
        actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        changed = [{action: change(each[action])} if action in each else each for each in actions]
        _write(file, changed)


def _commit(log: Path, *actions: dict[str, Any]) -> None:
    newest = max(version for version, _ in _versions(log, _COMMIT))
    _write(log / f"{newest + 1:020d}.json", list(actions))


def _append(log: Path, action: dict[str, Any]) -> None:
    newest = max(_versions(log, _COMMIT))[1]
    actions = [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]
    _write(newest, [*actions, action])


def _write(file: Path, actions: list[dict[str, Any]]) -> None:
    lines = (json.dumps(action, separators=(",", ":")) for action in actions)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _versions(log: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
    found = ((pattern.fullmatch(file.name), file) for file in log.iterdir())
    return sorted((int(match[1]), file) for match, file in found if match)


def _forget_checksums(log: Path) -> None:
    for file in log.glob("*.crc"):
        file.unlink()
