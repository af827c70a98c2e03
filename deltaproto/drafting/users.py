"""Who uses the tables that are planned for: clients of the command line and of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deltaproto.checking.check import Checker
from deltaproto.checking.predicted import UnpredictableError, effect, facts_after
from deltaproto.checking.site import DEFAULT_ACCESS, site_catalogue
from deltaproto.clients.candidate import Candidate, latest
from deltaproto.clients.capability import Access
from deltaproto.clients.catalogue import Catalogue
from deltaproto.errors import UsageError
from deltaproto.planning.cost import cost
from deltaproto.planning.given import Given, User
from deltaproto.planning.impact import in_words, told
from deltaproto.planning.plan import Blocked, ClientChange, Plan
from deltaproto.policy.document import Policy, PolicyError, settings_for


class Ruled(NamedTuple):
    """A plan checked against a policy."""

    plan: Plan
    """blocked where its result violates the policy; it warns of each loss"""
    losses: tuple[ClientChange, ...] = ()
    """accesses that the policy's clients lose without approval"""


class Users:
    """The clients of each table.

    Args:
        named: clients of the command line, which hold for every table.
        access: what they do.

    Raises:
        UsageError: for a client that is not known; with its place in a policy.
    """

    def __init__(
        self,
        policy: Policy | None,
        files: Iterable[str],
        named: Iterable[str],
        access: tuple[Access, ...] = DEFAULT_ACCESS,
    ) -> None:
        self._policy = policy
        self._catalogue = site_catalogue(files, policy)
        self._named = [User(self._catalogue.resolve(text), access) for text in dict.fromkeys(named)]
        self._declared: dict[str, Candidate] = {}
        mistakes = []
        for declared in policy.declared() if policy is not None else ():
            try:
                self._declared[declared.text] = self._catalogue.resolve(declared.text)
            except UsageError as error:
                assert policy is not None
                mistakes.append(
                    PolicyError(policy.source, declared.position, error.message, error.hint)
                )
        if mistakes:
            raise mistakes[0].joined(mistakes[1:])
        self._everybody: tuple[User, ...] | None = None
        self.checker = None if policy is None else Checker(policy, self._catalogue)
        """checks plans against the policy; None without one"""

    @property
    def any(self) -> bool:
        """Whether somebody was named at all."""
        return bool(self._named or self._policy is not None)

    def of(self, table: str, location: str) -> tuple[User, ...]:
        """The clients of one table."""
        declared: list[User] = []
        if self._policy is not None:
            for each in settings_for(self._policy, table, location).clients or ():
                declared.append(User(self._declared[each.text], each.access, each.label))
        return (*self._named, *declared)

    def on(self, given: Given) -> Given:
        """A table with its clients; with all that are known, where nobody was named."""
        clients = self.of(given.name, given.location) if self.any else self.everybody()
        return given._replace(clients=clients, everybody=not self.any)

    def ruled(self, plan: Plan, given: Given) -> Ruled:
        """Check the result of a plan for `given` against the policy, where there is one."""
        if self.checker is None or given.facts is None:
            return Ruled(plan)
        self.checker.observe(self.checker.check(given.facts))
        if not plan.steps:
            return Ruled(plan)
        try:
            after = facts_after(given.facts, given.table, plan.steps, plan)
        except UnpredictableError as error:
            why = f"the result cannot be checked against the policy: {error}"
            return Ruled(_blocked(plan, given, [Blocked(None, why, "plan without --policy")]))
        found = effect(self.checker, given.facts, after, plan.goal_text)
        loses = "would lose" if found.violations else "loses"
        told = [
            f"The policy's client {loses} access: {in_words(one)}." for one, _ in found.unapproved
        ]
        told += [f"{ruling.text}." for ruling in found.rulings if ruling.approved or ruling.near]
        if found.hidden:
            told.append(f"The policy keeps findings on the result out: {found.hidden}.")
        plan = plan._replace(warnings=(*plan.warnings, *told))
        broken = [
            Blocked(each.feature, f"the result violates the policy: {each.message}", each.hint)
            for each in found.violations
        ]
        unapproved = tuple(change for change, _ in found.unapproved)
        return Ruled(_blocked(plan, given, broken) if broken else plan, unapproved)

    def everybody(self) -> tuple[User, ...]:
        """Every client of the catalogue at its newest version, where nobody was named."""
        if self._everybody is None:
            self._everybody = tuple(newest(self._catalogue))
        return self._everybody


def _blocked(plan: Plan, given: Given, why: list[Blocked]) -> Plan:
    return plan._replace(
        steps=(),
        protocol_after=plan.protocol_before,
        cost=cost((), given.engine, given.files),
        blocked=(*plan.blocked, *why),
        clients=told(given, given.needs),
    )


def newest(catalogue: Catalogue) -> Iterator[User]:
    """Every client in the newest version that is known."""
    for client in catalogue.clients():
        candidate = latest(client.newest, client)
        offers = tuple(a for a in DEFAULT_ACCESS if any(path.offers(a) for path in candidate.paths))
        if offers:
            yield User(candidate, offers)
