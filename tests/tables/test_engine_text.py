"""What an engine's text says."""

from __future__ import annotations

import pytest

from deltaproto.tables.engine_errors import is_connection_lost


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Answer from Java side is empty", True),
        # py4j, where the JVM dies between two calls.
        ("Error while sending", True),
        ("Error while receiving", True),
        ("Gateway is not connected.", True),
        ("[DELTA_X] Error while sending the file", False),
        ("java.io.IOException: Connection reset by peer", False),
        ("StatusCode.UNAVAILABLE: failed to connect to all addresses", True),
        # All that Spark 3.5 says of a JVM that was killed.
        ("An error occurred while calling o55.sql", True),
        ("PythonUtils does not exist in the JVM", True),
        # The first words of whatever Java throws, which follows them.
        ("An error occurred while calling o55.sql.\n: java.lang.Exception: no", False),
        ("An error occurred while calling o55.sql. Trace:\npy4j.Py4JException", False),
        # Without a JVM of this process, the class or member is only missing.
        ("org.apache.spark.api.python.PythonUtils.toArray does not exist in the JVM", False),
        ("[DELTA_X] the column PythonUtils does not exist in the JVM", False),
        ("io.delta.tables.DeltaTable does not exist in the JVM\nor elsewhere", False),
    ],
)
def test_a_spark_that_went_away_is_told_from_one_that_refuses(text: str, gone: bool) -> None:
    assert is_connection_lost(text) is gone
