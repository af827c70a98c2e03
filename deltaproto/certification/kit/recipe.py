"""What a recipe for a reference table says."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

_NONE: Mapping[str, str] = MappingProxyType({})
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class State(StrEnum):
    """What a reference table shows of its feature."""

    LISTED = "listed"
    """in the protocol, and nothing uses it"""
    ENABLED = "enabled"
    """switched on, without traces in the files"""
    PRESENT = "present"
    """its traces are in the files or the log"""
    PROTOCOL = "protocol"
    """nothing is used: the table is about its version numbers"""
    MIX = "mix"
    """several features together"""
    HAZARD = "hazard"
    """its schema or a constraint shows what some clients cannot handle"""
    LAYOUT = "layout"
    """its files or its log do"""


class Edit(NamedTuple):
    """What is changed by hand in the log of a finished table: Spark would not write it."""

    versions: tuple[int, int] | None = None
    """reader and writer version; None: the protocol stays"""
    readers: tuple[str, ...] | None = None
    writers: tuple[str, ...] | None = None
    invariant: tuple[str, str] | None = None
    """column, and the expression of its `delta.invariants`"""
    domain: tuple[str, str] | None = None
    """name and configuration of a metadata domain, in a commit of its own"""
    column: tuple[str, Any] | None = None
    """name and type of a column that the schema gets, as JSON holds the type"""
    partition: str | None = None
    """a partition column that the schema does not get"""
    configuration: Mapping[str, str] = _NONE
    """table properties"""
    mark: bool = False
    """a byte order mark at the beginning of the newest commit"""
    absolute: bool = False
    """name the data files by absolute paths"""


class Recipe(NamedTuple):
    """How to make one table. In statements, `{t}` stands for the table.

    Every table has `id bigint, word string, price double` and the rows 0 to 19 in two files,
    before `then` and `edit` change it.
    """

    name: str
    feature: str | None
    """the feature it is about; None: its version numbers, or several"""
    state: State
    about: str
    """one line for people"""
    columns: tuple[tuple[str, str, str | None], ...] = ()
    """more columns: name, declaration, and its value of `id` in SQL; None: not inserted"""
    properties: Mapping[str, str] = _NONE
    clause: str = ""
    then: tuple[str, ...] = ()
    conf: Mapping[str, str] = _NONE
    """Spark settings while it is made"""
    edit: Edit | None = None
    lost: tuple[int, ...] = ()
    """ids that `then` deletes"""
    expire: bool = False
    """remove the commits that the newest checkpoint covers, as time does"""
    fill: Mapping[str, Any] = _NOTHING
    """values of the further columns in rows that clients append; else null"""
    violating: Mapping[str, Any] = _NOTHING
    """values that a row must not have: appending it must fail"""
    omitted: Mapping[str, Any] = _NOTHING
    """columns that a writer must fill, with the value for an id of 300; `ANY`: not null"""
    where: tuple[tuple[str, str, Any], ...] = ()
    """further comparisons to filter by: column, operator, value"""
    must_refuse: tuple[str, ...] = ()
    """`read` or `write`, where the protocol leaves a client no choice"""
    append_only: bool = False
    hazard: str | None = None
    """what its layout or contents show, in the words of `clients.hazards`"""
    unwritten: str = ""
    """a column that no row which is appended has"""
    folder: str = "table"
    """the name of the folder in which clients find the table"""
    delta_rs: str | None = None
    """rows that delta-rs deletes, as a condition"""


ANY = "anything but null"
DOUBLED = "id * 2"
"""as a value in `fill`: twice the row's id"""
