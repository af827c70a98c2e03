"""The effect of a plan on a table's clients and its policy. Pure.

The protocol alone is not enough: a feature affects a client once it is used, and a policy may also
require properties and an isolation level. So the plan's statements are predicted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine
from deltaproto.planning.impact import describe_change, end_state_of, find_losses
from deltaproto.planning.plan import Blocked, ClientChange, Plan, Step
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.copy_by_name import is_manual_copy, new_location
from deltaproto.planning.search.copy_table import end_state_of_copy, redesign_copy
from deltaproto.planning.search.goals import EndState, requirements_after
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.statement import Action
from deltaproto.policy.approvals import AccessLoss, LossRuling
from deltaproto.policy.context import TableFacts
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding, Severity, describe_hidden
from deltaproto.policy.rules.above_ceiling import RULE as CEILING_RULE
from deltaproto.policy.rules.default_missing import RULE as PROPERTY_RULE
from deltaproto.policy.rules.isolation_differs import RULE as ISOLATION_RULE
from deltaproto.policy.table_check import TableCheck
from deltaproto.protocol.isolation import ISOLATION_PROPERTY, evaluate_isolation


class UnpredictableError(Exception):
    """The result of a step cannot be predicted for the table; the message contains the reason."""


class PolicyImpact(NamedTuple):
    """What changes for a policy when a plan is applied."""

    losses: tuple[ClientChange, ...]
    """accesses that a declared client loses, or whose verdict becomes wrong or unknown"""
    rulings: tuple[LossRuling, ...]
    """for each loss, the decision of the policy's approvals"""
    violations: tuple[Finding, ...]
    """other errors and wrong properties that the plan causes or makes worse"""
    remaining: int
    """number of current violations that stay"""
    before: TableCheck | None = None
    """the check of the table before the plan"""
    then: TableCheck | None = None
    """the check of the table after the plan"""
    waived: int = 0
    """number of findings on the result that the policy waives or approves"""
    off: int = 0
    """number of findings on the result from rules that the policy turns off"""

    @property
    def unasked(self) -> bool:
        """True if the policy declares no client and no setting for the table."""
        if self.before is None:
            return False
        settings = {each.setting.partition(".")[0] for each in self.before.decisions}
        return not (self.before.verdicts or settings - {"severities"})

    @property
    def hidden(self) -> str:
        """Describe how many findings on the result the policy hides; empty for none."""
        return describe_hidden(self.waived, self.off)

    @property
    def unapproved(self) -> tuple[tuple[ClientChange, LossRuling], ...]:
        """The losses that the policy does not approve."""
        pairs = zip(self.losses, self.rulings, strict=True)
        return tuple((loss, ruling) for loss, ruling in pairs if not ruling.approved)

    @property
    def in_words(self) -> tuple[str, ...]:
        """A sentence for each unapproved loss and each violation."""
        return (
            *(
                "; ".join([describe_change(loss), *ruling.near_misses])
                for loss, ruling in self.unapproved
            ),
            *(finding.message for finding in self.violations),
        )


def assess_policy_impact(
    checker: Checker, today: TableFacts, after: TableFacts, goal: str
) -> PolicyImpact:
    """Compare a table's check before and after a plan with this goal (as text)."""
    # Past commits are not among the plan's changes.
    before = checker.check(today._replace(changes=None))
    then = checker.check(after._replace(changes=None))
    losses = find_losses(
        ((each.declared.label, each.verdict) for each in before.verdicts),
        ((each.declared.label, each.verdict) for each in then.verdicts),
    )
    known = {_finding_key(finding) for finding in _find_violations(before.findings)}
    errors = list(_find_violations(then.findings))
    new = [
        each
        for each in errors
        if _finding_key(each) not in known or _is_worsened(each, today, after)
    ]
    named = {change.client for change in losses}
    accepted = (AccessLoss(each.client, each.access, each.because, goal) for each in losses)
    return PolicyImpact(
        losses,
        checker.rule_on_losses(today.table, today.location, accepted, today.other_names),
        tuple(finding for finding in new if finding.client not in named),
        len(errors) - len(new),
        before,
        then,
        len(then.suppressed),
        then.silenced,
    )


_VERDICTS = ("DP201", "DP202", "DP203")


def describe_fixes(before: TableCheck, then: TableCheck) -> Iterator[str]:
    """Yield the errors and warnings that a check finds before a plan and not after it.

    A client's verdict is not fixed if another one takes its place.
    """
    left = {_finding_key(finding) for finding in then.findings}
    verdicts = {found.client for found in then.findings if found.rule in _VERDICTS}
    for finding in before.findings:
        replaced = finding.rule in _VERDICTS and finding.client in verdicts
        if (
            finding.severity is not Severity.INFO
            and not replaced
            and _finding_key(finding) not in left
        ):
            yield f"{finding.rule}: {finding.message}"


def explain_unmet(then: TableCheck, reasons: Sequence[Blocked]) -> Iterator[Blocked]:
    """Yield the violations that a plan leaves, with the planner's reason if there is one.

    Violations by several clients with the same cause are combined.

    Args:
        reasons: why requirements cannot be met.
    """
    known = {each.feature: each for each in reasons if each.feature is not None}
    left = list(_find_violations(then.findings))
    groups: dict[tuple[str, Blocked | None, str], list[Finding]] = {}
    for finding in left:
        cause = finding.message.removeprefix(_subject(finding))
        key = finding.rule, known.get(finding.feature or ""), cause
        groups.setdefault(key, []).append(finding)
    for (rule, found, cause), members in groups.items():
        why = f"; {found.reason}" if found else ""
        named = dict.fromkeys(filter(None, map(_subject, members)))
        subjects = ", ".join(named)
        if len(named) > 1:
            cause = cause.replace(" is not known to", " are not known to", 1)
        remedy = found.remedy if found else _joined_hints(members)
        error = found.error if found else ""
        features = {each.feature for each in members}
        feature = features.pop() if len(features) == 1 else None
        yield Blocked(feature, f"{rule}: {subjects}{cause}{why}", remedy, error)
    used, clients = {each.feature for each in left}, {each.client for each in left}
    for each in reasons:
        # The planner's blocker for a client begins with its name.
        if each.feature is None and each.reason.partition(", ")[0] not in clients:
            yield each
        elif each.feature is not None and each.feature not in used:
            contained = each.feature in each.reason
            yield each if contained else each._replace(reason=f"{each.feature}: {each.reason}")


def _subject(finding: Finding) -> str:
    """Return the client with which the message begins; empty if there is none."""
    client = finding.client or ""
    return client if finding.message.startswith(client) else ""


def _joined_hints(findings: Sequence[Finding]) -> str:
    """Return the common hint of some clients, or each client's hint.

    If only their commands differ, the hint has the first client's command.
    """
    hints = {each.hint.replace(each.client or "", "") for each in findings}
    if len(hints) == 1:
        return findings[0].hint
    return "; ".join(f"{each.client}: {each.hint}" for each in findings)


def predict_facts(today: TableFacts, table: Table, steps: Iterable[Step], plan: Plan) -> TableFacts:
    """Return the table's facts after these steps of the plan; for a copy, the facts of the new
    table.

    Args:
        table: the table as `today` describes it.

    Raises:
        UnpredictableError: if a statement's result on this table is unknown.
    """
    if any(step.action is Action.SWAP for step in plan.steps):
        return _predict_copy(today, table, plan)
    after = table
    for step in steps:
        after = _predict_step(step, after, plan.engine)
    ending = end_state_of(after, table)
    left = plan.protocol_after.supported
    ending = ending._replace(
        protocol=plan.protocol_after, off=ending.off & left, on=ending.on & left
    )
    return _facts_after(today, ending, after.configuration, after.clustering)


def _facts_after(
    today: TableFacts,
    ending: EndState,
    configuration: Mapping[str, str],
    clustering: tuple[str, ...] | None,
) -> TableFacts:
    levels = evaluate_isolation(configuration.get(ISOLATION_PROPERTY)).effective
    return today._replace(
        needs=requirements_after(today.needs, ending),
        configuration=configuration,
        clustering=clustering,
        isolation={str(engine): level and str(level) for engine, level in levels.items()},
    )


def _predict_copy(today: TableFacts, table: Table, plan: Plan) -> TableFacts:
    by_hand = is_manual_copy(plan.steps)
    inputs = PlanInput(
        plan.table,
        plan.location,
        plan.sql_name,
        table,
        today.needs,
        (),
        plan.fingerprint,
        engine=plan.engine,
        comments=None if by_hand else {},
    )
    new = redesign_copy(inputs, plan)
    if new is None or new.protocol != plan.protocol_after:
        raise UnpredictableError("the plan does not copy the table as it is now")
    ending = end_state_of_copy(table)._replace(protocol=new.protocol)
    after = _facts_after(today, ending, new.properties, new.clustering)
    return after if by_hand else after._replace(location=new_location(today.location))


def _predict_step(step: Step, table: Table, engine: Engine) -> Table:
    if step.sql is None:
        return table.waited(step.wait_hours)
    for parsed in parse_script(step.sql):
        outcome = predict_statement(parsed.statement, table, engine)
        refusal = outcome.refusal
        if refusal is not None and not refusal.retry and refusal.error != step.expects:
            raise UnpredictableError(f"{step.id}: {refusal.message}")
        table = outcome.table
    return table


def _find_violations(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield errors and violations of required properties, whose rule only warns."""
    for finding in findings:
        if finding.severity is Severity.ERROR or finding.rule == PROPERTY_RULE.id:
            yield finding


def _is_worsened(finding: Finding, today: TableFacts, after: TableFacts) -> bool:
    """Return True if the plan worsens a violation, or sets the wrong value itself."""
    if finding.rule == PROPERTY_RULE.id:
        key = finding.detail or ""
        return today.configuration.get(key) != after.configuration.get(key)
    if finding.rule == ISOLATION_RULE.id:
        return today.isolation != after.isolation
    if finding.rule != CEILING_RULE.id:
        return False
    if finding.detail == "reader":
        return after.protocol.min_reader_version > today.protocol.min_reader_version
    return after.protocol.min_writer_version > today.protocol.min_writer_version


def _finding_key(finding: Finding) -> tuple[str, str | None, str | None, str | None]:
    return finding.rule, finding.feature, finding.client, finding.detail
