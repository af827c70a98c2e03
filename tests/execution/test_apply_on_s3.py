"""apply on S3 through Spark with hadoop-aws, on a real endpoint; credentials in the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.canaries import Watch
from tests.support.engines import RUNNING, for_running
from tests.support.lakes import s3_lake, trust
from tests.support.spark_settings import SHORT_LIVED, SMALL_TABLES

# hadoop-aws comes with the whole of Amazon's library, 690 megabytes once for a machine.
pytestmark = [pytest.mark.storage, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
CANARY = "c4n4ry/V4lue+9"


def test_a_plan_is_carried_out_and_refused(tmp_path: Path) -> None:
    place = str(tmp_path / "here")
    write_deltalake(place, pa.table({"a": [1, 2, 3]}))
    with s3_lake() as lake:
        table = lake.upload(Path(place), "gold/orders")
        watch = Watch(tmp_path / "watched", [*lake.secrets, *lake.denied.values(), CANARY])
        options = {**SMALL_TABLES, "spark.driver.extraJavaOptions": SHORT_LIVED}
        conf = [word for item in options.items() for word in ("--spark-conf", "=".join(item))]

        def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
            around = {**watch.environment(), **environment}
            ran = subprocess.run(
                [sys.executable, "-m", "deltaproto", *for_running(words)],
                capture_output=True,
                text=True,
                check=False,
                env=around,
                cwd=watch.root,
            )
            watch.look(ran.stdout, ran.stderr)
            return ran

        planned = run(
            *("plan-upgrade", table, "--enable", "deletionVectors", "--format", "json"),
            **lake.environment,
        )
        plan = watch.root / "plan.json"
        plan.write_text(planned.stdout)
        # The oldest engine cannot drop what it enables.
        how = ("apply", str(plan), "--yes", "--allow-irreversible", "--format", "json", *conf)
        stranger = {**lake.environment, **lake.denied}
        refused = run(*how, **stranger)
        assert refused.returncode in (3, 4), refused
        assert "no permission to read" in refused.stdout
        # Whom the store lets in here but not in Spark, with all that Spark itself says.
        wrong = {"access.key": lake.denied["AWS_ACCESS_KEY_ID"], "secret.key": CANARY}
        given = [f"spark.hadoop.fs.s3a.{key}={value}" for key, value in wrong.items()]
        more = [word for each in given for word in ("--spark-conf", each)]
        failed = run(*how, "--debug", *more, **lake.environment)
        assert failed.returncode in (3, 5), failed
        assert "AccessDenied" in failed.stdout
        if not RUNNING.at_least("4.0"):
            # moto understands no signature of the library that its Hadoop has.
            trust(lake)
        done = run(*how, **lake.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        (applied,) = json.loads(done.stdout)["results"]
        assert applied["status"] == "done"
        options = {**lake.options, "AWS_EC2_METADATA_DISABLED": "true"}
        now = DeltaTable(table, storage_options=options).protocol()
        assert "deletionVectors" in (now.writer_features or [])
        assert os.listdir(watch.root / ".deltaproto")
