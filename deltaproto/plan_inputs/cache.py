"""Plan each group of identical tables once.

Most tables of a fleet fall into a few groups. The name and address of each table are inserted into
the plan afterwards.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deltaproto.caches import BoundedCache
from deltaproto.location import quote_for_shell
from deltaproto.plan_inputs.client_scope import ClientScope, PolicyCheckedPlan
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.cost import Files

# A quoted name in SQL that no table can have: paths have no NUL.
_TABLE_PLACEHOLDER = "delta.`\0table\0`"
_CACHE_SIZE = 4096
_DISTINCT = 8
"""minimum length at which a name with a slash certainly means the table"""
_OWN_FIELDS = frozenset({"table", "location", "sql_name", "fingerprint", "other_names"})
"""fields of a plan that are of its table alone"""
Renamer = Callable[[Sequence[str]], Any]
"""returns the value with other names instead of the table's"""


class _Known(NamedTuple):
    """A plan of a group, and the places where it names the table that it was made for."""

    checked: PolicyCheckedPlan
    naming: Mapping[str, Renamer]
    """fields of the plan that name its table, such as hints that contain commands"""
    prefix: str | None
    """from `_prefix`, of its table"""


class CachingPlanner:
    """A planner that caches plans of identical tables, with the checks of their results.

    Args:
        plan: plans for one table with its clients, and checks the result.
        add_clients: adds the clients to a table; None: the tables already have their clients.
    """

    def __init__(
        self,
        plan: Callable[[PlanInput], PolicyCheckedPlan],
        users: ClientScope,
        add_clients: Callable[[PlanInput], PlanInput] = lambda found: found,
        *,
        by_version: bool = False,
    ) -> None:
        self._plan, self._users, self._by_version = plan, users, by_version
        self._add_clients = add_clients
        self._known = BoundedCache[Hashable, _Known](_CACHE_SIZE)
        self._of_row_groups = BoundedCache[Hashable, _Known](_CACHE_SIZE)

    def __call__(self, inputs: PlanInput) -> PolicyCheckedPlan:
        """Return the plan for one table."""
        key = self._row_group_key(inputs)
        found = None if key is None else self._of_row_groups.get(key)
        if found is not None and _fits(found, inputs):
            return self._reuse(found, inputs)
        checked, found = self._plan_group(self._add_clients(inputs))
        if key is not None and found is not None:
            self._of_row_groups[key] = found
        return checked

    def _row_group_key(self, inputs: PlanInput) -> Hashable | None:
        """Return a key that is faster to compute than the group's; None if the table has none."""
        if inputs.row_group is None:
            return None
        applicable = self._users.applicable_to(inputs)
        if applicable is None:
            return None
        return (
            inputs.row_group,
            applicable,
            inputs.fingerprint.version if self._by_version else None,
        )

    def _plan_group(self, inputs: PlanInput) -> tuple[PolicyCheckedPlan, _Known | None]:
        """Return the plan for a table with its clients, and for its group if others share it."""
        group = self._users.group_of(inputs)
        # The statements of a copy contain the table's own comments and location.
        if group is None or inputs.comments is not None:
            return self._plan(inputs), None
        key = (group, _cache_key(inputs, by_version=self._by_version))
        # Most plans rewrite no files, and are the same whatever files the table has.
        found = self._known.get(key) or self._known.get((key, inputs.files))
        if found is not None and _fits(found, inputs):
            return self._reuse(found, inputs), found
        files = _WatchedFiles(*inputs.files)
        checked = self._plan(inputs._replace(sql=_TABLE_PLACEHOLDER, files=files))
        naming = tuple(_fields_naming(checked.plan, inputs))
        prefix = _prefix(inputs)
        found = None
        if not naming or prefix is not None:
            names = (inputs.location, inputs.name)
            renamers = {field: renamer(getattr(checked.plan, field), names) for field in naming}
            found = _Known(checked, renamers, prefix)
            self._known[(key, inputs.files) if files.used else key] = found
        return checked._replace(plan=_with_table(checked.plan, inputs)), found

    def _reuse(self, known: _Known, inputs: PlanInput) -> PolicyCheckedPlan:
        """Return the plan of a group for one of its tables."""
        names = (inputs.location, inputs.name)
        texts = {field: rename(names) for field, rename in known.naming.items()}
        plan = known.checked.plan
        if texts:
            plan = plan._replace(**texts)
        return known.checked._replace(plan=_with_table(plan, inputs))


def _fits(known: _Known, inputs: PlanInput) -> bool:
    return not known.naming or known.prefix == _prefix(inputs)


class _WatchedFiles(Files):
    """Files of a table that record whether a plan depends on them."""

    used = False

    @property
    def files(self) -> int | None:
        self.used = True
        return self[0]

    @property
    def bytes(self) -> int | None:
        self.used = True
        return self[1]

    def rewritten(self, rewrite: Rewrite) -> tuple[int | None, int | None]:
        if rewrite is not Rewrite.NONE:
            self.used = True
        return super().rewritten(rewrite)


def _cache_key(inputs: PlanInput, *, by_version: bool) -> Hashable:
    table = inputs.table
    return (
        inputs.fingerprint.version if by_version else None,
        table.protocol,
        *(value for value in table[1:] if not isinstance(value, Mapping)),
        *sorted(table.configuration.items()),
        *sorted(table.hours_left.items()),
        inputs.needs,
        inputs.complete,
        inputs.releases,
        inputs.warnings,
        tuple(id(client.candidate) for client in inputs.clients),
        tuple(client[1:] for client in inputs.clients),
        tuple((s.name, s.enabled, s.present, s.required_by, s.evidence) for s in inputs.states),
    )


def _fields_naming(plan: Plan, inputs: PlanInput) -> Iterator[str]:
    """Yield the fields of a plan whose texts name the table."""
    table = inputs.name
    names = [table, inputs.location, shlex.quote(table), quote_for_shell(table)]
    for field, value in zip(plan._fields, plan, strict=True):
        if field not in _OWN_FIELDS and any(
            name and name in text for text in _texts(value) for name in names
        ):
            yield field


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple():
            for each in value:
                yield from _texts(each)
        case Mapping():
            for key, each in value.items():
                yield from _texts((key, each))


def _prefix(inputs: PlanInput) -> str | None:
    """Return the part of the location before the table's name.

    None if the name is not at its end, can be part of a word, or needs quoting in a command: then
    its occurrences in a text are uncertain.
    """
    name, location = inputs.name, inputs.location
    distinct = "/" in name and len(name) >= _DISTINCT and shlex.quote(name) == name
    return location.removesuffix(name) if distinct and location.endswith(name) else None


def _with_table(plan: Plan, inputs: PlanInput) -> Plan:
    return plan._replace(
        table=inputs.name,
        location=inputs.location,
        sql_name=inputs.sql,
        fingerprint=inputs.fingerprint,
        other_names=inputs.other_names,
        steps=_with_table_name(plan.steps, inputs.sql),
        alternatives=tuple(
            each._replace(steps=_with_table_name(each.steps, inputs.sql))
            for each in plan.alternatives
        ),
    )


def _with_table_name(steps: tuple[Step, ...], sql: str) -> tuple[Step, ...]:
    return tuple(
        step._replace(
            sql=None if step.sql is None else step.sql.replace(_TABLE_PLACEHOLDER, sql),
            undo=None if step.undo is None else step.undo.replace(_TABLE_PLACEHOLDER, sql),
        )
        for step in steps
    )


def renamer(value: Any, names: Sequence[str]) -> Renamer:
    """Return a function that returns `value` with other names instead of `names`.

    It visits only the texts that contain a name. Where names overlap, the first one counts.
    """
    return _find_texts(value, names) or (lambda _: value)


def _find_texts(value: Any, names: Sequence[str]) -> Renamer | None:
    """Return a function that renames one value, for `renamer`; None if no text contains a name."""
    match value:
        case str() if type(value) is str:
            return _in_text(value, names) if any(name in value for name in names) else None
        case tuple():
            items = {n: found for n, one in enumerate(value) if (found := _find_texts(one, names))}
            return _in_tuple(value, items) if items else None
        case Mapping():
            entries = {k: found for k, one in value.items() if (found := _find_texts(one, names))}
            return _in_mapping(value, entries) if entries else None
    return None


def _in_text(text: str, names: Sequence[str]) -> Renamer:
    # All at once: a location ends with the name.
    pieces = re.split(f"({'|'.join(map(re.escape, names))})", text)
    places = [(n, names.index(pieces[n])) for n in range(1, len(pieces), 2)]

    def rename(others: Sequence[str]) -> str:
        parts = pieces.copy()
        for place, name in places:
            parts[place] = others[name]
        return "".join(parts)

    return rename


def _in_tuple(value: tuple[Any, ...], items: Mapping[int, Renamer]) -> Renamer:
    make = getattr(value, "_make", tuple)

    def rename(others: Sequence[str]) -> Any:
        parts = list(value)
        for number, found in items.items():
            parts[number] = found(others)
        return make(parts)

    return rename


def _in_mapping(value: Mapping[Any, Any], entries: Mapping[Any, Renamer]) -> Renamer:
    return lambda others: {**value, **{key: found(others) for key, found in entries.items()}}
