"""A reference table with its answers, and the kit that holds them all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from deltaproto.certification.kit.recipe import State
from deltaproto.certification.kit.recipes import KIT_VERSION
from deltaproto.errors import UsageError

Row = Mapping[str, Any]
R = TypeVar("R", bound=Mapping[str, Any])
INDEX = "kit.json"
TABLES = "tables"
FILTERS: tuple[tuple[str, str, Any], ...] = (("id", ">=", 10), ("word", "=", "w5"))
"""asked of every table"""


class Filter(NamedTuple):
    """A comparison, and the rows for which it is true."""

    column: str
    op: str
    value: Any
    rows: tuple[Row, ...]


class Past(NamedTuple):
    """An earlier version and its rows."""

    version: int
    rows: tuple[Row, ...]


class Case(NamedTuple):
    """One table. Values are as JSON holds them (`host.plain`)."""

    name: str
    feature: str | None
    state: State
    about: str
    protocol: Mapping[str, Any]
    schema: tuple[tuple[str, str], ...]
    """name and Delta type of the columns"""
    rows: tuple[Row, ...]
    filters: tuple[Filter, ...]
    past: Past | None
    fill: Mapping[str, Any]
    violating: Mapping[str, Any]
    omitted: Mapping[str, Any]
    must_refuse: tuple[str, ...]
    append_only: bool
    hazard: str | None = None
    unwritten: str = ""
    folder: str = "table"

    @property
    def brief(self) -> bool:
        """Only its protocol is of interest: no more columns than those of every table."""
        of_protocol = (State.LISTED, State.PROTOCOL, State.HAZARD)
        return self.state in of_protocol and not self.filters

    @property
    def total(self) -> int:
        """The sum of the column `id`."""
        return sum(row["id"] for row in self.rows)


class Kit(NamedTuple):
    """The tables in a folder."""

    folder: Path
    version: int
    digest: str
    """of recipes and answers: the same wherever and whenever the kit is made"""
    made_with: Mapping[str, str]
    cases: tuple[Case, ...]

    def table(self, case: Case) -> Path:
        return self.folder / TABLES / case.name


def by_id(rows: Iterable[R]) -> list[R]:
    """Rows in the order of `id`, whatever a client made of that."""
    return sorted(rows, key=lambda row: (str(type(row.get("id"))), row.get("id") or 0))


def load_kit(folder: Path) -> Kit:
    """The kit that `make_kit` left in `folder`.

    Raises:
        UsageError: when there is none, or one of another version.
    """
    try:
        plain = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        cases = tuple(_case(item) for item in plain["cases"])
        kit = Kit(folder, plain["kit_version"], plain["digest"], plain["made_with"], cases)
    except FileNotFoundError:
        raise UsageError(
            f"no kit in {folder}", f"make one: deltaproto certify --make-kit {folder}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder / INDEX} is damaged: {error}",
            f"make the kit again: deltaproto certify --make-kit {folder}",
        ) from None
    if kit.version != KIT_VERSION:
        raise UsageError(
            f"the kit in {folder} has version {kit.version}, and this release needs {KIT_VERSION}",
            f"make it again: deltaproto certify --make-kit {folder}",
        )
    return kit


def case_fields(case: Case) -> dict[str, Any]:
    """A case as JSON holds it."""
    return {
        **case._asdict(),
        "schema": [list(column) for column in case.schema],
        "filters": [each._asdict() for each in case.filters],
        "past": case.past and case.past._asdict(),
    }


def _case(plain: Mapping[str, Any]) -> Case:
    past = plain["past"]
    return Case(
        **{
            **plain,
            "state": State(plain["state"]),
            "schema": tuple((name, kind) for name, kind in plain["schema"]),
            "rows": tuple(plain["rows"]),
            "filters": tuple(
                Filter(each["column"], each["op"], each["value"], tuple(each["rows"]))
                for each in plain["filters"]
            ),
            "past": Past(past["version"], tuple(past["rows"])) if past else None,
            "must_refuse": tuple(plain["must_refuse"]),
        }
    )
