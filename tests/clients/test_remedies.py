"""What helps a client, the cheapest first, and only what does help."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.entry import parse_client
from deltaproto.clients.model import Access, Client, Verdict
from deltaproto.clients.remedy import Remedy, RemedyCost
from deltaproto.clients.requirements import (
    NAN_BOUNDS,
    UNREAD_BOOLEAN_BOUNDS,
    TableRequirements,
    table_requirements,
)
from deltaproto.clients.verdicts import ClientVerdict, evaluate_clients
from deltaproto.planning.search.goals import EndState, requirements_after
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.feature_catalog import all_features
from deltaproto.protocol.protocol import Protocol
from tests.clients.made import candidate, client, protocol, table

READ, APPEND = Access.READ, Access.APPEND
VECTORS = "deletionVectors"
EVERY_WRITER = [1, 2, 3, 4, 5, 6]
MEASURED = [
    c.id for c in ClientCatalog().clients() if c.measured and c.ranges and c.ranges[0].start
]


def one(
    made: Client, version: str, needs: TableRequirements, access: Access = READ
) -> ClientVerdict:
    (verdict,) = evaluate_clients(candidate(made, version), [access], needs)
    return verdict


def of_kind(verdict: ClientVerdict, kind: str) -> Remedy | None:
    found = [remedy for remedy in verdict.remedies if remedy.kind == kind]
    assert len(found) <= 1
    return found[0] if found else None


def releases(*readers: list[str]) -> Client:
    """Releases 1, 2, 3 … that read these features."""
    ranges: list[dict[str, Any]] = []
    for number, names in enumerate(readers, 1):
        gate = {"legacy": [1, 2], "features": names}
        ranges.append({"from": str(number), "before": str(number + 1), "read": gate})
    return client(ranges)


def writers(*names: str, **more: Any) -> Client:
    """A client that reads deletion vectors, and writes `names`."""
    read = {"legacy": [1, 2], "features": [VECTORS, "columnMapping"]}
    write = {"legacy": EVERY_WRITER, "features": list(names)}
    return client([{"read": read, "write": write, "confidence": "source", **more}], "none")


ALL_WRITES = ("appendOnly", "invariants", "columnMapping", "checkpointProtection")
LISTED = Protocol.carrying({VECTORS, "appendOnly", "invariants"})


class TestRaising:
    def test_the_newest_version_is_named_with_the_first_that_passes(self) -> None:
        made = releases([VECTORS], [], [], [VECTORS], [VECTORS, "timestampNtz"])
        verdict = one(made, "@2.5", table(LISTED, used=[VECTORS]))
        remedy = of_kind(verdict, "raise-client")
        assert remedy is not None
        assert (remedy.client, remedy.cost, remedy.command) == ("made@5", RemedyCost.CLIENT, None)
        assert remedy.text == "upgrade the client to made@5 (works since 4)"

    def test_a_version_after_one_that_fails_is_not_named(self) -> None:
        made = releases([], [VECTORS], [], [VECTORS])
        remedy = of_kind(one(made, "@1", table(LISTED, used=[VECTORS])), "raise-client")
        assert remedy is not None
        assert (remedy.client, remedy.text) == ("made@2", "upgrade the client to made@2")

    def test_the_newest_known_version_of_the_range_is_named(self) -> None:
        gate = {"legacy": [1, 2], "features": [VECTORS]}
        made = client(
            [
                {"from": "1", "before": "2", "read": {"legacy": [1, 2]}},
                {"from": "2", "before": "9", "newest": "8.4", "read": gate},
            ]
        )
        remedy = of_kind(one(made, "@1", table(LISTED, used=[VECTORS])), "raise-client")
        assert remedy is not None
        assert remedy.client == "made@8.4"
        assert remedy.text == "upgrade the client to made@8.4 (works since 2)"

    def test_trino_is_upgraded_to_its_newest_known_version(self) -> None:
        found = ClientCatalog().resolve("trino@420")
        (verdict,) = evaluate_clients(found, [READ], table(LISTED, used=[VECTORS]))
        remedy = of_kind(verdict, "raise-client")
        assert remedy is not None
        assert (remedy.client, "works since 469" in remedy.text) == ("trino@483", True)
        with_types = table(Protocol.carrying({"variantType"}), used=["variantType"])
        (verdict,) = evaluate_clients(found, [READ], with_types)
        remedy = of_kind(verdict, "raise-client")
        assert remedy is not None
        assert (remedy.client, "works since 471" in remedy.text) == ("trino@483", True)

    def test_what_was_measured_of_a_release_goes_before_its_range(self) -> None:
        gate = {"legacy": [1, 2], "features": [VECTORS]}
        made = parse_client(
            {
                "id": "made",
                "versions": "dotted",
                "ranges": [
                    {"from": "1", "before": "2", "read": {"legacy": [1, 2]}},
                    {"from": "2", "before": "3", "read": gate},
                    {"from": "3", "read": gate},
                ],
                "measured": [{"version": "2.0", "read": {"legacy": [1, 2], "features": []}}],
            },
            "made",
        )
        remedy = of_kind(one(made, "@1.5", table(LISTED, used=[VECTORS])), "raise-client")
        assert remedy is not None
        assert remedy.client == "made@3"

    @pytest.mark.parametrize("name", MEASURED)
    def test_whoever_follows_the_advice_passes(self, name: str) -> None:
        """Of the package's own catalog, on a table that uses one feature."""
        catalog = ClientCatalog()
        for feature in all_features():
            needs = table(Protocol.carrying({feature.name}), used=[feature.name])
            # Readers need not know a writer feature.
            asked = [APPEND] if feature.kind is FeatureKind.WRITER else [READ, APPEND]
            for each in catalog.get(name).ranges[:-1]:
                found = catalog.resolve(f"{name}@{each.start}")
                for verdict in evaluate_clients(found, asked, needs):
                    raised = of_kind(verdict, "raise-client")
                    if raised is not None:
                        after = catalog.resolve(raised.client or "")
                        (then,) = evaluate_clients(after, [verdict.access], needs)
                        assert then.verdict is Verdict.OK, (feature.name, verdict.named, raised)

    def test_an_earlier_version_is_never_named(self) -> None:
        made = releases([VECTORS], [], [])
        assert of_kind(one(made, "@2", table(LISTED)), "raise-client") is None

    def test_the_same_path_is_raised(self) -> None:
        takes, lacks = ({"legacy": [1], "features": names} for names in ([VECTORS], []))
        made = client(
            [
                {"from": "1", "before": "2", "path": "a", "read": lacks,
                 "paths": [{"name": "b", "read": lacks}]},
                {"from": "2", "before": "3", "path": "a", "read": takes,
                 "paths": [{"name": "b", "read": lacks}]},
                {"from": "3", "path": "a", "read": takes, "paths": [{"name": "b", "read": takes}]},
            ]
        )  # fmt: skip
        named = {
            verdict.path: of_kind(verdict, "raise-client")
            for verdict in evaluate_clients(candidate(made, "@1"), [READ], table(LISTED))
        }
        assert {path: remedy and remedy.client for path, remedy in named.items()} == {
            "a": "made/a@3",
            "b": "made/b@3",
        }

    def test_a_version_that_begins_to_write_helps_a_reader(self) -> None:
        gate = {"legacy": [1]}
        made = client(
            [{"from": "1", "before": "2", "read": gate}, {"from": "2", "read": gate, "write": gate}]
        )
        verdict = one(made, "@1", table(Protocol(1, 1)), APPEND)
        assert [remedy.client for remedy in verdict.remedies] == ["made@2"]

    def test_nothing_is_offered_where_it_works_or_nothing_is_known(self) -> None:
        made = releases([VECTORS], [VECTORS])
        assert one(made, "@1", table(LISTED)).remedies == ()
        unknown = one(made, "@9", table(LISTED))
        assert (unknown.verdict, unknown.remedies) == (Verdict.UNKNOWN, ())
        assert unknown.confidence is None


class TestDropping:
    def test_a_feature_that_can_be_dropped(self) -> None:
        needs = table(Protocol.carrying({"checkConstraints", "rowTracking", "appendOnly"}))
        made = writers("appendOnly", "invariants", "rowTracking", "domainMetadata")
        remedy = of_kind(one(made, "", needs, APPEND), "drop-feature")
        assert remedy is not None
        assert remedy.features == ("checkConstraints",)
        assert (remedy.cost, remedy.text) == (RemedyCost.METADATA, "drop checkConstraints")
        assert remedy.command_for("t") == "deltaproto plan-downgrade t --drop checkConstraints"

    @pytest.mark.parametrize("name", ["appendOnly", "generatedColumns", "zzzUnknown"])
    def test_a_feature_that_cannot_be_dropped_is_not_offered(self, name: str) -> None:
        verdict = one(writers(), "", table(protocol(1, 7, None, [name])), APPEND)
        assert (verdict.verdict, verdict.because) == (Verdict.REFUSED, (name,))
        assert of_kind(verdict, "drop-feature") is None

    def test_what_requires_it_goes_first(self) -> None:
        needs = table(Protocol.carrying({"rowTracking"}))
        verdict = one(writers("rowTracking"), "", needs, APPEND)
        assert verdict.because == ("domainMetadata",)
        remedy = of_kind(verdict, "drop-feature")
        assert remedy is not None
        assert remedy.features == ("rowTracking", "domainMetadata")

    @pytest.mark.parametrize(
        ("names", "dropped", "databricks"),
        [
            ({"checkConstraints"}, "checkConstraints", False),
            ({"collations"}, "collations", True),
            # Delta Spark cannot write the table, whatever is dropped.
            ({"collations", "checkConstraints"}, "checkConstraints", True),
        ],
    )
    def test_an_engine_that_can_drop_it_is_named(
        self, names: set[str], dropped: str, databricks: bool
    ) -> None:
        carried = Protocol.carrying(names | {"rowTracking"})
        made = writers(*carried.supported - {dropped})
        remedy = of_kind(one(made, "", table(carried), APPEND), "drop-feature")
        assert remedy is not None
        assert remedy.features == (dropped,)
        assert remedy.text.startswith("with Databricks, ") is databricks
        assert (remedy.command or "").endswith(" --engine databricks") is databricks

    def test_not_where_no_engine_drops_all_of_them(self) -> None:
        needs = table(Protocol.carrying({"collations"}))
        made = client([{"read": {"legacy": [1]}, "write": {"legacy": [2]}}], "none")
        verdict = one(made, "", needs, APPEND)
        assert verdict.because == ("collations", "domainMetadata")
        assert of_kind(verdict, "drop-feature") is None

    def test_not_where_a_required_feature_is_missing(self) -> None:
        """Delta Spark and Databricks refuse every statement on such a table."""
        names = ["rowTracking", "checkConstraints"]
        verdict = one(writers("rowTracking"), "", table(protocol(1, 7, None, names)), APPEND)
        assert of_kind(verdict, "drop-feature") is None

    def test_a_managed_table_has_no_command_for_its_path(self) -> None:
        needs = table(Protocol.carrying({"catalogManaged"}))
        made = client([{"read": {"legacy": [1], "features": ["vacuumProtocolCheck"]}}], "none")
        by_path = of_kind(one(made, "", needs), "drop-feature")
        by_name = of_kind(one(made, "", needs._replace(by_name=True)), "drop-feature")
        assert by_path is not None
        assert by_name is not None
        assert by_path.command is None
        assert by_path.text.endswith("; use the table's catalog name")
        assert (by_name.command or "").endswith("--drop catalogManaged --engine databricks")

    def test_not_while_another_feature_requires_it_for_ever(self) -> None:
        needs = table(Protocol.carrying({"clustering"}))
        verdict = one(writers("clustering"), "", needs, APPEND)
        assert verdict.because == ("domainMetadata",)
        assert of_kind(verdict, "drop-feature") is None

    def test_a_legacy_writer_gets_back_what_only_the_new_feature_took(self) -> None:
        needs = table(Protocol.carrying({"deletionVectors", "appendOnly", "invariants"}))
        made = client([{"read": {"legacy": [1]}, "write": {"legacy": [1, 2]}}], "none")
        remedy = of_kind(one(made, "", needs, APPEND), "drop-feature")
        assert remedy is not None
        assert remedy.features == ("deletionVectors",)
        assert (remedy.command or "").endswith("--drop deletionVectors --history truncate")

    def test_a_client_may_accept_in_a_legacy_pair_what_it_refuses_in_a_list(self) -> None:
        names = {"changeDataFeed", "checkConstraints", "generatedColumns", "invariants"}
        needs = table(protocol(3, 7, [VECTORS], [VECTORS, "appendOnly", *sorted(names)]))
        verdict = one(writers(VECTORS), "", needs, APPEND)
        assert verdict.because == ("appendOnly", *sorted(names))
        (remedy,) = verdict.remedies
        assert remedy.features == (VECTORS,)
        # Listed beside checkpointProtection, they still block the client.
        assert (remedy.command or "").endswith("--drop deletionVectors --history truncate")

    def test_a_pair_that_adds_features_is_stored_after_the_drops(self) -> None:
        needs = table(protocol(3, 7, [VECTORS], [VECTORS, "generatedColumns"]))
        (remedy,) = one(writers(VECTORS), "", needs, APPEND).remedies
        assert (remedy.kind, remedy.features) == ("drop-feature", (VECTORS,))
        assert remedy.text.endswith("the history is truncated; then store the protocol as (1,4)")
        assert (remedy.command or "").endswith("plan-downgrade {table} --protocol 1,4")

    @pytest.mark.parametrize(
        ("name", "pair", "added"),
        [
            ("appendOnly", "1,2", "invariants"),
            ("generatedColumns", "1,4", "appendOnly, changeDataFeed, checkConstraints, invariants"),
        ],
    )
    def test_a_pair_that_adds_features_is_stored_without_a_drop(
        self, name: str, pair: str, added: str
    ) -> None:
        needs = table(protocol(1, 7, None, [name]))
        (remedy,) = one(writers(), "", needs, APPEND).remedies
        assert remedy.text == f"store the same features as ({pair}), which adds {added}"
        assert remedy.command == f"deltaproto plan-downgrade {{table}} --protocol {pair}"

    @pytest.mark.parametrize("name", ["zzzUnknown", "clustering"])
    def test_no_pair_is_stored_while_a_feature_stays_that_needs_a_list(self, name: str) -> None:
        listed = [VECTORS, "generatedColumns", "domainMetadata", name]
        needs = table(protocol(3, 7, [VECTORS], listed))
        assert one(writers(VECTORS), "", needs, APPEND).remedies == ()

    def test_clustering_is_taken_off_before_mapping(self) -> None:
        features = {"columnMapping", "clustering"}
        needs = table(Protocol.carrying(features), used=["columnMapping", "clustering"])
        made = writers("clustering", "domainMetadata", "checkpointProtection")
        remedy = of_kind(one(made, "", needs, APPEND), "drop-feature")
        assert remedy is not None
        assert "CLUSTER BY NONE" in remedy.text

    def test_constraints_go_before_their_feature(self) -> None:
        needs = table(Protocol.carrying({"checkConstraints"}), used=["checkConstraints"])
        remedy = of_kind(one(writers("appendOnly"), "", needs, APPEND), "drop-feature")
        assert remedy is not None
        assert "drop the constraints" in remedy.text

    def test_a_managed_table_is_reached_by_name(self) -> None:
        each = {"read": {"legacy": [1], "features": ["catalogManaged", "vacuumProtocolCheck"]}}
        made = client([{**each, "catalog_only": ["catalogManaged"]}], "none")
        verdict = one(made, "", table(Protocol.carrying({"catalogManaged"})))
        assert [remedy.kind for remedy in verdict.remedies] == ["use-catalog", "read-copy"]

    def test_not_when_something_else_still_goes_wrong(self) -> None:
        wrong = [{"features": ["appendOnly"], "access": ["append"], "what": "It loses rows"}]
        made = writers("appendOnly", known_bad=wrong)
        needs = table(protocol(1, 7, None, ["checkConstraints", "appendOnly"]), used=["appendOnly"])
        verdict = one(made, "", needs, APPEND)
        assert verdict.because == ("checkConstraints",)
        assert of_kind(verdict, "drop-feature") is None

    def test_not_from_a_protocol_that_breaks_the_specification(self) -> None:
        verdict = one(releases([]), "@1", table(protocol(3, 7, [VECTORS], [])))
        assert verdict.because == (VECTORS,)
        assert verdict.remedies == ()

    def test_not_where_the_access_is_not_offered_at_all(self) -> None:
        verdict = one(releases([]), "@1", table(LISTED, used=[VECTORS]), APPEND)
        assert (verdict.verdict, verdict.remedies) == (Verdict.REFUSED, ())

    def test_the_history_is_cut_for_a_client_that_does_not_know_the_protection(self) -> None:
        made = writers("appendOnly", "invariants")
        needs = table(LISTED, used=[VECTORS])
        remedy = of_kind(one(made, "", needs, APPEND), "drop-feature")
        assert remedy is not None
        assert remedy.cost is RemedyCost.REWRITE
        assert remedy.text.endswith("; the history is truncated")
        assert remedy.command == (
            "deltaproto plan-downgrade {table} --drop deletionVectors --history truncate"
        )

    def test_the_protection_stays_for_a_client_that_knows_it(self) -> None:
        made = writers("appendOnly", "invariants", "checkpointProtection")
        remedy = of_kind(one(made, "", table(LISTED, used=[VECTORS]), APPEND), "drop-feature")
        assert remedy is not None
        assert remedy.text.endswith("; checkpointProtection is left")
        assert remedy.command == "deltaproto plan-downgrade {table} --drop deletionVectors"

    def test_columns_that_use_a_feature_go_before_it(self) -> None:
        spatial = protocol(3, 7, ["geospatial"], ["geospatial"])
        texts = {}
        for used in ([], ["geospatial"]):
            remedy = of_kind(one(releases([]), "@1", table(spatial, used=used)), "drop-feature")
            assert remedy is not None
            texts[len(used)] = remedy.text
        assert texts[0].startswith("drop geospatial")
        assert texts[1] == f"drop the columns of types GEOMETRY and GEOGRAPHY, then {texts[0]}"

    def test_readers_do_not_mind_the_protection(self) -> None:
        remedy = of_kind(one(releases([]), "@1", table(LISTED)), "drop-feature")
        assert remedy is not None
        assert "--history" not in (remedy.command or "")

    def test_a_legacy_table_gives_up_the_feature_that_a_number_brought(self) -> None:
        made = client([{"read": {"legacy": [1]}}], "none")
        remedy = of_kind(one(made, "", table(Protocol(2, 5))), "drop-feature")
        assert remedy is not None
        assert remedy.features == ("columnMapping",)

    def test_an_odd_pair_has_nothing_to_drop_but_a_lower_form(self) -> None:
        made = client([{"read": {"legacy": [1]}}], "none")
        (remedy,) = one(made, "", table(Protocol(2, 4))).remedies
        command = "deltaproto plan-downgrade {table} --protocol 1,4"
        assert (remedy.kind, remedy.command) == ("normalise", command)
        assert "(1,4)" in remedy.text


class TestCompleting:
    NEEDS = table(protocol(1, 7, None, ["rowTracking"]))

    def test_what_is_required_and_missing_is_added(self) -> None:
        made = writers("rowTracking", "domainMetadata", whole=True)
        verdict = one(made, "", self.NEEDS, APPEND)
        assert verdict.verdict is Verdict.REFUSED
        remedy = verdict.remedies[0]
        assert (remedy.kind, remedy.features) == ("add-feature", ("domainMetadata",))
        # Delta Spark refuses every statement on such a table, so no plan can add the feature.
        assert remedy.command is None
        assert "add_feature(TableFeatures.DomainMetadata)" in remedy.text
        # Nor can one store the same features with it.
        assert of_kind(verdict, "normalise") is None

    @pytest.mark.parametrize("names", [(), ("rowTracking",), ("domainMetadata",)])
    def test_not_where_it_does_not_help(self, names: tuple[str, ...]) -> None:
        made = writers(*names, whole=True)
        verdict = one(made, "", self.NEEDS, APPEND)
        assert verdict.verdict is Verdict.REFUSED
        assert of_kind(verdict, "add-feature") is None


class TestOrder:
    def test_costs_are_named_the_cheapest_first(self) -> None:
        costs = ["none", "metadata", "client", "copy", "history", "rewrite"]
        assert list(RemedyCost) == costs

    @pytest.mark.parametrize(
        ("feature", "kinds"),
        [
            ("checkConstraints", ["drop-feature", "raise-client"]),
            (VECTORS, ["raise-client", "drop-feature"]),
        ],
    )
    def test_remedies_come_the_cheapest_first(self, feature: str, kinds: list[str]) -> None:
        every = {"legacy": [1, 2], "features": [VECTORS]}
        few = {"legacy": [1, 2], "features": ["appendOnly", "invariants"]}
        many = few | {"features": [*ALL_WRITES, feature]}
        made = client(
            [
                {"from": "1", "before": "2", "read": every, "write": few},
                {"from": "2", "read": every, "write": many},
            ]
        )
        needs = table(protocol(3, 7, {feature} & {VECTORS}, [feature, "appendOnly"]))
        verdict = one(made, "@1", needs, APPEND)
        assert [remedy.kind for remedy in verdict.remedies] == kinds
        costs = [list(RemedyCost).index(remedy.cost) for remedy in verdict.remedies]
        assert costs == sorted(costs)


class TestCommands:
    REMEDY = Remedy(
        "drop-feature", RemedyCost.METADATA, "drop it", command="plan {table} --drop it"
    )

    @pytest.mark.parametrize(
        "name",
        ["t", "my table", "a'b", "$(rm -rf x)", "a;b", "`id`", "{table}", "a\nb", "s3://b/t"],
    )
    def test_a_table_is_one_word_of_a_shell(self, name: str) -> None:
        command = self.REMEDY.command_for(name)
        assert command is not None
        assert shlex.split(command) == ["plan", name, "--drop", "it"]

    @given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
    def test_any_table_is_one_word(self, name: str) -> None:
        assert shlex.split(self.REMEDY.command_for(name) or "")[1] == name

    def test_a_remedy_without_a_command_has_none_for_a_table(self) -> None:
        assert self.REMEDY._replace(command=None).command_for("t") is None

    def test_a_hostile_feature_name_is_in_no_command(self) -> None:
        name = "x; rm -rf ~"
        verdict = one(writers(), "", table(protocol(1, 7, None, [name])), APPEND)
        assert verdict.because == (name,)
        assert [r.command for r in verdict.remedies if r.command] == []


class TestVerdicts:
    def test_a_client_without_a_path_stands_for_those_that_offer_the_access(self) -> None:
        gate = {"legacy": [1]}
        made = client(
            [{"path": "a", "read": gate, "write": gate, "paths": [{"name": "b", "read": gate}]}],
            "none",
        )
        found = list(evaluate_clients(candidate(made, ""), [READ, APPEND], table(Protocol(1, 1))))
        assert [(v.path, v.access, v.verdict) for v in found] == [
            ("a", READ, "ok"),
            ("b", READ, "ok"),
            ("a", APPEND, "ok"),
        ]
        (refused,) = evaluate_clients(candidate(made, "/b"), [APPEND], table(Protocol(1, 1)))
        assert (refused.path, refused.verdict) == ("b", "refused")

    def test_a_client_is_named_as_people_write_it(self) -> None:
        unknown = one(releases([]), "/engine@9", table(Protocol(1, 1)))
        assert unknown.named == "made/engine@9"
        assert one(releases([]), "@1.5", table(Protocol(1, 1))).named == "made@1.5"


class TestLookingInFiles:
    def test_statistics_that_were_not_read_can_be(self) -> None:
        deltalake = ClientCatalog().resolve("deltalake/pyarrow@1.6.6")
        unread = frozenset({UNREAD_BOOLEAN_BOUNDS})
        for hazards, by_name, offered in (
            (unread, False, True),
            (unread, True, False),
            (unread | {NAN_BOUNDS}, False, False),
            (frozenset(), False, False),
        ):
            needs = table(Protocol(1, 2))._replace(hazards=hazards, by_name=by_name)
            (verdict,) = evaluate_clients(deltalake, [READ], needs)
            remedy = of_kind(verdict, "look-in-files")
            assert (remedy is not None) is offered, (hazards, by_name)
            if remedy is not None:
                assert verdict.verdict is Verdict.UNKNOWN
                assert verdict.remedies[0] is remedy
                assert remedy.command_for("a b") == "deltaproto check 'a b' --look-in-files"


class TestCopies:
    def test_a_reader_is_offered_the_copy_of_compatibility_mode(self) -> None:
        made = releases([])
        remedy = of_kind(one(made, "@1", table(LISTED, used=[VECTORS])), "read-copy")
        assert remedy is not None
        assert (remedy.cost, remedy.command) == (RemedyCost.COPY, None)
        assert "Compatibility Mode" in remedy.text
        by_name = table(LISTED, used=[VECTORS])._replace(by_name=True)
        remedy = of_kind(one(made, "@1", by_name), "read-copy")
        assert remedy is not None
        assert (remedy.command_for("main.sales.orders") or "").split(" --", 1) == [
            "deltaproto plan-upgrade main.sales.orders",
            "engine databricks --set delta.universalFormat.enabledFormats=compatibility "
            "--set delta.universalFormat.compatibility.location=URI",
        ]

    def test_writers_readers_that_pass_and_those_of_no_version_1_are_not(self) -> None:
        made = writers("appendOnly", "invariants")
        listed = table(LISTED, used=[VECTORS])
        (verdict,) = evaluate_clients(candidate(made, ""), [APPEND], listed)
        assert verdict.verdict is Verdict.REFUSED
        assert of_kind(verdict, "read-copy") is None
        assert of_kind(one(releases([VECTORS]), "@1", table(LISTED)), "read-copy") is None
        odd = client([{"read": {"legacy": [2], "features": []}}], "none")
        assert of_kind(one(odd, "", table(LISTED, used=[VECTORS])), "read-copy") is None


class TestHazardsOfFeatures:
    """What a table shows goes and comes with the features that it belongs to."""

    MAPPED = protocol(2, 5)

    def test_a_plan_that_enables_column_mapping_brings_its_hazard(self) -> None:
        before = table_requirements(protocol(1, 2), {}, {}, hazards=["type void"])
        ending = EndState(self.MAPPED, on=frozenset({"columnMapping"}), mode="name")
        after = requirements_after(before, ending)
        assert after.hazards == {"type void", "mapping-added-later"}
        assert requirements_after(after, EndState(protocol(1, 2))).hazards == {"type void"}

    def test_one_that_is_enabled_already_stays_as_it_is(self) -> None:
        before = table_requirements(
            self.MAPPED, {"columnMapping": True}, {}, hazards=["mapped-partitions"]
        )
        ending = EndState(self.MAPPED, on=frozenset({"columnMapping"}))
        assert requirements_after(before, ending).hazards == {"mapped-partitions"}

    def test_append_only_comes_and_goes_with_its_property(self) -> None:
        before = table_requirements(protocol(1, 2), {"appendOnly": False}, {})
        on = requirements_after(before, EndState(protocol(1, 2), on=frozenset({"appendOnly"})))
        assert on.hazards == {"append-only"}
        off = requirements_after(on, EndState(protocol(1, 2), off=frozenset({"appendOnly"})))
        assert off.hazards == frozenset()
