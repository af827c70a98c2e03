"""`report` as OpenMetrics and CSV: the numbers are those of its JSON."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from deltaproto import Inventory
from deltaproto.cli.main import main
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
Key = tuple[str, frozenset[tuple[str, str]]]
ODD = ('=HYPERLINK("x")', 'quo"ted\\n', "a,b;c", "@sum", "\u202eright", "uml\u00e4ut")
POLICY = """
policy_version: 1
clients:
- {client: trino@400, access: [read], as: dashboards}
- {client: "delta-spark@4.0", access: [read, append]}
severities: {DP110: "off"}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """An inventory, and a policy."""
    folder = tmp_path_factory.mktemp("metrics")
    make_fleet(folder / "lake", seed=41, count=70)
    for name in ODD:
        feature = f"odd {name}"
        log = Log(folder / "lake" / name)
        log.commit(0, commit_info(), protocol(3, 7, [feature], [feature]), metadata())
    inventory, policy = str(folder / "i"), folder / "policy.yaml"
    policy.write_text(POLICY)
    main(["scan", str(folder / "lake"), "--inventory", inventory, "-q", "-o", str(folder / "out")])
    return inventory, str(policy)


def samples(text: str) -> dict[Key, float]:
    """Every sample, as Prometheus reads it."""
    found: dict[Key, float] = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def test_what_was_not_searched_is_not_counted_as_absent(cli: Cli, fleet: tuple[str, str]) -> None:
    rows = Inventory(fleet[0]).features()
    unknown = Counter(row["feature"] for row in rows if row["present"] is None)
    assert unknown["deletionVectors"] > 0
    features = cli("report", fleet[0], "--format", "json").json["features"]
    assert {f["feature"]: f["present_unknown"] for f in features if f["present_unknown"]} == unknown
    text = cli("report", fleet[0], "--format", "markdown").out
    (line,) = (
        line for line in text.splitlines() if line.startswith("| deletionVectors | everyone")
    )
    assert f"{unknown['deletionVectors']:,} unknown" in line


def test_prometheus_reads_the_numbers_of_the_json(cli: Cli, fleet: tuple[str, str]) -> None:
    inventory, policy = fleet
    words = ("report", inventory, "--policy", policy, "--format")
    ran, document = cli(*words, "openmetrics"), cli(*words, "json").json
    assert ran.code == 3
    assert ran.out.endswith("# EOF\n")
    found = samples(ran.out)

    def value(name: str, **labels: Any) -> float:
        pairs = frozenset((key, str(text)) for key, text in labels.items())
        return found.pop((f"deltaproto_{name}", pairs))

    for each in document["protocols"]:
        versions = {
            "reader_version": each["minReaderVersion"],
            "writer_version": each["minWriterVersion"],
        }
        assert value("tables", **versions) == each["tables"]
    plain = [each for each in document["features"] if not each["feature"].startswith("odd ")]
    for each in plain:
        for state in ("supported", "enabled", "present", "present_unknown"):
            labels = {"feature": each["feature"], "state": state}
            assert value("feature_tables", **labels) == each[state]
    odd = [key for key in found if any(text.startswith("odd ") for _, text in key[1])]
    assert len(odd) == 4 * len(ODD)
    assert ("feature", 'odd quo"ted\\n') in {pair for _, labels in odd for pair in labels}
    for key in odd:
        del found[key]
    for each in document["clients"]:
        for verdict in ("ok", "refused", "wrong", "unknown"):
            labels = {"client": each["client"], "access": each["access"], "verdict": verdict}
            assert value("verdicts", **labels) == each[verdict]
    for each in document["findings"]:
        labels = {"rule": each["rule"], "severity": each["severity"]}
        extra = sum(
            (one["rule"], one["severity"]) == (each["rule"], each["severity"])
            for one in document["policy_findings"]
        )
        assert value("findings", **labels) == each["count"] + extra
    for level, count in document["isolation"].items():
        assert value("isolation_tables", level=level) == count
    errors = {key: n for key, n in found.items() if key[0] == "deltaproto_scan_errors"}
    assert sum(errors.values()) == document["errors"] > 0
    assert value("compliant_tables") == document["compliant"]
    assert value("changes") == document["changes"]
    assert value("suppressed_findings", by="waiver") == document["waived"]
    assert value("suppressed_findings", by="severity") == document["off"] > 0
    (root,) = document["sources"][0]["roots"]
    assert 0 <= value("scan_age_seconds", root=root) < math.inf
    left = {name for name, _ in found} - {"deltaproto_scan_errors"}
    assert left <= {"deltaproto_incomplete_tables", "deltaproto_findings"}


def test_a_spreadsheet_reads_every_table(cli: Cli, fleet: tuple[str, str]) -> None:
    inventory, policy = fleet
    ran = cli("report", inventory, "--policy", policy, "--format", "csv")
    document = cli("check", inventory, "--policy", policy, "--format", "json").json
    hidden = document["summary"]["off"]
    assert hidden
    assert f"findings not shown: {hidden} turned off by severities" in ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert not any(letter in ran.out for letter in "\u202e\x1b\r")
    read = [row for row in rows if not row["error_code"]]
    assert len(read) == len(document["tables"])
    assert {row["location"] for row in read} == {
        each["location"].replace("\u202e", "\\u202e") for each in document["tables"]
    }
    total = sum(int(row["errors"]) for row in read)
    assert total == sum(
        finding["severity"] == "error" and finding["table"] != policy
        for finding in document["findings"]
    )
    unread = [row for row in rows if row["error_code"]]
    assert len(unread) == len(document["errors"]) > 0
    assert all(row["complete"] == "false" and row["error_message"] for row in unread)


def test_an_empty_inventory_has_no_series(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    inventory = str(tmp_path / "i")
    cli("scan", str(tmp_path / "lake"), "--inventory", inventory, "--allow-empty")
    ran = cli("report", inventory, "--format", "openmetrics", "--allow-empty")
    assert ran.code == 0
    found = samples(ran.out)
    assert found["deltaproto_compliant_tables", frozenset()] == 0
    assert not any(name == "deltaproto_tables" for name, _ in found)
    lines = cli("report", inventory, "--format", "csv", "--allow-empty").out.splitlines()
    assert len(lines) == 1
