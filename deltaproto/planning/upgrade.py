"""Plans that add features to a table's protocol, or change its properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaproto.clients.model import Access, Verdict
from deltaproto.planning.advice import describe_user_statement
from deltaproto.planning.assemble import assemble_plan
from deltaproto.planning.builder import PlanBuilder
from deltaproto.planning.engine_support import find_engine_blockers
from deltaproto.planning.impact import compare_clients, end_state_of
from deltaproto.planning.plan import Blocked, Plan
from deltaproto.planning.predict.consistency import READ_COPY
from deltaproto.planning.predict.properties import normalize_properties
from deltaproto.planning.request import PlanInput, UpgradeRequest, goal_fields
from deltaproto.planning.search.goals import EndState, requirements_after
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import feature_record


def plan_upgrade(inputs: PlanInput, request: UpgradeRequest) -> Plan:
    """Return a plan of predicted statements, blocked if the engine would refuse one."""
    builder = PlanBuilder(inputs)
    for wanted in request.enable:
        builder.enable(wanted)
    if request.set:
        builder.set_properties(normalize_properties(request.set))
    if request.to is not None:
        builder.raise_versions(request.to)
    if request.isolation is not None:
        builder.set_isolation(request.isolation)
    for parsed in request.statements:
        builder.add_user_statement(parsed, inputs.sql)
    ending = end_state_of(builder.table, inputs.table)
    builder.blocked += _lost_access(inputs, request, ending)
    if not builder.blocked:
        builder.blocked += _disabled_again(request, builder.table.configuration)
    if builder.predictions or builder.blocked:
        # Checked first, because the engine raises most of these before it parses the arguments.
        builder.blocked[:0] = find_engine_blockers(inputs)
    predictions = [] if builder.blocked else builder.predictions
    plan = assemble_plan(
        inputs,
        "plan-upgrade",
        goal_fields(request),
        predictions,
        blocked=tuple(builder.blocked),
        notes=tuple(builder.notes),
    )
    described = (
        step._replace(
            why=describe_user_statement(builder.parsed_by_id[id(prediction.statement)], step)
        )
        if id(prediction.statement) in builder.parsed_by_id
        else step
        for step, prediction in zip(plan.steps, predictions, strict=False)
    )
    return plan._replace(steps=tuple(described))


def _disabled_again(request: UpgradeRequest, configuration: Mapping[str, str]) -> Iterator[Blocked]:
    """Yield a blocker for each requested feature that another part of the request disables."""
    for wanted in request.enable:
        rule = feature_record(wanted.feature).enablement
        if not isinstance(rule, PropertyIs):
            continue
        value = configuration.get(rule.key_in(configuration), "").strip().lower()
        if not rule.holds(value) or wanted.mode not in (None, value):
            yield Blocked(
                wanted.feature,
                "another part of the request disables it again",
                "leave out one of the two",
            )


def _remedy(access: Access) -> str:
    remedy = "upgrade the client first, or remove it from --for-client"
    return f"{remedy}; {READ_COPY}" if access is Access.READ else remedy


def _lost_access(inputs: PlanInput, request: UpgradeRequest, ending: EndState) -> Iterator[Blocked]:
    """Yield a blocker for each protected client that loses access."""
    for change in compare_clients(
        request.keep, inputs.needs, requirements_after(inputs.needs, ending)
    ):
        if change.after is not Verdict.OK:
            also = " (it already cannot)" if change.before is change.after else ""
            yield Blocked(
                change.because[0] if change.because else None,
                f"{change.client} could not {change.access}{also}: {change.reason}",
                _remedy(change.access),
            )
