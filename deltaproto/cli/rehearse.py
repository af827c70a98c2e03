"""`deltaproto rehearse`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.executing import FORMAT, PLANS, beside, read_all, shown, starts
from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import plan_files
from deltaproto.execution.prepare import Context
from deltaproto.execution.rehearse import Rehearsal, rehearse
from deltaproto.execution.waiting import Limits
from deltaproto.tables.redact import Redactor


def run(values: Mapping[str, Any]) -> int:
    """Rehearse every plan, render each result, and return the worst exit code."""
    plans, codes = read_all(values["plans"], allow_empty=values["allow_empty"])
    storage = options.pairs(values["storage_option"], "--storage-option")
    spark = options.spark_settings(values).reaching(*(each.plan.location for each in plans))
    redact = Redactor(storage, spark.conf)
    options.spare(values["output"], plan_files(values["plans"], allow_empty=True))
    with shown("rehearse", values, redact, many=len(plans) > 1) as to:
        by = Rehearsal(
            Context(storage, spark, folder=beside),
            starts(spark),
            to.display,
            Limits(),
            redact,
            values["scratch"],
        )
        for planned in plans:
            result = rehearse(planned, by)
            codes.add(result.code)
            to.result(result)
    codes.add(to.output.code)
    return int(ExitCode.worst(codes))


COMMAND = Command(
    "rehearse",
    "Run plans for real on a shallow clone, and compare each step with its prediction.",
    run,
    PLANS,
    (
        Option(
            ("--scratch",),
            "Folder or URI to clone into; by default a temporary folder.",
            str,
            metavar="DIR",
        ),
        FORMAT,
        options.ALLOW_EMPTY,
        options.OUTPUT,
        *options.READING,
    ),
)
