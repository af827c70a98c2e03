"""What made a commit change the features: somebody's request, or something that pulled them in.

From the commit's own record alone: operation, parameters and the schema it left. Where that does
not explain a feature the answer says so; a guess is never given as a fact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import SchemaHas
from deltaproto.protocol.metadata import Metadata

_CREATES = ("CREATE", "REPLACE", "CONVERT")
_COPIES = ("CLONE", "RESTORE")
_SHORT = 120
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")


def cause_of(
    info: Mapping[str, Any],
    added: frozenset[str],
    removed: frozenset[str],
    metadata: Metadata,
) -> str:
    """One sentence part for each reason, with the features it explains."""
    operation = str(info.get("operation") or "").upper()
    parameters = _searchable(info.get("operationParameters"))
    reasons: dict[str, list[str]] = {}
    for name in sorted(added):
        reason = _of_added(name, operation, parameters, added, metadata)
        reasons.setdefault(reason, []).append(name)
    for name in sorted(removed):
        reasons.setdefault(_of_removed(name, operation, parameters), []).append(name)
    if not reasons:
        return _of_rest(info)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())


def _of_added(
    name: str, operation: str, parameters: str, added: frozenset[str], metadata: Metadata
) -> str:
    if f"delta.feature.{name}".lower() in parameters:
        return f"asked for by delta.feature.{name}"
    for switch in catalogue.record(name).switches:
        if switch.lower() in parameters:
            return f"property {switch}"
    if name == catalogue.CHECKPOINT_PROTECTION and operation == "DROP FEATURE":
        return "left behind by DROP FEATURE"
    requirers = catalogue.dependents(name, added)
    if requirers:
        return f"required by {', '.join(requirers)}"
    if any(key in parameters for key in _VERSIONS):
        return "implied by the version numbers that were set"
    columns = _columns(name, metadata)
    if columns:
        return f"column {', '.join(columns)}"
    if name == "clustering" and "cluster" in operation.lower() + parameters:
        return "CLUSTER BY"
    if operation == "ADD CONSTRAINT" and name == "checkConstraints":
        return "ADD CONSTRAINT"
    if operation.startswith(_COPIES):
        return f"copied by {operation}"
    if operation == "UPGRADE PROTOCOL":
        return "asked for by an upgrade of the protocol"
    if operation.startswith(_CREATES) or operation == "WRITE":
        return "came with the table's creation: a default of the writer or of its session"
    return "not asked for by this commit"


def _of_removed(name: str, operation: str, parameters: str) -> str:
    if operation == "DROP FEATURE" and name.lower() in parameters:
        return "DROP FEATURE"
    if operation.startswith(("RESTORE", "CREATE", "REPLACE")):
        return f"gone with {operation}"
    return "lost: this commit did not drop it"


def _of_rest(info: Mapping[str, Any]) -> str:
    """No feature came or went: the statement itself is the cause, with the properties it names."""
    operation = info.get("operation")
    if not operation:
        return "the commit does not say what it did"
    parameters = info.get("operationParameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if isinstance(properties, str) and len(properties) <= _SHORT:
        return f"{operation} {properties}"
    return str(operation)


def _columns(name: str, metadata: Metadata) -> tuple[str, ...]:
    rule = catalogue.record(name).enablement
    if isinstance(rule, SchemaHas) and metadata.traits is not None:
        return metadata.traits.get(rule.trait, ())
    return ()


def _searchable(parameters: Any) -> str:
    # Engines store property maps as JSON text inside JSON: escapes would hide the keys.
    return json.dumps(parameters or {}).replace("\\", "").lower()
