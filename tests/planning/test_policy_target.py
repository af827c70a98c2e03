"""What a policy requires of a table: what it lacks, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.policy_target import build_target
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.planning.target import Requirements, Target
from deltaproto.policy.context import TableFacts
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.protocol.protocol import Protocol

VECTORS = Protocol.carrying({"appendOnly", "invariants", "deletionVectors"})
LEVEL = "delta.isolationLevel"


def target(
    settings: str,
    protocol: Protocol,
    folder: Path,
    *,
    configuration: dict[str, str] | None = None,
    clients: str = "[]",
    more: str = "",
    level: str = "Serializable",
) -> Target:
    file = folder / "policy.yaml"
    text = f"policy_version: 1\nclients: {clients}\ntables: {{'*': {{{settings}}}}}\n{more}"
    file.write_text(text, encoding="utf-8")
    policy = load_local_policy(str(file))
    facts = TableFacts(
        table="t",
        location="file:///t",
        version=0,
        needs=table_requirements(
            protocol,
            dict.fromkeys(protocol.supported, False),
            configuration or {},
            absent=protocol.supported - {"clustering"},
        ),
        configuration=configuration or {},
        isolation={"delta-spark": level},
        findings=(),
        complete=True,
        clustering=(),
    )
    return build_target(Checker(policy, load_local_catalog((), policy)), facts)


NOTHING = Requirements()
DROPPED = Requirements(absent=frozenset({"deletionVectors"}))
ADDED = Requirements(features=frozenset({"rowTracking"}))
BASIC = ("appendOnly", "invariants")
LISTED = Protocol(1, 7, None, frozenset(BASIC))
FEED = "require_properties: {delta.enableChangeDataFeed: true}"
FEED_ON = {"delta.enableChangeDataFeed": "true"}
SET = Requirements(properties={"delta.appendOnly": "true"})


@pytest.mark.parametrize(
    ("settings", "protocol", "missing", "kept"),
    [
        ("forbid_features: [deletionVectors]", VECTORS, DROPPED, NOTHING),
        ("forbid_features: [deletionVectors]", Protocol(1, 2), NOTHING, DROPPED),
        ("require_features: [rowTracking]", VECTORS, ADDED, NOTHING),
        (
            "require_features: [rowTracking]",
            Protocol.carrying({"rowTracking", "domainMetadata"}),
            *(NOTHING, ADDED),
        ),
        ("require_properties: {delta.appendOnly: true}", VECTORS, SET, NOTHING),
        ("cluster_by: [id]", VECTORS, Requirements(cluster_by=("id",)), NOTHING),
        ("cluster_by: []", VECTORS, NOTHING, Requirements(cluster_by=())),
        ("min_reader_version: 3", Protocol(1, 2), Requirements(at_least=(3, 1)), NOTHING),
        ("min_reader_version: 1", Protocol(1, 2), NOTHING, Requirements(at_least=(1, 1))),
        ("min_reader_version: 2", Protocol(2, 5), NOTHING, Requirements(at_least=(2, 1))),
        ("min_writer_version: 5", Protocol(1, 2), Requirements(at_least=(1, 5)), NOTHING),
        ("min_writer_version: 5", Protocol(2, 5), NOTHING, Requirements(at_least=(1, 5))),
        ("max_reader_version: 1", VECTORS, Requirements(at_most=(1, 7)), NOTHING),
        ("max_reader_version: 2", Protocol(2, 5), NOTHING, Requirements(at_most=(2, 7))),
        ("max_writer_version: 4", VECTORS, Requirements(at_most=(3, 4)), NOTHING),
        ("max_writer_version: 5", Protocol(2, 5), NOTHING, Requirements(at_most=(3, 5))),
        ("protocol: lowest", VECTORS, DROPPED, NOTHING),
        (
            "protocol: lowest",
            Protocol(1, 7, None, frozenset({"appendOnly", "invariants"})),
            *(Requirements(at_most=(1, 2)), NOTHING),
        ),
        # Below the ceiling only (1,4) allows the property, and it implies checkConstraints.
        (
            f"protocol: lowest, max_writer_version: 6, {FEED}",
            Protocol.carrying({*BASIC, "checkConstraints", "domainMetadata"}),
            Requirements(absent=frozenset({"domainMetadata"}), properties=FEED_ON, at_most=(3, 6)),
            NOTHING,
        ),
        (
            f"protocol: lowest, {FEED}",
            Protocol.carrying({*BASIC, "checkConstraints", "domainMetadata"}),
            Requirements(
                absent=frozenset({"checkConstraints", "domainMetadata"}), properties=FEED_ON
            ),
            NOTHING,
        ),
        (
            "protocol: lowest, min_writer_version: 4",
            Protocol.carrying({*BASIC, "checkConstraints", "domainMetadata"}),
            Requirements(absent=frozenset({"domainMetadata"})),
            Requirements(at_least=(1, 4)),
        ),
        # What a property or clustering columns need is not dropped before it is enabled.
        (
            "protocol: lowest, require_properties: {delta.enableRowTracking: true}",
            Protocol.carrying({*BASIC, "rowTracking"}),
            *(Requirements(properties={"delta.enableRowTracking": "true"}), NOTHING),
        ),
        (
            "protocol: lowest, cluster_by: [id]",
            Protocol.carrying({*BASIC, "domainMetadata"}),
            *(Requirements(cluster_by=("id",)), NOTHING),
        ),
        # The property changes the protocol, or the floor is above its lowest form.
        (
            f"protocol: lowest, {FEED}",
            *(LISTED, Requirements(properties=FEED_ON), NOTHING),
        ),
        (
            "protocol: lowest, min_writer_version: 3",
            *(LISTED, NOTHING, Requirements(at_least=(1, 3))),
        ),
    ],
)
def test_each_setting_is_missing_or_kept(
    settings: str, protocol: Protocol, missing: Requirements, kept: Requirements, tmp_path: Path
) -> None:
    found = target(settings, protocol, tmp_path)
    assert found == Target(missing, kept)


def test_what_the_policy_waives_or_turns_off_is_neither(tmp_path: Path) -> None:
    settings = "forbid_features: [deletionVectors], require_features: [rowTracking]"
    waiver = (
        "waivers:\n  - {rule: DP205, table: '*', feature: deletionVectors, reason: later, "
        "expires: 2099-01-01}\n"
    )
    assert target(settings, VECTORS, tmp_path, more=waiver) == Target(ADDED)
    off = "severities: {DP205: off}\n"
    assert target(settings, VECTORS, tmp_path, more=off) == Target(ADDED)
    assert target(settings, Protocol(1, 2), tmp_path, more=off) == Target(ADDED)
    assert target(settings, Protocol(1, 2), tmp_path) == Target(ADDED, DROPPED)


def test_a_level_is_kept_only_if_a_property_states_it(tmp_path: Path) -> None:
    settings = "isolation: Serializable, require_properties: {delta.appendOnly: true}"
    level = Requirements(properties={LEVEL: "Serializable"})
    on = {"delta.appendOnly": "true"}
    assert target(settings, VECTORS, tmp_path, configuration=on) == Target(NOTHING, SET)
    stated = {**on, LEVEL: "serializable"}
    kept = level.merged_with(SET)
    assert target(settings, VECTORS, tmp_path, configuration=stated) == Target(NOTHING, kept)
    found = target(settings, VECTORS, tmp_path, configuration=on, level="WriteSerializable")
    assert found == Target(level, SET)


@pytest.mark.parametrize("choice", HistoryChoice)
def test_the_choice_about_history(choice: HistoryChoice, tmp_path: Path) -> None:
    assert target(f"history: {choice}", VECTORS, tmp_path) == Target(NOTHING, NOTHING, choice)


def test_clients_that_fail_and_that_work(tmp_path: Path) -> None:
    old = "deltalake/engine@0.25.0"
    clients = f"[{{client: {old}, access: [append]}}, {{client: delta-spark@4.4.0, access: [dml]}}]"
    accepted = "severities: {DP201: off}\n"
    for protocol, more, missing, kept in (
        (VECTORS, "", [(old, (Access.APPEND,))], [("delta-spark@4.4.0", (Access.DML,))]),
        (VECTORS, accepted, [], [("delta-spark@4.4.0", (Access.DML,))]),
        (Protocol(1, 2), "", [], [(old, (Access.APPEND,)), ("delta-spark@4.4.0", (Access.DML,))]),
    ):
        found = target("", protocol, tmp_path, clients=clients, more=more)
        named = (
            [(str(use.candidate.reference), use.access) for use in part.clients]
            for part in (found.missing, found.kept)
        )
        assert [*named] == [missing, kept]
