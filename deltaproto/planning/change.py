"""What ALTER TABLE … SET and UNSET TBLPROPERTIES do to an existing table.

Source: Delta Spark 4.4's `AlterTableSetPropertiesDeltaCommand`, `OptimisticTransaction`
and `Protocol.upgradeProtocolFromMetadataForExistingTable`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaproto.planning import arithmetic
from deltaproto.planning.engine import DEFAULT, Engine
from deltaproto.planning.outcome import REMOVE_MAPPING, Commit, Outcome, Refusal, Rewrite
from deltaproto.planning.pulled import upgraded
from deltaproto.planning.refused import FEATURE, READER, WRITER, asked_versions, feature_of, refused
from deltaproto.planning.table import MODE, ROW_TRACKING, Table
from deltaproto.protocol.protocol import Protocol

SET, UNSET = "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"


def set_properties(
    table: Table, properties: Mapping[str, str], engine: Engine = DEFAULT
) -> Outcome:
    """What setting these properties in one statement does."""
    refusal = refused(table, properties, engine)
    if refusal is not None:
        return Outcome(table, refusal=refusal)
    commits: list[Commit] = []
    rewrites = Rewrite.NONE
    if properties.get(ROW_TRACKING, "").lower() == "true":
        table, commits = _backfilled(table, engine)
    if properties.get(MODE, "").lower() == "none" and MODE in table.configuration:
        commits.append(Commit(REMOVE_MAPPING, table.protocol))
        rewrites = Rewrite.ALL
        table = table.without_mapping().with_properties({MODE: "none"})
        if len(properties) == 1:
            return Outcome(table, tuple(commits), rewrites)
    asked = requested(table, properties, engine)
    after = upgraded(asked, {**table.configuration, **properties}, None, engine)
    if isinstance(after, Refusal):
        return Outcome(table, refusal=after)
    stored = {key: value for key, value in properties.items() if not about_protocol(key)}
    table = table.with_properties(stored)._replace(protocol=after)
    return Outcome(table, (*commits, Commit(SET, after)), rewrites)


def unset_properties(table: Table, keys: Iterable[str]) -> Outcome:
    """What unsetting these properties in one statement does.

    The protocol never shrinks by it, and a property that is not set costs a commit all the same.
    """
    names = list(keys)
    commits: list[Commit] = []
    rewrites = Rewrite.NONE
    if MODE in names:
        commits.append(Commit(REMOVE_MAPPING, table.protocol))
        rewrites = Rewrite.ALL
        table = table.without_mapping()
        if len(names) == 1:
            return Outcome(table, tuple(commits), rewrites)
    table = table.without_properties(*names)
    return Outcome(table, (*commits, Commit(UNSET, table.protocol)), rewrites)


def requested(table: Table, properties: Mapping[str, str], engine: Engine = DEFAULT) -> Protocol:
    """The protocol with the versions and features that properties ask for by name."""
    after = table.protocol
    versions = asked_versions(table, properties)
    if versions is not None:
        after = arithmetic.raised(after, versions, engine)
    for key in properties:
        if key.lower().startswith(FEATURE):
            after = arithmetic.named(after, feature_of(key) or "", engine)
    return after


def _backfilled(table: Table, engine: Engine) -> tuple[Table, list[Commit]]:
    """Row tracking on an existing table: the protocol first, then ids for the files."""
    commits = []
    if "rowTracking" not in table.protocol.supported:
        after = arithmetic.enabled(table.protocol, "rowTracking", engine)
        table = table._replace(protocol=after)
        commits.append(Commit("UPGRADE PROTOCOL", after))
    if not table.on(ROW_TRACKING):
        # A table without files has nothing to fill.
        commits.append(Commit("ROW TRACKING BACKFILL", table.protocol, sure=False))
    return table._replace(row_ids=True), commits


def about_protocol(key: str) -> bool:
    """Whether a property is about the protocol, and so never stored."""
    return key in (READER, WRITER) or key.lower().startswith(FEATURE)
