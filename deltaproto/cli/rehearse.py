"""`deltaproto rehearse`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command
from deltaproto.cli.plan_io import (
    FORMAT,
    PLANS,
    SCRATCH,
    load_and_report_plans,
    open_plan_output,
    refuse_output_among_plans,
)
from deltaproto.errors import ExitCode
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.rehearse import rehearse_plan
from deltaproto.execution.run_log import AUDIT_FILE, default_journal_dir
from deltaproto.execution.runner import lazy_runner
from deltaproto.execution.waits import WaitLimits
from deltaproto.redaction import Redactor


def run(values: Mapping[str, Any]) -> int:
    """Rehearse every plan, render each result, and return the worst exit code."""
    plans, codes = load_and_report_plans(values["plans"], allow_empty=values["allow_empty"])
    storage = options.storage_options(values)
    spark = options.spark_settings(values).reaching(*(each.plan.location for each in plans))
    redact = Redactor(storage, spark.conf)
    refuse_output_among_plans(values["output"], values["plans"])
    with open_plan_output(
        "rehearse",
        values,
        redact,
        many=len(plans) > 1,
        complete=ExitCode.UNREADABLE not in codes,
    ) as to:
        session = ApplySession(
            ApplyContext(storage, spark, folder=default_journal_dir),
            lazy_runner(spark),
            audit=lambda path: os.path.join(default_journal_dir(path), AUDIT_FILE),
            redact=redact,
            observer=to.display,
            limits=WaitLimits(),
        )
        for planned in plans:
            result = rehearse_plan(planned, session, values["scratch"])
            codes.add(result.code)
            to.result(result)
    codes.add(to.output.code)
    return int(ExitCode.worst(codes))


COMMAND = Command(
    "rehearse",
    "Run plans on a shallow clone of the table and compare each step with its prediction.",
    run,
    PLANS,
    (
        SCRATCH,
        FORMAT,
        options.ALLOW_EMPTY,
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "rehearse plan.json",
        "rehearse plans/ --scratch s3://lake/_rehearsal",
    ),
    more_exits=(ExitCode.UNREADABLE, ExitCode.FAILED),
)
