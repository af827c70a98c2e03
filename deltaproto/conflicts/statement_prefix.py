"""Classify statements by their first words, for statements that sqlglot cannot parse.

The expressions of OPTIMIZE, REORG, ALTER TABLE and CREATE do not matter: tokens are enough.
"""

from __future__ import annotations

import re
from itertools import pairwise

from deltaproto.conflicts.operation import Operation
from deltaproto.conflicts.query import (
    Classification,
    Condition,
    RequestedVersions,
    unknown_classification,
)
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import all_features
from deltaproto.sql.tokens import Token

_READER, _WRITER = "delta.minreaderversion", "delta.minwriterversion"
_VERSIONS = {_READER, _WRITER}


def classify_prefix(found: list[Token]) -> Classification | None:
    """Classify the statement; None if its first words do not decide."""
    if not found:
        return unknown_classification("There is no statement.")
    keys = [token.key for token in found]
    if ";" in keys:
        return unknown_classification("There is more than one statement; pass one at a time.")
    match keys:
        case ["OPTIMIZE", _, *_]:
            return _classify_optimize(keys[1 + _name_length(keys[1:]) :])
        case ["REORG", "TABLE", _, *rest]:
            return _classify_reorg(rest)
        case ["RESTORE", "TABLE", _, *_]:
            return _classify_restore(keys[2 + _name_length(keys[2:]) :])
        case ["RESTORE", _, *_]:
            return _classify_restore(keys[1 + _name_length(keys[1:]) :])
        case ["TRUNCATE", "TABLE", _, *_]:
            return _classify_truncate(keys[2 + _name_length(keys[2:]) :])
        case ["ALTER", "TABLE", "IF", "EXISTS", *_]:
            return _classify_alter(found[4:])
        case ["ALTER", "TABLE", *_]:
            return _classify_alter(found[2:])
        case ["CREATE", "OR", "REPLACE", "TABLE", _, *_] | ["REPLACE", "TABLE", _, *_]:
            return _classify_create("Replacing a table")
        case ["CREATE", "TABLE", _, *_]:
            return _classify_create("Creating a table")
        case _:
            return None


def _name_length(keys: list[str]) -> int:
    """Count the tokens of the table's name."""
    at = 1
    while at < len(keys) and keys[at] == ".":
        at += 2
    return at


def _classify_optimize(keys: list[str]) -> Classification:
    if keys and keys[0] not in ("WHERE", "ZORDER", "FULL"):
        return unknown_classification("Only OPTIMIZE with FULL, WHERE and ZORDER BY is supported.")
    pairs = [*pairwise(keys)]
    if ("ZORDER", "BY") in pairs:
        return Classification(
            Operation.OPTIMIZE_ZORDER,
            True,
            reasons=("OPTIMIZE with ZORDER BY may conflict even with row-level resolution.",),
        )
    return Classification(
        Operation.OPTIMIZE, True, reasons=("OPTIMIZE without ZORDER BY only compacts files.",)
    )


def _classify_restore(keys: list[str]) -> Classification:
    match keys:
        case ["TO", "VERSION" | "TIMESTAMP", "AS", "OF", _, *_]:
            return Classification(
                Operation.RESTORE,
                True,
                reasons=(
                    "RESTORE removes and adds whole files and stores the metadata of the restored "
                    "version. The protocol is never lowered.",
                ),
            )
    return unknown_classification(
        "Only RESTORE with TO VERSION AS OF and TO TIMESTAMP AS OF is supported."
    )


def _classify_truncate(keys: list[str]) -> Classification:
    if keys:
        return unknown_classification("Delta can only truncate one whole table.")
    return Classification(
        Operation.DELETE,
        True,
        blind_append=False,
        reasons=(
            "TRUNCATE counts as a DELETE of all rows: it reads the whole table, so every "
            "concurrent row change affects it.",
        ),
        condition=Condition(None, frozenset()),
    )


def _classify_reorg(keys: list[str]) -> Classification | None:
    text = " ".join(key for key in keys if key)
    if re.search(r"\bAPPLY \( PURGE \)", text):
        return Classification(
            Operation.REORG, True, reasons=("REORG … APPLY (PURGE) rewrites files.",)
        )
    if re.search(r"\bAPPLY \( UPGRADE UNIFORM\b", text):
        return Classification(
            Operation.PROTOCOL_CHANGE,
            True,
            reasons=("REORG … APPLY (UPGRADE UNIFORM …) changes the protocol.",),
        )
    return unknown_classification(
        "REORG is supported only with APPLY (PURGE) or APPLY (UPGRADE UNIFORM …)."
    )


def _classify_create(what: str) -> Classification:
    return Classification(
        Operation.PROTOCOL_CHANGE,
        True,
        reasons=(
            f"{what} writes a protocol; if several writers do so concurrently, or write to an "
            "empty path, all but one get ProtocolChangedException.",
        ),
    )


def _classify_alter(found: list[Token]) -> Classification:
    """Classify ALTER TABLE after the table's name."""
    action = found[_name_length([token.key for token in found]) :]
    match [token.key for token in action]:
        case ["DROP", "FEATURE", _, *_]:
            return _protocol_change("Dropping a feature changes the protocol.")
        case ["SET", "TBLPROPERTIES", "(", *_]:
            return _classify_set_properties(action[3:])
        case ["UNSET", "TBLPROPERTIES", *_]:
            return _metadata_change("Unsetting a property changes the metadata.")
        case ["ADD" | "DROP", "CONSTRAINT", *_]:
            return _metadata_change(
                "A constraint change changes the metadata.",
                *(
                    ("The first CHECK constraint of a table may also change the protocol.",)
                    if action[0].key == "ADD"
                    else ()
                ),
            )
        case ["CLUSTER", "BY", *_]:
            return _metadata_change(
                "CLUSTER BY changes the clustering columns.",
                "The first CLUSTER BY of a table also changes the protocol.",
            )
        case (
            ["ADD" | "DROP" | "REPLACE", "COLUMN" | "COLUMNS", *_]
            | ["RENAME", "COLUMN", *_]
            | ["ALTER" | "CHANGE", "COLUMN", *_]
        ):
            return _metadata_change(
                "A column change changes the schema, which is metadata.",
                "Column types or defaults may also change the protocol.",
            )
        case _:
            return unknown_classification("The matrices do not cover this ALTER TABLE statement.")


def _classify_set_properties(found: list[Token]) -> Classification:
    settings = _parse_settings(found)
    if not settings:
        return unknown_classification("No properties could be read from SET TBLPROPERTIES.")
    for key in settings:
        low = key.casefold()
        if low.startswith("delta.feature."):
            return _protocol_change(f"{key} adds a feature to the protocol.")
    folded = {key.casefold(): value for key, value in settings.items()}
    if _VERSIONS & folded.keys():
        versions = RequestedVersions(
            *(_parse_number(folded.get(key)) for key in (_READER, _WRITER))
        )
        return _protocol_change(
            "It may raise the protocol's versions. Versions that the table already has, or lower "
            "ones, do not change the protocol, and the statement is a METADATA CHANGE."
        )._replace(versions=versions if folded.keys() <= _VERSIONS else None)
    notes = []
    for feature in all_features():
        rule = feature.enablement
        if not isinstance(rule, PropertyIs):
            continue
        names = [name.casefold() for name in rule.keys]
        for key, value in settings.items():
            if key.casefold() in names and rule.holds(value):
                notes.append(
                    f"{rule.keys[names.index(key.casefold())]} enables {feature.name}, which "
                    "also changes the protocol if the table does not support it yet: the write may "
                    "then also get ProtocolChangedException."
                )
    if folded.get("delta.columnmapping.mode", "").casefold() == "none":
        notes.append("Removing column mapping rewrites all files.")
    return _metadata_change("Setting a property changes the metadata.", *notes)


def _parse_number(value: str | None) -> int | None:
    """Parse a version; a value that is not a number may be any version."""
    if value is None:
        return None
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 7


def _parse_settings(found: list[Token]) -> dict[str, str]:
    """Read keys and values up to the closing parenthesis; keys may be quoted or dotted."""
    settings: dict[str, str] = {}
    key, value, in_value = "", "", False
    for token in found:
        if token.key in (",", ")"):
            if key:
                settings[key] = value
            key, value, in_value = "", "", False
            if token.key == ")":
                break
        elif token.key == "=":
            in_value = True
        else:
            key, value = (key, value + token.value) if in_value else (key + token.value, value)
    return settings


def _metadata_change(*reasons: str) -> Classification:
    return Classification(Operation.METADATA_CHANGE, True, reasons=reasons)


def _protocol_change(*reasons: str) -> Classification:
    return Classification(Operation.PROTOCOL_CHANGE, True, reasons=reasons)
