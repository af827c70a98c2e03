"""A runbook says first at which gates `apply` would refuse its plans, and names everybody."""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from deltaproto.cli.runbook import COMMAND
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
TODAY = datetime.datetime.now(datetime.UTC).date()
CLIENT = "{client: deltalake/engine@1.6.6, access: [read], as: BI team}"
APPROVAL = (
    "approvals: [{{client: deltalake/engine@1.6.6, access: [read], table: '**', "
    "feature: typeWidening, approver: Mary Moss, reason: moves, ticket: OPS-1, expires: {}}}]"
)
CLOSED = "tables: {'**': {maintenance_windows: []}}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark", None)


def table(name: str, *listed: str) -> Log:
    stored = protocol(3, 7, [], ["appendOnly", "invariants", *listed]) if listed else None
    log = Log(Path(name))
    return log.commit(0, commit_info("CREATE TABLE"), stored or protocol(1, 2), metadata())


def planned(cli: Cli, *words: str, file: str = "plan.json") -> str:
    command = (
        "plan-downgrade" if {"--protocol", "--lowest", "--drop"} & {*words} else "plan-upgrade"
    )
    ran = cli(command, *words, "--format", "json", "-o", file)
    assert ran.code in (0, 1), ran
    return file


def policy(*lines: str) -> str:
    Path("policy.yaml").write_text("\n".join(("policy_version: 1", *lines)) + "\n")
    return "policy.yaml"


def plain(markdown: str) -> str:
    return re.sub(r"\\([^\w\s])", r"\1", markdown)


def up(cli: Cli) -> str:
    return planned(cli, table("orders").table, "--enable", "typeWidening")


def stale(cli: Cli) -> str:
    log = table("orders")
    file = planned(cli, log.table, "--enable", "typeWidening")
    log.commit(1, commit_info("SET TBLPROPERTIES"), metadata({"delta.appendOnly": "true"}))
    return file


def truncating(cli: Cli) -> str:
    log = Log(Path("orders"))
    names = ["deletionVectors"]
    settings = metadata({"delta.enableDeletionVectors": "true"})
    listed = protocol(3, 7, names, ["appendOnly", "invariants", *names])
    log.commit(0, commit_info("CREATE TABLE"), listed, settings)
    return planned(cli, log.table, "--protocol", "1,2")


def kept(cli: Cli) -> str:
    log = table("orders")
    assert cli("inspect", log.table, "--format", "json", "-o", "saved.json").code == 0
    return planned(cli, "saved.json", "--enable", "typeWidening")


def blocked(cli: Cli) -> str:
    return planned(cli, table("orders").table, "--drop", "appendOnly", "invariants")


def forged(cli: Cli) -> str:
    file = up(cli)
    document = json.loads(Path(file).read_text())
    document["steps"][0]["sql"] = "DROP TABLE x"
    document[CHECKSUM_FIELD] = compute_checksum(document)
    Path(file).write_text(json.dumps(document))
    return file


def gone(cli: Cli) -> str:
    file = up(cli)
    Path("orders").rename("elsewhere")
    return file


SITUATIONS: dict[str, tuple[Callable[[Cli], str], tuple[str, ...], set[str], int]] = {
    "loss": (up, (f"clients: [{CLIENT}]",), {"policy"}, 1),
    "expired approval": (
        up,
        (f"clients: [{CLIENT}]", APPROVAL.format(TODAY - datetime.timedelta(1))),
        {"policy"},
        1,
    ),
    "violation": (up, ("tables: {'**': {forbid_features: [typeWidening]}}",), {"policy"}, 1),
    "window": (up, (CLOSED,), {"window"}, 0),
    "loss and window": (up, (f"clients: [{CLIENT}]", CLOSED), {"policy", "window"}, 1),
    "stale": (stale, (f"clients: [{CLIENT}]", CLOSED), {"fingerprint", "policy", "window"}, 4),
    "irreversible": (truncating, (f"clients: [{CLIENT}]",), {"irreversible"}, 0),
    "irreversible, and closed": (truncating, (CLOSED,), {"irreversible", "window"}, 0),
    "no fingerprint": (kept, (f"clients: [{CLIENT}]",), {"fingerprint", "policy"}, 1),
    "blocked": (blocked, (f"clients: [{CLIENT}]",), {"plan"}, 1),
    "forged": (forged, (CLOSED,), {"plan", "policy", "window"}, 1),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_gate_that_apply_fails_is_named_first(name: str, cli: Cli) -> None:
    make, lines, expected, code = SITUATIONS[name]
    file, rules = make(cli), policy(*lines)
    ran = cli("apply", file, "--policy", rules, "--dry-run", "--format", "json")
    (result,) = ran.json["results"]
    failed = {g["name"]: g["message"] for g in result["gates"] if not g["passed"]}
    failed.pop("engine", None)
    assert set(failed) == expected
    if name != "blocked":
        assert all(message in result["message"] for message in failed.values())
    ran = cli("runbook", file, "--policy", rules)
    assert ran.code == code
    assert code in COMMAND.exits
    out = plain(ran.out)
    summary = out.partition("## What changes, and why\n")[2].partition("\n\nEach table is")[0]
    chapter = re.split(r"(?m)^### orders\n|^### /.*orders\n", out)[1].partition("- **Goal**")[0]
    assert summary.lstrip().startswith("> [!")
    assert chapter.lstrip().startswith("> [!")
    assert "deltaproto apply plan.json" not in out.partition(summary)[0]
    for gate, message in failed.items():
        said = f"**{gate}**: {plain(message)}"
        assert said in summary
        assert said in chapter or "**Blocked.**" in chapter
    html = unescape(cli("runbook", file, "--policy", rules, "--format", "html").out)
    for gate, message in failed.items():
        assert f"<strong>{gate}</strong>: {message}" in html


def test_a_table_that_cannot_be_read_is_a_gate_too(cli: Cli) -> None:
    file = gone(cli)
    ran = cli("runbook", file, "--policy", policy(f"clients: [{CLIENT}]", CLOSED))
    assert ran.code == 3
    for gate in ("fingerprint", "policy", "window"):
        assert ran.out.count(f"**{gate}**: ") == 2
    assert "the result cannot be checked against the policy" in ran.out


def test_no_refusal_is_told_where_apply_refuses_nothing(cli: Cli) -> None:
    tomorrow = TODAY + datetime.timedelta(1)
    rules = policy(f"clients: [{CLIENT}]", APPROVAL.format(tomorrow))
    ran = cli("runbook", up(cli), "--policy", rules)
    assert ran.code == 0
    assert "refuse" not in ran.out.partition("\n\nEach table is")[0]
    assert "passed: plan, fingerprint, policy, irreversible" in ran.out
    late = cli("runbook", "plan.json", "--policy", rules, "--start", f"{tomorrow}T23:59Z")
    assert late.code == 0
    later = tomorrow + datetime.timedelta(1)
    after = cli("runbook", "plan.json", "--policy", rules, "--start", f"{later}T00:01Z")
    assert after.code == 1
    assert f"expired on {tomorrow}" in after.out.partition("\n\nEach table is")[0]


def test_a_blocked_table_loses_no_client(cli: Cli) -> None:
    rules = policy(f"clients: [{CLIENT}]", "tables: {'**': {forbid_features: [typeWidening]}}")
    words = ("--enable", "typeWidening", "--policy", rules)
    table("orders")
    table("returns")
    file = planned(cli, "orders", "returns", *words)
    out = cli("runbook", file, "--policy", rules).out
    assert "changes from" not in out
    assert "Nothing changes for the clients of `orders`, `returns`: blocked." in out
    assert "2 tables cannot be changed as planned: `orders`, `returns`" in out
    text = cli("plan-upgrade", "orders", "returns", *words).out
    assert "-> refused" not in text.partition("Warnings")[0]
    assert "- deltalake/engine@1.6.6 read" not in text
    summary = cli("plan-upgrade", "orders", "returns", *words, "--format", "json").json["summary"]
    assert summary["clients_lost"] == []


def test_nobody_is_left_out(cli: Cli) -> None:
    """Tables, clients, features, writers and streams: more than anybody would list."""
    count = 25
    for number in range(count):
        log = table(f"t{number}")
        for version in range(1, count if number == 0 else 1):
            info = commit_info("WRITE", engineInfo=f"engine-{version}", timestamp=version)
            batch = {"txn": {"appId": f"stream-{version}", "version": 1, "lastUpdated": 1}}
            file = add(f"{version}.parquet", stats='{"numRecords":1}')
            log.commit(version, info, batch, file)
    features = ("typeWidening", "columnMapping", "deletionVectors", "rowTracking", "changeDataFeed")
    clients = [f"{{client: trino@{number}, access: [read]}}" for number in range(400, 400 + count)]
    rules = policy(f"clients: [{', '.join(clients)}]")
    enabled = ("--enable", *features, "inCommitTimestamp", "v2Checkpoint")
    file = planned(cli, *(f"t{n}" for n in range(count)), *enabled, "--policy", rules)
    for format_ in ("markdown", "html"):
        out = cli("runbook", file, "--policy", rules, "--format", format_).out
        assert not re.search(r"and \d+ more|\d+ more streams", out)
        every = [f"t{n}" for n in range(count)] + [f"trino@{400 + n}" for n in range(count)]
        every += [f"{what}-{n}" for what in ("engine", "stream") for n in range(1, count)]
        assert [each for each in every if not re.search(rf"\b{each}\b", out)] == []
        losing = next(line for line in out.splitlines() if "changes from" in line)
        assert f"all {count} tables changes from ok" in re.sub("<[^>]*>", "", losing)
        chapter = out.partition("Commands")[2]
        assert all(re.search(rf"\bt{n}\b", chapter) for n in range(count))
    shown = cli("apply", file, "--dry-run").out
    assert all(f"engine-{n}" in shown and f"stream-{n} " in shown for n in range(1, count))


def test_large_groups_are_linked_and_parts_of_one_are_named(cli: Cli) -> None:
    for number in range(7):
        table(f"a{number}")
        table(f"b{number}", "changeDataFeed")
    names = [f"{kind}{number}" for kind in "ab" for number in range(7)]
    rules = policy(
        f"clients: [{CLIENT}]", "tables: {'a*': {clients: [{client: trino@400, access: [read]}]}}"
    )
    file = planned(cli, *names, "--enable", "deletionVectors", "--policy", rules)
    Path("a6/_delta_log").rename("a6/gone")
    html = cli("runbook", file, "--policy", rules, "--format", "html").out
    link = "<a href='#table-{}'>{} like {}</a>"
    first, second = link.format(1, "6 tables", "a0"), link.format(3, "7 tables", "b0")
    assert f"read of {first}, <code>a6</code> changes from ok" in html
    assert "all 14 tables (s1)" in html
    assert second in html
    chapter = html.partition("<section id='table-1'>")[2].partition("<section id='table-2'>")[0]
    assert re.findall(r"<code>(a\d)</code>", chapter)[:6] == [f"a{number}" for number in range(6)]
    text = plain(cli("runbook", file, "--policy", rules).out)
    assert "- [ ] Version 0: all 14 tables" in text
    assert "6 tables like a0, `a6` changes from ok" in text


class TestAlike:
    """Tables that differ only in name, version and files share one chapter."""

    @pytest.fixture
    def lake(self) -> list[str]:
        for number in range(8):
            log = table(f"lake/t{number}")
            for version in range(1, 2 + number):
                log.commit(version, commit_info("WRITE"), add(f"{version}.parquet"))
        return [f"lake/t{number}" for number in range(8)]

    def test_one_chapter_with_the_statements_of_all(self, cli: Cli, lake: list[str]) -> None:
        file = planned(cli, *lake, "--set", "delta.columnMapping.mode=name")
        out = cli("runbook", file).out
        assert len(out.splitlines()) < 350
        headings = re.findall(r"(?m)^### (.*)", out.partition("## Commands")[2])
        assert headings == ["8 tables: set delta.columnMapping.mode=name"]
        for name in lake:
            for form in (
                f"ALTER TABLE delta.`{Path(name).resolve()}` SET TBLPROPERTIES",
                f"ALTER TABLE delta.`{Path(name).resolve()}` DROP FEATURE `columnMapping`;",
                f"SHOW TBLPROPERTIES delta.`{Path(name).resolve()}`;",
                f'spark.sql("ALTER TABLE delta.`{Path(name).resolve()}` SET',
                f"| `{name}` | `file://{Path(name).resolve()}` |",
            ):
                assert form in out
        html = cli("runbook", file, "--format", "html").out
        assert html.count("<section id='table-") == 1 + html.count("<section id='table-1-")
        words = ("--set", "delta.columnMapping.mode=name", "--format", "markdown")
        page = cli("plan-upgrade", *lake, *words)
        assert page.out.count("## 8 tables: ") == 1

    def test_what_differs_stands_apart(self, cli: Cli, lake: list[str]) -> None:
        client = f"tables: {{'t3': {{clients: [{CLIENT}]}}, 't4': {{maintenance_windows: []}}}}"
        rules = policy(client)
        words = ("--enable", "typeWidening", "--policy", rules)
        out = cli("runbook", planned(cli, *lake, *words), "--policy", rules).out
        headings = re.findall(r"(?m)^### (.*)", out.partition("## Commands")[2])
        assert sorted(headings) == ["6 tables: enable typeWidening", "lake/t3", "lake/t4"]

    def test_names_within_other_words_do_not_part_them(self, cli: Cli) -> None:
        for name in ("t", "s", "clients"):
            table(name)
        out = cli("runbook", planned(cli, "t", "s", "clients", "--enable", "typeWidening")).out
        assert "### 3 tables: enable typeWidening" in out


def test_clients_of_own_files_are_known(cli: Cli) -> None:
    Path("own.yaml").write_text(
        "{id: ours, name: ours, versions: none, "
        "ranges: [{read: {legacy: [1]}, write: {legacy: [2]}, access: [read]}]}\n"
    )
    rules = policy("clients: [{client: ours, access: [read]}]")
    file = up(cli)
    assert cli("runbook", file, "--policy", rules).code == 2
    ran = cli("runbook", file, "--policy", rules, "--client-file", "own.yaml")
    gate = cli("apply", file, "--policy", rules, "--client-file", "own.yaml", "--dry-run").out
    assert ("failed  policy" in gate) == ("**policy**" in ran.out)
    assert f"apply {file} --policy {rules} --client-file own.yaml" in ran.out
    assert f"--policy {rules} --client-file own.yaml\n" in ran.out.partition("deltaproto check")[2]


def test_a_phrase_of_an_earlier_release_is_passed_over(cli: Cli) -> None:
    Path("own.yaml").write_text("and_more: und {count} mehr\n")
    assert cli("runbook", up(cli), "--language", "own.yaml").code == 0


def test_gates_are_at_hand_in_templates(cli: Cli) -> None:
    Path("ours.md").write_text(
        "{% for g in plans[0].gates %}{{ g.name }}={{ g.passed }} {% endfor %}"
    )
    out = cli("runbook", up(cli), "--policy", policy(CLOSED), "--template", "ours.md").out
    assert out == "plan=True fingerprint=True policy=True window=False irreversible=True "
