"""`check --after`: what changes for tables and clients when one client is upgraded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import PathVerdict, Verdict
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.errors import UsageError
from deltaproto.fleet.forecast.forecaster import affected_by, find_blocked
from deltaproto.fleet.forecast.records import Affected, severity_of
from deltaproto.fleet.forecast.upgrades import RUNTIME, has_feature, is_verified, requirements_with
from deltaproto.planning.impact import compare_clients
from deltaproto.planning.plan import ClientChange
from deltaproto.planning.search.goals import TableClient, cached_verdicts
from deltaproto.policy.context import TableFacts
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document import Policy
from deltaproto.policy.document.model import Declared
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding, Severity
from deltaproto.policy.rules.changes_with_upgrade import RULE
from deltaproto.policy.table_check import TableCheck
from deltaproto.protocol.automatic_upgrades import RULES, AutomaticUpgrade, TableAge

_LIMITS = (
    "--after: automatic upgrades are documented, not measured, and only affect managed tables of "
    "Unity Catalog; no record states what a runtime itself turns on in existing tables"
)
_KEEP_OFF = "upgrade it first, or keep the feature off; see `deltaproto forecast`"


def describe_limits(after: str, checker: Checker) -> list[str]:
    """Return the limits of what --after finds.

    Raises:
        UsageError: when no version of the client is declared, unless it is a Databricks Runtime.
    """
    assert isinstance(checker, UpgradeChecker)
    client = checker.target
    declared = client in checker.clients
    if not declared and client != RUNTIME:
        raise UsageError(
            f"nothing to compare {after} with: no version of {client} is declared",
            "declare the version that is in use, in the policy or as a client",
        )
    if client != RUNTIME:
        return []
    if declared:
        return [_LIMITS]
    return [_LIMITS, f"no version of {client} is declared, so none is known to delay upgrades now"]


class UpgradeChecker(Checker):
    """Check tables, and add what changes when every declared version of a client is upgraded.

    Args:
        target: the client at its new version.
        options: the options of `Checker`.

    Raises:
        like `describe_limits`.
    """

    def __init__(
        self, target: ClientAtVersion, policy: Policy, catalog: ClientCatalog, **options: Any
    ) -> None:
        super().__init__(policy, catalog, **options)
        self._target = target

    @property
    def target(self) -> str:
        """The id of the client."""
        return self._target.client.id

    def check(self, facts: TableFacts) -> TableCheck:
        """Evaluate one table, today and after the upgrade."""
        checked = super().check(facts)
        if facts.needs.protocol.violations():
            # Nothing can be predicted; the check has findings about it.
            return checked
        findings = [*self._accesses(facts, checked.verdicts), *self._upgrades(facts, checked)]
        return self.with_findings(checked, findings) if findings else checked

    def _accesses(
        self, facts: TableFacts, verdicts: Iterable[DeclaredVerdict]
    ) -> Iterator[Finding]:
        """Yield what the client itself gains or loses."""
        for judged in verdicts:
            if judged.client != self._target.client.id:
                continue
            before = judged.verdict
            then = self._then(facts, judged)
            if then.verdict is before.verdict:
                continue
            worse = Verdict.OK is before.verdict or Verdict.WRONG is then.verdict
            reason = (then if then.verdict is not Verdict.OK else before).reason
            yield RULE.finding(
                facts.table,
                f"{self._named}: {judged.access} is {then.verdict} instead of {before.verdict} "
                f"with {before.named}: {reason}",
                "do not upgrade it before this is solved" if worse else "nothing to do",
                client=before.named,
                severity=Severity.ERROR if worse else Severity.INFO,
                detail=str(judged.access),
            )

    def _then(self, facts: TableFacts, judged: DeclaredVerdict) -> PathVerdict:
        """Return the verdict of the new version on the same path."""
        path = judged.verdict.path
        by_path = dict(cached_verdicts(self._target, judged.access, facts.needs))
        # An unnamed path is the only one of its version.
        found = by_path.get(path) or by_path.get(None)
        if found is None and path is None:
            found = next(iter(by_path.values()), None)
        return found or PathVerdict(Verdict.REFUSED, (), f"this version has no {path} path")

    def _upgrades(self, facts: TableFacts, checked: TableCheck) -> Iterator[Finding]:
        """Yield the automatic upgrades that no declared runtime delays any longer."""
        if affected_by(facts) is Affected.NO:
            return
        declared = dict.fromkeys(judged.declared for judged in checked.verdicts)
        others = [each for each in declared if self._client_id(each) != self._target.client.id]
        versions = [each.version for each in declared if each not in others]
        clients = [TableClient(self.candidate(each), each.access, each.label) for each in others]
        for rule in RULES:
            if rule.tables is TableAge.EXISTING and self._unlocks(rule, versions, facts):
                after = requirements_with(facts.needs, rule.feature)
                blocked = find_blocked(compare_clients(clients, facts.needs, after))
                yield from self._of_rule(rule, facts.table, blocked)

    def _client_id(self, declared: Declared) -> str:
        return self.candidate(declared).client.id

    def _unlocks(
        self, rule: AutomaticUpgrade, versions: list[str | None], facts: TableFacts
    ) -> bool:
        """Return True if the upgrade of these versions makes their accesses verified."""
        id_, version = self._target.client.id, self._target.reference.version
        if is_verified(id_, version, rule) is not True or has_feature(facts.needs, rule.feature):
            return False
        older = [each for each in versions if is_verified(id_, each, rule) is not True]
        return bool(older) or not versions

    def _of_rule(
        self, rule: AutomaticUpgrade, table: str, blocked: tuple[ClientChange, ...]
    ) -> Iterator[Finding]:
        when = f"from {rule.start:%B %Y}" if rule.start else "no date documented"
        what = f"{self._named} knows {rule.feature}, which Databricks may then turn on"
        text = f"{what} ({rule.stage}, {when})"
        if not blocked:
            yield RULE.finding(
                table,
                f"{text}; no declared client is blocked",
                "see `deltaproto forecast`",
                feature=rule.feature,
                severity=Severity.INFO,
            )
        for each in blocked:
            yield RULE.finding(
                table,
                f"{text}: {each.client} {each.access} would be {each.after}: {each.reason}",
                _KEEP_OFF,
                feature=rule.feature,
                client=each.client,
                severity=severity_of(rule),
                detail=str(each.access),
            )

    @property
    def _named(self) -> str:
        return str(self._target.reference)
