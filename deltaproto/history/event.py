"""One commit that changed protocol, feature use, isolation level or constraints. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deltaproto.history.cause import cause_of
from deltaproto.protocol.isolation import PROPERTY
from deltaproto.protocol.layers import enabled_features
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.commits import Commit, State
from deltaproto.tables.log.mark import Mark, mark_of

_CONSTRAINT = "delta.constraints."


class Event(NamedTuple):
    """One change, with what it did and what asked for it."""

    version: int
    timestamp: int | None
    """milliseconds since the epoch, as the writer recorded it"""
    operation: str
    parameters: Mapping[str, Any]
    engine: str | None
    user: str | None
    job: str | None
    mark: Mark | None
    """the plan, step, run and actor, where `apply` made the commit"""
    protocol_before: Protocol | None
    protocol_after: Protocol
    features_added: tuple[str, ...]
    features_removed: tuple[str, ...]
    enabled: tuple[str, ...]
    """features switched on by it"""
    disabled: tuple[str, ...]
    isolation_before: str | None
    isolation_after: str | None
    constraints_added: tuple[str, ...]
    constraints_removed: tuple[str, ...]
    cause: str
    first: bool
    """nothing is known of what was before: the table's creation, or the end of the log"""


def event_of(commit: Commit, before: State, after: State) -> Event | None:
    """What `commit` changed, or None when it changed nothing that counts here."""
    if after.protocol is None or after.metadata is None:
        return None
    first = before.protocol is None
    old, new = before.protocol, after.protocol
    added = new.supported - (old.supported if old else frozenset())
    removed = (old.supported if old else frozenset()) - new.supported
    was_on, is_on = _enabled(before), _enabled(after)
    levels = _isolation(before.metadata), _isolation(after.metadata)
    constraints = _constraints(before.metadata), _constraints(after.metadata)
    unchanged = (old, was_on, levels[0], constraints[0]) == (new, is_on, levels[1], constraints[1])
    if unchanged and not first:
        return None
    return Event(
        version=commit.version,
        timestamp=commit.timestamp,
        operation=commit.operation,
        parameters=_parameters(commit.info),
        engine=commit.engine,
        user=commit.user,
        job=_job(commit.info),
        mark=mark_of(commit),
        protocol_before=old,
        protocol_after=new,
        features_added=tuple(sorted(added)),
        features_removed=tuple(sorted(removed)),
        enabled=tuple(sorted(is_on - was_on)),
        disabled=tuple(sorted(was_on - is_on)),
        isolation_before=levels[0],
        isolation_after=levels[1],
        constraints_added=tuple(sorted(constraints[1] - constraints[0])),
        constraints_removed=tuple(sorted(constraints[0] - constraints[1])),
        cause=cause_of(commit.info, frozenset(added), frozenset(removed), after.metadata),
        first=first,
    )


def changes_nothing(commit: Commit, before: State, after: State) -> bool:
    """True for a commit that stores metadata or protocol again, exactly as they were."""
    if commit.metadata is None and commit.protocol is None:
        return False
    return before == after and before.metadata is not None


def _enabled(state: State) -> frozenset[str]:
    if state.protocol is None or state.metadata is None:
        return frozenset()
    return enabled_features(state.protocol, state.metadata)


def _isolation(metadata: Metadata | None) -> str | None:
    return metadata.property(PROPERTY) if metadata is not None else None


def _constraints(metadata: Metadata | None) -> frozenset[str]:
    keys = metadata.configuration if metadata is not None else ()
    return frozenset(key[len(_CONSTRAINT) :] for key in keys if key.startswith(_CONSTRAINT))


def _parameters(info: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = info.get("operationParameters")
    return parameters if isinstance(parameters, dict) else {}


def _job(info: Mapping[str, Any]) -> str | None:
    for key, name in (("job", "jobId"), ("notebook", "notebookId")):
        value = info.get(key)
        if isinstance(value, dict) and value.get(name):
            return f"{key} {value.get('jobName') or value.get('notebookPath') or value[name]}"
    return None
