"""The next change of the table's metadata adds features to its protocol, whatever the statement
changes.

## What it does
Reports tables whose metadata stores `delta.minReaderVersion`, `delta.minWriterVersion` or
`delta.feature.<name>` as ordinary properties, if these request features that the protocol does not
have. Delta Spark never stores them. deltalake 1.6.6 stores the versions, and the others with
`raise_if_key_not_exists=False`.

## Why it breaks
Delta Spark applies them with its next commit of metadata, for example with a change of a comment,
and then removes them. Only ADD CONSTRAINT and DROP CONSTRAINT keep them. DROP FEATURE is refused if
its own commit would add a feature.

## Who breaks
Clients that do not support the features, from that commit on.

## How to fix
`delta.minReaderVersion` and `delta.minWriterVersion` can be removed with ALTER TABLE … UNSET
TBLPROPERTIES. Remove `delta.feature.<name>` with the engine that stored it: Delta Spark converts
the key to lowercase, so it cannot remove every such property without applying it. Or accept the
features: `deltaproto plan-upgrade` shows what the next change adds.

## How safe
Removing properties changes metadata: it conflicts with concurrent writes.

## References
Delta Spark's `OptimisticTransaction.updateMetadataInternal`; measured with Delta Spark 4.4.0 and
deltalake 1.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.errors import quote_short
from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol.feature_catalog import (
    FEATURE_PREFIX,
    feature_from_key,
    features_implied_by,
)

RULE = Rule("DP145", "stored-protocol-request", Severity.WARNING, since="0.1.0")
_READER, _WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
_LISTS_READER, _LISTS_WRITER = 3, 7
_VERSIONS = {_READER: range(1, _LISTS_READER + 1), _WRITER: range(1, _LISTS_WRITER + 1)}
_STATUSES = ("supported", "enabled")


def check(subject: RuleContext) -> Iterator[Finding]:
    stored = {
        key: value
        for key, value in subject.state.metadata.configuration.items()
        if value is not None and (key in _VERSIONS or key.startswith(FEATURE_PREFIX))
    }
    if not stored:
        return
    asked = {key: None if key in _VERSIONS else feature_from_key(key) for key in stored}
    refused = [key for key, value in stored.items() if not _is_valid(key, value, asked[key])]
    added = {name for name in asked.values() if name}
    if not refused:
        reader, writer = (
            int(stored.get(key, here))
            for key, here in zip(_VERSIONS, subject.protocol.versions, strict=True)
        )
        if reader == _LISTS_READER and writer < _LISTS_WRITER:
            refused.append(_WRITER if _WRITER in stored else _READER)
        added |= features_implied_by(reader, writer)
    added -= subject.protocol.supported
    if not (refused or added):
        return
    effect = f"adds {', '.join(sorted(added))} to the protocol"
    if refused:
        effect = f"fails, as {refused[0]} is {quote_short(stored[refused[0]])}"
    statement = f"ALTER TABLE … UNSET TBLPROPERTIES ({', '.join(map(repr, sorted(stored)))})"
    yield RULE.finding(
        subject.table,
        f"the table stores {', '.join(sorted(stored))}: the next change of its metadata by Delta "
        f"Spark {effect}",
        statement
        if stored.keys() <= _VERSIONS.keys() and not refused
        else "remove these properties with the engine that stored them",
        feature=min(added) if len(added) == 1 and not refused else None,
        evidence=refused[0] if refused else ", ".join(sorted(added)),
    )


def _is_valid(key: str, value: str, feature: str | None) -> bool:
    """Return True if Delta Spark can apply a stored property."""
    if key in _VERSIONS:
        return value in map(str, _VERSIONS[key])
    return feature is not None and value.lower() in _STATUSES
