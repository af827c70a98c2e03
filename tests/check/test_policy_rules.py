"""The rules of a policy: when each fires, with which severity, and what a waiver excuses."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from deltaproto.policy.rules import all_rules
from deltaproto.policy.rules.invalid_isolation_level import RULE as INVALID_LEVEL
from tests.conftest import Ran
from tests.support.logs import (
    Log,
    add,
    column,
    commit_info,
    metadata,
    protocol,
    schema_string,
)

Cli = Callable[..., Ran]
Checked = Callable[..., dict[str, Any]]
Policy = Callable[[str], str]
Action = dict[str, Any]
Found = tuple[str, str | None, str | None]

P12 = protocol(1, 2)
P25 = protocol(2, 5)
DV, CM = "deletionVectors", "columnMapping"
VECTORS = protocol(3, 7, [DV], ["appendOnly", DV, "invariants"])
DV_ON = metadata({"delta.enableDeletionVectors": "true"})
MAPPED = protocol(3, 7, [CM], ["appendOnly", CM, "invariants"])
IDS = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "col-1"}
BY_NAME = metadata({"delta.columnMapping.mode": "name"}, schema_string(column("id", **IDS)))
WRITERS = protocol(1, 7, None, ["appendOnly", "rowTracking", "domainMetadata"])
WIDENING = protocol(3, 7, ["typeWidening"], ["appendOnly", "invariants", "typeWidening"])
PROTECTED = protocol(1, 7, None, ["appendOnly", "checkpointProtection", "invariants"])
CLUSTERED = (
    protocol(1, 7, None, ["clustering", "domainMetadata", "appendOnly", "invariants"]),
    metadata(schema=schema_string(column("region"))),
    {
        "domainMetadata": {
            "domain": "delta.clustering",
            "configuration": '{"clusteringColumns": [["region"]]}',
            "removed": False,
        }
    },
)
TODAY = datetime.datetime.now(datetime.UTC).date()
TOMORROW, YESTERDAY = TODAY + datetime.timedelta(1), TODAY - datetime.timedelta(1)


class Case(NamedTuple):
    """A table, a policy, and every (rule, feature, client) found: no more, no less."""

    name: str
    table: tuple[Action, ...]
    policy: str
    finds: set[Found]


def everywhere(settings: str) -> str:
    return f"tables:\n  '*': {{{settings}}}\n"


def level(text: str | None) -> Action:
    return metadata({} if text is None else {"delta.isolationLevel": text})


def properties(wanted: str) -> str:
    return everywhere(f"require_properties: {{{wanted}}}")


ENGINE, PYARROW = "deltalake/engine@1.6.6", "deltalake/pyarrow@1.6.6"
OLD_TRINO = "trino@400"
CASES = (
    Case("nobody is declared", (VECTORS, DV_ON), "clients: []\n", set()),
    # DP201: a client is refused.
    Case("a client that can", (P12,), "clients: [trino@476]\n", set()),
    Case(
        "a client that lacks one feature",
        (VECTORS, DV_ON),
        f"clients: [{{client: {PYARROW}, access: [read]}}]\n",
        {("DP201", DV, PYARROW)},
    ),
    Case(
        "one path of two",
        (VECTORS, DV_ON),
        "clients: [{client: deltalake@1.6.6, access: [read]}]\n",
        {("DP201", DV, PYARROW)},
    ),
    Case(
        "several accesses are one finding",
        (VECTORS, DV_ON),
        "clients: [{client: delta-spark@2.2.0, access: [read, stream]}]\n",
        {("DP201", DV, "delta-spark@2.2.0")},
    ),
    Case(
        "an access that the client does not offer",
        (P12,),
        "clients: [{client: bigquery, access: [read, append]}]\n",
        {("DP201", None, "bigquery")},
    ),
    # DP202: a client does wrong.
    Case(
        "a client that lets vectors through",
        (VECTORS, DV_ON),
        f"clients: [{{client: {OLD_TRINO}, access: [read]}}]\n",
        {("DP202", DV, OLD_TRINO)},
    ),
    Case(
        "nothing is wrong without them",
        (P12,),
        f"clients: [{{client: {OLD_TRINO}, access: [read]}}]\n",
        set(),
    ),
    # DP203: nobody knows.
    Case(
        "a version that is not known",
        (P12,),
        "clients: [{client: trino@100, access: [read]}]\n",
        {("DP203", None, "trino@100")},
    ),
    # DP204, DP207: ceilings and floors.
    Case(
        "at the ceiling", (P25,), everywhere("max_reader_version: 2, max_writer_version: 5"), set()
    ),
    Case(
        "above the reader's",
        (P25,),
        everywhere("max_reader_version: 1, max_writer_version: 7"),
        {("DP204", None, None)},
    ),
    Case(
        "above the writer's", (P25,), everywhere("max_writer_version: 4"), {("DP204", None, None)}
    ),
    Case("at the floor", (P25,), everywhere("min_reader_version: 2, min_writer_version: 5"), set()),
    Case(
        "below the reader's", (P12,), everywhere("min_reader_version: 2"), {("DP207", None, None)}
    ),
    Case(
        "below the writer's", (P12,), everywhere("min_writer_version: 3"), {("DP207", None, None)}
    ),
    # DP205, DP206: features, listed or implied.
    Case(
        "forbidden and listed",
        (VECTORS, DV_ON),
        everywhere(f"forbid_features: [{DV}, {CM}]"),
        {("DP205", DV, None)},
    ),
    Case(
        "forbidden and implied",
        (P25,),
        everywhere(f"forbid_features: [{CM}]"),
        {("DP205", CM, None)},
    ),
    Case("forbidden and absent", (P12,), everywhere(f"forbid_features: [{CM}]"), set()),
    Case(
        "required and absent",
        (P12,),
        everywhere(f"require_features: [{DV}, appendOnly]"),
        {("DP206", DV, None)},
    ),
    Case("required and implied", (P25,), everywhere(f"require_features: [{CM}]"), set()),
    # DP212: clustering.
    Case(
        "clustered by nothing",
        (P12,),
        everywhere("cluster_by: [region]"),
        {("DP212", None, None)},
    ),
    Case("not clustered, as it should be", (P12,), everywhere("cluster_by: []"), set()),
    Case(
        "clustered as required, in another case",
        CLUSTERED,
        everywhere("cluster_by: [Region]"),
        set(),
    ),
    Case(
        "clustered and must not be",
        CLUSTERED,
        everywhere("cluster_by: []"),
        {("DP212", None, None)},
    ),
    # DP213: the lowest protocol.
    Case("lowest, and in use", (VECTORS, DV_ON), everywhere("protocol: lowest"), set()),
    Case("lowest by a pair of versions", (P25,), everywhere("protocol: lowest"), set()),
    Case(
        "nothing uses it",
        (WIDENING, metadata()),
        everywhere("protocol: lowest"),
        {("DP213", "typeWidening", None)},
    ),
    Case(
        "nothing uses it, and it is required",
        (WIDENING, metadata()),
        everywhere("protocol: lowest, require_features: [typeWidening]"),
        set(),
    ),
    Case(
        "nothing shows whether anything uses it",
        (VECTORS, metadata()),
        everywhere("protocol: lowest"),
        {("DP213", DV, None)},
    ),
    Case(
        "the same features in a higher form",
        (protocol(3, 7, [], ["appendOnly", "invariants"]), metadata()),
        everywhere("protocol: lowest"),
        {("DP213", None, None)},
    ),
    Case(
        "protected history",
        (PROTECTED, metadata()),
        everywhere("protocol: lowest"),
        {("DP213", "checkpointProtection", None)},
    ),
    Case(
        "protected history that the policy keeps",
        (PROTECTED, metadata()),
        everywhere("protocol: lowest, history: keep"),
        set(),
    ),
    Case("a setting for plans is not a finding", (P12,), everywhere("history: truncate"), set()),
    # DP208: isolation.
    Case(
        "no level where each has its own",
        (P12,),
        everywhere("isolation: Serializable"),
        {("DP208", None, None)},
    ),
    Case(
        "the level that is asked for",
        (P12, level("Serializable")),
        everywhere("isolation: serializable"),
        set(),
    ),
    Case(
        "the other level",
        (P12, level("WriteSerializable")),
        everywhere("isolation: Serializable"),
        {("DP208", None, None)},
    ),
    Case(
        "a level that delta-rs cannot have",
        (P12, level("WriteSerializable")),
        everywhere("isolation: WriteSerializable"),
        set(),
    ),
    Case(
        "not set, and Delta Spark is stricter",
        (P12,),
        everywhere("isolation: WriteSerializable"),
        {("DP208", None, None)},
    ),
    Case(
        "nobody asks", (P12, level("WriteSerializable")), everywhere("max_reader_version: 3"), set()
    ),
    # DP209: properties.
    Case(
        "a property that is not set",
        (P12,),
        properties("delta.appendOnly: 'true'"),
        {("DP209", None, None)},
    ),
    Case(
        "in other letters",
        (P12, metadata({"delta.x": " TRUE"})),
        properties("delta.x: true"),
        set(),
    ),
    Case(
        "another value",
        (P12, metadata({"delta.x": "false"})),
        properties("delta.x: true"),
        {("DP209", None, None)},
    ),
    # DP210: streams.
    Case(
        "a stream on mapped columns",
        (MAPPED, BY_NAME),
        "clients: [{client: delta-spark@4.0.0, stream: true, as: bronze}]\n",
        {("DP210", CM, "delta-spark@4.0.0")},
    ),
    Case(
        "a batch reader of them",
        (MAPPED, BY_NAME),
        "clients: [{client: delta-spark@4.0.0, access: [read]}]\n",
        set(),
    ),
    Case(
        "a stream where nothing is mapped",
        (P25,),
        "clients: [{client: delta-spark@4.0.0, stream: true}]\n",
        set(),
    ),
    # DP211: shares.
    Case(
        "a share with a reader feature",
        (VECTORS, DV_ON),
        "clients: [{client: delta-sharing-spark@3.3.0, share: true}]\n",
        {("DP211", None, "delta-sharing-spark@3.3.0")},
    ),
    Case(
        "a share with writer features",
        (WRITERS,),
        "clients: [{client: delta-sharing-spark@3.3.0, share: true}]\n",
        set(),
    ),
    Case(
        "a reader feature that is not shared",
        (VECTORS, DV_ON),
        "clients: [{client: delta-sharing-spark@3.3.0, access: [read]}]\n",
        set(),
    ),
)


def found(document: dict[str, Any], member: str = "findings") -> set[Found]:
    """What the policy's rules say."""
    return {
        (each["rule"], each.get("feature"), each.get("client"))
        for each in document[member]
        if each["rule"].startswith("DP2")
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exactly_these_findings(
    case: Case, make: Callable[..., str], checked: Checked, policy: Policy
) -> None:
    document = checked(make("t", *case.table), "--policy", policy(case.policy))
    assert found(document) == case.finds
    ours = [each for each in document["findings"] if each["rule"].startswith("DP2")]
    assert len(ours) == len(case.finds)
    assert all("\n" not in f["message"] and f["hint"] for f in document["findings"])


def test_every_rule_has_a_case_that_fires() -> None:
    fired = {rule for case in CASES for rule, _, _ in case.finds}
    ours = {rule.id for rule in all_rules() if rule.id.startswith("DP2")}
    assert ours - fired == {f"DP{number}" for number in range(220, 226)}


class TestDrift:
    @pytest.fixture
    def before(self, log: Log, save: Callable[..., str]) -> str:
        log.commit(0, P12, metadata(), commit_info("CREATE TABLE"))
        return save(log.table, name="before.json")

    def drift(self, checked: Checked, table: str, baseline: str) -> list[dict[str, Any]]:
        findings: list[dict[str, Any]] = checked(table, "--baseline", baseline)["findings"]
        return [each for each in findings if each["rule"].startswith("DP22")]

    def test_nothing_changed(self, log: Log, before: str, checked: Checked) -> None:
        log.commit(1, add())
        assert self.drift(checked, log.table, before) == []

    def test_the_commit_that_brought_a_feature(
        self, log: Log, before: str, checked: Checked
    ) -> None:
        log.commit(1, add())
        named = commit_info("SET TBLPROPERTIES", engineInfo="Spark/4", userName="ann")
        log.commit(2, VECTORS, DV_ON, named).commit(3, add("p3"))
        (joined,) = self.drift(checked, log.table, before)
        assert (joined["rule"], joined["feature"]) == ("DP220", DV)
        assert joined["evidence"] == "version 2: SET TBLPROPERTIES by Spark/4, ann"
        assert joined["message"] == f"{DV} was added to the protocol since version 0"

    def test_the_commit_is_the_first_with_the_feature(
        self, log: Log, before: str, checked: Checked
    ) -> None:
        names = ["appendOnly", "invariants", "checkConstraints"]
        log.commit(1, protocol(1, 7, None, names), commit_info("ADD CONSTRAINT"))
        names = [*names, "changeDataFeed", "generatedColumns"]
        log.commit(2, protocol(1, 7, None, names), commit_info("SET TBLPROPERTIES"))
        shown = {
            each["feature"]: each["evidence"] for each in self.drift(checked, log.table, before)
        }
        assert shown == {
            "checkConstraints": "version 1: ADD CONSTRAINT by an unnamed client",
            "changeDataFeed": "version 2: SET TBLPROPERTIES by an unnamed client",
            "generatedColumns": "version 2: SET TBLPROPERTIES by an unnamed client",
        }

    def test_the_span_where_the_log_is_not_at_hand(
        self, log: Log, before: str, checked: Checked, save: Callable[..., str]
    ) -> None:
        log.commit(1, add()).commit(2, VECTORS, DV_ON)
        (joined,) = self.drift(checked, save(log.table, name="now.json"), before)
        assert joined["evidence"] == "between versions 0 and 2"

    def test_a_log_whose_past_cannot_be_read_gives_the_span(
        self, log: Log, before: str, checked: Checked
    ) -> None:
        log.raw(1, b"\x00no json").commit(2, VECTORS, DV_ON)
        log.checkpoint(2, VECTORS, DV_ON, add())
        (joined,) = self.drift(checked, log.table, before)
        assert (joined["feature"], joined["rule"]) == (DV, "DP220")
        assert "2" in joined["evidence"]

    def test_a_feature_that_left(
        self, log: Log, save: Callable[..., str], checked: Checked
    ) -> None:
        log.commit(0, VECTORS, DV_ON)
        before = save(log.table)
        log.commit(1, P12, metadata())
        (lost,) = self.drift(checked, log.table, before)
        assert (lost["rule"], lost["feature"], lost["severity"]) == ("DP221", DV, "warning")
        assert lost["evidence"] == "between versions 0 and 1"

    def test_versions_that_rose_alone(
        self, log: Log, save: Callable[..., str], checked: Checked
    ) -> None:
        log.commit(0, protocol(1, 7, None, ["appendOnly", "invariants"]), metadata())
        before = save(log.table)
        log.commit(1, protocol(3, 7, [], ["appendOnly", "invariants"]))
        (rose,) = self.drift(checked, log.table, before)
        assert (rose["rule"], rose["evidence"]) == ("DP220", "reader version 1 to 3")

    def test_versions_that_imply_features_that_nothing_uses(
        self, log: Log, save: Callable[..., str], checked: Checked
    ) -> None:
        log.commit(0, P12, metadata(), add())
        before = save(log.table)
        log.commit(1, protocol(1, 4), metadata({"delta.constraints.c": "id > 0"}))
        (named,) = (each for each in self.drift(checked, log.table, before) if each.get("feature"))
        assert named["feature"] == "checkConstraints"
        log.commit(2, protocol(1, 4), metadata())
        (rose,) = self.drift(checked, log.table, before)
        assert (rose["rule"], rose.get("feature")) == ("DP220", None)
        assert "imply changeDataFeed, checkConstraints, generatedColumns)" in rose["message"]
        assert rose["evidence"] == "writer version 2 to 4"

    def test_versions_that_rose_while_a_feature_left(
        self, log: Log, save: Callable[..., str], checked: Checked
    ) -> None:
        log.commit(0, protocol(1, 7, None, ["appendOnly", "invariants"]), metadata())
        before = save(log.table)
        log.commit(1, protocol(3, 7, [], ["appendOnly"]))
        drift = self.drift(checked, log.table, before)
        assert {each["rule"] for each in drift} == {"DP220", "DP221"}

    def test_a_table_that_was_made_anew(
        self, log: Log, save: Callable[..., str], checked: Checked, make: Callable[..., str]
    ) -> None:
        log.commit(0, P12, metadata()).commit(1, add()).commit(2, add("p2"))
        before = save(log.table)
        for version in (1, 2):
            log.path(version, ".json").unlink()
        log.commit(0, VECTORS, DV_ON, commit_info("CREATE TABLE", engineInfo="X"))
        (joined,) = self.drift(checked, log.table, before)
        assert joined["evidence"] == "version 0: CREATE TABLE by X"
        (joined,) = self.drift(checked, save(log.table, name="now.json"), before)
        assert joined["evidence"] == "the table was recreated: version 2 then, 0 now"

    def test_a_table_that_the_baseline_lacks(
        self, make: Callable[..., str], before: str, checked: Checked, log: Log
    ) -> None:
        other = make("other", VECTORS, metadata(id="another"))
        (new,) = self.drift(checked, other, before)
        assert (new["rule"], new["severity"], new["table"]) == ("DP222", "info", other)
        assert self.drift(checked, f"file://{log.table}/", before) == []

    def test_a_location_that_spark_wrote_is_the_same_place(
        self, log: Log, before: str, checked: Checked, write: Callable[..., str]
    ) -> None:
        text = Path(before).read_text().replace('"file:///', '"file:/')
        assert self.drift(checked, log.table, write(text, "spark.json")) == []


class TestSeverities:
    @pytest.mark.parametrize(
        ("level", "code"), [("error", 1), ("warning", 0), ("info", 0), ("off", 0)]
    )
    def test_of_a_rule(
        self, make: Callable[..., str], checked: Checked, policy: Policy, level: str, code: int
    ) -> None:
        table = make("t", P12)
        text = f"severities: {{DP206: {level}}}\n" + everywhere(f"require_features: [{DV}]")
        document = checked(table, "--policy", policy(text), code=code)
        shown = [each["severity"] for each in document["findings"] if each["rule"] == "DP206"]
        assert shown == ([] if level == "off" else [level])

    def test_of_a_lint_rule(
        self, make: Callable[..., str], checked: Checked, policy: Policy
    ) -> None:
        table = make("t", P12, level("nonsense"))
        for severity, code in (("error", 1), ("info", 0)):
            text = policy(f"severities: {{{INVALID_LEVEL.id}: {severity}}}\n")
            document = checked(table, "--policy", text, code=code)
            shown = {each["rule"]: each["severity"] for each in document["findings"]}
            assert shown[INVALID_LEVEL.id] == severity

    def test_of_some_tables(
        self, make: Callable[..., str], checked: Checked, policy: Policy
    ) -> None:
        tables = [make("gold_a", P12), make("raw", P12)]
        text = (
            "severities: {DP206: 'off', DP207: info}\ntables:\n"
            f"  '*': {{require_features: [{DV}], min_writer_version: 3}}\n"
            "  'gold_*': {severities: {DP206: warning}}\n"
        )
        document = checked(*tables, "--policy", policy(text), code=0)
        shown = {
            (Path(each["table"]).name, each["rule"], each["severity"])
            for each in document["findings"]
            if each["rule"].startswith("DP2")
        }
        assert shown == {
            ("gold_a", "DP206", "warning"),
            ("gold_a", "DP207", "info"),
            ("raw", "DP207", "info"),
        }


def test_the_most_specific_pattern_wins(
    make: Callable[..., str], checked: Checked, policy: Policy
) -> None:
    tables = [make(name, P25) for name in ("gold_orders", "gold_x", "raw")]
    text = (
        "clients: [{client: bigquery, access: [read]}]\ntables:\n"
        "  'gold_orders': {max_writer_version: 5, clients: []}\n"
        "  '*': {max_writer_version: 3}\n"
        "  'gold_*': {max_writer_version: 4, clients: [{client: trino@476, access: [read]}]}\n"
    )
    document = checked(*tables, "--policy", policy(text))
    messages = {
        Path(each["table"]).name: each["message"]
        for each in document["findings"]
        if each["rule"] == "DP204"
    }
    assert messages == {
        "gold_x": "writer version 5 is above the policy's 4",
        "raw": "writer version 5 is above the policy's 3",
    }
    judged = {(Path(v["table"]).name, v["client"]) for v in document["verdicts"]}
    everywhere = {(name, "bigquery") for name in ("gold_orders", "gold_x", "raw")}
    assert judged == {*everywhere, ("gold_orders", "trino"), ("gold_x", "trino")}


@pytest.mark.parametrize(
    ("stored", "hint"),
    [
        (
            protocol(3, 7, ["columnMapping"], ["columnMapping"]),
            "plan-downgrade TABLE --protocol 2,7",
        ),
        (protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), "drop the features"),
    ],
)
def test_a_ceiling_that_only_the_form_exceeds_needs_no_drop(
    stored: Action, hint: str, make: Callable[..., str], checked: Checked, policy: Policy
) -> None:
    document = checked(
        make("t", stored), "--policy", policy("tables: {'*': {max_reader_version: 2}}\n")
    )
    (found,) = (each for each in document["findings"] if each["rule"] == "DP204")
    assert hint in found["hint"]


CLIENTS = (
    "clients: [{client: deltalake@1.6.6, access: [read]}, {client: trino@400, access: [read]},"
    " {client: 'dbr@10.4 LTS', access: [read]}]\n"
)
ALL: set[Found] = {
    ("DP201", DV, PYARROW),
    ("DP202", DV, OLD_TRINO),
    ("DP201", DV, "databricks-runtime@10.4 LTS"),
}


def waiver(**fields: str) -> str:
    given = {"reason": "it moves", "expires": str(TOMORROW), **fields}
    return "waivers:\n  - {" + ", ".join(f"{k}: '{v}'" for k, v in given.items()) + "}\n"


class TestWaivers:
    @pytest.mark.parametrize(
        ("fields", "waived"),
        [
            ({"rule": "DP201"}, {PYARROW, "databricks-runtime@10.4 LTS"}),
            ({"rule": "DP202"}, {OLD_TRINO}),
            ({"rule": "DP201", "feature": DV, "client": "deltalake"}, {PYARROW}),
            ({"rule": "DP201", "feature": CM}, set()),
            ({"rule": "DP201", "client": PYARROW}, {PYARROW}),
            ({"rule": "DP201", "client": "deltalake@1.6.6"}, {PYARROW}),
            ({"rule": "DP201", "client": "deltalake@v1.6.6"}, {PYARROW}),
            ({"rule": "DP201", "client": "deltalake@1.6.5"}, set()),
            ({"rule": "DP201", "client": "deltalake/engine"}, set()),
            ({"rule": "DP201", "client": "trino"}, set()),
            ({"rule": "DP202", "client": "TRINO"}, {OLD_TRINO}),
            ({"rule": "DP201", "client": "dbr"}, {"databricks-runtime@10.4 LTS"}),
            (
                {"rule": "DP201", "client": "databricks-runtime@10.4"},
                {"databricks-runtime@10.4 LTS"},
            ),
            ({"rule": "DP202", "table": "t"}, {OLD_TRINO}),
            ({"rule": "DP202", "table": "**/t"}, {OLD_TRINO}),
            ({"rule": "DP202", "table": "other"}, set()),
            ({"rule": "DP202", "expires": str(TOMORROW)}, {OLD_TRINO}),
        ],
        ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
    )
    def test_what_each_excuses(
        self,
        make: Callable[..., str],
        checked: Checked,
        policy: Policy,
        fields: dict[str, str],
        waived: set[str],
    ) -> None:
        table = make("t", VECTORS, DV_ON)
        document = checked(table, "--policy", policy(CLIENTS + waiver(**fields)), code=1)
        assert found(document, "suppressed") == {each for each in ALL if each[2] in waived}
        assert found(document) == {each for each in ALL if each[2] not in waived}

    def test_everything_excused_is_code_0(
        self, make: Callable[..., str], checked: Checked, policy: Policy
    ) -> None:
        table = make("t", VECTORS, DV_ON)
        text = CLIENTS + waiver(rule="DP201") + waiver(rule="DP202").partition("\n")[2]
        document = checked(table, "--policy", policy(text), code=0)
        assert found(document) == set()
        assert {each["waived"]["expires"] for each in document["suppressed"]} == {str(TOMORROW)}
        assert {each["waived"]["reason"] for each in document["suppressed"]} == {"it moves"}

    @pytest.mark.parametrize("format_", ["text", "markdown"])
    def test_people_see_them_when_they_ask(
        self, make: Callable[..., str], cli: Cli, policy: Policy, format_: str
    ) -> None:
        words = ("check", make("t", VECTORS, DV_ON), "--policy")
        text = policy(CLIENTS + waiver(rule="DP202", reason="moves in *May*"))
        quiet = cli(*words, text, "--format", format_).out
        shown = cli(*words, text, "--format", format_, "--show-suppressed").out
        assert ("DP202" in quiet, "moves in" in quiet) == (False, False)
        assert "waived" in shown
        assert f"until {TOMORROW}" in shown
        assert (r"moves in \*May\*" if format_ == "markdown" else "moves in *May*") in shown

    def test_programs_always_see_them(
        self, make: Callable[..., str], cli: Cli, policy: Policy
    ) -> None:
        words = ("check", make("t", VECTORS, DV_ON), "--policy")
        text = policy(CLIENTS + waiver(rule="DP202"))
        for more in ((), ("--show-suppressed",)):
            sarif = json.loads(cli(*words, text, "--format", "sarif", *more).out)
            results = {r["ruleId"]: r["suppressions"] for r in sarif["runs"][0]["results"]}
            assert results["DP202"][0]["justification"] == "it moves"
            assert results["DP201"] == []
            (suite,) = ElementTree.fromstring(cli(*words, text, "--format", "junit", *more).out)
            assert suite.attrib["skipped"] == "1"
            assert "DP202" not in cli(*words, text, "--format", "github", *more).out

    def test_an_expired_one_excuses_nothing_and_is_a_finding(
        self, make: Callable[..., str], checked: Checked, policy: Policy
    ) -> None:
        file = policy(CLIENTS + waiver(rule="DP202", expires=str(YESTERDAY)))
        document = checked(make("t", VECTORS, DV_ON), "--policy", file, code=1)
        assert document["suppressed"] == []
        assert {(f["rule"], f.get("feature"), f.get("client")) for f in document["findings"]} == {
            *ALL,
            ("DP303", None, None),
        }
        (expired,) = (f for f in document["findings"] if f["rule"] == "DP303")
        assert (expired["table"], expired["severity"]) == (file, "warning")
        assert f"{file}:4:5: the waiver of DP202 expired on {YESTERDAY}" in expired["message"]


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "place", "said"),
        [
            ("clients: [trinoo@476]\n", "2:11", "unknown client trinoo"),
            ("clients:\n  - bigquery\n  - trino\n", "4:5", "trino requires a version"),
            ("clients:\n  - {client: trino@x.y, as: a}\n", "3:5", "x.y is not a version of trino"),
            ("clients: [bigquery@1]\n", "2:11", "bigquery has no versions"),
            ("clients: [deltalake/rust@1.6.6]\n", "2:11", "deltalake has no path rust"),
            ("tables:\n  t: {clients: [nobody@1]}\n", "3:17", "unknown client nobody"),
            (
                f"waivers:\n  - {{rule: DP201, client: trno, reason: r, expires: {TOMORROW}}}\n",
                "3:5",
                "unknown client trno",
            ),
            ("define:\n  ours: {name: x, ranges: [{read: 1}]}\n", "3:3", "ours"),
        ],
    )
    def test_name_their_place(
        self,
        make: Callable[..., str],
        cli: Cli,
        policy: Policy,
        text: str,
        place: str,
        said: str,
    ) -> None:
        file = policy(text)
        ran = cli("check", make("t", P12), "--policy", file)
        assert (ran.code, ran.out) == (2, "")
        first, *_ = ran.err.splitlines()
        assert first.startswith(f"error: {file}:{place}: ")
        assert said in first

    def test_a_catalog_that_is_not_there(
        self, make: Callable[..., str], cli: Cli, policy: Policy
    ) -> None:
        file = policy("catalogues: [nowhere.yaml]\n")
        ran = cli("check", make("t", P12), "--policy", file)
        assert (ran.code, ran.out) == (2, "")
        assert str(Path(file).with_name("nowhere.yaml")) in ran.err

    def test_a_client_of_no_table_counts_as_well(
        self, make: Callable[..., str], cli: Cli, policy: Policy
    ) -> None:
        file = policy("tables:\n  other: {clients: [nobody@1]}\n")
        assert cli("check", make("t", P12), "--policy", file).code == 2


OURS = """\
name: Nightly loader
versions: none
ranges:
  - read: {legacy: [1, 2], features: [deletionVectors]}
    write: {legacy: [1, 2]}
    access: [read, append]
    confidence: measured
    evidence: [{kind: measured, reference: a trial, date: '2026-11-01'}]
"""


def indented(text: str, by: int) -> str:
    return "".join(" " * by + line + "\n" for line in text.splitlines())


class TestClientsOfASite:
    def test_defined_in_the_policy(
        self, make: Callable[..., str], checked: Checked, policy: Policy
    ) -> None:
        file = policy(f"define:\n  nightly:\n{indented(OURS, 4)}clients: [nightly]\n")
        document = checked(make("t", VECTORS, DV_ON), "--policy", file, code=1)
        shown = {(v["client"], v["access"], v["verdict"]) for v in document["verdicts"]}
        assert shown == {("nightly", "read", "ok"), ("nightly", "append", "refused")}

    def test_in_files_relative_to_the_policy(
        self, make: Callable[..., str], checked: Checked, write: Callable[..., str]
    ) -> None:
        write(f"id: nightly\n{OURS}", "rules/clients/ours.yaml")
        text = "policy_version: 1\ncatalogues: [clients/ours.yaml]\nclients: [nightly]\n"
        file = write(text, "rules/policy.yaml")
        document = checked(make("t", P12), "--policy", file, code=0)
        assert {v["verdict"] for v in document["verdicts"]} == {"ok"}

    def test_on_the_command_line_and_the_policy_before_it(
        self, make: Callable[..., str], checked: Checked, write: Callable[..., str], policy: Policy
    ) -> None:
        file = write(f"id: nightly\n{OURS}", "ours.yaml")
        table = make("t", VECTORS, DV_ON)
        asked = ("--client-file", file, "--client", "nightly", "--access", "read")
        (verdict,) = checked(table, *asked, code=0)["verdicts"]
        assert verdict["verdict"] == "ok"
        narrower = OURS.replace(", features: [deletionVectors]", "")
        own = policy(f"define:\n  nightly:\n{indented(narrower, 4)}")
        (verdict,) = checked(table, *asked, "--policy", own, code=1)["verdicts"]
        assert verdict["verdict"] == "refused"
