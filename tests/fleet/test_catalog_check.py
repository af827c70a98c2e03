"""`catalogs test`: what works with a catalog, on real endpoints and a stand-in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.fleet.test_scan_catalogs import TOKEN, fill
from tests.support import contract
from tests.support.unity_server import UnityServer, refused, unity_server

Cli = Callable[..., Ran]


@pytest.fixture
def unity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[UnityServer]:
    """A server that wants a token, which the environment has."""
    for name in ("UC_TOKEN_FILE", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "no-profiles"))
    monkeypatch.setattr("deltaproto.tables.catalogs.backoff._FIRST_PAUSE", 0.0)
    monkeypatch.setenv("UC_TOKEN", TOKEN)
    with unity_server() as running:
        running.tokens = {TOKEN}
        yield running


def checked(cli: Cli, *words: str) -> tuple[int, dict[str, tuple[str, str]], Any]:
    """Exit code, each step's result, and the document."""
    ran = cli("catalogs", "test", *words, "--format", "json")
    (document,) = contract.documents(ran, "catalogs")
    assert TOKEN not in ran.out + ran.err
    shown = {each["name"]: (each["status"], each["detail"]) for each in document["checks"]}
    assert list(shown) == ["credentials", "schemas", "tables", "storage", "log"]
    return ran.code, shown, document


def test_everything_works(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    unity.add("main.empty.seen", "", table_type="VIEW")
    fill(unity, tmp_path, 2)
    url = f"uc://{unity.authority}"
    for name in ("", "/main", "/main.sales", "/main.sales.t0"):
        code, steps, document = checked(cli, url + name)
        assert (code, document["catalog"], document["complete"]) == (0, url + name, True)
        assert steps["credentials"] == ("ok", "token of UC_TOKEN")
        assert steps["tables"] == ("ok", "main.sales.t0: external")
        assert steps["log"][1].endswith("/main.sales/t%200: version 0, (3,7)")
    text = cli("catalogs", "test", url)
    assert text.code == 0
    assert len(text.out.splitlines()) <= 24


def test_each_step_that_fails(
    cli: Cli, unity: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"uc://{unity.authority}"
    code, steps, _ = checked(cli, url)
    assert (code, steps["schemas"]) == (3, ("failed", "no schema"))
    unity.add("main.sales.csv", "s3://x/y", data_source_format="CSV")
    code, steps, document = checked(cli, url)
    assert code == 3
    assert steps["tables"] == (
        "failed",
        "no Delta table with a location in 1 schema; 1 table of another format skipped",
    )
    assert steps["storage"] == steps["log"] == ("skipped", "")
    unity.add("main.sales.gone", f"file://{tmp_path}/gone")
    code, steps, _ = checked(cli, url)
    assert (code, steps["storage"][0], steps["log"][0]) == (3, "ok", "failed")
    fill(unity, tmp_path, 1, "main.open")
    unity.faults.append(
        lambda path, query: (
            refused(403, "no USE SCHEMA") if query.get("schema_name") == "sales" else None
        )
    )
    code, steps, _ = checked(cli, url)
    # One schema that may not be listed does not hide the others.
    assert (code, steps["tables"]) == (0, ("ok", "main.open.t0: external"))
    unity.tokens = {"another"}
    code, steps, document = checked(cli, url)
    assert (code, steps["schemas"][0]) == (3, "failed")
    assert "refuses the token" in steps["schemas"][1]
    assert "UC_TOKEN" in document["checks"][1]["hint"]
    monkeypatch.setenv("UC_TOKEN", "two words")
    code, steps, _ = checked(cli, url)
    assert steps["credentials"] == ("failed", "UC_TOKEN does not contain a token")


def test_glue_without_credentials(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    code, steps, _ = checked(cli, "glue://eu-west-1")
    assert (code, steps["credentials"]) == (3, ("failed", "no AWS credentials were found"))


def test_what_is_not_a_catalog(cli: Cli) -> None:
    for words in (["nowhere"], ["uc://h", "uc://h"], []):
        ran = cli("catalogs", "test", *words)
        assert ran.code == 2, words
        assert "deltaproto catalogs test uc://HOST/CATALOG" in ran.err, words
    assert cli("catalogs", "check", "uc://h").code == 2
    ran = cli("catalogs", "test", "https://dbc-1234.cloud.databricks.com/?o=7")
    assert "write uc://dbc-1234.cloud.databricks.com/CATALOG" in ran.err


@pytest.mark.parametrize(
    ("url", "missing", "form"),
    [
        ("uc://", "host", "uc://HOST/CATALOG.SCHEMA"),
        ("uc:///main", "host", "uc://HOST/CATALOG.SCHEMA"),
        ("HMS://", "host", "hms://HOST:PORT/DATABASE"),
        ("glue://", "region", "glue://REGION/DATABASE"),
    ],
)
def test_an_address_without_a_host(
    url: str, missing: str, form: str, cli: Cli, tmp_path: Path
) -> None:
    error = f"error: {url} names no {missing}\nhint: write {form}\n"
    ran = cli("catalogs", "test", url)
    assert (ran.code, ran.out, ran.err) == (2, "", error)
    inventory = tmp_path / "inventory"
    ran = cli("scan", url, "--inventory", str(inventory))
    assert (ran.code, ran.out, ran.err) == (2, "", error)
    assert not inventory.exists()
    ran = cli("inspect", url)
    assert (ran.code, f"{url} names no {missing}" in ran.out) == (3, True)


@pytest.mark.parametrize("command", ["forecast", "report", "drift"])
def test_a_catalog_is_no_inventory(cli: Cli, command: str) -> None:
    ran = cli(command, "uc://h/main")
    assert ran.code == 2
    assert "uc://h/main is a catalog, not an inventory" in ran.err
    assert "scan URL --inventory FOLDER" in ran.err
