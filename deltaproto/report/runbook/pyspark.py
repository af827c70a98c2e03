"""A plan as a PySpark script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.planning.plan import Plan
from deltaproto.planning.statement import Action
from deltaproto.report.paint import duration, flat
from deltaproto.report.plan_json import stamp
from deltaproto.report.runbook.phrases import Phrases
from deltaproto.tables.sql import SUBSTITUTION, has_variable


def script(plan: Plan, times: Sequence[tuple[float | None, float | None]], say: Phrases) -> str:
    """Its statements in order. Names are Python literals, whatever they hold."""
    return "\n".join(_lines(plan, times, say))


def _lines(
    plan: Plan, times: Sequence[tuple[float | None, float | None]], say: Phrases
) -> Iterator[str]:
    if any(step.expects for step in plan.steps):
        yield from (
            "def run(statement, expected):",
            "    try:",
            "        spark.sql(statement)",
            "    except Exception as error:",
            "        if expected not in str(error):",
            "            raise",
            "",
        )
    if any(step.sql is not None and has_variable(step.sql) for step in plan.steps):
        yield f"spark.conf.set({SUBSTITUTION!r}, 'false')"
    for step, (earliest, _) in zip(plan.steps, times, strict=True):
        yield f"# {step.id}: {flat(step.why)}"
        if step.sql is None and step.action is not Action.WAIT:
            told = say.text("pyspark.by_hand")
            yield f"# {flat(told)}"
            continue
        if step.sql is None:
            setting = f"{duration(step.wait_hours)}, {step.setting}"
            told = say.text("pyspark.wait", time=stamp(earliest) or "", setting=setting)
            yield f"# {flat(told)}"
            continue
        if step.optional:
            yield f"# {flat(say.text('step.optional'))}"
        if step.expects is None:
            yield f"spark.sql({step.sql!a})"
        else:
            yield f"run({step.sql!a}, {step.expects!a})"
