"""No output of any command holds a secret of an address."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.conftest import Ran
from tests.support.failures import collect_failures
from tests.support.logs import Log, metadata, protocol

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
CANARY = "c4n4ryV4lue9"
ADDRESSES = (
    f"abfss://c@a.dfs.core.windows.net/t?sv=1&sig={CANARY}",
    f"az://c/t?sig={CANARY}",
    f"gs://lake/t?access_token={CANARY}",
    f"s3://AKIA0:{CANARY}/x@lake/t",
    f"s3://lake/t?X-Amz-Security-Token={CANARY}",
    f"jdbc:postgresql://host/db?user=a&password={CANARY}",
    f"https://{CANARY}@host/t",
    f"https://a.blob.core.windows.net/c/t?sv=2024&se=x&sp=r&sig={CANARY}",
    f"wasbs://c@a.blob.core.windows.net/t?sv=1&sig={CANARY}",
    f"abfss:/c@a/t?sig={CANARY}",
    f"gs:/lake/t?X-Goog-Signature={CANARY}",
    f"jdbc:oracle:thin:scott/{CANARY}@host:1521:orcl",
    f"jdbc:oracle:thin:scott/{CANARY}@//host:1521/service",
    f"jdbc:h2:mem:db;USER=sa;PASSWORD={CANARY}",
    f"jdbc:sqlserver://host:1433;user=sa;password={CANARY}",
    f"jdbc:teradata://host/DATABASE=d,USER=u,PASSWORD={CANARY}",
    f"JDBC:db2:d:user=a;password={CANARY};",
    f"JDBC:sqlserver:host;user=a;PWD={CANARY}",
    f"delta.`jdbc:oracle:thin:scott/{CANARY}@//host/db`",
    f"abfss://c@a.dfs.core.windows.net/t%3FSIG%3D{CANARY}",
    f"abfss://c@a.dfs.core.windows.net/t%253Fsig%253D{CANARY}",
    f"az://c/t?sv=2021&se=2030&sr=b&sp=r&SIG={CANARY}",
    f"s3://lake/t?x-amz-signature={CANARY}",
    f"s3:/lake/t?X-Amz-Signature={CANARY}",
    f"s3://me%3A{CANARY}@lake/t",
    f"gs://lake/t?s%69g={CANARY}",
    f"https://a.blob.core.windows.net/c/t?code={CANARY}",
    f"jdbc:snowflake://host/?user=a&private_key_pwd={CANARY}",
    f"jdbc:bigquery://host;OAuthType=0;OAuthPvtKey={CANARY}",
    f"cos://lake/t?q-sign-algorithm=sha1&q-signature={CANARY}",
    f"BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=1&sig={CANARY}",
    f"abfss://c@a.dfs.core.windows.net/t?sv=1&sig ={CANARY}",
    f"abfss://c@a.dfs.core.windows.net/t?sv=1&sig\u200b={CANARY}",
    f"gs://lake/t?access_token%20=%20{CANARY}",
    f"az://c/t?s\u00adi\u2060g={CANARY}",
    f"az://c/t?sig\uff1d{CANARY}",
    f"az://c/t?sv=1&sig=first&s%69g={CANARY}",
    f"s3://lake/t#\tSIG+={CANARY}",
    f"s3://me\u200b:{CANARY}@lake/t",
    f"https://me :{CANARY}@host/t",
    f"\u200bhttps://me:{CANARY}@host/t",
    f"https:\\\\me:{CANARY}@host\\t",
    f"https://host/t?client_assertion={CANARY}",
    f"s3://lake/t?aws_secret_access_key={CANARY}",
    f"abfss://c@a.dfs.core.windows.net/t?azure_storage_account_key={CANARY}",
    f"s3://lake/t?fs.s3a.secret.key={CANARY}",
    f"abfss://c@a.dfs.core.windows.net/t?fs.azure.account.key.a.dfs.core.windows.net={CANARY}",
    f"gs://lake/t?customer-encryption-key={CANARY}",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={CANARY};EndpointSuffix=x",
)
ELSEWHERE = (
    ("scan", "ok", "--inventory={}"),
    ("scan", "--list", "{}"),
    ("scan", "--config", "{}"),
    ("scan", "--config", "roots.json"),
    ("scan", "--config", "to.json"),
    ("scan", "ok", "--include", "{}"),
    ("check", "ok", "--policy", "{}"),
    ("check", "ok", "--policy", "policy.json"),
    ("check", "ok", "--policy", "catalogs.json"),
    ("check", "ok", "--client", "{}"),
    ("check", "ok", "--client", "trino@476", "--baseline={}"),
    ("check", "saved.json", "--client", "trino@476"),
    ("check", "ok", "--client", "trino@476", "--baseline", "saved.json"),
    ("plan-downgrade", "saved.json", "--lowest"),
    ("plan-downgrade", "--from", "{}", "--lowest"),
    ("plan-upgrade", "ok", "--sql", "ALTER TABLE delta.`{}` SET TBLPROPERTIES ('a'='b')"),
    ("conflicts", "--sql", "DELETE FROM delta.`{}` WHERE x = 1"),
    ("conflicts", "--sql", "SELECT * FROM delta.`{}`"),
    ("inspect", "ok", "--format", "{}"),
    ("inspect", "ok", "--{}"),
    ("clients", "{}"),
    ("clients", "--client-file", "{}"),
    ("features", "{}"),
    ("explain", "{}"),
    ("certify", "x@1", "--adapter", "{}"),
    ("{}",),
)
COMMANDS = (
    ("inspect",),
    ("history",),
    ("check", "--client", "trino@476"),
    ("plan-downgrade", "--lowest"),
    ("scan",),
    ("drift",),
    ("discover",),
    ("report",),
    ("conflicts",),
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_on_the_command_line(
    cli: Cli, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in COMMANDS:
        for format_ in ("text", "json"):
            ran = cli(*words, address, "--format", format_)
            assert ran.code in (2, 3), words
            assert CANARY not in ran.out + ran.err, words


@pytest.mark.parametrize("address", ADDRESSES)
def test_in_plan_files(
    cli: Cli, log: Log, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that somebody sealed, or an older release made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    log.commit(0, protocol(1, 2), metadata())
    file = Path("plan.json")
    words = ("--enable", "deletionVectors", "--format", "json", "-o", str(file))
    assert cli("plan-upgrade", log.table, *words).code == 0
    whole = json.loads(file.read_text())
    error = {"code": "not-found", "message": f"{address} is gone", "hint": ""}
    entries: list[dict[str, Any]] = [
        {**whole, "table": address},
        {**whole, "location": address},
        {**whole, "sql_name": f"delta.`{address}`"},
        {**whole, "table": f"delta.`{address}`"},
        {"table": address, "error": error},
    ]
    for entry in entries:
        if CHECKSUM_FIELD in entry:
            entry[CHECKSUM_FIELD] = compute_checksum(entry)
        file.write_text(json.dumps({**whole, "plans": [entry]}))
        for words in (("runbook",), ("runbook", "--format", "html"), ("apply", "--yes")):
            ran = cli(words[0], str(file), *words[1:])
            assert ran.code in (2, 3), words
            assert CANARY not in ran.out + ran.err, words
        ran = cli("apply", str(file), "--dry-run", "--format", "json")
        assert (ran.code in (2, 3), CANARY in ran.out + ran.err) == (True, False)
    for each in (file.parent / ".deltaproto").glob("*"):
        assert CANARY.encode() not in each.read_bytes()


@pytest.mark.parametrize("address", ADDRESSES)
def test_in_lists_and_inventories(
    cli: Cli, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, where = tmp_path / "names", tmp_path / "inventory"
    names.write_text(f"{address}\n")
    for words in (("scan", "--list", str(names)), ("scan", ".", "--inventory", address)):
        monkeypatch.chdir(tmp_path)
        ran = cli(*words, "--format", "json")
        assert CANARY not in ran.out + ran.err
    assert cli("scan", "--list", str(names), "--inventory", str(where)).code == 3
    ran = cli("check", str(where), "--client", "trino@476")
    assert CANARY not in ran.out + ran.err
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{address}\n"))
    ran = cli("inspect", "-", "--format", "jsonl")
    assert (ran.code, CANARY in ran.out + ran.err) == (3, False)
    for file in where.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes()


@pytest.mark.parametrize("address", ADDRESSES)
def test_in_every_other_place(
    cli: Cli, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Log(tmp_path / "ok").commit(0, protocol(1, 2), metadata())
    error = {"code": "not-found", "message": f"{address} is gone", "hint": address}
    for name, document in {
        "roots": {"scan": {"roots": [address]}},
        "to": {"scan": {"roots": ["ok"], "to": address}},
        "policy": {"policy_version": 1, "tables": {address: {"max_reader_version": 1}}},
        "catalogs": {"policy_version": 1, "catalogues": [address]},
        "saved": {
            "schema_version": "1.0",
            "command": "inspect",
            "tables": [{"table": address, "location": address, "error": error}],
        },
    }.items():
        Path(f"{name}.json").write_text(json.dumps(document))
    with collect_failures() as failures:
        for words in ELSEWHERE:
            for more in ((), ("--format", "json")):
                with failures.of(" ".join(words)):
                    ran = cli(*(word.replace("{}", address) for word in words), *more)
                    assert CANARY not in ran.out + ran.err
