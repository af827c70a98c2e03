"""Requirements of a policy that no table can meet together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from deltaproto.counts import any_name
from deltaproto.policy.document.model import PolicySettings
from deltaproto.protocol.feature import PropertyIs, RequirementKind
from deltaproto.protocol.feature_catalog import (
    FEATURE_PREFIX,
    feature_from_key,
    feature_record,
    features_enabled_by,
    features_implied_by,
    with_required_features,
)
from deltaproto.protocol.isolation import ISOLATION_PROPERTY
from deltaproto.protocol.violations import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION

_CLUSTERING = "clustering"


class Contradiction(NamedTuple):
    """Two requirements that exclude each other."""

    problem: str
    hint: str
    setting: str
    """the setting whose line messages name"""
    entry: str | None = None
    """the entry of this setting, if it has several"""


class _Need(NamedTuple):
    """A setting that needs a feature."""

    text: str
    setting: str
    entry: str | None
    features: tuple[str, ...]
    """alternatives, one of which is enough: a preview shares the property of its successor"""
    enabled: bool
    """True if the feature must be enabled, not only supported"""


def find_contradictions(settings: PolicySettings) -> Iterator[Contradiction]:
    """Yield what no table can meet, whatever it contains."""
    yield from _reversed_bounds(settings)
    needs = [*_list_needs(settings)]
    alone = [
        found for need in needs if (found := _forbidden(need, settings) or _above(need, settings))
    ]
    yield from alone
    if not alone:
        yield from _without_pair(needs, settings)
    yield from _excluded(needs, settings.require_properties)
    yield from _other_isolation(settings)


def _reversed_bounds(settings: PolicySettings) -> Iterator[Contradiction]:
    for side, low, high in (
        ("reader", settings.min_reader_version, settings.max_reader_version),
        ("writer", settings.min_writer_version, settings.max_writer_version),
    ):
        if low is not None and high is not None and low > high:
            yield Contradiction(
                f"min_{side}_version {low} is above max_{side}_version {high}",
                "lower the floor or raise the ceiling",
                f"min_{side}_version",
            )


def _list_needs(settings: PolicySettings) -> Iterator[_Need]:
    for name in settings.require_features or ():
        yield _Need(f"{name} is required", "require_features", name, (name,), enabled=False)
    for key, value in settings.require_properties.items():
        enabled = not key.lower().startswith(FEATURE_PREFIX)
        if enabled:
            features = tuple(sorted(features_enabled_by({key: value})))
        else:
            features = tuple(filter(None, [feature_from_key(key)]))
        if features:
            verb = "enables" if enabled else "adds"
            text = f"{key} = {value} {verb} {any_name(features)}"
            yield _Need(text, "require_properties", key, features, enabled)
    if settings.cluster_by:
        yield _Need(
            f"cluster_by needs {_CLUSTERING}", "cluster_by", None, (_CLUSTERING,), enabled=True
        )


def _forbidden(need: _Need, settings: PolicySettings) -> Contradiction | None:
    forbidden = set(settings.forbid_features or ())
    if not all(with_required_features([name]) & forbidden for name in need.features):
        return None
    if need.setting == "require_features" and need.features[0] in forbidden:
        problem = f"{need.features[0]} is both required and forbidden"
        return Contradiction(problem, "remove it from one list", need.setting, need.entry)
    if forbidden.issuperset(need.features):
        problem = f"{need.text}, which is forbidden"
    else:
        reached = sorted(with_required_features(need.features) & forbidden - {*need.features})
        problem = f"{need.text}, which requires {reached[0]}, which is forbidden"
    return Contradiction(problem, "remove one of the two", need.setting, need.entry)


def _above(need: _Need, settings: PolicySettings) -> Contradiction | None:
    for side, most in (
        ("reader", settings.max_reader_version),
        ("writer", settings.max_writer_version),
    ):
        least = min(_least_version(name, side) for name in need.features)
        if most is not None and least > most:
            return Contradiction(
                f"{need.text}, which requires {side} version {least}: max_{side}_version is {most}",
                f"raise max_{side}_version to {least}, or remove the requirement",
                need.setting,
                need.entry,
            )
    return None


def _least_version(name: str, side: str) -> int:
    records = map(feature_record, with_required_features([name]))
    return max(each.min_reader if side == "reader" else each.min_writer for each in records)


def _without_pair(needs: list[_Need], settings: PolicySettings) -> Iterator[Contradiction]:
    """Yield a contradiction if all allowed versions imply features, and none of them fits."""
    most = settings.max_writer_version
    if most is None or most >= WRITER_FEATURES_VERSION:
        return
    forbidden = set(settings.forbid_features or ())
    required = {name for need in needs if len(need.features) == 1 for name in need.features}
    required = set(with_required_features(required))
    highest = min(settings.max_reader_version or READER_FEATURES_VERSION, 2)
    for reader in range(settings.min_reader_version or 1, highest + 1):
        for writer in range(settings.min_writer_version or 1, most + 1):
            implied = features_implied_by(reader, writer)
            if required <= implied and not implied & forbidden:
                return
    if settings.min_reader_version == READER_FEATURES_VERSION:
        yield Contradiction(
            f"min_reader_version {READER_FEATURES_VERSION} requires writer version "
            f"{WRITER_FEATURES_VERSION}: max_writer_version is {most}",
            "lower min_reader_version or raise max_writer_version",
            "min_reader_version",
        )
    elif forbidden:
        yield Contradiction(
            f"writer versions up to {most} imply features, and no allowed version has "
            f"{_all_of(required)} without {_all_of(forbidden, 'or')}",
            f"raise max_writer_version to {WRITER_FEATURES_VERSION}, or remove one of the features",
            "max_writer_version",
        )


def _all_of(names: Collection[str], word: str = "and") -> str:
    *others, last = sorted(names) or ["the required minimum"]
    return f"{', '.join(others)} {word} {last}" if others else last


def _excluded(needs: list[_Need], properties: Mapping[str, str]) -> Iterator[Contradiction]:
    """Yield features that must not be used together, or that lack a switched-off requirement."""
    sure = [need for need in needs if len(need.features) == 1]
    enabled = {need.features[0]: need for need in sure if need.enabled}
    supported = {name: need for need in sure for name in with_required_features(need.features)}
    for name, need in enabled.items():
        for each in feature_record(name).requires:
            others = enabled if each.need is RequirementKind.NOT_ENABLED else supported
            negative = each.need in (RequirementKind.NOT_ENABLED, RequirementKind.NOT_SUPPORTED)
            if negative and each.feature in others:
                problem = f"{need.text}, which excludes {each.feature}: {others[each.feature].text}"
            elif each.need is RequirementKind.ENABLED and (
                off := _switched_off(each.feature, properties)
            ):
                problem = f"{need.text}, which requires {each.feature}: {off} disables it"
            else:
                continue
            yield Contradiction(problem, "remove one of the two", need.setting, need.entry)


def _switched_off(name: str, properties: Mapping[str, str]) -> str | None:
    """Return the required property, with its value, that disables a feature; None: none does."""
    rule = feature_record(name).enablement
    if not isinstance(rule, PropertyIs):
        return None
    key = rule.key_in(properties)
    value = properties.get(key)
    return None if value is None or rule.holds(value) else f"{key} = {value}"


def _other_isolation(settings: PolicySettings) -> Iterator[Contradiction]:
    level = settings.isolation
    value = settings.require_properties.get(ISOLATION_PROPERTY)
    if level is not None and value is not None and value.lower() != str(level).lower():
        yield Contradiction(
            f"{ISOLATION_PROPERTY} = {value} contradicts isolation {level}",
            "remove one of the two",
            "require_properties",
            ISOLATION_PROPERTY,
        )
