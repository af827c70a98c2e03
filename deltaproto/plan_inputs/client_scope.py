"""The clients of the planned tables, and the check of plans against policy and clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import NamedTuple

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.resolve import ClientAtVersion, newest_version_of
from deltaproto.errors import TableError, UsageError
from deltaproto.plan_inputs.planners import UNDECLARED, is_undeclared, target_planner
from deltaproto.planning.impact import client_changes, describe_change, is_worse
from deltaproto.planning.plan import IN_THE_LOG, Blocked, ClientChange, Plan
from deltaproto.planning.policy_impact import (
    UnpredictableError,
    assess_policy_impact,
    describe_fixes,
    explain_unmet,
    predict_facts,
)
from deltaproto.planning.policy_target import build_target
from deltaproto.planning.request import PlanInput, approvable_goal
from deltaproto.planning.search.cost import compute_cost
from deltaproto.planning.search.goals import TableClient
from deltaproto.planning.target import Requirements
from deltaproto.policy.document import Policy, PolicyErrors
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import (
    DEFAULT_ACCESS,
    load_local_catalog,
)
from deltaproto.policy.rules.lowest_required import RULE as LOWEST_RULE
from deltaproto.policy.table_check import TableCheck
from deltaproto.protocol.writers import identify_name


class PolicyCheckedPlan(NamedTuple):
    """A plan after the policy check."""

    plan: Plan
    """blocked if its result would violate the policy; has a warning for each loss"""
    losses: tuple[ClientChange, ...] = ()
    """accesses that the policy's clients lose without approval, or that clients seen lose"""
    now: TableCheck | None = None
    """the check of the table before the plan; None without a policy"""


class SeenUse(NamedTuple):
    """One client that was seen to use a table."""

    id: str | None
    """None: an unidentified program"""
    version: str | None
    """None: unknown"""
    name: str
    """the name in outputs"""
    access: tuple[Access, ...]
    """may be empty: unknown"""
    principals: str
    """on whose behalf it was used, how recently, and when it is expected again"""


SeenUses = Callable[[str], Collection[SeenUse] | None]
"""returns the uses of the table at a location; None: they were not counted"""


class ClientScope:
    """Determines the clients of each table.

    Args:
        named: clients from the command line, which apply to every table.
        access: their access.
        seen: the clients that were seen to use a table; they count as clients of the table.

    Raises:
        UsageError: for an unknown client, with its position in a policy.
    """

    def __init__(
        self,
        policy: Policy | None,
        files: Iterable[str],
        named: Iterable[str],
        access: tuple[Access, ...] = DEFAULT_ACCESS,
        seen: SeenUses | None = None,
    ) -> None:
        self.policy, self._seen = policy, seen
        self._catalog = load_local_catalog(files, policy)
        self._named = [
            TableClient(self._catalog.resolve(text), access) for text in dict.fromkeys(named)
        ]
        self._declared: dict[str, ClientAtVersion] = {}
        if policy is not None:
            errors = PolicyErrors(policy.source)
            for declared in policy.declared():
                with errors.at(declared.position):
                    self._declared[declared.text] = self._catalog.resolve(declared.text)
            errors.check()
        self._all_clients: tuple[TableClient, ...] | None = None
        self._with_writers: dict[tuple[str, ...], tuple[TableClient, ...]] = {}
        self.checker = None if policy is None else Checker(policy, self._catalog)
        """checks plans against the policy; None without a policy"""

    @property
    def any(self) -> bool:
        """True if any client was named."""
        return bool(self._named or self.policy is not None or self._seen is not None)

    def of(
        self, table: str, location: str, others: tuple[str, ...] = ()
    ) -> tuple[TableClient, ...]:
        """Return the clients of one table; `others` are further names of it."""
        declared: list[TableClient] = []
        if self.checker is not None:
            for each in self.checker.settings(table, location, others).clients or ():
                declared.append(TableClient(self._declared[each.text], each.access, each.label))
        clients = [*self._named, *declared]
        for use in (self._seen(location) or ()) if self._seen is not None else ():
            same = [number for number, one in enumerate(clients) if _is_use_of(use, one)]
            for number in same:
                label = "; ".join(filter(None, (clients[number].label, use.principals)))
                clients[number] = clients[number]._replace(label=label)
            allowed = {access for number in same for access in clients[number].access}
            missing = tuple(access for access in use.access if access not in allowed)
            if (missing or not same) and (candidate := self._resolve_seen(use)) is not None:
                label = f"{UNDECLARED}; {use.principals}"
                clients.append(TableClient(candidate, missing or DEFAULT_ACCESS, label))
        return tuple(clients)

    def _resolve_seen(self, use: SeenUse) -> ClientAtVersion | None:
        if use.id is None:
            return None
        try:
            return self._catalog.resolve(use.name)
        except UsageError:
            # The version is missing, or no range of the client's entry contains it.
            return None

    def _seen_notes(self, inputs: PlanInput) -> Iterator[str]:
        """Yield a warning for each client that was seen and is not declared."""
        if self._seen is None:
            return
        uses = self._seen(inputs.location)
        if uses is None:
            yield (
                "The inventory of --seen has not counted the commits of this table, so others than "
                "the declared clients may use it: run discover."
            )
        for use in uses or ():
            among = [each for each in inputs.clients if _is_use_of(use, each)]
            undeclared = [each for each in among if is_undeclared(each)]
            if among and not undeclared:
                continue
            access = ", ".join(access for each in undeclared for access in each.access)
            for_ = f" for {access}" if among != undeclared else ""
            what = f"{use.name} uses this table and is not declared{for_} ({use.principals})"
            yield f"{what}." if among else f"{what}; the effect on it is unknown."

    def with_clients(self, inputs: PlanInput) -> PlanInput:
        """Return a table with its clients.

        If none were named: the newest version of every known client, and the versions that recent
        commits name.
        """
        if self.any:
            clients = self.of(inputs.name, inputs.location, inputs.other_names)
            return inputs._replace(clients=clients, everybody=False)
        found = self._with_writers.get(inputs.engines)
        if found is None:
            # Tables with the same writers share their clients, as planning is cached by them.
            writers = dict(_writers(inputs.engines, self._catalog))
            others = (c for c in self.all_clients() if str(c.candidate.reference) not in writers)
            found = self._with_writers[inputs.engines] = (*others, *writers.values())
        return inputs._replace(clients=found, everybody=True)

    def with_target(self, inputs: PlanInput) -> PlanInput:
        """Return a table with what the policy requires of it."""
        assert self.checker is not None
        assert inputs.facts is not None
        return inputs._replace(target=build_target(self.checker, inputs.facts))

    def check_plan(self, plan: Plan, inputs: PlanInput) -> PolicyCheckedPlan:
        """Check the result of a plan for `inputs` against the policy and the clients seen."""
        now = None
        if self.checker is not None and inputs.facts is not None:
            now = self.checker.check(inputs.facts)
        checked = PolicyCheckedPlan(plan) if now is None else self._ruled(plan, inputs, now)
        notes = self._seen_notes(inputs)
        lost = filter(is_worse, filter(is_undeclared, checked.plan.clients))
        plan = checked.plan._replace(warnings=(*checked.plan.warnings, *notes))
        return PolicyCheckedPlan(plan, (*checked.losses, *lost), now)

    def plan_for_policy(self, inputs: PlanInput) -> PolicyCheckedPlan:
        """Plan what the policy requires of a table with its clients, and check the result."""
        ready = self.with_target(inputs)
        return self.check_plan(target_planner(ready), ready)

    def applicable_to(self, inputs: PlanInput) -> Hashable | None:
        """Return which parts of the policy apply to a table, by its name and location.

        None: every table may differ.
        """
        if self._seen is not None:
            return None
        if self.checker is None or inputs.facts is None:
            return ()
        facts = inputs.facts
        return self.checker.applicable_key(facts.table, facts.location, facts.other_names)

    def group_of(self, inputs: PlanInput) -> Hashable | None:
        """Return a key for the influence of clients and policy on a plan's result.

        Plans of otherwise equal tables differ only if their keys differ. None: every table may
        differ.
        """
        applicable = self.applicable_to(inputs)
        if applicable is None or self.checker is None or inputs.facts is None:
            return applicable
        facts = inputs.facts
        return (
            applicable,
            facts.needs,
            tuple(sorted(facts.configuration.items())),
            tuple(sorted(facts.isolation.items())),
            tuple(finding._replace(table="") for finding in facts.findings),
            facts.complete,
            facts.clustering,
            facts.older,
        )

    def observe(self, checked: PolicyCheckedPlan, inputs: PlanInput) -> None:
        """Record which parts of the policy `inputs` uses. Call it once for each planned table.

        Args:
            checked: the plan for `inputs`, or for a table of the same group.
        """
        if self.checker is not None and inputs.facts is not None and checked.now is not None:
            facts = inputs.facts
            self.checker.observe(
                checked.now._replace(
                    table=facts.table, location=facts.location, other_names=facts.other_names
                )
            )

    def observe_unreadable(self, table: str, error: TableError) -> None:
        """Record which parts of the policy a table uses that could not be planned."""
        if self.checker is not None:
            self.checker.observe(self.checker.check_unreadable(table, error))

    def _ruled(self, plan: Plan, inputs: PlanInput, now: TableCheck) -> PolicyCheckedPlan:
        assert self.checker is not None
        assert inputs.facts is not None
        if not plan.steps:
            return PolicyCheckedPlan(_with_policy_outcome(plan, now, now))
        try:
            after = predict_facts(inputs.facts, inputs.table, plan.steps, plan)
        except UnpredictableError as error:
            why = f"the result cannot be checked against the policy: {error}"
            return PolicyCheckedPlan(
                _block_plan(plan, inputs, [Blocked(None, why, "plan without --policy")])
            )
        found = assess_policy_impact(self.checker, inputs.facts, after, approvable_goal(plan))
        if (wider := _widen_target(inputs, found.then)) is not None:
            return self._ruled(target_planner(wider), wider, now)
        loses = "would lose" if found.violations else "loses"
        notes = [
            f"The policy's client {loses} access: {describe_change(one)}."
            for one, _ in found.unapproved
        ]
        notes += [
            f"{ruling.text}." for ruling in found.rulings if ruling.approved or ruling.near_misses
        ]
        if found.hidden:
            notes.append(f"The policy hides findings on the result: {found.hidden}.")
        plan = plan._replace(warnings=(*plan.warnings, *notes))
        broken = [
            Blocked(each.feature, f"the result would violate the policy: {each.message}", each.hint)
            for each in found.violations
            # With the policy as target, what drops cannot fix stays violated.
            if inputs.target is None or each.rule != LOWEST_RULE.id
        ]
        unapproved = tuple(change for change, _ in found.unapproved)
        if broken:
            plan = _with_policy_outcome(_block_plan(plan, inputs, broken), now, now)
        else:
            assert found.before is not None
            assert found.then is not None
            # Neither of these depends on past commits.
            plan = _with_policy_outcome(plan, found.before, found.then)
        return PolicyCheckedPlan(plan, unapproved)

    def all_clients(self) -> tuple[TableClient, ...]:
        """Every catalog client at its newest version, if none were named."""
        if self._all_clients is None:
            self._all_clients = tuple(newest_clients(self._catalog))
        return self._all_clients


def _is_use_of(use: SeenUse, client: TableClient) -> bool:
    reference = client.candidate.reference
    return reference.id == use.id and use.version in (None, reference.version)


def _with_policy_outcome(plan: Plan, before: TableCheck, after: TableCheck) -> Plan:
    """Add to a plan for a policy the findings that it fixes and the requirements that it leaves
    unmet.
    """
    if plan.goal.get("kind") != "policy":
        return plan
    return plan._replace(
        fixes=tuple(describe_fixes(before, after)),
        unmet=tuple(dict.fromkeys(explain_unmet(after, plan.unmet))),
    )


def _widen_target(inputs: PlanInput, then: TableCheck | None) -> PlanInput | None:
    """Return the table with a wider target if the plan leaves features that nothing needs.

    Examples: a feature that the plan itself switches off, or the checkpointProtection left by a
    drop.
    """
    if inputs.target is None or then is None:
        return None
    missing = inputs.target.missing
    left = {
        finding.feature
        for finding in then.findings
        if finding.rule == LOWEST_RULE.id and finding.feature and not finding.detail
    }
    more = Requirements(absent=frozenset(left) - missing.absent)
    if not more.absent:
        return None
    return inputs._replace(target=inputs.target._replace(missing=missing.merged_with(more)))


def _block_plan(plan: Plan, inputs: PlanInput, why: list[Blocked]) -> Plan:
    return plan._replace(
        steps=(),
        protocol_after=plan.protocol_before,
        cost=compute_cost((), inputs.engine, inputs.files),
        blocked=(*plan.blocked, *why),
        clients=client_changes(inputs, inputs.needs),
    )


def newest_clients(catalog: ClientCatalog) -> Iterator[TableClient]:
    """Yield every client at its newest known version."""
    for client in catalog.clients():
        candidate = newest_version_of(client.newest, client)
        offers = _offered_accesses(candidate)
        if offers:
            yield TableClient(candidate, offers)


def _writers(engines: Iterable[str], catalog: ClientCatalog) -> Iterator[tuple[str, TableClient]]:
    """Yield the clients, as references, that engines' names identify with a version."""
    for name in engines:
        client, version = identify_name(name)
        if client is None or version is None:
            continue
        try:
            candidate = catalog.resolve(f"{client}@{version}")
        except UsageError:
            continue
        offers = _offered_accesses(candidate)
        if offers:
            yield str(candidate.reference), TableClient(candidate, offers, IN_THE_LOG)


def _offered_accesses(candidate: ClientAtVersion) -> tuple[Access, ...]:
    return tuple(a for a in DEFAULT_ACCESS if any(path.offers(a) for path in candidate.paths))
