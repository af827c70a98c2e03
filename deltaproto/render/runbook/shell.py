"""Shell commands of one line each, with all names quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.location import quote_for_shell
from deltaproto.planning.plan import Plan
from deltaproto.planning.statement import Action
from deltaproto.render.interface import stamp
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.terminal import duration, single_line
from deltaproto.sql.quoting import SUBSTITUTION, has_variable


def command(*words: str) -> str:
    """Quote the arguments as one line for a POSIX shell (for bash if they have odd characters)."""
    return " ".join(quote_for_shell(word, is_plain) for word in words)


def is_plain(word: str) -> bool:
    """Return True if a word has no invisible character and none that ends a line."""
    return single_line(word) == word


def script(
    plans: Sequence[Plan], times: Sequence[tuple[float | None, float | None]], say: Phrases
) -> str:
    """Return the statements of a group of plans in order, with names as Python literals."""
    return "\n".join(_lines(plans, times, say))


def _lines(
    plans: Sequence[Plan], times: Sequence[tuple[float | None, float | None]], say: Phrases
) -> Iterator[str]:
    first = plans[0]
    if any(step.expects for step in first.steps):
        yield from (
            "def run(statement, expected):",
            "    try:",
            "        spark.sql(statement)",
            "    except Exception as error:",
            "        if expected not in str(error):",
            "            raise",
            "",
        )
    statements = [step.sql for plan in plans for step in plan.steps if step.sql is not None]
    if any(map(has_variable, statements)):
        yield f"spark.conf.set({SUBSTITUTION!r}, 'false')"
    for number, (step, (earliest, _)) in enumerate(zip(first.steps, times, strict=True)):
        yield f"# {step.id}: {single_line(step.why)}"
        if step.sql is None and step.action is not Action.WAIT:
            text = say.text("pyspark.by_hand")
            yield f"# {single_line(text)}"
            continue
        if step.sql is None:
            setting = f"{duration(step.wait_hours)}, {step.setting}"
            text = say.text("pyspark.wait", time=stamp(earliest) or "", setting=setting)
            yield f"# {single_line(text)}"
            continue
        if step.optional:
            yield f"# {single_line(say.text('step.optional'))}"
        for plan in plans:
            sql = plan.steps[number].sql
            if step.expects is None:
                yield f"spark.sql({sql!a})"
            else:
                yield f"run({sql!a}, {step.expects!a})"
