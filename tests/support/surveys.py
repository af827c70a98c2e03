"""What a plan reads from the log of a table, by path or URI."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.location import locate
from deltaproto.plan_inputs.from_log import LogSurvey, survey_log
from deltaproto.tables.storage import open_log


def survey_table(table: str, storage_options: Mapping[str, str] | None = None) -> LogSurvey:
    return survey_log(open_log(locate(table), storage_options or {}))
