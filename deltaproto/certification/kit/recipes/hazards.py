"""Tables whose layout or contents some clients cannot handle: one for each hazard.

Their protocol is one that every client takes, so that whatever goes wrong is the hazard's doing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deltaproto.certification.kit.recipe import Edit, Recipe, State
from deltaproto.certification.kit.recipes.common import (
    LOST,
    MAPPED,
    PART,
    PART_IS,
    PARTITIONED,
)
from deltaproto.clients import hazards

_UDT = {
    "type": "udt",
    "class": "org.apache.spark.ml.linalg.VectorUDT",
    "pyClass": "pyspark.ml.linalg.VectorUDT",
    "sqlType": {
        "type": "struct",
        "fields": [
            {"name": "type", "type": "byte", "nullable": False, "metadata": {}},
            {"name": "size", "type": "integer", "nullable": True, "metadata": {}},
        ],
    },
}
_TYPES: tuple[tuple[str, Any, str], ...] = (
    ("void", "void", "void"),
    ("interval-months", "interval year to month", "interval year to month"),
    ("interval-days", "interval day to second", "interval day to second"),
    ("udt", _UDT, "udt"),
    ("time", "time(6)", "time"),
    ("varchar", "varchar(5)", "varchar"),
    ("char", "char(5)", "char"),
    ("uint32", "uint32", "uint32"),
    ("decimal", "decimal(50,2)", "decimal out of range"),
    ("empty-struct", {"type": "struct", "fields": []}, "empty struct"),
    ("unknown", "nobodyKnowsThisType", hazards.OTHER),
)
_EXPRESSIONS: tuple[tuple[str, str, str], ...] = (
    ("if", "if(price >= 0, true, false)", "if()"),
    ("int", "int(price) >= 0", "int()"),
    ("length", "price >= 0 and (word is null or length(word) > 0)", "length()"),
    ("startswith", "price >= 0 and (word is null or startswith(word, ''))", "startswith()"),
    (
        "regexp_extract",
        "price >= 0 and (word is null or regexp_extract(word, '(.)', 1) <> '-')",
        "regexp_extract()",
    ),
    ("crc32", "price >= 0 and (word is null or crc32(word) >= 0)", "crc32()"),
    ("log", "id = 0 or log(price) > -100", "log()"),
    ("div", "price >= 0 and id div 1 >= 0", "div"),
    ("divide", "id / 8 <= 37.4", "/"),
    ("not", "!(price < 0)", "!"),
    ("like", "price >= 0 and (word is null or word like '%')", "like"),
    ("rlike", "price >= 0 and (word is null or word rlike '.')", "rlike"),
    ("case", "case when price >= 0 then true else false end", "case"),
    ("cast", "cast(price as int) >= 0", "cast"),
    ("double-quoted", 'price >= 0 and (word is null or word <> "x")', "double-quoted string"),
    ("another-case", "PRICE >= 0", "column in another case"),
)
"""they forbid a price of -1, and one of them the id of the row that must not get in; every row that
is there keeps them"""


def of_hazards() -> Iterator[Recipe]:
    """All of them."""
    yield from _layouts()
    for name, kind, word in _TYPES:
        yield Recipe(
            f"type.{name}",
            None,
            State.HAZARD,
            f"a column of type {word}, which holds nothing",
            edit=Edit(column=("v", kind)),
            hazard=hazards.TYPE + word,
            unwritten="" if word.startswith(("void", "interval")) else "v",
        )
    for name, expression, word in _EXPRESSIONS:
        yield Recipe(
            f"expression.{name}",
            None,
            State.HAZARD,
            f"a CHECK constraint with {word}",
            edit=Edit((1, 3), configuration={"delta.constraints.made": expression}),
            # 300 / 8 is 37.5, and 37 for who divides whole numbers.
            violating={"word": "x"} if name == "divide" else {"price": -1.0},
            hazard=hazards.EXPRESSION + word,
        )
    yield Recipe(
        "checkConstraints.null",
        "checkConstraints",
        State.ENABLED,
        "a CHECK constraint, and a row for which it is null: not true, and so forbidden",
        edit=Edit((1, 3), configuration={"delta.constraints.made": "price >= 0"}),
        violating={"price": None},
    )


def _layouts() -> Iterator[Recipe]:
    def layout(name: str, hazard: str | None, about: str, **more: Any) -> Recipe:
        return Recipe(f"layout.{name}", None, State.LAYOUT, about, hazard=hazard, **more)

    yield layout(
        "absolute-paths",
        hazards.ABSOLUTE_PATHS,
        "data files with absolute paths, as in a shallow clone",
        edit=Edit(absolute=True),
    )
    yield layout(
        "mapped-partitions",
        hazards.MAPPED_PARTITIONS,
        "created with column mapping and partitions",
        columns=PART,
        clause=PARTITIONED,
        properties=MAPPED,
        fill={"part": "even"},
        where=PART_IS,
    )
    yield layout(
        "delta-rs-rewrites",
        hazards.DELTA_RS_REWRITES,
        "delta-rs deleted rows, and wrote the rest of their files again",
        delta_rs="id = 3 or id = 14",
        lost=LOST,
    )
    yield layout(
        "percent-in-path",
        hazards.PERCENT_IN_PATH,
        "a folder whose name holds what looks like an escape",
        edit=Edit(),
        folder="a%20b",
    )
    yield layout(
        "special-path",
        hazards.SPECIAL_LOCATION,
        "a folder whose name holds a space and a number sign",
        edit=Edit(),
        folder="a b#c",
    )
    yield layout(
        "non-ascii-path",
        hazards.NON_ASCII_LOCATION,
        "a folder whose name is an umlaut",
        edit=Edit(),
        folder="ä",
    )
    yield layout(
        "special-partitions",
        hazards.ESCAPED_PATHS,
        "partition values with spaces, slashes and percent signs",
        columns=(("part", "string", "if(id % 2 = 0, 'a b/c=e', '10%20:x')"),),
        clause=PARTITIONED,
        fill={"part": "10%20:x"},
        where=(("part", "=", "a b/c=e"),),
    )
    yield layout(
        "non-ascii-paths",
        hazards.NON_ASCII_PATHS,
        "partition values with umlauts and accents, which are in the files' paths as they are",
        columns=(("part", "string", "if(id % 2 = 0, 'é', 'ü b')"),),
        clause=PARTITIONED,
        fill={"part": "é"},
        where=(("part", "=", "é"),),
    )
    yield layout(
        "byte-order-mark",
        hazards.BYTE_ORDER_MARK,
        "the newest commit begins with a byte order mark",
        edit=Edit(mark=True),
    )
    yield layout(
        "duplicate-columns",
        hazards.DUPLICATE_COLUMNS,
        "two columns differ in the case of their names only",
        edit=Edit(column=("WORD", "string")),
        unwritten="WORD",
        must_refuse=("read", "write"),
    )
    yield layout(
        "partition-not-in-schema",
        hazards.PARTITION_NOT_IN_SCHEMA,
        "a partition column that the schema does not have",
        edit=Edit(partition="gone"),
    )
    yield layout(
        "unnamed-row-ids",
        hazards.UNNAMED_ROW_IDS,
        "row tracking is enabled, and no property names its columns",
        edit=Edit(
            (1, 7),
            None,
            ("domainMetadata", "rowTracking"),
            configuration={"delta.enableRowTracking": "true"},
        ),
    )
