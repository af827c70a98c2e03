"""The changes that a downgrade needs to reach its goal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from deltaproto.clients.requirements import UNTRACKED_FILES
from deltaproto.planning import arithmetic
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.enable import DISABLING_PROPERTIES, is_kept_disabled
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.contents import ContentChange
from deltaproto.planning.predict.table import (
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    ROW_TRACKING,
    Table,
)
from deltaproto.planning.search.droppable import DroppableFeatures
from deltaproto.planning.search.goals import ClientsSupported, EndState, Goal, VersionsAtMost
from deltaproto.planning.search.lowest import is_higher
from deltaproto.planning.search.route import DropSelection
from deltaproto.planning.search.search import SearchTask, predict_end_state
from deltaproto.planning.statement import Action, DropFeature, SetProperties
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol

VERSION_KEYS = {key.lower(): key for key in (MIN_READER_VERSION, MIN_WRITER_VERSION)}
"""the properties that set versions, by their names in lower case: reader, then writer"""


class NeededChanges:
    """The changes of the remaining steps that a goal requires.

    The search keeps every feature that it can, so each change of an honest plan is needed.
    """

    def __init__(self, plan: Plan, steps: Sequence[Step]) -> None:
        before = protocol_before_drops(plan, steps)
        self._supported = before.supported
        self._task = SearchTask(
            Table(before),
            VersionsAtMost(3, 7),
            plan.engine,
            droppable=DroppableFeatures((), {}),
            changed=ContentChange(removed=frozenset(_find_removed_hazards(steps))),
        )
        self._leaves_protection = any(map(_is_fast_protected_drop, steps))
        self._choice = DropSelection(
            frozenset(s.feature for s in steps if s.action is Action.DROP and s.feature),
            frozenset(_find_disabled(steps)),
            next(filter(None, map(_read_pair, steps)), None),
        )

    def drops(self, goal: Goal | None) -> set[str]:
        """Return the features that must be dropped; all that are, if the goal is unknown."""
        dropped = self._choice.dropped
        if goal is None:
            return set(dropped)
        found: set[str] = set()
        if not goal.reached(self._predict(self._choice)):
            return found
        for name in dropped:
            kept = dropped - feature_catalog.with_required_features({name})
            if not self._reached(goal, name, self._choice._replace(dropped=kept)):
                found.add(name)
        return found

    def disables(self, goal: Goal | None) -> set[str]:
        """Return the features that must be disabled; all that are, if the goal is unknown."""
        off = self._choice.off
        if goal is None:
            return set(off)
        found = set()
        for name in off:
            on = self._choice._replace(off=off - {name})
            if is_kept_disabled(name, off) or not self._reached(goal, name, on):
                found.add(name)
        return found

    def pair_helps(self, added: Iterable[str] = ()) -> bool:
        """Return True if the versions that the plan sets lower the protocol.

        Args:
            added: features that the plan has to add.
        """
        with_pair, without = (
            self._predict(choice).protocol
            for choice in (self._choice, self._choice._replace(pair=None))
        )
        for name in sorted(added):
            with_pair = arithmetic.enable_feature(with_pair, name, self._task.engine)
            without = arithmetic.enable_feature(without, name, self._task.engine)
        return is_higher(with_pair.versions, without.versions)

    def _reached(self, goal: Goal, kept: str, choice: DropSelection) -> bool:
        """Return True if the goal is reached while `kept` stays in use."""
        if isinstance(goal, ClientsSupported) and kept in self._supported:
            needs, one = goal.needs, frozenset({kept})
            goal = goal._replace(
                needs=needs._replace(
                    used=needs.used | one, unused=needs.unused - one, absent=needs.absent - one
                )
            )
        return goal.reached(self._predict(choice))

    def _predict(self, choice: DropSelection) -> EndState:
        left = self._leaves_protection and CHECKPOINT_PROTECTION not in choice.dropped
        return predict_end_state(self._task, choice, left=left)


def protocol_before_drops(plan: Plan, steps: Sequence[Step]) -> Protocol:
    """Return the protocol from which the remaining steps drop features or set versions.

    Earlier steps also add the features that the table's metadata still requests.
    """
    if not steps:
        return plan.protocol_after
    drops = (step for step in steps if step.action is Action.DROP or _read_pair(step) is not None)
    return next(drops, steps[0]).protocol_before


def _is_fast_protected_drop(step: Step) -> bool:
    """Return True for a drop that keeps history, which checkpointProtection then protects."""
    return any(
        isinstance(drop := parsed.statement, DropFeature)
        and not drop.truncate
        and feature_catalog.feature_record(drop.feature).drop.protects_history
        for parsed in parse_script(step.sql or "")
    )


def _find_disabled(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the features that steps disable without a drop."""
    dropped = {step.feature for step in steps if step.action is Action.DROP}
    for step in steps:
        name = step.feature
        if step.action is Action.SET and name in DISABLING_PROPERTIES:
            yield name
        elif step.action in (Action.DROP_CONSTRAINT, Action.CLUSTER_BY) and name not in dropped:
            yield str(name)


def _find_removed_hazards(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the hazard of files without row ids if a step gives them row ids."""
    for step in steps:
        for parsed in parse_script(step.sql or ""):
            statement = parsed.statement
            if isinstance(statement, SetProperties) and ROW_TRACKING in statement.properties:
                yield UNTRACKED_FILES


def _read_pair(step: Step) -> tuple[int, int] | None:
    for parsed in parse_script(step.sql or ""):
        if isinstance(parsed.statement, SetProperties):
            values = {key.lower(): value for key, value in parsed.statement.properties.items()}
            found = [values.get(key, "") for key in VERSION_KEYS]
            if all(value.isdecimal() and len(value) == 1 for value in found):
                return int(found[0]), int(found[1])
    return None
