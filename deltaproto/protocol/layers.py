"""The layers of each feature on one table: listed, implied, enabled, present, required by others.

Pure: everything comes from the protocol, the metadata and the reader's facts. None means "not
checked" or "unknown", never no.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.counts import counted, first_names
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import (
    AlwaysWhenSupported,
    DomainHas,
    Enablement,
    Feature,
    FeatureKind,
    FeatureStatus,
    PropertyIs,
    PropertyPrefix,
    SchemaHas,
    Trace,
    Trait,
)
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol

# The schema shows these features even after they are disabled.
_SHOWN_COLUMNS = 3
_SHOWN_FEATURES = 4
_SCHEMA_TRACES = {"columnMapping": Trait.MAPPING, "typeWidening": Trait.TYPE_CHANGE}


class FeatureState(NamedTuple):
    """One supported feature of one table."""

    feature: Feature
    """the record of the feature in the catalog"""
    kind: FeatureKind
    """who must support it: writer or reader-writer"""
    listed: bool
    """whether the protocol lists it"""
    implied: bool
    """whether the version numbers imply it"""
    enabled: bool | None
    """whether properties, schema or commands enable it; None: unknown"""
    present: bool | None
    """whether files or metadata show that it was used; None: not searched"""
    required_by: tuple[str, ...]
    """supported features that directly require this one"""
    evidence: str
    """what shows that it is enabled or present; otherwise empty"""
    kept_by: tuple[str, ...] = ()
    """supported features that prevent Delta Spark from dropping this one"""

    @property
    def name(self) -> str:
        """The feature's name."""
        return self.feature.name

    def __repr__(self) -> str:
        names = ("listed", "implied", "enabled", "present")
        layers = ", ".join(name for name in names if getattr(self, name))
        return f"<FeatureState {self.name}: {layers}>"

    @property
    def unused(self) -> bool:
        """True if the table certainly does not use the feature."""
        off = self.enabled is False or self.feature.switchless
        return off and self.present is False and not self.required_by


def feature_states(
    protocol: Protocol,
    metadata: Metadata,
    domains: Mapping[str, str] | None,
    traces: Mapping[Trace, bool],
) -> tuple[FeatureState, ...]:
    """Return the state of every supported feature, sorted by name."""
    listed, implied, supported = protocol.listed, protocol.implied, protocol.supported
    by_readers = protocol.reader_features or frozenset()
    in_unity = feature_catalog.UNITY_TABLE_ID in metadata.configuration
    found = []
    for name in sorted(supported):
        feature = feature_catalog.feature_record(name, in_reader_list=name in by_readers)
        on, shown = evaluate_enablement(feature.enablement, metadata, domains)
        if feature.status is FeatureStatus.UNKNOWN:
            on = None
        present, seen = _evaluate_presence(feature, metadata, on, shown, traces)
        found.append(
            FeatureState(
                feature=feature,
                kind=feature.kind,
                listed=name in listed,
                implied=name in implied,
                enabled=on,
                present=present,
                required_by=feature_catalog.find_dependents(name, supported),
                evidence=shown or seen,
                kept_by=feature_catalog.features_blocking_drop(
                    name, supported, present=present, in_unity=in_unity
                ),
            )
        )
    return tuple(found)


def evaluate_enablement(
    rule: Enablement, metadata: Metadata, domains: Mapping[str, str] | None
) -> tuple[bool | None, str]:
    """Return whether `rule` applies to a table that supports its feature, and the evidence."""
    match rule:
        case PropertyIs():
            key = rule.key_in(metadata.configuration)
            value = metadata.property(key)
            on = rule.holds(value)
            return on, f"{key}={value}" if on else ""
        case PropertyPrefix():
            keys = rule.keys_in(metadata.configuration)
            return bool(keys), ", ".join(keys)
        case SchemaHas(trait):
            return _schema_has(trait, metadata)
        case DomainHas(domain, key):
            return _domain_has(domain, key, domains)
        case AlwaysWhenSupported():
            return True, ""


def switched_features(
    protocol: Protocol, configuration: Mapping[str, str | None]
) -> frozenset[str]:
    """Return the supported features whose property is on, whatever their files show."""
    rules = {name: feature_catalog.feature_record(name).enablement for name in protocol.supported}
    return frozenset(
        name
        for name, rule in rules.items()
        if isinstance(rule, PropertyIs)
        and rule.holds(configuration.get(rule.key_in(configuration)))
    )


def enabled_features(protocol: Protocol, metadata: Metadata) -> frozenset[str]:
    """Return the supported features that properties and schema enable; ignores domains."""
    return frozenset(
        name
        for name in protocol.supported
        if (record := feature_catalog.find_feature(name)) is not None
        and evaluate_enablement(record.enablement, metadata, None)[0]
    )


def _evaluate_presence(
    feature: Feature,
    metadata: Metadata,
    on: bool | None,
    shown: str,
    traces: Mapping[Trace, bool],
) -> tuple[bool | None, str]:
    trait = _SCHEMA_TRACES.get(feature.name.removesuffix("-preview"))
    if trait is not None:
        return _schema_has(trait, metadata)
    if feature.traces:
        looked = [traces.get(trace) for trace in feature.traces]
        if any(looked):
            seen = [str(t) for t in feature.traces if traces.get(t)]
            return True, ", ".join(seen)
        return (None, "") if None in looked else (False, "")
    match feature.enablement:
        case SchemaHas() | PropertyPrefix() | DomainHas():
            return on, shown
        case PropertyIs():
            # Such a writer feature consists only of the property (appendOnly). Files written with a
            # reader-writer feature keep its format after the property is removed.
            unseen = on is False and feature.kind is FeatureKind.READER_WRITER
            return (None, "") if unseen else (on, shown)
        case AlwaysWhenSupported():
            return None, ""


def _schema_has(trait: Trait, metadata: Metadata) -> tuple[bool | None, str]:
    if metadata.traits is None:
        return None, ""
    columns = metadata.traits.get(trait, ())
    return bool(columns), _format_columns(columns)


def _domain_has(
    domain: str, key: str, domains: Mapping[str, str] | None
) -> tuple[bool | None, str]:
    if domains is None:
        return None, ""
    try:
        members = json.loads(domains.get(domain) or "{}").get(key)
    except (ValueError, AttributeError, RecursionError):
        return None, ""
    return bool(members), f"domain {domain}" if members else ""


def _format_columns(columns: tuple[str, ...]) -> str:
    if not columns:
        return ""
    noun = "column" if len(columns) == 1 else "columns"
    return f"{noun} {first_names(columns, _SHOWN_COLUMNS)}"


def explain_versions(protocol: Protocol) -> tuple[str, ...]:
    """Explain the reader version and the writer version in one sentence each."""
    if protocol.violations():
        return ("the versions and the feature lists contradict each other",)
    return (_explain_reader(protocol), _explain_writer(protocol))


def _explain_reader(protocol: Protocol) -> str:
    version = protocol.min_reader_version
    if version == 1:
        return "reader 1: every client can read it"
    known = (
        n for n in sorted(protocol.supported) if protocol.kind_of(n) is FeatureKind.READER_WRITER
    )
    forcing = [name for name in known if _min_reader(protocol, name) == version]
    if not forcing:
        return f"reader {version}: no feature requires it"
    return f"reader {version}: readers must support {first_names(forcing, _SHOWN_FEATURES)}"


def _explain_writer(protocol: Protocol) -> str:
    version = protocol.min_writer_version
    if not protocol.uses_table_features:
        count = len(protocol.implied)
        if not count:
            return f"writer {version}: implies no feature"
        return f"writer {version}: the version implies {counted(count, 'feature')}, used or not"
    native = [n for n in sorted(protocol.supported) if not feature_catalog.feature_record(n).legacy]
    if native:
        return f"writer 7: only a feature list can include {first_names(native, _SHOWN_FEATURES)}"
    if not protocol.supported:
        return "writer 7: an empty feature list; no feature requires it"
    if protocol.lowest() != protocol:
        return f"writer 7: the listed features are exactly those of {protocol.lowest()}"
    names = first_names(sorted(protocol.supported), _SHOWN_FEATURES)
    return f"writer 7: no lower version implies exactly {names}"


def _min_reader(protocol: Protocol, name: str) -> int:
    in_reader_list = name in (protocol.reader_features or ())
    return feature_catalog.feature_record(name, in_reader_list=in_reader_list).min_reader
