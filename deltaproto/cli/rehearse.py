"""`deltaproto rehearse`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.apply import beside, beside_data, once, read_all
from deltaproto.cli.apply_progress import Display
from deltaproto.cli.check import spare
from deltaproto.cli.declare import Argument, Command, Option
from deltaproto.errors import ExitCode
from deltaproto.execution.prepare import Context
from deltaproto.execution.redact import Redactor
from deltaproto.execution.rehearse import Rehearsal, rehearse
from deltaproto.execution.runner import Runner
from deltaproto.execution.stepping import Limits
from deltaproto.report.apply import ApplyFormat, ApplyReport
from deltaproto.report.apply_text import ApplyText


def run(values: Mapping[str, Any]) -> int:
    """Rehearse every plan, render each result, and return the worst exit code."""
    plans, codes = read_all(values["plans"])
    storage = options.pairs(values["storage_option"], "--storage-option")
    spark = options.spark_settings(values)
    redact = Redactor(storage, spark.conf)
    spare(values["output"], tuple(values["plans"]))
    as_text = values["format"] is ApplyFormat.TEXT
    with options.opened(values["output"]) as file:
        text = ApplyText(
            file if as_text else beside_data(values), color=not values["no_color"], redact=redact
        )
        report = ApplyReport("rehearse", values["format"], file, redact)
        shown = not (values["no_progress"] or values["quiet"])
        with Display(text, many=len(plans) > 1, show=shown) as display:
            by = Rehearsal(
                Context(storage, spark, folder=beside),
                once(lambda: Runner.started(spark)),
                display,
                Limits(),
                redact,
                values["scratch"],
            )
            for planned in plans:
                result = rehearse(planned, by)
                codes.add(result.code)
                text.result(result)
                report.add(result)
        text.close()
        report.close()
    return int(ExitCode.worst(codes))


COMMAND = Command(
    "rehearse",
    "Run plans for real on a shallow clone, and compare each step with its prediction.",
    run,
    Argument(
        "plans",
        "PLAN...",
        "Plan files that `plan-… --format json` wrote; a folder stands for the plans in it.",
        many=True,
    ),
    (
        Option(
            ("--scratch",),
            "Folder or URI to clone into; by default a temporary folder.",
            str,
            metavar="DIR",
        ),
        Option(("--format",), "Output format.", ApplyFormat, ApplyFormat.TEXT),
        options.OUTPUT,
        *options.READING,
    ),
)
