"""The functions say what the commands say."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto import DeltaprotoError, EngineError, TableError, UsageError, to_dict
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tools import python_api

Cli = Callable[..., Ran]
CLOCK = {"not_before", "history_lost_before", "plan_hash", "seal"}


@pytest.fixture
def table(log: Log) -> str:
    """Deletion vectors and row tracking are listed, and not used."""
    features = ["appendOnly", "deletionVectors", "domainMetadata", "invariants", "rowTracking"]
    log.commit(
        0,
        commit_info(),
        protocol(3, 7, ["deletionVectors"], features),
        metadata(configuration={"delta.appendOnly": "true"}),
    )
    return log.commit(1, commit_info(), add("a")).table


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in CLOCK}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def test_an_inspection(cli: Cli, table: str) -> None:
    found = deltaproto.inspect_table(table)
    assert "rowTracking" in found.state.protocol.supported
    assert json.loads(json.dumps(to_dict(found))) == cli("inspect", table, "--format", "json").table


def test_an_inspection_of_an_older_version_by_another_reader(cli: Cli, table: str) -> None:
    found = deltaproto.inspect_table(table, reader="log", version=0, look_in_files=True)
    assert (found.state.version, to_dict(found)["version"]) == (0, 0)


def test_a_check(cli: Cli, table: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients:\n- client: trino@452\n- client: deltalake@0.17.4\n"
    )
    (checked,) = deltaproto.check(table, policy, clients=["polars@1.20.0"])
    words = ("--policy", str(policy), "--client", "polars@1.20.0", "--format", "json")
    said = cli("check", table, *words).json
    assert to_dict(checked)["verdicts"] == said["verdicts"]
    assert to_dict(checked)["findings"] == said["findings"]
    assert {str(each.verdict.verdict) for each in checked.verdicts} == {"refused", "wrong"}
    reads = deltaproto.check([table], clients=["trino@452"], access=["read"])[0].verdicts
    assert [str(each.verdict.access) for each in reads] == ["read"]


def test_what_cannot_be_read_is_not_complete(table: str, tmp_path: Path) -> None:
    good, bad = deltaproto.check([table, str(tmp_path / "no")], clients=["trino@452"])
    assert (good.complete, bad.complete) == (True, False)
    assert bad.error is not None
    assert bad.error.code == "not-found"


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"lowest": True}, ("--lowest",)),
        ({"lowest": True, "include_enabled": True}, ("--lowest", "--include-enabled")),
        ({"drop": ["rowTracking"]}, ("--drop", "rowTracking")),
        ({"to": (1, 7), "history": "truncate"}, ("--protocol", "1,7", "--history", "truncate")),
        (
            {"for_clients": ["trino@452"], "clients": ["daft@0.5.22"]},
            ("--for-client", "trino@452", "--client", "daft@0.5.22"),
        ),
        (
            {"drop": ["deletionvectors"], "engine": "databricks@16.4"},
            ("--drop", "deletionVectors", "--engine", "databricks@16.4"),
        ),
    ],
)
def test_a_downgrade(cli: Cli, table: str, named: dict[str, Any], words: tuple[str, ...]) -> None:
    plan = deltaproto.plan_downgrade(table, **named)
    said = cli("plan-downgrade", table, *words, "--format", "json").json
    mine = json.loads(json.dumps(to_dict(plan)))
    assert without_times(mine) == without_times({key: said[key] for key in mine})
    assert mine["plan_id"] == said["plan_id"]


def test_a_plan_for_a_policy(cli: Cli, table: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\ntables:\n  '**':\n    require_properties: {delta.appendOnly: false}\n"
        "    forbid_features: [deletionVectors, invariants]\n"
    )
    plan = deltaproto.plan_policy(table, policy, clients=["trino@452"])
    words = ("--policy", str(policy), "--client", "trino@452")
    said = cli("plan", table, *words, "--format", "json").json
    mine = json.loads(json.dumps(to_dict(plan)))
    assert without_times(mine) == without_times({key: said[key] for key in mine})
    assert plan.fixes
    assert plan.unmet
    with pytest.raises(deltaproto.ResultError, match="the policy stays violated: DP205"):
        plan.raise_for_status()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"enable": ["columnMapping=name"]}, ("--enable", "columnMapping=name")),
        (
            {"set": {"delta.enableChangeDataFeed": "true"}},
            ("--set", "delta.enableChangeDataFeed=true"),
        ),
        ({"isolation": "Serializable"}, ("--isolation", "Serializable")),
        ({"to": (3, 7)}, ("--protocol", "3,7")),
        ({"cluster_by": ["id"]}, ("--cluster-by", "id")),
        (
            {"enable": ["v2Checkpoint"], "for_clients": ["trino@452"]},
            ("--enable", "v2Checkpoint", "--for-client", "trino@452"),
        ),
    ],
)
def test_an_upgrade(cli: Cli, table: str, named: dict[str, Any], words: tuple[str, ...]) -> None:
    plan = deltaproto.plan_upgrade(table, **named)
    said = cli("plan-upgrade", table, *words, "--format", "json").json
    mine = json.loads(json.dumps(to_dict(plan)))
    assert without_times(mine) == without_times({key: said[key] for key in mine})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: deltaproto.inspect_table(t, reader="hive"), 'reader: unknown "hive"'),
        (lambda t: deltaproto.inspect_table(t, version=-1), "is negative"),
        (lambda t: deltaproto.inspect_table(t, version="1"), "version is of the type str"),
        (lambda t: deltaproto.history(t, since="2026-11-01"), "since is of the type str"),
        (lambda t: deltaproto.history(t, since=date(2026, 11, 1)), "pass a datetime.datetime"),
        (
            lambda t: deltaproto.plan_upgrade(t, set={"delta.appendOnly": True}),
            'the value of delta.appendOnly is of the type bool\nhint: pass a text: "true"',
        ),
        (lambda t: deltaproto.plan_upgrade(t, set={"delta.checkpointInterval": 9}), '"9"'),
        (lambda t: deltaproto.plan_upgrade(t, to="3,7"), "the reader and the writer version"),
        (lambda t: deltaproto.plan_upgrade(t, to=(3,)), "to has 1 version, not 2"),
        (lambda t: deltaproto.plan_upgrade(t, to=("3", "7")), "a version of to is of the type str"),
        (lambda t: deltaproto.scan(t, parallel=0), "parallel is 0"),
        (lambda t: deltaproto.scan(t, timeout=-1), "timeout is -1"),
        (lambda t: deltaproto.check(t), "nothing to check against"),
        (lambda t: deltaproto.check(t, clients="trino@452"), "clients is a single string"),
        (lambda t: deltaproto.check(t, clients=["trin@452"]), "trin"),
        (
            lambda t: deltaproto.check(t, clients=["trino@452"], access=["look"]),
            "unknown access look",
        ),
        (lambda t: deltaproto.plan_downgrade(t), "no goal"),
        (lambda t: deltaproto.plan_downgrade(t, lowest=True, to=(1, 2)), "more than one goal"),
        (lambda t: deltaproto.plan_downgrade(t, to=(1, 9)), "writer version 9"),
        (lambda t: deltaproto.plan_downgrade(t, drop="deletionVectors"), "drop is a single string"),
        (lambda t: deltaproto.plan_downgrade(t, drop=["deletionVector"]), "unknown feature"),
        (
            lambda t: deltaproto.plan_downgrade(t, lowest=True, history="all"),
            'history: unknown "all"',
        ),
        (lambda t: deltaproto.plan_upgrade(t), "no change requested"),
        (lambda t: deltaproto.plan_upgrade(t, enable=["x="]), "no such mode"),
        (lambda t: deltaproto.apply(t + "/none.json"), "cannot read"),
    ],
)
def test_what_makes_no_sense(call: Callable[[str], object], message: str, table: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        call(table)
    assert (raised.value.exit_code, bool(raised.value.message)) == (2, True)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    for call in (deltaproto.inspect_table, lambda t: deltaproto.plan_downgrade(t, lowest=True)):
        with pytest.raises(TableError) as raised:
            call(str(tmp_path / "nothing"))
        assert (raised.value.code, int(raised.value.exit_code)) == ("not-found", 3)


def test_several_plans_in_a_file_are_not_applied(cli: Cli, table: str, tmp_path: Path) -> None:
    file = tmp_path / "plans.jsonl"
    for number in range(2):
        ran = cli("plan-upgrade", table, "--set", f"delta.a={number}", "--format", "jsonl")
        with file.open("a") as out:
            out.write(ran.out)
    with pytest.raises(UsageError, match="is not a single plan"):
        deltaproto.apply(file)


def test_to_dict_takes_results_only() -> None:
    with pytest.raises(TypeError, match="int is not a result"):
        to_dict(3)


def test_everything_is_there_and_described() -> None:
    assert {*deltaproto.__all__} <= {*dir(deltaproto)}
    page = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text()
    assert all(f"\n### {name}\n" in page for name in deltaproto.__all__)
    assert issubclass(EngineError, DeltaprotoError)
    with pytest.raises(AttributeError, match="no attribute 'plan'"):
        _ = deltaproto.plan
    for name in python_api.GROUPS["Functions"]:
        text = inspect.getdoc(getattr(deltaproto, name)) or ""
        assert "Raises:" in text, name


def test_the_package_itself_imports_nothing() -> None:
    code = (
        "import sys; before = {*sys.modules}; import deltaproto; "
        "print(sorted({*sys.modules} - before - {'__future__'}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['deltaproto']"
