"""Words that the shell completes: features, clients, rules and properties."""

from __future__ import annotations

from collections.abc import Iterator

# Everything is imported when the shell asks.


def features() -> Iterator[str]:
    """Yield the names of all features."""
    from deltaproto.protocol.feature_catalog import all_features

    return (feature.name for feature in all_features())


def clients() -> Iterator[str]:
    """Yield every client of the catalog, and each of its paths, with its newest version."""
    from deltaproto.plan_inputs.client_scope import newest_clients
    from deltaproto.policy.local_catalog import load_local_catalog

    for client in newest_clients(load_local_catalog(())):
        reference = client.candidate.reference
        paths = [path.name for path in client.candidate.paths if path.name]
        yield str(reference)
        yield from (str(reference._replace(path=path)) for path in paths)


def client_ids() -> Iterator[str]:
    """Yield the ids of all clients of the catalog."""
    from deltaproto.clients.catalog import shipped_client_ids

    return iter(shipped_client_ids())


def rules() -> Iterator[str]:
    """Yield the ids and names of all rules."""
    from deltaproto.policy.rules import all_rules

    return (text for rule in all_rules() for text in (rule.id, rule.name))


def properties() -> Iterator[str]:
    """Yield the table properties of Delta, each with the equals sign that follows."""
    from deltaproto.protocol.properties import CANONICAL_NAMES

    return (f"{name}=" for name in CANONICAL_NAMES.values())


def isolation_levels() -> Iterator[str]:
    """Yield the isolation levels that a table can declare."""
    from deltaproto.protocol.isolation import DECLARABLE_LEVELS

    return map(str, DECLARABLE_LEVELS)


def exceptions() -> Iterator[str]:
    """Yield the names of exceptions that conflicts raise."""
    from deltaproto.conflicts.operation import ExceptionName

    return map(str, ExceptionName)


def rollout_actions() -> Iterator[str]:
    """Yield the actions of `rollout`."""
    from deltaproto.execution.rollout_log import RolloutAction

    return map(str, RolloutAction)
