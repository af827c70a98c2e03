"""`deltaproto plan-upgrade`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from deltaproto.cli import options, plans
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.plan_downgrade import feature_names, is_client, is_feature, versions
from deltaproto.drafting.users import Users
from deltaproto.errors import UsageError
from deltaproto.planning.asked import Upgrade
from deltaproto.planning.ddl.own import Parsed
from deltaproto.planning.ddl.parse import parse
from deltaproto.planning.enable import Wanted
from deltaproto.planning.given import Given
from deltaproto.planning.plan import Plan
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol import catalogue

_ASKS = ("--enable", "--set", "--to", "--isolation", "--cluster-by", "--sql")


def run(values: Mapping[str, Any]) -> int:
    """Plan the upgrade of every table."""
    if not any(values[flag.lstrip("-").replace("-", "_")] for flag in _ASKS):
        raise UsageError("nothing is asked for", f"one of {', '.join(_ASKS)}")
    named = plans.for_clients(values)
    users = Users(plans.policy_of(values), values["catalogue"], (*named, *values["client"]))
    columns = tuple(name for text in values["cluster_by"] for name in _split(text))
    asked = Upgrade(
        enable=_wanted(values["enable"], columns),
        set=options.pairs(values["set"], "--set"),
        to=versions(values["to"]),
        isolation=values["isolation"],
        statements=tuple(parsed for text in values["sql"] for parsed in _script(text)),
    )

    def planner(given: Given) -> Plan:
        keep = [c for c in given.clients if str(c.candidate.reference) in named]
        return plan_upgrade(given, asked._replace(keep=tuple(keep)))

    # Statements name tables.
    alike = not asked.statements
    return plans.plan_tables(values, "plan-upgrade", users, planner, alike_saved=alike)


def _wanted(given: Iterable[str], columns: tuple[str, ...]) -> tuple[Wanted, ...]:
    found: dict[str, Wanted] = {}
    for text in given:
        for word in _split(text):
            name, equals, mode = word.partition("=")
            (feature,) = feature_names([name], "--enable")
            if equals and (feature != "columnMapping" or mode.lower() not in ("name", "id")):
                raise UsageError(
                    f"--enable {word}: {feature} has no such mode",
                    "only columnMapping has modes: columnMapping=name",
                )
            clustered = columns if feature == "clustering" else ()
            found.setdefault(feature, Wanted(feature, mode.lower() or None, clustered))
    if columns and "clustering" not in found:
        found["clustering"] = Wanted("clustering", columns=columns)
    return tuple(sorted(found.values(), key=_requirements_first))


def _script(text: str) -> list[Parsed]:
    """The statements of `--sql`, which is a file or SQL itself."""
    if os.path.isfile(text):
        try:
            with open(text, encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {text}: {error}", "it must be SQL, as UTF-8") from None
    found = parse(text)
    if not found:
        raise UsageError("--sql holds no statement", "give SQL, or a file of SQL statements")
    return found


def _requirements_first(wanted: Wanted) -> tuple[int, str]:
    return len(catalogue.closure({wanted.feature})), wanted.feature


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_setting(word: str) -> bool:
    return re.match(r"[A-Za-z_][\w.-]*=", word) is not None


def _is_wanted(word: str) -> bool:
    return is_feature(word.partition("=")[0])


COMMAND = Command(
    "plan-upgrade",
    "Plan what a feature, property or isolation level does to protocol, clients and writers.",
    run,
    plans.TABLES,
    (
        Option(
            ("--enable",),
            "Features to switch on, with what they need; columnMapping=name; several may follow.",
            str,
            many=True,
            metavar="FEATURE...",
            follows=_is_wanted,
        ),
        Option(
            ("--set",),
            "Table properties to set; several may follow.",
            str,
            many=True,
            metavar="PROPERTY=VALUE...",
            follows=_is_setting,
        ),
        Option(("--to",), "Versions no lower than these.", str, metavar="R,W"),
        Option(
            ("--isolation",),
            "Isolation level: Serializable or WriteSerializable.",
            str,
            metavar="LEVEL",
        ),
        Option(
            ("--cluster-by",),
            "Columns to cluster by; repeatable.",
            str,
            many=True,
            metavar="COLUMN",
        ),
        Option(
            ("--sql",),
            "Statements, or a file of them, and what they would do; repeatable.",
            str,
            many=True,
            metavar="SQL",
        ),
        Option(
            ("--for-client",),
            "Clients that must keep working; several may follow.",
            str,
            many=True,
            metavar="ID@VERSION...",
            follows=is_client,
        ),
        plans.CLIENT,
        plans.POLICY,
        *plans.ENDING,
    ),
)
