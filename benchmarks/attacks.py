"""Repeat the attacks on the policy gate: hostile tables, damaged fleets, forged plans, kills.

Every command runs as a process of its own with a time limit. What each one must find is known
before it runs, so that a table that is lost, or passes unseen, is a difference. Kills of `apply`
need Spark: see crash_matrix.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.fleet_tables import make_table
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.support.hostile import KINDS, make_hostile
from tests.support.logs import Log, commit_info, metadata, protocol

CANARY = "Xq7canary5sJ2"
"""a secret in the environment and in tables, which no output may show"""
_SECONDS = 900
"""limit of one command; reaching it counts as hanging"""
_CLIENT = ("--client", "trino@483")
_COMMIT = "_delta_log/00000000000000000002.json"


def _overwrite(content: bytes) -> Callable[[Path], object]:
    return lambda table: (table / _COMMIT).write_bytes(content)


def _replace_log(put: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(table: Path) -> None:
        shutil.rmtree(table / "_delta_log")
        put(table / "_delta_log")

    return change


def _replace_commit(put: Callable[[Path], object]) -> Callable[[Path], object]:
    def change(table: Path) -> None:
        (table / _COMMIT).unlink()
        put(table / _COMMIT)

    return change


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 50 << 30)


DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "cut commit": _overwrite(b'{"commitInfo":{"timestamp":1,"operat'),
    "binary commit": _overwrite(bytes(range(256)) * 16),
    "list for an action": _overwrite(b'{"protocol":[3,7]}\n'),
    "protocol of text": _overwrite(b'{"protocol":{"minReaderVersion":"3","minWriterVersion":7}}\n'),
    "half a version": _overwrite(b'{"protocol":{"minReaderVersion":1.5,"minWriterVersion":7}}\n'),
    "missing commit": lambda table: (table / _COMMIT.replace("2.json", "1.json")).unlink(),
    "pipe for a commit": _replace_commit(os.mkfifo),
    "device for a commit": _replace_commit(lambda path: path.symlink_to("/dev/zero")),
    "sparse commit of 50 GiB": _replace_commit(_sparse),
    "empty log": _replace_log(Path.mkdir),
    "file for a log": _replace_log(Path.touch),
    "link to no log": _replace_log(lambda path: path.symlink_to("/nowhere/at/all")),
}
"""twelve ways to break a table of three commits; each makes it unreadable"""


class Campaign:
    """Runs commands, and collects what is not as it must be."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.wrong: list[str] = []
        self.ran = 0
        place = {"PYTHONPATH": str(Path(__file__).parents[1]), "AWS_SECRET_ACCESS_KEY": CANARY}
        self._environment = {**os.environ, **place}

    def run(self, *words: object, codes: tuple[int, ...]) -> str:
        """Run a command, expect one of the exit codes, and return its standard output."""
        self.ran += 1
        name = " ".join(map(str, words))[:150]
        started = time.monotonic()
        try:
            ran = subprocess.run(
                command(*words),
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
                env=self._environment,
            )
        except subprocess.TimeoutExpired:
            self.wrong.append(f"{name}: not finished after {_SECONDS} s")
            return ""
        print(f"{time.monotonic() - started:7.1f} s  exit {ran.returncode}  {name}", flush=True)
        both = ran.stdout + ran.stderr
        self.expect(f"{name}: exit code", ran.returncode in codes, ran.returncode, codes)
        self.expect(f"{name}: internal error", "internal error" not in both, True, False)
        self.expect(f"{name}: traceback", "Traceback (most" not in both, True, False)
        self.expect(f"{name}: shows a secret", CANARY not in both, True, False)
        return ran.stdout

    def expect(self, what: str, holds: bool, found: object, wanted: object) -> None:
        """Note a difference."""
        if not holds:
            self.wrong.append(f"{what}: {found!r:.300}, not {wanted!r:.300}")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "deltaproto", *map(str, words)]


def hostile_tables(campaign: Campaign) -> None:
    """Every kind of damage in one batch: each command has a result for each table."""
    tables = make_hostile(campaign.root / "hostile")
    campaign.expect("hostile tables", len(tables) >= 45, len(tables), 45)
    root = campaign.root / "hostile"
    for words, member in (
        (("inspect", *tables), "tables"),
        (("plan-downgrade", *tables, "--lowest"), None),
    ):
        out = campaign.run(*words, "--format", "jsonl", codes=(3,))
        lines = [json.loads(line) for line in out.splitlines()]
        named = [each for line in lines for each in (line[member] if member else [line])]
        found = {Path(each.get("plan", each)["table"]).name for each in named}
        campaign.expect(f"results of {words[0]}", found == set(KINDS), found ^ set(KINDS), "none")
    scanned = json.loads(campaign.run("scan", root, "--format", "json", codes=(3,)) or "{}")
    total = scanned.get("tables", 0) + scanned.get("errors", 0)
    campaign.expect("scanned", total == len(tables), total, len(tables))
    checked = json.loads(
        campaign.run("check", *tables, *_CLIENT, "--format", "json", codes=(3,)) or "{}"
    )
    summary = checked.get("summary", {})
    campaign.expect("checked", summary.get("tables") == len(tables), summary, len(tables))


def damaged_fleet(campaign: Campaign, count: int, kills: int, seed: int) -> None:
    """One table in a hundred is broken; a scan reports exactly those, also after kills."""
    root = campaign.root / "fleet"
    broken = _make_fleet(root, count, random.Random(seed))
    whole = campaign.root / "whole"
    started = time.monotonic()
    campaign.run("scan", root, "--inventory", whole, "--format", "json", codes=(3,))
    seconds = time.monotonic() - started
    healthy, unread = _inventory(whole)
    campaign.expect("tables of the scan", len(healthy) == count - len(broken), len(healthy), count)
    campaign.expect("errors of the scan", unread == broken, sorted(unread ^ broken)[:5], "none")
    for command_, more in (("check", _CLIENT), ("report", ()), ("plan-downgrade", ("--lowest",))):
        source = ("--from", whole) if command_.startswith("plan") else (whole,)
        out = campaign.run(command_, *source, *more, "--format", "json", codes=(3,))
        if command_ == "report":
            counted = json.loads(out or "{}").get("errors", 0)
            campaign.expect("errors of the report", counted == len(broken), counted, len(broken))
            continue
        for path in broken:
            campaign.expect(f"{command_} names {path}", path in out, False, True)
    _kill_and_resume(campaign, root, seconds, kills, random.Random(seed + 1), (healthy, unread))


def _make_fleet(root: Path, count: int, chance: random.Random) -> set[str]:
    """Make the tables; return the paths of those that are broken."""
    ways = list(DAMAGE.values())
    chosen = sorted(chance.sample(range(count), max(len(ways), count // 100)))
    ways_of = {number: ways[index % len(ways)] for index, number in enumerate(chosen)}
    broken = set()
    for number in range(count):
        path = root / f"db{number // 100:04}" / f"t{number:06}"
        make_table(path, number, checksum=False)
        if number in ways_of:
            ways_of[number](path)
            broken.add(str(path))
    return broken


def _inventory(folder: Path) -> tuple[set[str], set[str]]:
    """The paths of the tables and of the errors of an inventory's newest scan."""
    from deltalake import DeltaTable

    found = []
    for name in ("tables", "errors"):
        rows = (
            DeltaTable(str(folder / name))
            .to_pyarrow_table(columns=["scan_id", "table"])
            .to_pylist()
        )
        newest = max((row["scan_id"] for row in rows), default=None)
        paths = [row["table"] for row in rows if row["scan_id"] == newest]
        twice = [path for path, times in Counter(paths).items() if times > 1]
        assert not twice, f"stored twice: {twice[:5]}"
        found.append(set(paths))
    return found[0], found[1]


def _kill_and_resume(
    campaign: Campaign,
    root: Path,
    seconds: float,
    kills: int,
    chance: random.Random,
    expected: tuple[set[str], set[str]],
) -> None:
    """Kill scans at random times; none leaves an answer, and resuming loses nothing."""
    inventory = campaign.root / "killed"
    words = ("scan", root, "--inventory", inventory, "--full", "--format", "json")
    killed = 0
    for _ in range(kills):
        process = subprocess.Popen(
            command(*words),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(chance.uniform(0.05, 0.4) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.wait()
        if killed:
            campaign.run("check", inventory, *_CLIENT, "--format", "json", codes=(2, 3))
    campaign.expect("kills", killed > 0 or not kills, killed, kills)
    try:
        out = campaign.run(*words, "--resume", codes=(2, 3))
        if not out or "error" in json.loads(out):
            campaign.run(*words, codes=(3,))
        found = _inventory(inventory)
        campaign.expect("tables after kills", found[0] == expected[0], len(found[0]), "all")
        campaign.expect("errors after kills", found[1] == expected[1], len(found[1]), "all")
    except (OSError, ValueError, AssertionError) as error:
        campaign.wrong.append(f"resume: {error}")


def forged_plans(campaign: Campaign) -> None:
    """Plans that were changed and sealed again are refused, and change nothing."""
    table = Log(campaign.root / "forged" / "table")
    other = Log(campaign.root / "forged" / "other")
    for log in (table, other):
        listed = ["appendOnly", "checkConstraints", "invariants", "rowTracking", "domainMetadata"]
        log.commit(
            0,
            commit_info("CREATE TABLE"),
            protocol(3, 7, ["deletionVectors"], ["deletionVectors", *listed]),
            metadata({"delta.constraints.c": "id > 0", "app.password": CANARY}),
        )
    for words in (("plan-upgrade", "--enable", "columnMapping"), ("plan-downgrade", "--lowest")):
        file = campaign.root / "forged" / f"{words[0]}.json"
        out = campaign.run(words[0], table.table, *words[1:], "--format", "json", codes=(0,))
        for name, change in _forgeries(table.table, other.table):
            plan = json.loads(out)
            if change(plan) is False:
                continue
            plan[CHECKSUM_FIELD] = compute_checksum(plan)
            file.write_text(json.dumps(plan))
            apply = ("apply", file, "--yes", "--allow-irreversible", "--dry-run")
            answer = campaign.run(*apply, "--format", "json", codes=(2, 3, 4))
            names = [path.name for path in table.folder.iterdir()]
            campaign.expect(f"{name}: log", len(names) == 1, names, "one commit")
            campaign.expect(f"{name}: refused", '"done"' not in answer, "done", "refused")


def _forgeries(table: str, other: str) -> Iterator[tuple[str, Callable[[dict[str, Any]], object]]]:
    """Ten changes; False: the plan has nothing to change."""

    def sql(old: str, new: str) -> Callable[[dict[str, Any]], object]:
        def change(plan: dict[str, Any]) -> bool:
            before = [step["sql"] for step in plan["steps"]]
            for step in plan["steps"]:
                step["sql"] = (step["sql"] or "").replace(old, new) or None
            return [step["sql"] for step in plan["steps"]] != before

        return change

    def everywhere(plan: dict[str, Any]) -> None:
        text = json.dumps({k: v for k, v in plan.items() if k != "table"}).replace(table, other)
        plan.update(json.loads(text))

    read = "CREATE TABLE delta.`/tmp/stolen` USING delta AS SELECT * FROM text.`/etc/passwd`"
    yield "another statement", lambda plan: plan["steps"][0].update(sql=read)
    yield (
        "a second statement",
        lambda plan: plan["steps"][0].update(sql=plan["steps"][0]["sql"] + f"; {read}"),
    )
    yield "another table in the SQL", sql(table, other)
    yield "another table everywhere", everywhere
    yield "a variable", sql(table, table + "${x}")
    yield (
        "a property beside it",
        sql(
            "TBLPROPERTIES (", "TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 0 hours', "
        ),
    )
    yield "history deleted", sql("DROP FEATURE", "DROP FEATURE x TRUNCATE HISTORY; ALTER")
    yield "another feature", lambda plan: plan["steps"][-1].update(feature="catalogManaged")
    yield "a journal elsewhere", lambda plan: plan.update(plan_id="../../../../tmp/journal00")
    yield "another result", lambda plan: plan["protocol_after"].update(minWriterVersion=1)
    yield "a rollback", lambda plan: plan["steps"][0].update(undo="DROP TABLE x")
    yield "another goal", lambda plan: plan["goal"].update(kind="drop", features=["icebergWriter"])


def overlapping_policies(campaign: Campaign, seed: int) -> None:
    """Ten policies with random patterns: no declared client is lost on any table."""
    chance = random.Random(seed)
    root = campaign.root / "policies"
    names = [f"{zone}/{area}/{name}" for zone in "ab" for area in "pq" for name in ("x1", "x2")]
    for name in names:
        made = protocol(3, 7, ["v2Checkpoint"], ["v2Checkpoint"])
        Log(root / name).commit(0, commit_info(), made, metadata())
    clients = [f"trino@{version}" for version in range(460, 480)]
    for number in range(10):
        patterns = {
            "**": None,
            **{_pattern(chance, chance.choice(names)): None for _ in range(6)},
        }
        declared = dict(zip(patterns, chance.sample(clients, len(patterns)), strict=True))
        ceilings = {each: chance.randint(1, 3) for each in patterns if chance.random() < 0.5}
        lines = ["policy_version: 1", "tables:"]
        for each in sorted(patterns, key=lambda _: chance.random()):
            lines += [f"  {json.dumps(each)}:", f"    clients: [{{client: {declared[each]}}}]"]
            lines += [f"    max_reader_version: {ceilings[each]}"] if each in ceilings else []
        file = root / f"policy{number}.yaml"
        file.write_text("\n".join(lines) + "\n")
        tables = [root / name for name in names]
        out = campaign.run("check", *tables, "--policy", file, "--format", "json", codes=(0, 1))
        found = {
            (
                Path(each["table"]).relative_to(root).as_posix(),
                f"{each['client']}@{each['version']}",
            )
            for each in json.loads(out)["verdicts"]
        }
        wanted = {
            (name, declared[each])
            for name in names
            for each in patterns
            if _matches(each, f"/any/{name}")
        }
        campaign.expect(f"clients of policy {number}", found == wanted, found ^ wanted, "none")


def _pattern(chance: random.Random, name: str) -> str:
    """A pattern that matches the table."""
    parts = name.split("/")
    for place in range(len(parts)):
        kind = chance.choice(["literal", "literal", "star", "question", "prefix"])
        parts[place] = {
            "literal": parts[place],
            "star": "*",
            "question": "?" * len(parts[place]),
            "prefix": f"{parts[place][:1]}*",
        }[kind]
    return chance.choice(["", "**/"]) + "/".join(parts[chance.randrange(2) :])


def _matches(pattern: str, location: str) -> bool:
    """Whether a pattern with a slash matches from any folder: a plain definition."""
    if pattern == "**":
        return True
    text = pattern.removeprefix("**/")
    glob = "".join({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)) for sign in text)
    return re.search(f"/{glob}$", location) is not None


def attack(root: Path, tables: int, kills: int, seed: int) -> Campaign:
    """Run all attacks below an empty folder."""
    campaign = Campaign(root)
    hostile_tables(campaign)
    forged_plans(campaign)
    overlapping_policies(campaign, seed)
    damaged_fleet(campaign, tables, kills, seed)
    return campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20_000, help="size of the fleet")
    parser.add_argument("--kills", type=int, default=5, help="scans that are killed")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deltaproto-attacks-") as scratch:
        campaign = attack(Path(scratch), arguments.tables, arguments.kills, arguments.seed)
    for text in campaign.wrong:
        print(f"WRONG: {text}")
    print(f"{campaign.ran} commands: {len(campaign.wrong)} differences")
    return 1 if campaign.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
