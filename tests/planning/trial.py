"""One random table, one random goal: what Spark makes of the plan, against what the plan said."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import (
    ABSOLUTE_PATHS,
    HIDDEN_PARTITIONS,
    OF_FILE_WRITERS,
    RANDOM_PREFIXES,
    STORED_PARTITIONS,
    TableRequirements,
)
from deltaproto.execution.progress import without_features
from deltaproto.execution.verify import FEATURE_NOT_PRESENT, RETENTION_WAIT_ERRORS
from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.impact import compare_clients
from deltaproto.planning.plan import ClientChange, Plan, Step
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import ClientsSupported, EndState, HistoryChoice
from deltaproto.planning.statement import DropFeature
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.sql.quoting import quote_identifier
from tests.planning import log_files
from tests.planning.oracle import execute, newest
from tests.planning.random_goals import random_clients, random_goal
from tests.planning.random_tables import AGE, Place, age, draft, make
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROTECTION = "checkpointProtection"
GOALS = 4
"""of one table, at most"""


class Trial(NamedTuple):
    """What came of one seed."""

    seed: int
    plans: tuple[Plan, ...]
    """one for each goal; only the last can have steps"""
    mismatches: tuple[str, ...]
    """empty when Spark did all as predicted"""
    executed: int
    """statements that were predicted and run, those of alternatives too"""
    seconds: float


def tried(
    delta_spark: DeltaSpark, seed: int, folder: Path, *, managed: bool = False, stored: bool = False
) -> Trial:
    """Make the table of a seed in `folder`, plan for it, and let Spark do it.

    Goals are tried until one asks for something to be done: what is refused or done already costs
    little, and a table much.
    """
    started = time.monotonic()
    random = Random(f"goal {seed}")
    drafted = draft(seed, managed=managed, stored=stored)

    def twin(what: str) -> Place:
        """Another table like the one of the seed, as long as nothing was done to that."""
        other = f"{folder / str(seed)}-{what}"
        if managed:
            return make(delta_spark, drafted, Path(other))
        shutil.copytree(folder / str(seed), other, dirs_exist_ok=True)
        return Place(other, other)

    place = make(delta_spark, drafted, folder / str(seed))
    given = _given(random, place)
    plans: list[Plan] = []
    found = [*_seen(place.path, given, aged=AGE in drafted.statements)]
    while len(plans) < GOALS and not (plans and plans[-1].steps):
        asked = random_goal(random, given.table.protocol.supported)
        plans.append(plan_downgrade(given, asked))
        if not plans[-1].steps and not plans[-1].blocked:
            found += _reached(given, given, asked)
    found += _refusals(delta_spark, place, given, plans, twin)
    rows = _rows(delta_spark, place)
    executed = len(plans[-1].steps)
    others = [o for plan in plans for o in plan.alternatives if o.name != "rewrite"]
    if others and random.random() < (0.3 if executed else 0.7):
        other = random.choice(others)
        copy = twin(other.name)
        steps = [_moved(step, given.sql, copy.sql) for step in other.steps]
        found += [f"{other.name}: {text}" for text in carry_out(delta_spark, copy, steps, given)]
        executed += len(steps)
        if rows != _rows(delta_spark, copy):
            found.append(f"{other.name}: the rows are no longer the same")
    if plans[-1].steps:
        found += carry_out(delta_spark, place, plans[-1].steps, given)
        if rows != _rows(delta_spark, place):
            found.append("the rows are no longer the same")
        found += _ended(place, given, asked, plans[-1])
    if found:
        found.insert(0, f"the last goal: {asked}")
    return Trial(seed, tuple(plans), tuple(found), executed, time.monotonic() - started)


def carry_out(
    delta_spark: DeltaSpark, place: Place, steps: Sequence[Step], given: PlanInput
) -> Iterator[str]:
    """Run the steps on a table, and tell what was not as predicted."""
    path = place.path
    early: set[str] = set()
    uncertain = False
    for step in steps:
        if step.sql is None:
            age(path, step.wait_hours + 48)
            continue
        first = newest(path) + 1
        happened = execute(delta_spark, path, step.sql)
        said = f"{step.id} {step.sql.replace(place.sql, '…')}"
        if step.expects is not None and step.expects not in RETENTION_WAIT_ERRORS:
            yield f"{said}: it is planned, although it fails"
        gone = step.optional and happened.error == FEATURE_NOT_PRESENT and step.feature in early
        if gone:
            if happened.operations:
                yield f"{said}: refused, and yet {happened.operations}"
            continue
        at_once = (
            step.expects in RETENTION_WAIT_ERRORS
            and happened.error is None
            and given.table.shows(step.feature or "") is None
        )
        if at_once:
            early.add(step.feature or "")
        elif not (
            happened.error == step.expects
            or (
                (_uncounted(given, step) or (uncertain and step.feature == "v2Checkpoint"))
                and {happened.error, step.expects} <= RETENTION_WAIT_ERRORS
            )
        ):
            yield f"{said}: {happened.error} instead of {step.expects}"
        protocol = without_features(step.protocol_after, frozenset(early))
        is_now = _look(place).table.protocol
        if is_now != protocol:
            yield f"{said}: {is_now} instead of {protocol}"
        least, most = step.commits
        # Not knowing how many commits there are, nobody knows when the next checkpoint comes.
        uncertain = uncertain or least != most
        if not least <= len(happened.operations) <= most + at_once:
            yield f"{said}: {happened.operations}, {least} to {most} of {step.operations}"
        if not _within(happened.operations, [*step.operations, *["DROP FEATURE"] * at_once]):
            yield f"{said}: {happened.operations} are not among {step.operations}"
        made = log_files.commits(path, first)
        files = log_files.rewritten(made)
        if len(files) > (step.rewrites.files or 0):
            yield f"{said}: rewrites {len(files)} files, not {step.rewrites}"
        if log_files.changes_rows(made):
            yield f"{said}: a commit changes data"


def _given(random: Random, place: Place) -> PlanInput:
    given = _look(place)._replace(clients=random_clients(random))
    if random.random() < 0.25:
        # As a saved inspection leaves it.
        unknown = given.table._replace(traced=None, unsure=frozenset(), hours_left={}, aged=None)
        given = given._replace(table=unknown)
    return given


def _look(place: Place) -> PlanInput:
    given = load_plan_input(place.name, {}, SparkSettings(), time.time())
    assert given.complete, place
    return given._replace(engine=RUNNING)


def _seen(path: str, given: PlanInput, *, aged: bool) -> Iterator[str]:
    """What was read of a whole log is what a plain reading of its commits finds."""
    files = log_files.live_files(path)
    if given.files[:4] != files[:4]:
        yield f"{given.files} instead of {files}"
    if (given.files.before_type_change or 0) < (files.before_type_change or 0):
        yield f"{given.files} instead of {files}"
    if given.table.traced is not None and not aged:
        droppable = {"columnMapping", "deletionVectors", "v2Checkpoint", "checkpointProtection"}
        droppable |= {"typeWidening", "typeWidening-preview"}
        of_interest = droppable & given.table.protocol.supported - given.table.unsure
        if given.table.traced & of_interest != log_files.traced(path) & of_interest:
            yield f"traced: {given.table.traced} instead of {log_files.traced(path)}"


def _refusals(
    delta_spark: DeltaSpark,
    place: Place,
    given: PlanInput,
    plans: Sequence[Plan],
    twin: Callable[[str], Place],
) -> Iterator[str]:
    """What is said to be refused is refused, and so."""
    said = (each for plan in plans for each in (*plan.blocked, *plan.kept) if each.error)
    for blocked in {(each.feature, each.error): each for each in said}.values():
        if blocked.feature is None:
            continue
        protects = blocked.feature == PROTECTION
        drop = DropFeature(blocked.feature, truncate=protects)
        # The removal of the protection may have to wait before it is refused for good.
        errors = {blocked.error} | (RETENTION_WAIT_ERRORS if protects else set())
        said_alone = drop.outcome(given.table, given.engine)
        if blocked.feature not in given.table.protocol.supported and said_alone.refusal:
            # The metadata asks for it: until another statement adds it, there is nothing to drop.
            errors = {said_alone.refusal.error}
        # What Delta commits before it refuses, it commits to a copy: the plan is for this table.
        before = {commit.operation for commit in said_alone.commits}
        where = twin(blocked.feature) if before or protects else place
        happened = execute(delta_spark, where.path, drop.sql(where.sql))
        if happened.error not in errors or {*happened.operations} - before - (
            {"Empty Commit"} if protects else set()
        ):
            yield (
                f"{blocked.feature}: {happened.error} {happened.operations} instead of "
                f"{blocked.error}"
            )


def _ended(place: Place, given: PlanInput, asked: DowngradeRequest, plan: Plan) -> Iterator[str]:
    after = _look(place)
    forgets = any(step.truncates for step in plan.steps)
    # The deleted commits showed who wrote the files; the plan says that check forgets it.
    known = _remembering(after.needs, given.needs) if forgets else after.needs
    yield from _reached(after._replace(needs=known), given, asked)
    again = plan_downgrade(after._replace(clients=given.clients, needs=known), asked)
    # A checkpoint that Delta made unasked can have taken v2Checkpoint out of use meanwhile.
    out_of_use = given.table.v2_checkpoint and after.table.v2_checkpoint is False
    if (again.steps and not out_of_use) or again.blocked:
        left = [step.sql for step in again.steps] or again.blocked
        yield f"planned again, there is more to do: {left}"
    real, checked = (_verdicts(given, needs) for needs in (known, after.needs))
    warned = " ".join(text for text in plan.warnings if "check says unknown" in text)
    for (client, access), change in checked.items():
        forgotten = change.after is not real[client, access].after
        if forgotten and f"{client} ({access})" not in warned:
            yield f"{client}, {access}: {change.after} ({change.reason}), and no warning of it"
    yield from other_verdicts(plan, given, known)


def other_verdicts(plan: Plan, given: PlanInput, known: TableRequirements) -> Iterator[str]:
    """What clients can do after the plan, where the plan says something else."""
    # What stays enabled comes back with the next write.
    lasting = known._replace(absent=known.absent - known.used)
    real, later = (_verdicts(given, needs) for needs in (known, lasting))
    cloned = _verdicts(given, known._replace(hazards=known.hazards | {ABSOLUTE_PATHS}))
    may_move = _may_move_clone(plan, given) and ABSOLUTE_PATHS not in known.hazards
    for change in plan.clients:
        found = real[change.client, change.access]
        if may_move and cloned[change.client, change.access].after is change.after:
            continue
        comes_back = later[change.client, change.access].after is change.after or (
            found.after is Verdict.OK and {*change.because} & known.absent & known.used
        )
        if found.after is not change.after and not comes_back:
            yield (
                f"{change.client}, {change.access}: {found.after} ({found.reason}) instead of "
                f"{change.after} ({change.reason})"
            )


def _may_move_clone(plan: Plan, given: PlanInput) -> bool:
    """Whether the plan leaves open if a shallow clone still refers to the files of its source.

    A drop of typeWidening moves those that are older than the type change, and the log of the clone
    does not show which are (docs/quality.md, "Open differences"). The verdicts are then those for
    a table that still refers to them.
    """
    dropped = plan.protocol_before.supported - plan.protocol_after.supported
    return (
        ABSOLUTE_PATHS in given.needs.hazards
        and bool({"typeWidening", "typeWidening-preview"} & dropped)
        and given.table.widened is not False
        and given.files.before_type_change != 0
    )


def _verdicts(given: PlanInput, needs: TableRequirements) -> dict[tuple[str, Access], ClientChange]:
    changes = compare_clients(given.clients, given.needs, needs)
    return {(change.client, change.access): change for change in changes}


def _remembering(after: TableRequirements, before: TableRequirements) -> TableRequirements:
    """What clients have to handle, with what the table's first commits showed of its files."""
    seen = OF_FILE_WRITERS - before.unseen
    shown = before.hazards & seen & after.unseen
    hazards = after.hazards | shown
    if STORED_PARTITIONS in before.hazards and HIDDEN_PARTITIONS in hazards:
        hazards = (hazards - {HIDDEN_PARTITIONS, RANDOM_PREFIXES}) | {STORED_PARTITIONS}
    return after._replace(hazards=hazards, unseen=after.unseen - seen)


def _reached(after: PlanInput, given: PlanInput, asked: DowngradeRequest) -> Iterator[str]:
    """The goal, asked of the table as it has become."""
    protocol = after.table.protocol
    if left := {*asked.drop} & protocol.supported:
        yield f"{sorted(left)} are still there"
    if asked.to is not None and (
        protocol.min_reader_version > asked.to[0] or protocol.min_writer_version > asked.to[1]
    ):
        yield f"{protocol} is more than {asked.to}"
    if asked.history is HistoryChoice.TRUNCATE and PROTECTION in (
        protocol.supported - given.table.protocol.supported
    ):
        yield f"{PROTECTION} is left"
    if asked.clients:
        goal = ClientsSupported(asked.clients, after.needs)
        for judged in goal._judged(_as_it_is(after)):
            if judged.verdict.value != "ok":
                yield f"a client cannot: {judged}"


def _rows(delta_spark: DeltaSpark, place: Place) -> Any:
    """How many rows, and a sum over all of their values whatever the columns are called."""

    def count(spark: SparkSession) -> list[int]:
        from pyspark.sql import functions

        frame = spark.table(place.sql)
        values = []
        for field in frame.schema.fields:
            column = functions.col(quote_identifier(field.name))
            plain = field.dataType.typeName() in ("struct", "array", "map", "variant")
            values.append(functions.to_json(column) if plain else column.cast("string"))
        checksum = functions.xxhash64(*values).cast("decimal(38,0)")
        (row,) = frame.agg(functions.count("*"), functions.sum(checksum)).collect()
        return [row[0], int(row[1] or 0)]

    return delta_spark.run(f"count and sum the rows of {place.name}", count)


def _uncounted(given: PlanInput, step: Step) -> bool:
    """Whether Delta may have lost count of deletion vectors, and so names another reason to wait.

    Its snapshots count them only while more may be written (`aggregationsToComputeState`).
    """
    off = not given.table.is_on("delta.enableDeletionVectors")
    return step.feature == "deletionVectors" and bool(given.table.vectors) and off


def _as_it_is(given: PlanInput) -> EndState:
    return EndState(given.table.protocol)


def _within(some: Sequence[str], every: Sequence[str]) -> bool:
    """Whether `some` are among `every` in the same order."""
    rest = iter(every)
    return all(operation in rest for operation in some)


def _moved(step: Step, table: str, other: str) -> Step:
    return step._replace(sql=None if step.sql is None else step.sql.replace(table, other))
