"""Load a policy from a file."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from deltaproto.counts import with_article
from deltaproto.policy.document import reader, settings, source
from deltaproto.policy.document.clients import (
    parse_access,
    parse_client,
    parse_declared_clients,
    parse_definitions,
)
from deltaproto.policy.document.errors import Fault, Faults, PolicyError, Position, parse_each
from deltaproto.policy.document.model import Approval, ClientFile, Policy, Waiver
from deltaproto.policy.document.patterns import EVERYTHING
from deltaproto.policy.document.rollout import parse_rollout
from deltaproto.policy.document.source import Node

if TYPE_CHECKING:
    import datetime

VERSION = 1
_POLICY_VERSION = "policy_version"
_PROFILES = "profiles"
_FIELDS = (
    _POLICY_VERSION,
    "define",
    "catalogues",
    "clients",
    _PROFILES,
    "tables",
    "severities",
    "waivers",
    "approvals",
    "rollout",
)
_WAIVER = ("rule", "table", "feature", "client", "reason", "expires")
_APPROVAL = (
    *("client", "access", "table", "feature", "goal"),
    *("approver", "reason", "ticket", "expires"),
)
_APPROVAL_NEEDS = ("client", "access", "table", "approver", "reason", "expires")


def load_policy(path: str, *, rules: Collection[str], today: datetime.date) -> Policy:
    """Load the policy at `path`. `rules` are the valid rule ids for severities and waivers.

    Clients are not looked up and client files are not opened. Waivers that expired before `today`
    are kept separately, because they no longer apply.

    Raises:
        PolicyError: the file cannot be read or is not a valid policy.
    """
    try:
        return _parse_policy(source.parse_file(path), path, rules, today)
    except Fault as fault:
        raise PolicyError.of(path, fault) from None


def _parse_policy(root: Node, path: str, rules: Collection[str], today: datetime.date) -> Policy:
    _check_version(root)
    faults, policy = Faults(), Policy(source=path)
    profiles: settings.Profiles | None = {}
    named: list[tuple[str, Position]] = []
    # Profiles first: patterns name them, in any order.
    pairs = sorted(reader.read_pairs(root), key=lambda pair: pair[0].text != _PROFILES)
    for key, node in pairs:
        with faults.catching():
            reader.require_known_key(key, _FIELDS)
            if key.text == _PROFILES:
                profiles = None
                profiles = settings.parse_profiles(node, rules)
                named = [(name.text, name.position) for name, _ in reader.read_pairs(node)]
            elif key.text == "tables":
                entries = settings.parse_table_entries(node, rules, profiles)
                policy = policy._replace(tables=entries)
            else:
                policy = _parse_key(policy, key.text, node, rules, today)
    faults.check()
    _check_clients(policy)
    used = {entry.profile for entry in policy.tables}
    return policy._replace(unused_profiles=tuple(each for each in named if each[0] not in used))


def _parse_key(
    policy: Policy, name: str, node: Node, rules: Collection[str], today: datetime.date
) -> Policy:
    """Return the policy with one more key of the file."""
    match name:
        case "define":
            return policy._replace(definitions=parse_definitions(node))
        case "catalogues":
            return policy._replace(client_files=_parse_client_files(node))
        case "clients":
            return policy._replace(clients=parse_declared_clients(node))
        case "severities":
            return policy._replace(severities=settings.parse_severities(node, rules))
        case "waivers":
            waivers = _parse_waivers(node, rules)
            return policy._replace(
                waivers=tuple(each for each in waivers if each.expires >= today),
                expired=tuple(each for each in waivers if each.expires < today),
            )
        case "approvals":
            return policy._replace(approvals=_parse_approvals(node))
        case "rollout":
            return policy._replace(rollout=parse_rollout(node))
    return policy


def _check_version(root: Node) -> None:
    """Check the version first, because a later version may have other keys."""
    begin = f'write "{_POLICY_VERSION}: {VERSION}"'
    for key, node in reader.read_pairs(root, "a mapping"):
        if key.text == _POLICY_VERSION:
            version = reader.read_integer(node, 1, 999)
            if version != VERSION:
                raise Fault(
                    f"{_POLICY_VERSION} {version} is not supported",
                    f"{begin}, or use a later deltaproto",
                    node.position,
                )
            return
    raise Fault(f"{_POLICY_VERSION} is missing", begin, root.position)


def _check_clients(policy: Policy) -> None:
    for entry in policy.tables:
        twice = policy.clients is not None and entry.settings.clients is not None
        if twice and entry.pattern in EVERYTHING:
            raise Fault(
                "the clients of all tables are declared twice",
                "declare them only under the key clients",
                entry.position,
            )


def _parse_client_files(node: Node) -> tuple[ClientFile, ...]:
    return tuple(
        ClientFile(reader.read_address(item, "the path of a file"), item.position)
        for item in reader.read_items(node, "a list of files")
    )


def _parse_waivers(node: Node, rules: Collection[str]) -> tuple[Waiver, ...]:
    items = reader.read_items(node, "a list of waivers")
    return parse_each(lambda item: _parse_waiver(item, rules), items)


def _parse_waiver(node: Node, rules: Collection[str]) -> Waiver:
    values = reader.read_fields(node, _WAIVER, required=("rule", "reason", "expires"))
    rule = settings.parse_rule(values["rule"], rules)
    return Waiver(
        rule=rule,
        table=settings.parse_pattern(values["table"]) if "table" in values else EVERYTHING[-1],
        feature=_parse_feature(values["feature"], rule) if "feature" in values else None,
        client=parse_client(values["client"]).text if "client" in values else None,
        reason=reader.read_text(values["reason"], "a reason", prose=True),
        expires=reader.read_date(values["expires"]),
        position=node.position,
    )


def _parse_approvals(node: Node) -> tuple[Approval, ...]:
    return parse_each(_parse_approval, reader.read_items(node, "a list of approvals"))


def _parse_approval(node: Node) -> Approval:
    values = reader.read_fields(node, _APPROVAL, required=_APPROVAL_NEEDS)
    if ("feature" in values) == ("goal" in values):
        raise Fault(
            "an approval needs either a feature or a goal",
            'add "feature:" with the feature that causes the loss, or "goal:" as the plan shows it',
            node.position,
        )

    def words(name: str) -> str | None:
        wanted = with_article(name)
        return reader.read_text(values[name], wanted, prose=True) if name in values else None

    return Approval(
        client=parse_client(values["client"]).text,
        access=parse_access(values["access"]),
        table=settings.parse_pattern(values["table"]),
        feature=settings.parse_feature(values["feature"]) if "feature" in values else None,
        goal=words("goal"),
        approver=words("approver") or "",
        reason=words("reason") or "",
        ticket=words("ticket"),
        expires=reader.read_date(values["expires"]),
        position=node.position,
    )


def _parse_feature(node: Node, rule: str) -> str:
    from deltaproto.policy.rules.unknown_feature import RULE

    if rule == RULE.id:
        return reader.read_text(node, "the name of a feature")
    return settings.parse_feature(node)
