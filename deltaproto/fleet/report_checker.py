"""The clients and rules of a fleet report."""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.errors import ErrorCode, TableError
from deltaproto.plan_inputs.client_scope import newest_clients
from deltaproto.policy.document import Policy
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy, parse_declared
from deltaproto.policy.usage import has_requirements


def report_checker(path: str | None, files: Sequence[str], *, allow_empty: bool) -> Checker:
    """Return the checker of a report: of the policy, or of every client in the catalog.

    Raises:
        UsageError: for an invalid policy or client file.
        TableError: no-tables, for a policy that requires nothing, unless `allow_empty`.
    """
    if path is not None:
        policy = load_local_policy(path)
        if not (has_requirements(policy) or allow_empty):
            raise TableError(
                ErrorCode.NO_TABLES,
                f"nothing to report: {path} declares no clients and no settings",
                "add clients, or settings under tables; pass --allow-empty to report anyway",
            )
        return Checker(policy, load_local_catalog(files, policy))
    catalog = load_local_catalog(files)
    everybody = [
        parse_declared(str(client.candidate.reference), client.access)
        for client in newest_clients(catalog)
    ]
    return Checker(Policy(source=""), catalog, asked=everybody)
