"""The lint rules on a table's protocol, one file each.

A rule module has a `RULE`, a docstring that is its page, and, unless the finding is made
elsewhere, a `check`. Adding a rule is adding a file and its name here.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from deltaproto.policy.finding import Finding
from deltaproto.policy.rule import Rule, page_text
from deltaproto.policy.rules import (
    catalog_managed,
    checkpoint_protection,
    checkpoint_unreadable,
    checksum_contradicts,
    feature_missing,
    implied_features_lost,
    invalid_isolation_level,
    invalid_protocol,
    no_commit_files,
    not_lowest,
    odd_legacy_pair,
    preview_feature,
    reader_feature_unlisted,
    reader_refused,
    readers_disagree,
    requirement_missing,
    schema_missing,
    several_protocols,
    unknown_feature,
    unrequested_feature,
    unused_feature,
)
from deltaproto.policy.subject import Subject

_MODULES: tuple[ModuleType, ...] = (
    invalid_protocol,
    reader_feature_unlisted,
    feature_missing,
    requirement_missing,
    implied_features_lost,
    unrequested_feature,
    not_lowest,
    preview_feature,
    unknown_feature,
    unused_feature,
    odd_legacy_pair,
    catalog_managed,
    invalid_isolation_level,
    checkpoint_protection,
    schema_missing,
    reader_refused,
    readers_disagree,
    checkpoint_unreadable,
    checksum_contradicts,
    several_protocols,
    no_commit_files,
)


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by id."""
    return tuple(sorted((module.RULE for module in _MODULES), key=lambda rule: rule.id))


def find_rule(text: str) -> tuple[Rule, str] | None:
    """The rule with the id or name `text`, without regard to case, and its page."""
    wanted = text.strip().casefold()
    for module in _MODULES:
        if wanted in (module.RULE.id.casefold(), module.RULE.name.casefold()):
            return module.RULE, page_text(module.__doc__)
    return None


def lint(subject: Subject) -> Iterator[Finding]:
    """What every rule says about the table, in the order of the rules."""
    for module in _MODULES:
        if hasattr(module, "check"):
            yield from module.check(subject)
