"""The package as users get it: built twice, installed by pip, pipx and uv, with nothing of ours.

`make package` runs these: they fetch tools and libraries, and take minutes.
"""

from __future__ import annotations

import email
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.conftest import ROOT, Installed, fine, run
from tests.support.logs import Log, add, commit_info, metadata, protocol

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(900)]

_APPEND = """
import sys
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
write_deltalake(sys.argv[1], pa.table({"id": [1, 2], "name": ["a", "b"]}), mode="append")
DeltaTable(sys.argv[1]).create_checkpoint()
"""


def _source(folder: Path) -> Path:
    """What git knows, as a fresh checkout has it: with other times and another place."""
    names = fine("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def _make(source: Path, tools: Path, *words: str) -> str:
    """Run `make` there with the tools of this session, which are older than that source."""
    home = tools.parent
    ready = ("-o", home / ".ready")
    return fine("make", "-C", source, f"PYTHON={sys.executable}", f"RELEASE={home}", *ready, *words)


@pytest.fixture(scope="session")
def built(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two builds of the same source, in two places: with `make build`, and with uv."""
    one, other = (
        _source(tmp_path_factory.mktemp("source") / name) for name in ("one", "another place")
    )
    _make(one, tools, "build")
    out = other.parent / "dist"
    fine(tools / "python", "-m", "build", "--installer", "uv", "--outdir", out, other)
    return one / "dist", out


@pytest.fixture(scope="session")
def wheel(built: tuple[Path, Path]) -> Path:
    (found,) = built[0].glob("*.whl")
    return found


@pytest.fixture
def table(log: Log) -> str:
    log.commit(0, commit_info(), protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    return log.commit(1, metadata(), add("a")).table


def environment(tmp_path: Path, **more: object) -> dict[str, str]:
    """A user's environment without Java, and without anything of this one."""
    return {
        "PATH": "/usr/local/bin:/bin",
        "HOME": str(tmp_path),
        **{k: str(v) for k, v in more.items()},
    }


def answers(program: Path, table: str, env: dict[str, str]) -> None:
    """What has to work without Java, and what has to say that there is no Spark."""
    assert fine(program, "--version", env=env).startswith("deltaproto ")
    said = json.loads(fine(program, "inspect", table, "--format", "json", env=env))
    assert said["tables"][0]["protocol"]["readerFeatures"] == ["deletionVectors"]
    checked = run(program, "check", table, "--client", "trino@422", "--format", "json", env=env)
    assert checked.returncode == 1, checked.stderr
    plan = json.loads(
        fine(program, "plan-downgrade", table, "--lowest", "--format", "json", env=env)
    )
    assert plan["steps"]
    without = run(program, "inspect", table, "--reader", "spark", env=env)
    assert without.returncode == 3
    assert "pip install 'delta-spark<4.4.1'" in without.stdout
    assert "Traceback" not in without.stdout + without.stderr


def test_builds_are_the_same_byte_by_byte(built: tuple[Path, Path], tools: Path) -> None:
    def digests(folder: Path) -> dict[str, str]:
        return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}

    assert digests(built[0]) == digests(built[1])
    assert len(digests(built[0])) == 2
    fine(tools / "twine", "check", "--strict", *built[0].iterdir())


def test_the_sbom_names_what_the_wheel_brings(
    built: tuple[Path, Path], wheel: Path, tools: Path, tmp_path: Path
) -> None:
    source = _source(tmp_path / "source")
    assert "-m build --outdir dist" in _make(source, tools, "-n", "sbom")
    shutil.copytree(built[0], source / "dist")
    found = []
    for _ in range(2):
        _make(source, tools, "-o", "build", "sbom")
        (made,) = (source / "dist").glob("*.cdx.json")
        found.append(made.read_text())
    assert found[0] == found[1]
    assert str(tmp_path) not in found[0]
    sbom = json.loads(found[0])
    root = sbom["metadata"]["component"]
    assert wheel.name.startswith(f"{root['name']}-{root['version']}-")
    brought = {canonicalize_name(each["name"]): each["version"] for each in sbom["components"]}
    assert not {"pip", "setuptools"} & brought.keys()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        asked = email.message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    for requirement in map(Requirement, asked):
        if requirement.marker is None:
            assert requirement.specifier.contains(brought[canonicalize_name(requirement.name)])


def test_a_wheel_holds_the_data_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("clients/data/trino.yaml", "policies/policy.schema.json", "py.typed"):
        assert f"deltaproto/{wanted}" in names
    assert any(name.endswith("share/man/man1/deltaproto.1") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "tools/", "benchmarks/"))]


def test_an_sdist_passes_what_the_tests_need(built: tuple[Path, Path]) -> None:
    (sdist,) = built[0].glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for wanted in (
        "Makefile",
        "constraints.txt",
        "tests/conftest.py",
        "tools/docs.py",
        "docs/index.md",
    ):
        assert wanted in names
    assert not [name for name in names if name.startswith((".kit", ".clients", ".venv"))]


def test_pip_installs_it(wheel: Path, tmp_path: Path, table: str) -> None:
    fine(sys.executable, "-m", "venv", tmp_path / "v")
    fine(tmp_path / "v" / "bin" / "pip", "install", "-q", wheel)
    answers(tmp_path / "v" / "bin" / "deltaproto", table, environment(tmp_path))


def test_the_lines_for_a_machine_without_network_install_it(tmp_path: Path, table: str) -> None:
    page = (ROOT / "docs/how-to/air-gapped.md").read_text()
    (block,) = re.findall(r"^ *```text\n(.*?)^ *```", page, re.M | re.S)
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    assert [line.split()[:2] for line in lines] == [["pip", "wheel"], ["pip", "install"]]
    clone, home = _source(tmp_path / "clone"), tmp_path / "venv"
    fine(sys.executable, "-m", "venv", home)
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    for line in lines:
        fine("sh", "-c", line, cwd=clone, env={**os.environ, "PATH": path})
    answers(home / "bin" / "deltaproto", table, environment(tmp_path))


def test_uv_installs_it(tools: Path, wheel: Path, tmp_path: Path, table: str) -> None:
    env = environment(
        tmp_path, UV_TOOL_DIR=tmp_path / "tools", UV_TOOL_BIN_DIR=tmp_path / "bin", **_proxies()
    )
    fine(tools / "uv", "tool", "install", "--python", sys.executable, wheel, env=env)
    answers(tmp_path / "bin" / "deltaproto", table, environment(tmp_path))


def test_pipx_installs_it(tools: Path, wheel: Path, tmp_path: Path, table: str) -> None:
    env = environment(
        tmp_path, PIPX_HOME=tmp_path / "pipx", PIPX_BIN_DIR=tmp_path / "bin", **_proxies()
    )
    fine(tools / "pipx", "install", "--python", sys.executable, wheel, env=env)
    answers(tmp_path / "bin" / "deltaproto", table, environment(tmp_path))


def test_the_oldest_allowed_libraries_are_new_enough(
    wheel: Path, installed: Installed, tmp_path: Path, log: Log
) -> None:
    """Other packages of an environment may hold them back."""
    oldest = ("--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml")
    folder = installed(*oldest, wheel)
    program, env = folder / "deltaproto", environment(tmp_path)

    def result(*words: object) -> dict[str, object]:
        ran = run(program, *words, "--format", "json", env=env)
        assert ran.returncode in (0, 1), f"{words}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}"
        return dict(json.loads(ran.stdout))

    lake, inventory, plan = tmp_path / "lake", tmp_path / "inventory", tmp_path / "plan.json"
    fine(folder / "python", "-c", _APPEND, lake / "real", env=env)
    vectors = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    log.commit(0, commit_info(), protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    log.commit(1, metadata(), add("a"), add("b", deletionVector=vectors, baseRowId=0))
    log.checkpoint(1, protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), metadata())
    shutil.copytree(log.root, lake / "written")
    answers(program, str(lake / "written"), env)
    for reader in ("log", "delta-rs"):
        result("inspect", lake / "real", "--reader", reader)
    for _ in range(2):
        fine(program, "scan", lake, "--inventory", inventory, env=env)
        fine(folder / "python", "-c", _APPEND, lake / "real", env=env)
    assert len(result("check", inventory, "--client", "delta-spark@4.4.0")["tables"]) == 2
    result("drift", inventory)
    made = result("plan-upgrade", lake / "real", "--enable", "deletionVectors")
    plan.write_text(json.dumps(made))
    fine(program, "runbook", plan, "--output", tmp_path / "runbook.md", env=env)
    fine(program, "report", inventory, "--output", tmp_path / "report.html", env=env)
    result("plan-downgrade", "--from", inventory, "--lowest", "--client", "deltalake@1.5.1")
    result("discover", inventory)
    (lake / "written" / "_delta_log" / f"{2:020d}.json").write_bytes(b'{"add":{"path":"a"')
    damaged = run(program, "inspect", lake / "written", env=env)
    assert "JSON is truncated" in damaged.stdout, damaged.stderr


@pytest.mark.parametrize(("extra", "module"), [("glue", "botocore"), ("sql", "sqlglot")])
def test_an_extra_installs_what_it_promises(
    extra: str, module: str, wheel: Path, installed: Installed
) -> None:
    assert run(installed(wheel) / "python", "-c", f"import {module}").returncode == 1
    fine(installed(f"{wheel}[{extra}]") / "python", "-c", f"import {module}")


def test_with_java_the_spark_reader_of_the_extra_answers(
    wheel: Path, installed: Installed, tmp_path: Path
) -> None:
    import deltalake
    import pyarrow as pa

    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    bin_ = installed(f"{wheel}[spark]")
    fine(bin_ / "python", "-c", "import delta")
    said = json.loads(
        fine(bin_ / "deltaproto", "inspect", tmp_path / "t", "--reader", "all", "--format", "json")
    )
    (found,) = said["tables"]
    assert {name: each.get("error") for name, each in found["readers"].items()} == {
        "log": None,
        "delta-rs": None,
        "spark": None,
    }


def test_the_image_is_well_made(tools: Path) -> None:
    fine(tools / "hadolint", ROOT / "Dockerfile")


def test_what_the_image_holds_needs_no_network(wheel: Path, tools: Path, tmp_path: Path) -> None:
    """The image's own steps, without an image; then Spark, where there is no network."""
    import deltalake
    import pyarrow as pa

    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    fine(sys.executable, "-m", "venv", "--without-pip", tmp_path / "v")
    bin_ = tmp_path / "v" / "bin"
    # An image has a new pip, as the tools do; that of this Python may be old, and slower.
    install = (tools / "python", "-m", "pip", "--python", bin_ / "python", "install", "-q")
    fine(*install, "-c", ROOT / "constraints.txt", f"{wheel}[connect]")
    fine(bin_ / "python", "-c", "import pyspark.sql.connect.session")
    # What other tests have downloaded; half a gigabyte is of object stores.
    caches = sorted(path for path in Path.home().glob(".ivy2*/cache") if path.is_dir())
    fine(bin_ / "python", ROOT / "docker" / "bake.py", *caches[-1:])
    words = [bin_ / "deltaproto", "inspect", tmp_path / "t", "--reader", "spark"]
    env = {**os.environ, "HOME": str(tmp_path)}
    if run("unshare", "-rn", "true").returncode == 0:
        # Spark's driver and executor speak over the loopback interface.
        alone = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        words = [*alone, *words]
    said = fine(*words, env={**env, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert "(1,2)" in said
    assert not list(tmp_path.glob(".ivy2*/jars/*.jar"))


def _proxies() -> dict[str, str]:
    """How this machine reaches its package index."""
    wanted = ("PIP_", "UV_", "HTTP", "http", "SSL", "REQUESTS")
    return {k: v for k, v in os.environ.items() if k.startswith(wanted)}


def test_the_hook_does_what_it_says(table: str, tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program = Path(sys.executable).parent / "deltaproto"
    saved = tmp_path / "orders.inspection.json"
    saved.write_text(fine(program, "inspect", table, "--format", "json"))
    words = hook["entry"].split()
    assert words[0] == "deltaproto"
    args = (*words[1:], "--client", "trino@422", saved)
    assert run(program, *args).returncode == 1
    assert run(program, *words[1:], "--client", "delta-spark@4.0.1", saved).returncode == 0
