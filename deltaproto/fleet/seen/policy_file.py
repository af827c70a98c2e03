"""The policy file that `deltaproto discover --write-policy` writes or extends."""

from __future__ import annotations

import difflib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from deltaproto.errors import DeltaprotoError, UsageError
from deltaproto.fleet.seen.collect import Discovery
from deltaproto.fleet.seen.policy_draft import (
    Draft,
    DraftedClient,
    client_lines,
    draft_policy,
    new_policy,
)
from deltaproto.input_file import require_input
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Policy, PolicySettings
from deltaproto.policy.document.patterns import EVERYTHING
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
        """The difference as a unified diff; empty if nothing is added."""
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
            _settings_text(settings[1].get(pattern)) == _settings_text(value)
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


def _settings_text(settings: PolicySettings | None) -> str:
    """Return settings as text, with the positions of their windows left out."""
    if settings is None:
        return ""
    windows = settings.maintenance_windows
    kept = repr(settings._replace(maintenance_windows=None))
    return f"{kept} {windows and _without_positions(windows)}"


def _contains(after: Policy, before: Policy) -> bool:
    """Return True if every list of clients still has all of its clients."""
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


_KEY = re.compile(
    r"(?P<indent> *)(?P<key>\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s#'\"][^#]*?)"
    r"\s*:(?P<rest>\s.*)?$"
)
_HINT = "write its lists of clients as lines that begin with a hyphen, or give another FILE"


def add_clients(text: str, policy: Policy, draft: Draft) -> str:
    """Return the text of a policy with the drafted clients.

    Args:
        policy: the policy with this text.

    Raises:
        UsageError: when a list of clients is not written as a block.
    """
    lines = text.splitlines()
    for some, clients in draft.by_pattern.items():
        _add_to_table(lines, some, clients)
    if draft.everywhere:
        # The clients of all tables are declared in one place.
        wide = [each.pattern for each in policy.tables if each.settings.clients is not None]
        pattern = next((each for each in EVERYTHING if each in wide), None)
        if policy.clients is None and pattern is not None:
            _add_to_table(lines, pattern, draft.everywhere)
        else:
            _add_to_list(lines, 0, len(lines), 0, draft.everywhere)
    return "\n".join([*lines, ""])


def _add_to_table(lines: list[str], pattern: str, clients: Sequence[DraftedClient]) -> None:
    place = _find(lines, 0, len(lines), 0, "tables")
    if place is None:
        lines += ["", "tables:"]
        place = len(lines) - 1, len(lines), ""
    start, end, rest = place
    if rest not in ("", "{}"):
        raise UsageError("the policy's tables are written on one line", _HINT)
    if rest:
        lines[start] = "tables:"
    indent = _indent_below(lines, start + 1, end, 0)
    found = _find(lines, start + 1, end, indent, pattern)
    if found is None:
        added = [
            f"{' ' * indent}{json.dumps(pattern, ensure_ascii=False)}:",
            f"{' ' * indent}  clients:",
            *client_lines(clients, " " * (indent + 4)),
        ]
        lines[end:end] = added
        return
    start, end, rest = found
    if rest:
        raise UsageError(f"the settings of {pattern} are written on one line", _HINT)
    _add_to_list(lines, start + 1, end, _indent_below(lines, start + 1, end, indent), clients)


def _add_to_list(
    lines: list[str], first: int, last: int, indent: int, clients: Sequence[DraftedClient]
) -> None:
    """Add to the list `clients` among these lines, or add the list."""
    found = _find(lines, first, last, indent, "clients")
    if found is None:
        at = last
        if not first:
            # Behind policy_version: the end of the file may belong to another key.
            version = _find(lines, 0, last, 0, "policy_version")
            at = version[0] + 1 if version is not None else last
        lines[at:at] = [f"{' ' * indent}clients:", *client_lines(clients, " " * (indent + 2))]
        return
    start, end, rest = found
    if rest not in ("", "[]"):
        raise UsageError("the policy has a list of clients on one line", _HINT)
    if rest:
        lines[start] = f"{' ' * indent}clients:"
    items = [line for line in lines[start + 1 : end] if line.lstrip().startswith("-")]
    within = len(items[0]) - len(items[0].lstrip()) if items else indent + 2
    lines[end:end] = client_lines(clients, " " * within)


def _find(
    lines: Sequence[str], first: int, last: int, indent: int, key: str
) -> tuple[int, int, str] | None:
    """Return the line of a key with this indentation, the end of its value, and the line's rest."""
    for number in range(first, last):
        found = _KEY.match(lines[number])
        if found is None or len(found["indent"]) != indent or _plain(found["key"]) != key:
            continue
        end = number + 1
        for below in range(number + 1, last):
            line = lines[below]
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            depth = len(line) - len(line.lstrip(" "))
            if depth < indent or (depth == indent and not line.lstrip().startswith("-")):
                break
            end = below + 1
        return number, end, _without_comment(found["rest"] or "")
    return None


def _plain(key: str) -> str:
    if key.startswith('"'):
        try:
            return str(json.loads(key))
        except ValueError:
            return key[1:-1]
    return key[1:-1].replace("''", "'") if key.startswith("'") else key


def _without_comment(rest: str) -> str:
    return re.sub(r"(?:^|\s)#.*", "", rest).strip()


def _indent_below(lines: Sequence[str], first: int, last: int, indent: int) -> int:
    """Return the indentation of the keys below a line with this indentation."""
    for line in lines[first:last]:
        if line.strip() and not line.lstrip().startswith("#"):
            return len(line) - len(line.lstrip(" "))
    return indent + 2
