"""Add clients to the text of a policy without changing anything else in it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from deltaproto.errors import UsageError
from deltaproto.fleet.seen.policy_draft import Draft, DraftedClient, client_lines
from deltaproto.policy.document.model import Policy
from deltaproto.policy.document.patterns import EVERYTHING

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
    """Return where a key of this indentation is, where its value ends, and the rest of its line."""
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
