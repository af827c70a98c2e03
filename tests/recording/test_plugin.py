"""A test module with recordings, run by pytest as a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recording import files
from tests.recording.sample import SAMPLES, Sample

ROOT = Path(__file__).parents[2]
SPARK = """
import pytest
from pathlib import Path

class Rows:
    def collect(self):
        return []

class Session:
    def sql(self, statement):
        log = Path(statement.split()[1], "_delta_log")
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{len(list(log.iterdir())):020d}.json").write_text(SAYS + statement.split()[0])
        return Rows()

@pytest.fixture(scope="session")
def spark():
    if SAYS is None:
        pytest.fail("a replay needs no Spark")
    return Session()
"""
TESTS = """
def test_two_commits(delta_spark, tmp_path):
    delta_spark.sql(f"create {tmp_path}/t")
    delta_spark.sql(f"insert {tmp_path}/t")
    assert len(list((tmp_path / "t" / "_delta_log").iterdir())) == 2

def test_another(delta_spark, tmp_path):
    delta_spark.sql(f"create {tmp_path}/t")
"""


class Project:
    """A folder with tests, recordings, and a session that writes what it is set to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text(
            "[pytest]\nmarkers = spark\n    recorded\n    rotating\n    slow\n    heavy\n"
        )
        self.tests = folder / "test_it.py"
        self.tests.write_text(TESTS)

    def run(self, *words: str, spark: str | None = None) -> tuple[int, str]:
        """Run pytest; its exit code and output."""
        (self.folder / "conftest.py").write_text(f"SAYS = {spark!r}\n{SPARK}")
        options = ("-p", "tests.recording.plugin", "-p", "no:cacheprovider", "-q")
        # In its own folder pytest would delete what earlier runs of all tests left.
        options += ("--basetemp", str(self.folder / "temporary"))
        folders = ("--recordings", "recordings", "--new-recordings", "new")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *folders, *words],
            cwd=self.folder,
            # A file written anew within the same second must not be taken for the old one.
            env={
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests and their recordings."""
    folder = tmp_path_factory.mktemp("recorded")
    code, output = Project(folder).run("--spark-results", "record", spark="a ")
    assert code == 0, output
    # Of whatever Spark and Java run these tests.
    (path,) = (folder / "recordings").iterdir()
    document = files.read(path)
    files.save(path, files.pinned(), "2026-01-01", document["tests"])
    return folder


@pytest.fixture
def project(recorded: Path, tmp_path: Path) -> Project:
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


def test_a_replay_needs_no_spark_and_says_what_it_did(project: Project) -> None:
    code, output = project.run()
    assert code == 0, output
    assert "Spark actions: 3 replayed (recorded 2026-01-01), 0 live" in output


def test_two_processes_report_together(project: Project) -> None:
    code, output = project.run("-p", "xdist", "-n", "2", "--dist", "loadgroup")
    assert code == 0, output
    assert "Spark actions: 3 replayed (recorded 2026-01-01), 0 live" in output


def test_a_new_statement_says_what_to_run(project: Project) -> None:
    project.tests.write_text(TESTS.replace('f"insert', 'f"update'))
    code, output = project.run()
    assert code == 1
    assert "not as recorded: run make record" in output
    assert "update {folder}/t" in output


def test_a_new_test_says_what_to_run(project: Project) -> None:
    project.tests.write_text(TESTS.replace("test_another", "test_renamed"))
    code, output = project.run()
    assert code == 1
    assert "test_renamed is not recorded: run make record" in output


def test_an_edited_recording_fails_every_test(project: Project) -> None:
    (path,) = (project.folder / "recordings").iterdir()
    document = files.read(path)
    document["tests"]["test_another"]["start"] = 0.0
    files.write(path, document)
    code, output = project.run()
    assert code == 1
    assert output.count("edited by hand, its digest is wrong: run make record") >= 2


def test_another_engine_version_fails_every_test(project: Project) -> None:
    (path,) = (project.folder / "recordings").iterdir()
    versions = {**files.pinned(), "delta-spark": "3.9.9"}
    files.save(path, versions, "2026-01-01", files.read(path)["tests"])
    code, output = project.run()
    assert code == 1
    assert output.count("recorded with delta-spark 3.9.9, constraints.txt has") >= 2


def test_a_live_run_verifies_the_recordings(project: Project) -> None:
    code, output = project.run("--spark-results", "verify", spark="a ")
    assert code == 0, output
    assert "Spark actions: 0 replayed, 3 live" in output
    code, output = project.run("--spark-results", "verify", spark="b ")
    assert code == 1
    assert "Spark's results are not as recorded" in output
    (new,) = (project.folder / "new").iterdir()
    assert "b create" in str(files.read(new)["tests"])


def test_the_live_sample_is_verified_and_named(project: Project) -> None:
    names = ("test_it.py::test_two_commits", "test_it.py::test_another")
    live = {number for number in range(SAMPLES) if any(Sample(number, "").holds(n) for n in names)}
    for number in (min(live), min(set(range(SAMPLES)) - live)):
        code, output = project.run("--live-sample", str(number + 1), spark="b ")
        assert f"live sample {number + 1} of {SAMPLES}, rotating" in output
        assert code == (number in live)
        assert ("Spark's results are not as recorded" in output) is bool(code)


def test_a_sample_runs_a_fifth_of_the_rotating_tests_and_other_runs_all(project: Project) -> None:
    rows = "@pytest.mark.rotating\n@pytest.mark.parametrize('row', range(30))"
    project.tests.write_text(f"import pytest\n{TESTS}\n{rows}\ndef test_it(row): pass\n")
    expected = [
        sum(Sample(number, "").holds_rotating(f"test_it.py::test_it[{row}]") for row in range(30))
        for number in range(5)
    ]
    assert sum(expected) == 30
    assert "32 passed" in project.run()[1]
    for number, count in enumerate(expected):
        _, output = project.run("--live-sample", str(number + 1), spark="a ")
        assert f"{count + 2} passed, {30 - count} deselected" in output


def test_a_second_run_leaves_out_what_the_sample_has_run(project: Project) -> None:
    row = (
        "@pytest.mark.rotating\n@pytest.mark.parametrize('row', range(30))\ndef test_it(row): pass"
    )
    slow = "@pytest.mark.rotating\n@pytest.mark.slow\ndef test_slow(): pass"
    drawn = "@pytest.mark.rotating\n@given(booleans())\ndef test_drawn(drawn): pass"
    imports = (
        "import pytest\nfrom hypothesis import given\nfrom hypothesis.strategies import booleans"
    )
    project.tests.write_text("\n".join((imports, TESTS, row, slow, drawn)))
    recorded = [f"test_it.py::{name}" for name in ("test_two_commits", "test_another")]
    rows = [f"test_it.py::test_it[{row}]" for row in range(30)]
    held = {number for number in range(SAMPLES) if any(map(Sample(number, "").holds, recorded))}
    turns = {number for number in range(SAMPLES) if Sample(number, "").holds_in_turn(recorded[0])}
    for number in (min(held), min({*range(SAMPLES)} - held), min(turns - held)):
        sample = Sample(number, "")
        turn = filter(sample.holds_in_turn, recorded)
        live = [each for each in turn if not sample.holds(each)]
        out = len(recorded) - len(live) + sum(map(sample.holds_rotating, rows))
        words = ("--spark-results", "verify", "--without-sample", str(number + 1))
        code, output = project.run(*words, spark="a ")
        assert code == 0
        assert f"{34 - out} passed, {out} deselected" in output
        assert (f"without live sample {number + 1} of {SAMPLES}" in output) is bool(live)


def test_a_heavy_module_has_its_turn_at_one_of_four_commits(project: Project) -> None:
    heavy = "pytestmark = [pytest.mark.heavy, pytest.mark.slow]"
    project.tests.write_text(
        f"import pytest\n{heavy}\ndef test_it(): pass\ndef test_more(): pass\n"
    )
    ran = []
    for number in range(1, 5):
        words = ("--spark-results", "verify", "--without-sample", str(number))
        ran.append("2 passed" in project.run(*words, spark="a ")[1])
    assert sorted(ran) == [False, False, False, True]
    assert "2 passed" in project.run("--spark-results", "verify", spark="a ")[1]


def test_only_what_passes_is_recorded(project: Project) -> None:
    (path,) = (project.folder / "recordings").iterdir()
    before = path.read_bytes()
    project.tests.write_text(TESTS.replace("== 2", "== 3"))
    code, _ = project.run("--spark-results", "record", spark="c ")
    assert code == 1
    tests = files.read(path)["tests"]
    assert "a create" in str(tests["test_two_commits"])
    assert "c create" in str(tests["test_another"])
    assert path.read_bytes() != before
