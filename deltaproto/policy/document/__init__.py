"""The policy file: its model, its loader, and pattern matching."""

from deltaproto.policy.document.errors import PolicyError, PolicyErrors, Position
from deltaproto.policy.document.load import load_policy
from deltaproto.policy.document.merging import settings_for
from deltaproto.policy.document.model import Policy, PolicySettings
from deltaproto.policy.document.patterns import SAME_STORE, matches_table, normalize_location

__all__ = [
    "SAME_STORE",
    "Policy",
    "PolicyError",
    "PolicyErrors",
    "PolicySettings",
    "Position",
    "load_policy",
    "matches_table",
    "normalize_location",
    "settings_for",
]
