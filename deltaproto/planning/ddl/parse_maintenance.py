"""Parse OPTIMIZE, VACUUM, REORG, RESTORE and other maintenance statements.

Source: Delta's `DeltaSqlBase` grammar and Spark's `SqlBaseParser`.
"""

from __future__ import annotations

import re

from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.maintenance import Comment, Optimize, PurgeWhere, Restore, Vacuum
from deltaproto.planning.ddl.user_statement import (
    NoEffect,
    NotUnderstood,
    PlannerStatement,
    RefusedStatement,
    StatementEffect,
    UpgradeUniform,
)
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.statement import Purge

_HOURS = re.compile(r"-?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})(e[+-]?[0-9]{1,2})?", re.I)
MAINTENANCE_KEYWORDS = (
    ("OPTIMIZE",),
    ("VACUUM",),
    ("REORG", "TABLE"),
    ("RESTORE", "TABLE"),
    ("RESTORE",),
    ("ANALYZE", "TABLE"),
    ("COMMENT", "ON", "TABLE"),
    ("CONVERT", "TO", "DELTA"),
    ("GENERATE",),
    ("DROP", "TABLE", "IF", "EXISTS"),
    ("DROP", "TABLE"),
)


def parse_maintenance_statement(
    cursor: Cursor, start: tuple[str, ...]
) -> PlannerStatement | StatementEffect:
    """Parse what follows the table's name.

    Raises:
        UnreadableError: if the form is not supported.
    """
    match start[0]:
        case "OPTIMIZE":
            return _parse_optimize(cursor)
        case "VACUUM":
            return _parse_vacuum(cursor)
        case "REORG":
            return _parse_reorg(cursor)
        case "RESTORE":
            cursor.take("TO")
            return Restore(cursor.until().lower())
        case "ANALYZE":
            cursor.until()
            error = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
            return RefusedStatement(
                Refusal(error, "Spark does not support ANALYZE for Delta tables", "remove it")
            )
        case "COMMENT":
            cursor.expect("IS")
            cursor.next()
            return Comment()
        case "DROP":
            return NotUnderstood("it drops the table, which ends the plan")
    cursor.until()
    return NoEffect()


def _parse_optimize(cursor: Cursor) -> Optimize:
    full = cursor.take("FULL")
    where = cursor.until("ZORDER") if cursor.take("WHERE") else ""
    zorder = []
    if cursor.take("ZORDER", "BY"):
        if cursor.keys(1) == ("(",):
            zorder = cursor.listed(cursor.path)
        else:
            zorder = [cursor.path()]
            while cursor.take(","):
                zorder.append(cursor.path())
    return Optimize(where, tuple(zorder), full)


def _parse_vacuum(cursor: Cursor) -> Vacuum:
    found = Vacuum()
    while word := cursor.one_of("LITE", "FULL", "RETAIN", "DRY", "USING"):
        match word:
            case "RETAIN":
                text = cursor.until("HOURS")
                cursor.expect("HOURS")
                number = _HOURS.fullmatch(text.strip())
                if number is None:
                    raise cursor.unreadable("a number of hours was expected")
                found = found._replace(hours=float(number[0]))
            case "DRY":
                cursor.expect("RUN")
                found = found._replace(dry=True)
            case "USING":
                cursor.expect("INVENTORY")
                cursor.until("LITE", "FULL", "RETAIN", "DRY")
    return found


def _parse_reorg(cursor: Cursor) -> PlannerStatement | StatementEffect:
    where = cursor.until("APPLY") if cursor.take("WHERE") else ""
    cursor.expect("APPLY", "(")
    if cursor.take("PURGE", ")"):
        return PurgeWhere(where) if where else Purge()
    cursor.expect("UPGRADE", "UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
    version = cursor.number()
    cursor.expect(")", ")")
    return UpgradeUniform(version)
