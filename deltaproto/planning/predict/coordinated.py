"""Properties for coordinated commits that Delta refuses.

Source: Delta Spark 4.4's `CoordinatedCommitsUtils`; measured with Delta Spark 4.4.0 on tables
without a coordinator or the feature, source code read for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.table import TIMESTAMPS, TIMESTAMPS_SINCE, Table
from deltaproto.protocol.feature_catalog import COORDINATED_COMMITS, feature_record

_COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
_CONF = "delta.coordinatedCommits.commitCoordinatorConf-preview"
_TABLE_CONF = "delta.coordinatedCommits.tableConf-preview"
_ALL = {_COORDINATOR, _CONF, _TABLE_CONF}
_TIMESTAMPS = {TIMESTAMPS, *TIMESTAMPS_SINCE}


def validate_stored(table: Table, engine: Engine) -> Refusal | None:
    """Refuse every statement if the table names a coordinator and lacks the feature.

    Other clients can store the property, and lists of properties to copy contain it. Delta Spark
    has an assertion for this, which SELECT calls, too.
    """
    if _COORDINATOR not in table.configuration or COORDINATED_COMMITS & table.protocol.supported:
        return None
    (name,) = COORDINATED_COMMITS
    if not engine.knows(feature_record(name)):
        return None
    return Refusal(
        "",
        f"the table stores {_COORDINATOR}, but its protocol does not have {name}: {engine} refuses "
        "every statement, even SELECT",
        f"remove {_COORDINATOR} with the client that stored it",
        on_databricks=True,
    )


def session_warning(table: Table, engine: Engine) -> Iterator[str]:
    """Warn that the engine's session must know the table's commit coordinator."""
    name = table.configuration.get(_COORDINATOR)
    if name is not None and engine.name is EngineName.DELTA_SPARK:
        yield (
            f"A commit coordinator decides on the table's commits ({_COORDINATOR} = {name}): every "
            "statement fails in a session that does not have it, or not with its settings."
        )


def validate_set(stored: Mapping[str, str], keys: Iterable[str]) -> Refusal | None:
    """Return why these properties cannot be set on a table with the `stored` properties."""
    asked = {*keys}
    coordinated = bool(_ALL & {*stored})
    if not _ALL & asked:
        return _dependency_refusal("MODIFY", asked) if coordinated else None
    if coordinated:
        return Refusal(
            "DELTA_CANNOT_OVERRIDE_COORDINATED_COMMITS_CONFS",
            "the table already has a commit coordinator",
            "DROP FEATURE `coordinatedCommits-preview` first",
        )
    dependent = _dependency_refusal("SET", asked)
    if dependent is not None:
        return dependent
    if _TABLE_CONF in asked:
        error = "DELTA_CONF_OVERRIDE_NOT_SUPPORTED_IN_COMMAND"
        return Refusal(
            error, f"the commit coordinator sets {_TABLE_CONF} itself", "remove the property"
        )
    if not {_COORDINATOR, _CONF} <= asked:
        return Refusal(
            "DELTA_MUST_SET_ALL_COORDINATED_COMMITS_CONFS_IN_COMMAND",
            "a commit coordinator requires its name and its settings",
            f"set {_COORDINATOR} and {_CONF} in one statement",
        )
    return Refusal(
        "",
        "it is unknown whether the session supports the commit coordinator",
        "create the table in a session that supports it",
        sure=False,
    )


def validate_unset(stored: Mapping[str, str], keys: Iterable[str]) -> Refusal | None:
    """Return why these properties cannot be unset on a table with the `stored` properties."""
    asked = {*keys}
    if not _ALL & {*stored}:
        return None
    if _ALL & asked:
        return Refusal(
            "DELTA_CANNOT_UNSET_COORDINATED_COMMITS_CONFS",
            "the table has a commit coordinator",
            "DROP FEATURE `coordinatedCommits-preview`",
        )
    return _dependency_refusal("MODIFY", asked)


def _dependency_refusal(verb: str, keys: set[str]) -> Refusal | None:
    if not _TIMESTAMPS & keys:
        return None
    return Refusal(
        f"DELTA_CANNOT_{verb}_COORDINATED_COMMITS_DEPENDENCIES",
        "coordinated commits set in-commit timestamps themselves",
        f"remove {', '.join(sorted(_TIMESTAMPS & keys))}",
    )
