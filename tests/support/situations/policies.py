"""Policies of which something matches nothing, has expired, is switched off or not understood."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.support.logs import protocol
from tests.support.situations.world import PLANS, Words, World, situation

EVERY = ("check", "scan", PLANS, "apply", "report")
CLIENT = "clients: [{client: trino@476, access: [read]}]\n"
YESTERDAY = "2026-01-01"
TOMORROW = "2999-01-01"


def judged(world: World, text: str, table: str | None = None) -> Words | list[Words]:
    """The words by which the section's command goes by a policy."""
    policy = ("--policy", world.policy(text))
    match world.section:
        case "check":
            return [("check", table or world.table(), *policy)]
        case "scan":
            where = str(world.folder / "inventory")
            return (table or world.table(), "--inventory", where, *policy)
        case "report":
            return (world.inventory(table or world.table()), *policy)
        case "apply":
            from tests.support.situations.apply import ready

            plan = world.plan(table) if table else world.plan()
            return (ready(world, plan), *policy, "--dry-run")
        case _:
            return [
                ("plan-upgrade", "--set", "delta.appendOnly=true", table or world.table(), *policy)
            ]


@situation("A pattern of the policy matches no table", *EVERY)
def unmatched(world: World) -> Words | list[Words]:
    entry = '"**/elsewhere": {max_reader_version: 1}'
    return judged(world, f"{CLIENT}tables:\n  {entry}\n")


@situation("A canary pattern of the policy's rollout matches no table", "check")
def canary(world: World) -> Words | list[Words]:
    policy = ("--policy", world.policy(f"{CLIENT}rollout: {{canary: ['dve_*']}}\n"))
    # One table needs no canary.
    return [("check", world.table(), world.table("second"), *policy)]


@situation("No pattern uses a profile of the policy", "check")
def unused_profile(world: World) -> Words | list[Words]:
    return judged(world, f"{CLIENT}profiles:\n  strict: {{max_reader_version: 1}}\n")


@situation("A pattern of the policy ends with a slash", *EVERY)
def slash(world: World) -> Words | list[Words]:
    table = world.table("lake/table")
    return judged(world, f'{CLIENT}tables:\n  "lake/": {{max_reader_version: 1}}\n', table)


@situation("The policy requires nothing of a table", *EVERY)
def asks_nothing(world: World) -> Words | list[Words]:
    return judged(world, 'tables:\n  "**/elsewhere": {max_reader_version: 1}\n')


@situation("The policy requires nothing at all", *EVERY)
def requires_nothing(world: World) -> Words | list[Words]:
    return judged(world, "clients: []\n")


def excused(kind: str, **members: str) -> str:
    given = {"table": "**", "reason": "moves soon", "expires": TOMORROW, **members}
    if kind == "approvals":
        given |= {"approver": "Mary Moss", "client": "trino@476", "access": "[read]"}
        given.setdefault("feature", "typeWidening")
    text = ", ".join(
        f"{key}: {value if value.startswith('[') or key == 'expires' else json.dumps(value)}"
        for key, value in given.items()
    )
    return f"{CLIENT}{kind}: [{{{text}}}]\n"


@situation("A waiver matches nothing", *EVERY)
def waiver(world: World) -> Words | list[Words]:
    return judged(world, excused("waivers", rule="DP201"))


@situation("A waiver has expired", *EVERY)
def old_waiver(world: World) -> Words | list[Words]:
    return judged(world, excused("waivers", rule="DP201", expires=YESTERDAY))


@situation("An approval matches nothing", *EVERY)
def approval(world: World) -> Words | list[Words]:
    return judged(world, excused("approvals", table="**/elsewhere"))


@situation("An approval has expired", *EVERY)
def old_approval(world: World) -> Words | list[Words]:
    return judged(world, excused("approvals", expires=YESTERDAY))


@situation("The policy requires a property that Delta does not know", *EVERY)
def property_(world: World) -> Words | list[Words]:
    entry = '"**": {require_properties: {delta.appendOnl: "true"}}'
    table = world.table("table", **{"delta.appendOnl": "true"})
    return judged(world, f"{CLIENT}tables:\n  {entry}\n", table)


@situation("A pattern of the policy replaces clients of a wider one", *EVERY)
def replaced(world: World) -> Words | list[Words]:
    entry = '"table": {clients_replace: true, clients: [{client: duckdb@1.4, access: [read]}]}'
    return judged(world, f"{CLIENT}tables:\n  {entry}\n")


def refused_table(world: World) -> str:
    """A table that breaks the policies below."""
    return world.table("table", protocol(1, 7, None, ["appendOnly"]))


@situation("The policy turns off a rule that finds something", *EVERY)
def off(world: World) -> Words | list[Words]:
    text = f'{CLIENT}severities: {{DP204: off}}\ntables:\n  "**": {{max_writer_version: 2}}\n'
    return judged(world, text, refused_table(world))


@situation("A waiver suppresses a finding", *EVERY)
def waived(world: World) -> Words | list[Words]:
    text = excused("waivers", rule="DP204") + 'tables:\n  "**": {max_writer_version: 2}\n'
    return judged(world, text, refused_table(world))


@situation("A pattern has syntax that is not supported", *EVERY)
def syntax(world: World) -> Words | list[Words]:
    return judged(world, f'{CLIENT}tables:\n  "{{a,b}}": {{max_reader_version: 1}}\n')


@situation("The policy has a setting that is not known", *EVERY)
def setting(world: World) -> Words | list[Words]:
    return judged(world, f'{CLIENT}tables:\n  "**": {{max_readr_version: 1}}\n')


@situation("The policy declares a client that is not known", *EVERY)
def client(world: World) -> Words | list[Words]:
    return judged(world, "clients: [trinoo@476]\n")


@situation("The policy cannot be read", *EVERY)
def gone(world: World) -> Words | list[Words]:
    found = judged(world, CLIENT)
    Path(world.folder / "policy.yaml").unlink()
    return found


@situation("The policy declares a client version that is not measured", *EVERY)
def version(world: World) -> Words | list[Words]:
    table = world.table("table", protocol(3, 7, ["newThing"], ["newThing"]))
    return judged(world, "clients: [{client: trino@9999, access: [read]}]\n", table)


@situation("`DELTAPROTO_FAIL_ON=never` is set", "check", "scan", "drift")
def never(world: World) -> Words | list[Words]:
    world.patch.setenv("DELTAPROTO_FAIL_ON", "never")
    if world.section == "drift":
        table = world.table()
        where = world.inventory(table)
        shutil.rmtree(table)
        refused_table(world)
        world.made("scan", table, "--inventory", where, codes=(0, 1))
        return (where,)
    return (world.table("table", protocol(3, 2)),)
