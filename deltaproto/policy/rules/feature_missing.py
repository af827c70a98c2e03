"""The schema or a property needs a feature that the protocol does not support.

## What it does
Compares the table with the feature catalog: a TIMESTAMP_NTZ column needs `timestampNtz`, a
generated column `generatedColumns`, `delta.enableDeletionVectors=true` needs `deletionVectors`,
widened types need `typeWidening`, and so on. A preview feature also satisfies the need for its
successor. Live data files with deletion vectors need `deletionVectors`; a scan finds them in the
newest checkpoint, and in the commits that it reads.

## Why it breaks
Clients rely on the protocol to list the required features. If a feature is missing, some read
wrong values, some ignore the property, and some refuse the table. Where deletion vectors are left
and the feature is not listed, Delta Spark returns the deleted rows.

## Who breaks
Delta Kernel and libraries built on it refuse such tables. If the protocol lists features (writer
version 7), Delta Spark refuses every statement, even SELECT, with
`DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH`. Older clients do not notice. deltalake 1.6.6 creates
such tables: with a NOT NULL and a TIMESTAMP_NTZ column, a table needs `invariants`, which deltalake
does not list. Delta Spark 4.4.0 leaves deletion vectors when it drops `deletionVectors` from a
table with clustered files.

## How to fix
Add the feature, after checking that every client of the table works with it. Below writer version
7: `ALTER TABLE t SET TBLPROPERTIES ('delta.feature.<name>' = 'supported')`. With writer version 7,
Delta Spark refuses this as well; use deltalake:
`DeltaTable("t").alter.add_feature(TableFeatures.Invariants)`. Or remove the property or column that
needs it.

## How safe
Adding a feature is a protocol change, and some features can never be dropped again:
see `deltaproto features <name>`.

## References
PROTOCOL.md, "Active Features"; Delta Spark's `FeatureAutomaticallyEnabledByMetadata`;
measured with Delta Spark 4.4.0 and deltalake 1.6.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, Severity
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    Enablement,
    Feature,
    FeatureStatus,
    SchemaHas,
    Trace,
    Trait,
)
from deltaproto.protocol.layers import evaluate_enablement

RULE = Rule("DP103", "feature-missing", Severity.ERROR, since="0.1.0")


def check(subject: RuleContext) -> Iterator[Finding]:
    metadata, domains = subject.state.metadata, subject.state.domains
    supported = subject.protocol.supported
    for rule, (feature, satisfying) in _by_need().items():
        if not satisfying.isdisjoint(supported):
            continue
        on, shown = evaluate_enablement(rule, metadata, domains)
        if on:
            yield RULE.finding(
                subject.table,
                f"{shown} needs {feature.name}, which the protocol does not support",
                feature_catalog.add_unlisted(feature.name)
                if subject.protocol.uses_table_features
                else f"add the feature with 'delta.feature.{feature.name}'='supported', "
                "or remove what needs it",
                feature=feature.name,
                evidence=shown,
            )
    vectors = subject.state.traces.get(Trace.DELETION_VECTORS) is True
    if vectors and "deletionVectors" not in supported:
        yield RULE.finding(
            subject.table,
            "data files have deletion vectors, and the protocol does not support deletionVectors: "
            "readers that follow the protocol return deleted rows",
            "add it again with 'delta.feature.deletionVectors'='supported', or rewrite the table "
            "with a client that shows the right rows",
            feature="deletionVectors",
            evidence=str(Trace.DELETION_VECTORS),
        )


@cache
def _by_need() -> dict[Enablement, tuple[Feature, frozenset[str]]]:
    """Map each need to the recommended feature, and the names of all that satisfy it."""
    needs: dict[Enablement, list[Feature]] = {}
    for feature in feature_catalog.all_features():
        if not isinstance(feature.enablement, AlwaysWhenSupported):
            needs.setdefault(feature.enablement, []).append(feature)
        if feature.name.startswith("typeWidening"):
            needs.setdefault(SchemaHas(Trait.TYPE_CHANGE), []).append(feature)
    return {
        need: (
            min(candidates, key=lambda feature: feature.status is not FeatureStatus.STABLE),
            frozenset(feature.name for feature in candidates),
        )
        for need, candidates in needs.items()
    }
