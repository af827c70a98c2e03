"""The JSON of the catalogs: `features` and `explain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deltaproto.policy.rules import all_rules
from deltaproto.protocol import feature_catalog
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.failures import each_row

Cli = Callable[..., Ran]


class TestCatalogs:
    def test_features(self, cli: Cli) -> None:
        (document,) = documents(cli("features", "--format", "json"), "features")
        shown = [feature["name"] for feature in document["features"]]
        assert shown == [feature.name for feature in feature_catalog.all_features()]
        assert len(set(shown)) == len(shown)
        assert document["complete"] is True

    def test_features_line_by_line_say_the_same(self, cli: Cli) -> None:
        lines = documents(cli("features", "--format", "jsonl"), "features")
        whole = cli("features", "--format", "json").json
        assert [f for line in lines for f in line["features"]] == whole["features"]

    @each_row("feature", feature_catalog.all_features(), ids=lambda f: f.name)
    def test_one_feature_is_its_record_of_the_catalog(self, cli: Cli, feature: Any) -> None:
        (document,) = documents(cli("features", feature.name, "--format", "json"), "features")
        (shown,) = document["features"]
        assert shown["name"] == feature.name
        # A feature that some release drops is dropped by at least one commit.
        drops = shown["droppable"]
        assert (drops["delta_spark"] is not None) == (drops["commits"]["max"] > 0)
        assert drops["rewrites_data"] == (drops["rewrites"] != "none")
        assert (shown["min_writer_version"] < 7) == shown["legacy"]

    def test_explain(self, cli: Cli) -> None:
        for format_ in ("json", "jsonl"):
            found = documents(cli("explain", "--format", format_), "explain")
            shown = [rule["id"] for document in found for rule in document["rules"]]
            assert shown == [rule.id for rule in all_rules()]
            assert not any("page" in rule for document in found for rule in document["rules"])

    @each_row("rule", all_rules(), ids=lambda rule: rule.id)
    def test_one_rule_comes_with_its_page(self, cli: Cli, rule: Any) -> None:
        for format_ in ("json", "jsonl"):
            (document,) = documents(cli("explain", rule.id, "--format", format_), "explain")
            (shown,) = document["rules"]
            assert (shown["id"], shown["name"]) == (rule.id, rule.name)
            assert shown["severity"] == rule.severity
            assert "## How to fix" in shown["page"]
