"""The lint rules of `inspect` and the rules of a policy, one file each.

A rule module has a `RULE` and a docstring that is its page. Unless the finding is created
elsewhere, it also has a `check` of a `RuleContext` or, for a policy rule, an `examine` of a
`PolicyContext`. To add a rule, add a file and its name here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from deltaproto.policy.context import RuleContext
from deltaproto.policy.finding import Finding, Rule, page_text
from deltaproto.policy.rules import (
    byte_order_mark,
    catalog_managed,
    checkpoint_protection,
    checkpoint_unreadable,
    checksum_contradicts,
    commit_unreadable,
    commit_without_timestamp,
    constraint_constructs,
    doubtful_columns,
    feature_missing,
    file_layout,
    file_size_missing,
    files_without_row_ids,
    implied_features_lost,
    incomplete_adds,
    invalid_isolation_level,
    invalid_property_value,
    invalid_protocol,
    misnamed_log_file,
    misread_bounds,
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
    stored_protocol_request,
    stream_on_two_clusters,
    unknown_feature,
    unrequested_feature,
    unused_feature,
    unusual_type,
    value_in_another_case,
    writer_version_one,
)

if TYPE_CHECKING:
    from deltaproto.policy.context import PolicyContext

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
    invalid_property_value,
    checkpoint_protection,
    schema_missing,
    writer_version_one,
    reader_refused,
    readers_disagree,
    stream_on_two_clusters,
    checkpoint_unreadable,
    commit_unreadable,
    checksum_contradicts,
    several_protocols,
    no_commit_files,
    misnamed_log_file,
    byte_order_mark,
    file_size_missing,
    incomplete_adds,
    file_layout,
    unusual_type,
    doubtful_columns,
    constraint_constructs,
    misread_bounds,
    stored_protocol_request,
    files_without_row_ids,
    commit_without_timestamp,
    value_in_another_case,
)

# Policy rules have `examine`. They are imported on first use, so a run that only inspects does
# not pay for them.
_POLICY_MODULES = (
    "client_refused",
    "client_wrong",
    "client_unknown",
    "above_ceiling",
    "forbidden_feature",
    "required_feature",
    "below_floor",
    "isolation_differs",
    "clustering_differs",
    "lowest_required",
    "default_missing",
    "stream_at_risk",
    "share_narrowed",
    "drifted",
    "lost_since_baseline",
    "not_in_baseline",
    "changed_since_baseline",
    "enabled_since_baseline",
    "gone_since_baseline",
    "unmatched_pattern",
    "policy_requires_nothing",
    "expired_exception",
    "policy_override",
    "unknown_property",
    "contradictory_requirements",
    "deleted_rows_read",
    "log_not_read",
    "seen_not_declared",
    "declared_not_seen",
    "seen_older_version",
    "rarely_seen",
    "changes_with_upgrade",
    "entry_without_log",
    "log_without_entry",
    "entry_of_another_table",
    "entry_columns_differ",
    "several_names",
    "inside_managed_location",
    "entry_protocol_differs",
)


@cache
def _modules() -> tuple[ModuleType, ...]:
    """Import every module with a rule."""
    return (*_MODULES, *_policy_modules())


@cache
def _policy_modules() -> tuple[ModuleType, ...]:
    return tuple(importlib.import_module(f"{__name__}.{name}") for name in _POLICY_MODULES)


def all_rules() -> tuple[Rule, ...]:
    """Return every rule, sorted by id."""
    return tuple(rule for rule, _ in rule_pages())


def rule_pages() -> tuple[tuple[Rule, str], ...]:
    """Return every rule with its page, sorted by id."""
    found = [(module.RULE, page_text(module.__doc__)) for module in _modules()]
    return tuple(sorted(found, key=lambda each: each[0].id))


def find_rule(text: str) -> tuple[Rule, str] | None:
    """Find a rule and its page by id or name, ignoring case."""
    wanted = text.strip().casefold()
    for module in _modules():
        if wanted in (module.RULE.id.casefold(), module.RULE.name.casefold()):
            return module.RULE, page_text(module.__doc__)
    return None


def similar_rules(text: str) -> tuple[Rule, ...]:
    """Return up to three rules whose id or name resembles an unknown one."""
    import difflib

    rules = {name.casefold(): rule for rule in all_rules() for name in (rule.id, rule.name)}
    near = difflib.get_close_matches(text.strip().casefold(), rules, n=3, cutoff=0.5)
    return tuple(dict.fromkeys(rules[name] for name in near))


def run_table_rules(subject: RuleContext) -> Iterator[Finding]:
    """Yield every lint rule's findings, in rule order."""
    for module in _MODULES:
        if hasattr(module, "check"):
            yield from module.check(subject)


def run_policy_rules(case: PolicyContext) -> Iterator[Finding]:
    """Yield every policy rule's findings, in rule order."""
    for examine in _policy_checks():
        yield from examine(case)


@cache
def _policy_checks() -> tuple[Callable[[PolicyContext], Iterable[Finding]], ...]:
    return tuple(module.examine for module in _policy_modules() if hasattr(module, "examine"))
