"""What a newcomer types wrong in the first hour, and the hint that leads on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]


@pytest.mark.parametrize("command", ["inspect", "history", "plan-downgrade"])
def test_a_misspelled_file_is_not_only_a_missing_spark(
    command: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    goal = ("--lowest",) if command == "plan-downgrade" else ()
    ran = cli(command, "saved.json", *goal)
    shown = " ".join((ran.out + ran.err).split())
    assert ran.code == 3
    assert "there is no file or folder saved.json; as a catalog name it needs Spark" in shown
    assert "check the path; or name the catalog, as in uc://HOST/saved.json" in shown
    assert "pip install 'delta-spark<4.4.1'" in shown


def test_a_missing_library_of_a_catalog_is_named_with_a_command_that_works(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "botocore.config", None)
    ran = cli("scan", "glue://eu-west-1", "--list-tables")
    assert ran.code == 3
    assert "botocore, which is not installed (pip install botocore)" in ran.err
    assert "hint: pip install botocore" in cli("inspect", "glue://eu-west-1/a.b").out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("scan", "LAKE", "--include", ""), "--include is empty"),
        (("scan", "LAKE", "--exclude", "a", "--exclude", " "), "--exclude is empty"),
        (("scan", "--config", ""), "--config is empty"),
        (("inspect", "LAKE", "--output", ""), "--output is empty"),
        (("history", "LAKE", "--since", ""), "--since is empty"),
        (("history", ""), "an argument is empty"),
        (("demo", ""), "an argument is empty"),
        (("status", " "), "an argument is empty"),
    ],
)
def test_an_empty_value_is_a_mistake_and_does_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], named: str
) -> None:
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)
    ran = cli(*(str(tmp_path / "lake") if word == "LAKE" else word for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {named}\nhint: ")
    assert [each.name for each in tmp_path.iterdir()] == ["lake"]


def test_a_folder_of_tables_is_no_parquet_folder_because_of_a_name(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "year=1" / "_delta_log").mkdir(parents=True)
    ran = cli("inspect", str(tmp_path))
    assert ran.code == 3
    assert "it contains Delta tables" in ran.out
    (tmp_path / "year=1" / "_delta_log").rmdir()
    assert "it looks like a Parquet folder" in cli("inspect", str(tmp_path)).out


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("databricks@14.3", "did you mean databricks-runtime?"),
        ("powerbi", "did you mean powerbi-delta-connector?"),
        ("fabric", "did you mean fabric-"),
        ("trinoo@476", "did you mean trino"),
        ("zz@1", "run `deltaproto clients`"),
    ],
)
def test_the_beginning_of_a_clients_name_leads_to_it(cli: Cli, name: str, hint: str) -> None:
    ran = cli("check", "x", "--client", name)
    assert ran.code == 2
    assert f"hint: {hint}" in ran.err


def test_a_rule_is_named_by_its_id(cli: Cli, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nseverities: {client-refused: off}\n")
    ran = cli("check", "x", "--policy", str(policy))
    assert ran.code == 2
    assert 'unknown rule "client-refused"' in ran.err
    assert "hint: write the rule's id; `deltaproto explain` lists all" in ran.err
    assert "DP201 client-refused" in cli("explain", "client-refuse").err


@pytest.mark.storage
@pytest.mark.parametrize("command", ["scan", "check", "discover", "report", "drift", "inspect"])
def test_an_endpoint_without_tls_must_be_allowed_for_inventories_too(
    command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "XDG_CACHE_HOME": str(tmp_path),  # of scans that were not finished
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ALLOW_HTTP", raising=False)
    where = "s3://lake/_inventory"
    words = {
        "scan": ("s3://lake", "--inventory", where),
        "check": (where, "--client", "trino@476"),
    }
    ran = cli(command, *words.get(command, (where,)), "--quiet")
    shown = " ".join((ran.out + ran.err).split())
    assert ran.code in (2, 3)
    assert "not encrypted" in shown
    assert "pass --storage-option allow_http=true" in shown
    assert "repair it" not in shown
