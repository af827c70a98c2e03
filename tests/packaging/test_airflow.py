"""The task of the guide about schedules, as a DAG file in a real Airflow.

`make package` runs this: Airflow is large, and needs an environment of its own.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.packaging.conftest import Installed

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "schedule.md").read_text()
(DAG,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RUN = """
import sys
from airflow.dag_processing.dagbag import DagBag
from airflow.exceptions import AirflowException

bag = DagBag(sys.argv[1])
assert bag.import_errors == {}, bag.import_errors
(dag,) = bag.dags.values()
(task,) = dag.tasks
assert dag.schedule == "@daily" and task.retries == 0
task.cwd = sys.argv[2]
task.env, task.append_env = {}, True
try:
    task.execute({})
except AirflowException as error:
    print(error)
else:
    print("passed")
"""


@pytest.fixture(scope="module")
def airflow(installed: Installed) -> Path:
    """Python of an environment with Airflow, and nothing of ours."""
    return installed("apache-airflow", "apache-airflow-providers-standard") / "python"


@pytest.mark.parametrize(("code", "shown"), [(0, "passed"), (1, "exit code 1"), (3, "exit code 3")])
def test_the_dag_is_imported_and_fails_with_the_command(
    airflow: Path, tmp_path: Path, code: int, shown: str
) -> None:
    dags, work, programs = tmp_path / "dags", tmp_path / "work", tmp_path / "bin"
    for folder in (dags, work, programs):
        folder.mkdir()
    (dags / "protocols.py").write_text(DAG)
    stand_in = programs / "deltaproto"
    stand_in.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexit {code}\n')
    stand_in.chmod(0o755)
    ran = subprocess.run(
        [str(airflow), "-c", RUN, str(dags), str(work)],
        env={"PATH": f"{programs}:/usr/bin:/bin", "AIRFLOW_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert shown in ran.stdout
    words = (tmp_path / "words").read_text().split()
    assert words[:2] == ["scan", "s3://lake"]
