"""What a policy requires of one table, as the target of a plan.

A requirement that the table violates is `missing`, and the plan fixes it, unless the policy waives
the finding, approves it or turns its rule off. A requirement that the table meets is `kept`.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.model import Access, Verdict
from deltaproto.planning.search.goals import HistoryChoice, TableClient
from deltaproto.planning.target import Requirements, Target, is_set
from deltaproto.policy.context import TableFacts
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document.model import Declared, PolicySettings
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding
from deltaproto.policy.rules import (
    above_ceiling,
    below_floor,
    clustering_differs,
    default_missing,
    forbidden_feature,
    isolation_differs,
    lowest_required,
    required_feature,
)
from deltaproto.policy.table_check import CLIENT_RULES, TableCheck
from deltaproto.protocol.isolation import ISOLATION_PROPERTY

_Key = tuple[str, str | None]


def build_target(checker: Checker, facts: TableFacts) -> Target:
    """Return what the policy requires of the table."""
    settings = checker.settings(facts.table, facts.location, facts.other_names)
    checked = checker.check(facts)
    found = {_key_of(finding) for finding in checked.findings}
    accepted = {_key_of(each.finding) for each in checked.suppressed}
    missing, kept = Requirements(), Requirements()
    for key, part in _list_requirements(settings, facts):
        if key in found:
            missing = missing.merged_with(part)
        elif key not in accepted and key[0] not in _rules_off(settings):
            kept = kept.merged_with(part)
    configuration = {key: value or "" for key, value in facts.configuration.items()}
    if ISOLATION_PROPERTY in kept.properties and not is_set(
        configuration, ISOLATION_PROPERTY, kept.properties[ISOLATION_PROPERTY]
    ):
        # Every engine's default is the level.
        others = {k: v for k, v in kept.properties.items() if k != ISOLATION_PROPERTY}
        kept = kept._replace(properties=others)
    refused, working = _split_clients(checker, checked)
    history = None if settings.history is None else HistoryChoice(settings.history)
    return Target(missing._replace(clients=refused), kept._replace(clients=working), history)


def _list_requirements(
    settings: PolicySettings, facts: TableFacts
) -> Iterator[tuple[_Key, Requirements]]:
    """Yield each requirement of the policy except clients, with the key of its finding."""
    for name in settings.require_features or ():
        yield (required_feature.RULE.id, name), Requirements(features=frozenset({name}))
    for name in settings.forbid_features or ():
        yield (forbidden_feature.RULE.id, name), Requirements(absent=frozenset({name}))
    for key, value in settings.require_properties.items():
        yield (default_missing.RULE.id, key), Requirements(properties={key: value})
    if (level := settings.isolation) is not None:
        wanted = Requirements(properties={ISOLATION_PROPERTY: str(level)})
        yield (isolation_differs.RULE.id, None), wanted
    for name in lowest_required.find_unneeded(facts.needs, settings):
        yield (lowest_required.RULE.id, name), Requirements(absent=frozenset({name}))
    if (form := lowest_required.find_lower_form(facts.needs, settings)) is not None:
        yield (lowest_required.RULE.id, lowest_required.FORM), Requirements(at_most=form.versions)
    if settings.cluster_by is not None:
        yield (clustering_differs.RULE.id, None), Requirements(cluster_by=settings.cluster_by)
    for side, least, most in (
        ("reader", settings.min_reader_version, settings.max_reader_version),
        ("writer", settings.min_writer_version, settings.max_writer_version),
    ):
        reader = side == "reader"
        if least is not None:
            low = (least, 1) if reader else (1, least)
            yield (below_floor.RULE.id, side), Requirements(at_least=low)
        if most is not None:
            high = (most, 7) if reader else (3, most)
            yield (above_ceiling.RULE.id, side), Requirements(at_most=high)


def _key_of(finding: Finding) -> _Key:
    return finding.rule, finding.detail or finding.feature


def _rules_off(settings: PolicySettings) -> frozenset[str]:
    return frozenset(rule for rule, severity in settings.severities.items() if severity is None)


def _split_clients(
    checker: Checker, checked: TableCheck
) -> tuple[tuple[TableClient, ...], tuple[TableClient, ...]]:
    """Return the accesses that fail or return wrong results, and those that work.

    Unknown verdicts, and those that the policy waives or approves, are neither.
    """
    found = {(finding.rule, finding.client) for finding in checked.findings}
    paths: dict[tuple[Declared, Access], list[DeclaredVerdict]] = {}
    for each in checked.verdicts:
        paths.setdefault((each.declared, each.access), []).append(each)
    failing: list[TableClient] = []
    working: list[TableClient] = []
    for (declared, access), judged in paths.items():
        use = TableClient(checker.candidate(declared), (access,))
        if all(each.outcome is Verdict.OK for each in judged):
            working.append(use)
        elif any(
            each.outcome in (Verdict.REFUSED, Verdict.WRONG)
            and (CLIENT_RULES[each.outcome], each.verdict.named) in found
            for each in judged
        ):
            failing.append(use)
    return tuple(failing), tuple(working)
