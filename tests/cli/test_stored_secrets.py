"""No output, inventory or plan holds a credential that somebody stored in a table's log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.conftest import Ran
from tests.support.failures import collect_failures
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
CANARY = "c4n4ryV4lue9c4n4ry"
KEY = "AKIAC4N4RYC4N4RYC4N4"
TOKEN = "dapi" + "c4a4" * 8
SECRETS = {
    "signed": f"https://a.blob.core.windows.net/c/t?sv=1&sig={CANARY}",
    "login": f"https://me:{CANARY}@host/t",
    "storage": f"abfss://c@a.dfs.core.windows.net/t?sv=1&amp;s%69g={CANARY}",
    "connection": f"AccountName=a;AccountKey={CANARY};x",
    "jdbc": f"jdbc:oracle:thin:scott/{CANARY}@host:1521:orcl",
    "key": f"job of {KEY}",
    "token": f"user {TOKEN}",
    "web token": f"eyJ{CANARY}.eyJ{CANARY}.{CANARY}",
}
MARKS = (CANARY, KEY, TOKEN, "C4N4RY")
PER_TABLE = {
    ("inspect",): ("text", "json", "jsonl", "markdown", "html"),
    ("inspect", "--activity"): ("text", "json"),
    ("inspect", "--reader", "delta-rs"): ("text", "json"),
    ("history",): ("text", "json", "jsonl", "markdown", "html"),
    ("check", "--client", "trino@476"): (
        *("text", "json", "jsonl", "markdown", "sarif", "junit", "github", "gitlab"),
    ),
    ("conflicts",): ("text", "json", "markdown"),
    ("conflicts", "--at", "1970-01-01T00:00:01Z", "--exception", "ConcurrentAppendException"): (
        "text",
        "json",
    ),
    ("plan-upgrade", "--set", "src=b", "db.password=x"): ("text", "json", "markdown", "html"),
    ("plan-upgrade", "--set", "src=b"): ("text", "json", "markdown", "html"),
    ("plan-downgrade", "--lowest", "--include-enabled"): ("text", "json", "markdown", "html"),
    ("plan-downgrade", "--drop", "columnMapping"): ("text", "json"),
}


def commits(secret: str) -> Iterator[tuple[dict[str, Any], ...]]:
    """A log with a secret wherever a writer can store a text of its own."""
    info = commit_info(
        f"WRITE {secret}",
        engineInfo=secret,
        clientVersion=secret,
        userName=secret,
        userId=secret,
        clusterId=secret,
        txnId=secret,
        isolationLevel=secret,
        operationParameters={secret: secret, "properties": json.dumps({"src": secret})},
        userMetadata=secret,
        job={"jobName": secret, "jobId": secret},
    )
    described = metadata(
        {
            secret: secret,
            "src": secret,
            "db.password": CANARY,
            "delta.isolationLevel": secret,
            "delta.columnMapping.mode": "name",
            "delta.logRetentionDuration": secret,
            "delta.constraints.c": f"s <> '{secret}'",
        },
        schema_string(
            column("id"),
            column(secret, "long", delta__generationExpression=f"'{secret}'", comment=secret),
            column("s", "string", CURRENT_DEFAULT=f"'{secret}'"),
            column("odd", secret),
        ),
        [secret],
        id=secret,
    )
    described["metaData"] |= {"name": secret, "description": secret}
    names = [secret, "columnMapping", "checkConstraints"]
    clustering = json.dumps({"clusteringColumns": [[secret]]})
    yield info, protocol(1, 2), metadata(), add("a.parquet")
    yield info, protocol(3, 7, [secret, "columnMapping"], names)
    yield (
        info,
        described,
        {"domainMetadata": {"domain": secret, "configuration": secret, "removed": False}},
        {"domainMetadata": {"domain": "delta.clustering", "configuration": clustering}},
        {"txn": {"appId": secret, "version": 1}},
    )


@pytest.fixture(
    scope="module",
    params=[SECRETS.keys() & {"signed", "key"}, pytest.param({*SECRETS}, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("secrets") / "lake"
    for name in sorted(request.param):
        secret = SECRETS[name]
        log = Log(root / name)
        for version, actions in enumerate(commits(secret)):
            log.commit(version, *actions)
        # Without an unknown feature, plans have steps.
        Log(root / f"{name} in a property").commit(
            0,
            commit_info("CREATE TABLE", engineInfo=secret),
            protocol(2, 5),
            metadata({"src": secret, "db.password": CANARY, "delta.columnMapping.mode": "name"}),
        )
    return root


def leaked(text: str) -> list[str]:
    return [line.strip()[:200] for line in text.splitlines() if any(m in line for m in MARKS)]


@pytest.mark.parametrize("words", PER_TABLE, ids=" ".join)
def test_in_no_format_of_a_command(cli: Cli, lake: Path, words: tuple[str, ...]) -> None:
    command, *more = words
    with collect_failures() as failures:
        for table in sorted(lake.iterdir()):
            for format_ in PER_TABLE[words]:
                with failures.of(f"{table.name} {format_}"):
                    ran = cli(command, str(table), *more, "--format", format_)
                    assert ran.code in (0, 1, 3)
                    assert leaked(ran.out + ran.err) == []
                    assert "internal error" not in ran.out + ran.err
                    assert ran.out


def test_in_no_inventory_and_nothing_made_of_it(cli: Cli, lake: Path, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    scan = ("scan", str(lake), "--inventory", str(inventory), "--format", "json")
    for _ in range(2):
        ran = cli(*scan)
        assert (ran.code, leaked(ran.out + ran.err)) == (1, [])
        for commit in lake.rglob("00000000000000000000.json"):
            actions = (
                commit_info("SET", engineInfo=SECRETS["signed"], userName=SECRETS["key"]),
                protocol(3, 7, [SECRETS["signed"]], [SECRETS["signed"], "appendOnly"]),
            )
            version = len([*commit.parent.glob("*.json")])
            later = commit.with_name(f"{version:020d}.json")
            later.write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert cli(*scan).json["tables"] == len([*lake.iterdir()])
    for words in (
        ("drift", str(inventory)),
        ("check", str(inventory), "--client", "trino@476"),
        ("plan-downgrade", "--from", str(inventory), "--lowest"),
        ("report", str(inventory), "--format", "html"),
        ("report", str(inventory), "--format", "csv"),
        ("report", str(inventory), "--format", "json"),
        ("scan", str(lake), "--list-tables"),
    ):
        ran = cli(*words)
        assert (leaked(ran.out + ran.err), bool(ran.out)) == ([], True), words
    held = [p for p in inventory.rglob("*") if p.is_file()]
    assert [p for p in held if any(m.encode() in p.read_bytes() for m in MARKS)] == []


def test_in_a_saved_inspection_of_another_release(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, commit_info(), protocol(3, 7, ["unheardOf"], ["unheardOf"]), metadata())
    saved = cli("inspect", log.table, "--format", "json").out
    for secret in SECRETS.values():
        file = tmp_path / "saved.json"
        file.write_text(saved.replace("unheardOf", json.dumps(secret)[1:-1]))
        for words in (
            ("check", str(file), "--client", "trino@476"),
            ("check", log.table, "--baseline", str(file)),
            ("plan-downgrade", str(file), "--lowest"),
        ):
            ran = cli(*words)
            assert (leaked(ran.out + ran.err), "internal error" in ran.err) == ([], False), words


def test_in_no_result_of_the_python_api(lake: Path) -> None:
    for table in sorted(lake.iterdir()):
        opened = deltaproto.Table(str(table))
        for made in (
            opened.inspect(),
            opened.history(),
            opened.check(clients=["trino@476"]),
            opened.plan_upgrade(set={"src": SECRETS["signed"], "db.password": CANARY}),
        ):
            assert leaked(json.dumps(made.to_dict(), indent=1) + repr(made)) == []


def test_a_plan_never_stores_one(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, commit_info(), protocol(2, 5), metadata({"src": SECRETS["signed"]}))
    words = ("plan-upgrade", log.table, "--format", "json")
    changed = cli(*words, "--set", "src=b")
    (step,) = changed.json["steps"]
    assert (changed.code, step["undo"], step["reversible"]) == (0, None, False)
    assert "holds a credential" in step["losses"][0]
    for asked in (
        ("--set", f"src={SECRETS['signed']}"),
        ("--set", "db.password=hunter2"),
        ("--sql", f"ALTER TABLE t SET TBLPROPERTIES ('src'='{SECRETS['signed']}')"),
        ("--sql", "ALTER TABLE t SET TBLPROPERTIES ('a'='b', 'api_key'='hunter2')"),
    ):
        refused = cli(*words, *asked)
        assert (refused.code, refused.json["steps"]) == (1, []), asked
        assert "would contain a credential" in refused.json["blocked"][-1]["reason"]


def test_a_sealed_plan_with_one_is_refused(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, commit_info(), protocol(2, 5), metadata({"src": "a"}))
    file = tmp_path / "plan.json"
    assert cli("plan-upgrade", log.table, "--set", "src=b", "--format", "json", "-o", str(file))
    plan = json.loads(file.read_text())
    plan["steps"][0]["undo"] = f"ALTER TABLE t SET TBLPROPERTIES ('src'='{SECRETS['signed']}')"
    plan[CHECKSUM_FIELD] = compute_checksum(plan)
    file.write_text(json.dumps(plan))
    for command in ("apply", "runbook"):
        ran = cli(command, str(file))
        assert (ran.code, leaked(ran.out + ran.err)) == (2, [])
        assert "the plan contains a credential" in ran.err
