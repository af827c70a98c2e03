"""The policy file that `deltaproto discover --write-policy` writes or extends."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from deltaproto.errors import DeltaprotoError, UsageError
from deltaproto.fleet.seen.collect import Discovery
from deltaproto.fleet.seen.policy_draft import Draft, draft_policy, new_policy
from deltaproto.fleet.seen.policy_text import add_clients
from deltaproto.input_file import require_input
from deltaproto.policy.document import Policy
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import PolicySettings
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy

_NOWHERE = Position(0, 0)


class DraftedFile(NamedTuple):
    """A policy file before and after."""

    path: str
    before: str | None
    """None: it does not exist"""
    after: str
    draft: Draft

    @property
    def diff(self) -> str:
        """Return the difference as a unified diff; empty if nothing is added."""
        old = [] if self.before is None else self.before.splitlines()
        named = "/dev/null" if self.before is None else self.path
        lines = difflib.unified_diff(old, self.after.splitlines(), named, self.path, lineterm="")
        return "\n".join(lines)


def draft_file(path: str, found: Discovery, today: datetime) -> DraftedFile:
    """Draft the policy at `path`, or what an existing one does not declare yet.

    Everything else in an existing policy stays as it is: custom clients, waivers, approvals,
    settings and comments.

    Raises:
        UsageError: when an existing policy is invalid, or cannot be extended.
    """
    if not os.path.lexists(path):
        draft = draft_policy(found, load_local_catalog(()), None)
        after = new_policy(draft, found, today)
        _load(after, path)
        return DraftedFile(path, None, after, draft)
    policy = load_local_policy(path)
    with require_input(path) as file:
        before = file.read().decode()
    draft = draft_policy(found, load_local_catalog((), policy), policy)
    if not draft.clients:
        return DraftedFile(path, before, before, draft)
    after = add_clients(before, policy, draft)
    if "\r\n" in before:
        after = after.replace("\n", "\r\n")
    _require_kept(policy, _load(after, path), path)
    return DraftedFile(path, before, after, draft)


def _load(text: str, path: str) -> Policy:
    with tempfile.TemporaryDirectory(prefix="deltaproto-policy-") as folder:
        copy = os.path.join(folder, "policy.yaml")
        with open(copy, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        try:
            return load_local_policy(copy)
        except DeltaprotoError as error:
            raise UsageError(
                f"cannot add clients to {path}: {error.message.replace(copy, path)}",
                "give another FILE, and merge it",
            ) from None


def _require_kept(before: Policy, after: Policy, path: str) -> None:
    """Require that only clients were added.

    Raises:
        UsageError: when anything else of the policy would change.
    """
    settings = [
        {
            (each.pattern, each.profile): each.settings._replace(clients=None)
            for each in policy.tables
        }
        for policy in (before, after)
    ]
    kept = (
        _without_positions(before.definitions) == _without_positions(after.definitions)
        and _without_positions(before.client_files) == _without_positions(after.client_files)
        and _without_positions(before.waivers) == _without_positions(after.waivers)
        and _without_positions(before.expired) == _without_positions(after.expired)
        and _without_positions(before.approvals) == _without_positions(after.approvals)
        and before.severities == after.severities
        and before.rollout == after.rollout
        and all(
            _plain(settings[1].get(pattern)) == _plain(value)
            for pattern, value in settings[0].items()
        )
        and _contains(after, before)
    )
    if not kept:
        raise UsageError(
            f"cannot add clients to {path} without changing the rest of it",
            "give another FILE, and merge it",
        )


def _without_positions(entries: Iterable[NamedTuple]) -> list[str]:
    return [repr(each._replace(position=_NOWHERE)) for each in entries]


def _plain(settings: PolicySettings | None) -> str:
    """Return settings as text, with the positions of their windows left out."""
    if settings is None:
        return ""
    windows = settings.maintenance_windows
    kept = repr(settings._replace(maintenance_windows=None))
    return f"{kept} {windows and _without_positions(windows)}"


def _contains(after: Policy, before: Policy) -> bool:
    """Return True if every list of clients has all that it had."""
    lists = [
        {
            None: policy.clients,
            **{(each.pattern, each.profile): each.settings.clients for each in policy.tables},
        }
        for policy in (after, before)
    ]
    return all(
        set(_without_positions(clients)) <= set(_without_positions(lists[0].get(key) or ()))
        for key, clients in lists[1].items()
        if clients is not None
    )
