"""A site's policy, and the client catalog extended by its files and its policy."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltaproto.clients.catalog import ClientCatalog, shipped_client_ids
from deltaproto.clients.entry import parse_client
from deltaproto.clients.members import EntryError
from deltaproto.clients.model import Access, Client
from deltaproto.clients.resolve import parse_reference
from deltaproto.errors import UsageError
from deltaproto.policy.document import Policy, PolicyError, PolicyErrors, Position, load_policy
from deltaproto.policy.document.clients import parse_plain
from deltaproto.policy.document.errors import Fault
from deltaproto.policy.document.model import Declared
from deltaproto.policy.document.source import EMPTY_FILE, parse_file
from deltaproto.policy.rules import all_rules

DEFAULT_ACCESS = (Access.READ, Access.APPEND)
"""default access of a client"""
_FORM = "write one client (id, versions, ranges), or a list of them under `clients`"


def load_local_catalog(files: Iterable[str], policy: Policy | None = None) -> ClientCatalog:
    """Return the built-in clients, overridden by files and then by the policy.

    Raises:
        UsageError: with the file and the invalid member.
    """
    own: dict[str, Client] = {}
    if policy is not None:
        folder = Path(policy.source).parent
        for named in policy.client_files:
            _merge_clients(own, _load_clients(str(folder / named.path)))
    for file in files:
        _merge_clients(own, _load_clients(file))
    if policy is not None:
        errors = PolicyErrors(policy.source)
        for definition in policy.definitions:
            with errors.at(definition.position):
                own[definition.id] = parse_client(definition.plain, definition.id)
        errors.check()
    for client in own.values():
        taken = {alias.casefold() for alias in client.aliases} & set(shipped_client_ids())
        if taken - {client.id.casefold()}:
            raise EntryError(
                f"{client.id}: the alias {min(taken)} is the id of another client",
                f"to override that client, declare it with the id {min(taken)}",
            )
    return ClientCatalog(own.values())


def load_local_policy(path: str) -> Policy:
    """Load the policy from a file; waivers are evaluated by today's date.

    Raises:
        UsageError: with the file and the invalid line.
    """
    rules = [rule.id for rule in all_rules()]
    return load_policy(path, rules=rules, today=datetime.datetime.now(datetime.UTC).date())


def parse_accesses(texts: Iterable[str], flag: str) -> tuple[Access, ...]:
    """Parse client accesses, with or without commas.

    Args:
        flag: the option name for error messages.

    Raises:
        UsageError: for an invalid access.
    """
    found: dict[Access, None] = {}
    for word in (part.strip() for text in texts for part in text.split(",")):
        if word not in set(Access):
            raise UsageError(f"{flag}: unknown access {word}", f"use one of {', '.join(Access)}")
        found.setdefault(Access(word))
    return tuple(found)


def parse_declared(text: str) -> Declared:
    """Parse a client that is not declared in a policy."""
    reference = parse_reference(text)
    return Declared(text, *reference, DEFAULT_ACCESS, None, None, Position(0, 0))


def _merge_clients(own: dict[str, Client], more: Mapping[str, Client]) -> None:
    """Later files override earlier ones; entries with only measurements extend known clients."""
    for name, client in more.items():
        known = own.get(name)
        if known is not None and not client.ranges:
            client = known._replace(measured=(*known.measured, *client.measured))
        own[name] = client


def _load_clients(file: str) -> dict[str, Client]:
    try:
        content = parse_plain(parse_file(file))
    except Fault as fault:
        hint = _FORM if fault.problem == EMPTY_FILE else fault.hint
        raise PolicyError(file, fault.position, fault.problem, hint) from None
    entries = _entries(content)
    if entries is None:
        raise EntryError(f"{file}: the file has no clients", _FORM)
    found = [parse_client(entry, f"{file}: {_label(entry)}") for entry in entries]
    ids = [client.id.casefold() for client in found]
    if twice := [name for name in ids if ids.count(name) > 1]:
        raise EntryError(f"{file}: {twice[0]} is declared twice", "give each client its own id")
    return {client.id: client for client in found}


def _entries(content: Any) -> list[Any] | None:
    if not isinstance(content, Mapping):
        return None
    if "ranges" in content or "measured" in content:
        return [content]
    entries = content.get("clients")
    return entries if isinstance(entries, list) and entries else None


def _label(entry: Any) -> str:
    return str(entry.get("id", "a client")) if isinstance(entry, Mapping) else "a client"
