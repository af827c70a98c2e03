"""Single versions that were measured go before what documents say of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog, load_shipped_client
from deltaproto.clients.entry import parse_client
from deltaproto.clients.feature_matrix import FeatureAnswer, client_columns, newest_columns
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
    find_measurement,
    load_shipped_measurements,
    measurement_from_json,
    measurement_to_json,
)
from deltaproto.clients.members import EntryError
from deltaproto.clients.model import Access, Confidence, Verdict
from deltaproto.clients.requirements import table_requirements
from deltaproto.clients.verdicts import evaluate_clients
from deltaproto.errors import UsageError
from deltaproto.protocol.protocol import Protocol
from tests.clients.made import protocol, table

PROOF = [{"kind": "measured", "reference": "made for a test", "date": "2026-11-22"}]
VECTORS = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])


def entry(client: str, version: str | None, *paths: str | None, **more: Any) -> dict[str, Any]:
    read = {"legacy": [1], "features": []}
    items = [
        {
            **({"version": version} if version else {}),
            **({"path": path} if path else {}),
            "read": read,
            "evidence": PROOF,
        }
        for path in paths or (None,)
    ]
    return {"id": client, "versions": "dotted" if version else "none", "measured": items, **more}


def catalog(plain: dict[str, Any]) -> ClientCatalog:
    return ClientCatalog([parse_client(plain, "made")])


def verdicts(found: ClientCatalog, name: str) -> dict[str | None, Verdict]:
    said = evaluate_clients(found.resolve(name), [Access.READ], table(VECTORS))
    return {each.path: each.verdict for each in said}


def test_a_measured_version_goes_before_its_range() -> None:
    newest = load_shipped_client("duckdb").ranges[-1].start
    assert newest is not None
    own = catalog(entry("duckdb", newest))
    assert verdicts(ClientCatalog(), f"duckdb@{newest}") == {None: Verdict.OK}
    assert verdicts(own, f"duckdb@{newest}") == {None: Verdict.REFUSED}
    candidate = own.resolve(f"duckdb@{newest}")
    assert candidate.range is not None
    assert candidate.range.confidence is Confidence.MEASURED
    assert candidate.documented == load_shipped_client("duckdb").ranges[-1]
    assert candidate.range.evidence[0].reference == "made for a test"
    others = load_shipped_client("duckdb").ranges[-2].start
    assert own.resolve(f"duckdb@{others}").documented is None


def test_a_version_is_the_same_however_it_is_written() -> None:
    own = catalog(entry("polars", "9.0"))
    assert own.resolve("polars@9.0.0").range == own.resolve("polars@v9").range


def test_paths_that_were_not_measured_stay_as_they_are() -> None:
    own = catalog(entry("deltalake", "1.6.2", "pyarrow"))
    before, after = verdicts(ClientCatalog(), "deltalake@1.6.2"), verdicts(own, "deltalake@1.6.2")
    assert before["engine"] is after["engine"] is Verdict.OK
    assert after["pyarrow"] is Verdict.REFUSED


def test_a_side_that_was_not_measured_is_as_it_was() -> None:
    own = catalog(entry("duckdb", "1.5.5"))
    (path,) = own.resolve("duckdb@1.5.5").paths
    (before,) = ClientCatalog().resolve("duckdb@1.5.5").paths
    documented = load_shipped_client("duckdb").ranges[-1].paths[0]
    assert path.read is not None
    assert path.read.legacy == {1}
    assert path.write is not None
    assert path.write in (before.write, documented.write)
    assert path.access >= documented.access


def test_remedies_look_past_a_measured_version() -> None:
    own = catalog(entry("deltalake", "1.2.0", "engine"))
    said = next(
        each
        for each in evaluate_clients(
            own.resolve("deltalake/engine@1.2.0"),
            [Access.READ],
            table(VECTORS, used=["deletionVectors"]),
        )
    )
    assert said.verdict is Verdict.REFUSED
    assert "raise-client" in {remedy.kind for remedy in said.remedies}


def test_a_client_that_was_measured_only_is_known_in_those_versions() -> None:
    own = catalog(entry("mine", "2.1"))
    assert own.resolve("mine@2.1").range is not None
    other = own.resolve("mine@2.2")
    assert other.range is None
    assert "2.2 of mine was not measured; measured: 2.1" in other.unknown
    with pytest.raises(UsageError) as raised:
        own.resolve("mine")
    assert "mine@2.1" in raised.value.hint


def test_a_service_without_versions() -> None:
    own = catalog(entry("service", None))
    assert own.resolve("service").range is not None


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"id": "a", "versions": "dotted"}, "ranges are missing"),
        (entry("a", "no version"), "is not a dotted version"),
        ({"id": "a", "versions": "dotted", "measured": [{"from": "1"}]}, "from"),
        ({"id": "a", "versions": "dotted", "measured": [{"version": "1"}]}, "neither read nor"),
    ],
)
def test_entries_that_say_nothing(plain: dict[str, Any], message: str) -> None:
    with pytest.raises(EntryError, match=message):
        parse_client(plain, "made")


def test_check_uses_an_entry_file(cli: Any, tmp_path: Path, log: Any) -> None:
    from tests.support.logs import add, commit_info, metadata
    from tests.support.logs import protocol as action

    log.commit(0, commit_info(), action(1, 2), metadata(), add())
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nclients:\n- client: duckdb@1.5.5\n  access: [read]\n")
    file = tmp_path / "entry.yaml"
    plain = entry("duckdb", "1.5.5")
    plain["measured"][0]["read"] = {"legacy": []}
    file.write_text(yaml.safe_dump(plain))
    words = ("check", log.table, "--policy", str(policy), "--format", "json")
    assert [v["verdict"] for v in cli(*words).json["verdicts"]] == ["ok"]
    after = cli(*words, "--client-file", str(file))
    assert [v["verdict"] for v in after.json["verdicts"]] == ["refused"]


def test_files_with_measurements_of_one_client_join(cli: Any, tmp_path: Path) -> None:
    names = []
    for version in ("1.0", "2.0"):
        file = tmp_path / f"{version}.yaml"
        file.write_text(yaml.safe_dump(entry("mine", version)))
        names += ["--client-file", str(file)]
    for version in ("1.0", "2.0"):
        assert cli("clients", f"mine@{version}", *names, "--format", "json").json["clients"][0][
            "known"
        ]


def test_shipped_measurements_and_entries_belong_together() -> None:
    for measured in load_shipped_measurements():
        client = load_shipped_client(measured.client)
        found = [(each.start, path.name) for each in client.measured for path in each.paths]
        assert (measured.version, measured.path) in found, measured.name
        assert find_measurement(measured.client, measured.path, measured.version) == measured


def test_a_newer_kit_only_adds_tables() -> None:
    kits: dict[tuple[int, str], set[str]] = {}
    for measured in load_shipped_measurements():
        cases = {cell.case for cell in measured.cells}
        kits.setdefault((measured.kit_version, measured.kit_digest), set()).update(cases)
    assert len({version for version, _ in kits}) == len(kits)
    ordered = [kits[kit] for kit in sorted(kits)]
    assert all(older < newer for older, newer in pairwise(ordered))


def test_measurements_hold_no_path_of_a_machine() -> None:
    for measured in load_shipped_measurements():
        text = measurement_to_json(measured)
        for part in ("/tmp", "/root", "/home", "/work", "http://", "https://"):
            assert part not in text, (measured.name, part)


CELLS = st.lists(
    st.builds(
        MeasurementCell,
        st.text(min_size=1),
        st.sampled_from(ResultColumn),
        st.sampled_from([o for o in MeasuredOutcome if o is not MeasuredOutcome.NOT_OFFERED]),
        st.text(),
    ),
    unique_by=lambda cell: (cell.case, cell.operation),
)


@given(CELLS, st.none() | st.text())
def test_a_measurement_survives_its_file(cells: list[MeasurementCell], path: str | None) -> None:
    measured = Measurement(
        "c", path, "1", "1", 1, "d", "2026-11-22", "t", "3.11", ("a==1",), 2, 1.5, tuple(cells)
    )
    back = measurement_from_json(measurement_to_json(measured), "made")
    assert back._replace(cells=()) == measured._replace(cells=())
    assert sorted(back.cells) == sorted(measured.cells)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"cells": {"a": {"rows": "no"}}, "reasons": []}']
)
def test_a_file_that_holds_no_measurement(text: str) -> None:
    with pytest.raises(UsageError, match="is not a measurement"):
        measurement_from_json(text, "made")


def test_the_matrix_has_every_client_and_marks_what_was_measured() -> None:
    found = newest_columns(ClientCatalog())
    assert {column.reference.id for column in found} == set(ClientCatalog().ids())
    own = catalog(entry("duckdb", "99.0"))
    (newest,) = (c for c in newest_columns(own) if c.reference.id == "duckdb")
    assert (newest.reference.version, newest.measured) == ("99.0", True)
    row = newest.rows["deletionVectors"]
    assert (row.read, row.write) == (FeatureAnswer.NO, None)
    versions = [c.reference.version for c in client_columns(own.get("duckdb"))]
    assert versions[-1] == "99.0"
    assert len(versions) == len(set(versions))


def test_the_matrix_tells_of_what_goes_wrong() -> None:
    plain = entry("mine", "1.0")
    plain["measured"][0]["read"] = {
        "legacy": [1, 2],
        "features": ["deletionVectors", "variantType"],
    }
    bad = {"access": ["read"], "what": "rows come back", "reference": "seen"}
    plain["measured"][0]["known_bad"] = [
        {**bad, "features": ["deletionVectors"], "where": "present"},
        {**bad, "features": ["variantType"], "fails": True, "where": "used"},
        {**bad, "features": ["appendOnly"], "fails": True, "where": "supported"},
    ]
    own = catalog(plain)
    (column,) = client_columns(own.get("mine"))
    assert column.rows["deletionVectors"].read is FeatureAnswer.WRONG
    assert column.rows["variantType"].read is FeatureAnswer.UNUSED
    assert column.rows["appendOnly"].read is FeatureAnswer.NO
    assert column.rows["typeWidening"].read is FeatureAnswer.NO


@pytest.mark.parametrize("format_", ["text", "markdown", "html", "json", "jsonl"])
def test_the_matrix_in_each_format(cli: Any, format_: str) -> None:
    ran = cli("clients", "--matrix", "--format", format_)
    assert ran.code == 0
    for name in ("deletionVectors", "trino", "databricks-runtime"):
        if format_ == "text" and name != "deletionVectors":
            continue
        assert name in ran.out
    if "json" in format_:
        document = json.loads(ran.out)
        assert {cell["client"] for cell in document["matrix"]} == set(ClientCatalog().ids())
    else:
        assert "measured" in ran.out


def test_the_matrix_of_one_client(cli: Any) -> None:
    whole = cli("clients", "trino", "--matrix", "--format", "json").json["matrix"]
    assert {cell["client"] for cell in whole} == {"trino"}
    assert len({cell["version"] for cell in whole}) > 3
    one = cli("clients", "trino@476", "--matrix").out
    assert "\n1 version and path of 1 client, 1 of them measured\n" in one
    assert cli("clients", "trino", "--format", "html").code == 2
    assert cli("clients", "nobody", "--matrix").code == 2


@pytest.mark.parametrize(
    ("version", "by_name"),
    [("4.0.0", Verdict.REFUSED)]
    + [(version, Verdict.OK) for version in ("4.0.1", "4.1.0", "4.3.0", "4.4.0")],
)
def test_measurements_by_path_do_not_count_for_a_table_reached_by_name(
    version: str, by_name: Verdict
) -> None:
    managed = Protocol.carrying({"catalogManaged"})
    found = ClientCatalog([load_shipped_client("delta-spark")]).resolve(f"delta-spark@{version}")
    for named, verdict in ((True, by_name), (False, Verdict.REFUSED)):
        said = evaluate_clients(
            found, [Access.READ], table_requirements(managed, {}, {}, by_name=named)
        )
        assert {each.verdict for each in said} == {verdict}
