"""Commits that changed protocol, features, isolation level or constraints, and their causes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import SchemaHas
from deltaproto.protocol.isolation import ISOLATION_PROPERTY
from deltaproto.protocol.layers import enabled_features, evaluate_enablement
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.stored_secrets import hide_in_json, hide_in_name
from deltaproto.redaction import redact_text
from deltaproto.tables.log.commits import Commit, CommitTag, LogState, commit_tag_of

_CREATES = ("CREATE", "REPLACE", "CONVERT")
_COPIES = ("CLONE", "RESTORE")
_SHORT = 120
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")


def cause_of(
    info: Mapping[str, Any],
    added: frozenset[str],
    removed: frozenset[str],
    metadata: Metadata,
    protocol: Protocol,
) -> str:
    """Return one clause per cause, with the features it explains."""
    operation = str(info.get("operation") or "").upper()
    parameters = _searchable(info.get("operationParameters"))
    reasons: dict[str, list[str]] = {}
    for name in sorted(added):
        reason = _cause_of_added(name, operation, parameters, added, metadata)
        if not reason and name in protocol.implied - protocol.listed:
            reader, writer = protocol.versions
            reason = f"implied by the versions ({reader},{writer})"
        reason = reason or "not requested by this commit"
        reasons.setdefault(reason, []).append(name)
    for name in sorted(removed):
        reasons.setdefault(_cause_of_removed(name, operation, parameters), []).append(name)
    if not reasons:
        return _cause_without_features(info)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())


def _cause_of_added(
    name: str, operation: str, parameters: str, added: frozenset[str], metadata: Metadata
) -> str:
    """Return the cause that the commit and the metadata name, or an empty text."""
    if f"delta.feature.{name}".lower() in parameters:
        return f"requested by delta.feature.{name}"
    for switch in feature_catalog.feature_record(name).switches:
        if switch.lower() in parameters:
            return f"property {switch}"
    if name == feature_catalog.CHECKPOINT_PROTECTION and operation == "DROP FEATURE":
        return "left behind by DROP FEATURE"
    requirers = feature_catalog.find_dependents(name, added)
    if requirers:
        return f"required by {', '.join(requirers)}"
    if any(key in parameters for key in _VERSIONS):
        return "implied by the version numbers that were set"
    columns = _columns_with_trait(name, metadata)
    if columns:
        return f"column {', '.join(columns)}"
    if name == "clustering" and "cluster" in operation.lower() + parameters:
        return "CLUSTER BY"
    if operation == "ADD CONSTRAINT" and name == "checkConstraints":
        return "ADD CONSTRAINT"
    if operation.startswith(_COPIES):
        return f"copied by {operation}"
    if operation == "UPGRADE PROTOCOL":
        return "requested by an upgrade of the protocol"
    if operation == "ADD FEATURE" and f'"{name}"'.lower() in parameters:
        return "requested by ADD FEATURE"
    if keys := _enabling_properties(name, metadata):
        return f"property {keys}"
    if operation.startswith(_CREATES) or operation == "WRITE":
        return "added at table creation: a default of the writer or its session"
    return ""


def _enabling_properties(name: str, metadata: Metadata) -> str:
    """Return the properties that enable a feature; writers need not record them in the commit."""
    record = feature_catalog.feature_record(name)
    enabled, evidence = evaluate_enablement(record.enablement, metadata, None)
    return evidence.partition("=")[0] if enabled and record.switches else ""


def _cause_of_removed(name: str, operation: str, parameters: str) -> str:
    if operation == "DROP FEATURE" and name.lower() in parameters:
        return "DROP FEATURE"
    if operation.startswith(("RESTORE", "CREATE", "REPLACE")):
        return f"removed by {operation}"
    return "lost: this commit did not drop it"


def _cause_without_features(info: Mapping[str, Any]) -> str:
    """Return the statement and the properties it names as cause, if no feature changed."""
    operation = info.get("operation")
    if not operation:
        return "the commit does not record its operation"
    properties = _parameters(info).get("properties")
    if isinstance(properties, str) and len(properties) <= _SHORT:
        return f"{operation} {properties}"
    return str(operation)


def _columns_with_trait(name: str, metadata: Metadata) -> tuple[str, ...]:
    rule = feature_catalog.feature_record(name).enablement
    if isinstance(rule, SchemaHas) and metadata.traits is not None:
        return metadata.traits.get(rule.trait, ())
    return ()


def _searchable(parameters: Any) -> str:
    # Engines store property maps as JSON text inside JSON: escapes would hide the keys.
    return json.dumps(parameters or {}).replace("\\", "").lower()


_CONSTRAINT = "delta.constraints."


class Event(NamedTuple):
    """One change, with its effect and cause."""

    version: int
    """the version of the commit"""
    timestamp: int | None
    """milliseconds since the epoch, as the writer recorded it"""
    operation: str
    """the operation as the writer recorded it"""
    parameters: Mapping[str, Any]
    """its parameters as recorded"""
    engine: str | None
    """the writer with its version; None: not recorded"""
    user: str | None
    """the user; None: not recorded"""
    job: str | None
    """the job or notebook; None: not recorded"""
    mark: CommitTag | None
    """plan, step, run and actor, if `apply` made the commit"""
    protocol_before: Protocol | None
    """the protocol before the commit; None: unknown"""
    protocol_after: Protocol
    """the protocol after the commit"""
    features_added: tuple[str, ...]
    """features that the table supports since"""
    features_removed: tuple[str, ...]
    """features that the table no longer supports"""
    enabled: tuple[str, ...]
    """features that it enabled"""
    disabled: tuple[str, ...]
    """features that it disabled"""
    isolation_before: str | None
    """the declared isolation level before"""
    isolation_after: str | None
    """the declared isolation level after"""
    constraints_added: tuple[str, ...]
    """names of the constraints that it added"""
    constraints_removed: tuple[str, ...]
    """names of the constraints that it removed"""
    cause: str
    """why features were added or removed"""
    first: bool
    """the previous state is unknown: the table's creation, or the end of the log"""

    def __repr__(self) -> str:
        changes = [f"+{name}" for name in (*self.features_added, *self.enabled)]
        changes += [f"-{name}" for name in (*self.features_removed, *self.disabled)]
        changed = f" {' '.join(dict.fromkeys(changes))}" if changes else ""
        return f"<Event version {self.version}: {self.operation}, {self.protocol_after}{changed}>"


def event_of(commit: Commit, before: LogState, after: LogState) -> Event | None:
    """Return the change that `commit` made, or None if nothing relevant changed."""
    if after.protocol is None or after.metadata is None:
        return None
    first = before.protocol is None
    old, new = before.protocol, after.protocol
    added = new.supported - (old.supported if old else frozenset())
    removed = (old.supported if old else frozenset()) - new.supported
    was_on, is_on = _enabled_features(before), _enabled_features(after)
    levels = _isolation_property(before.metadata), _isolation_property(after.metadata)
    constraints = _constraint_names(before.metadata), _constraint_names(after.metadata)
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
        mark=commit_tag_of(commit),
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
        cause=cause_of(commit.info, added, removed, after.metadata, new),
        first=first,
    )


def changes_nothing(commit: Commit, before: LogState, after: LogState) -> bool:
    """Return True for a commit that stores metadata or protocol again, unchanged."""
    if commit.metadata is None and commit.protocol is None:
        return False
    return before == after and before.metadata is not None


def _enabled_features(state: LogState) -> frozenset[str]:
    if state.protocol is None or state.metadata is None:
        return frozenset()
    return enabled_features(state.protocol, state.metadata)


def _isolation_property(metadata: Metadata | None) -> str | None:
    return metadata.property(ISOLATION_PROPERTY) if metadata is not None else None


def _constraint_names(metadata: Metadata | None) -> frozenset[str]:
    keys = metadata.configuration if metadata is not None else ()
    return frozenset(key[len(_CONSTRAINT) :] for key in keys if key.lower().startswith(_CONSTRAINT))


def _parameters(info: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = info.get("operationParameters")
    if not isinstance(parameters, dict):
        return {}
    # The source of a clone may be a signed address, and a property a password.
    return {
        hide_in_name(key): hide_in_json(value, redact_text) for key, value in parameters.items()
    }


def _job(info: Mapping[str, Any]) -> str | None:
    for key, name in (("job", "jobId"), ("notebook", "notebookId")):
        value = info.get(key)
        if isinstance(value, dict) and value.get(name):
            return f"{key} {value.get('jobName') or value.get('notebookPath') or value[name]}"
    return None
