"""The ready policies and their JSON Schema."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.policy.document import PolicyError, load_policy
from deltaproto.policy.document.model import PolicySettings
from deltaproto.policy.document.source import Mapping, Node, Sequence, parse_text
from deltaproto.policy.rules import all_rules
from deltaproto.protocol.feature_catalog import all_features

FOLDER = Path(__file__).parents[3] / "policies"
READY = sorted(FOLDER.glob("*.yaml"))
SCHEMA = json.loads((FOLDER / "policy.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
RULES = [rule.id for rule in all_rules()]
TODAY = datetime.date(2026, 11, 21)


def plain(node: Node) -> Any:
    """The node as an editor reads it, which follows YAML 1.2: yes, off and 22:00 are texts."""
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node.pairs}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if not node.plain:
        return node.text
    if node.text in ("", "~", "null"):
        return None
    if node.text in ("true", "false"):
        return node.text == "true"
    for kind in (int, float):
        try:
            return kind(node.text)
        except ValueError:
            pass
    return node.text


def accepted(text: str, tmp_path: Path) -> tuple[bool, bool]:
    """Whether the loader takes the policy, and whether the schema does."""
    file = tmp_path / "p.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        load_policy(str(file), rules=RULES, today=TODAY)
    except PolicyError:
        return False, VALIDATOR.is_valid(plain(parse_text(text)))
    return True, VALIDATOR.is_valid(plain(parse_text(text)))


class TestReadyPolicies:
    def test_they_are_all_there(self) -> None:
        assert [file.stem for file in READY] == [
            "databricks-and-open-readers",
            "databricks-lts",
            "fabric-power-bi",
            "python",
            "snowflake",
            "spark-oss",
            "strict-legacy",
            "trino-athena",
        ]

    @pytest.mark.parametrize("file", READY, ids=lambda file: file.stem)
    def test_loads_and_fits_the_schema(self, file: Path) -> None:
        policy = load_policy(str(file), rules=RULES, today=TODAY)
        assert policy.tables
        assert (
            list(VALIDATOR.iter_errors(plain(parse_text(file.read_text(encoding="utf-8"))))) == []
        )

    @pytest.mark.parametrize("file", READY, ids=lambda file: file.stem)
    def test_begins_with_its_schema_and_whom_it_is_for(self, file: Path) -> None:
        first, second, third = file.read_text(encoding="utf-8").splitlines()[:3]
        assert first == "# yaml-language-server: $schema=policy.schema.json"
        assert second == "#"
        assert third.startswith("# For tables ")

    @pytest.mark.parametrize("file", READY, ids=lambda file: file.stem)
    def test_declares_clients_that_are_known(self, file: Path) -> None:
        policy = load_policy(str(file), rules=RULES, today=TODAY)
        declared = list(policy.declared())
        assert declared
        for client in declared:
            candidate = ClientCatalog().resolve(client.text)
            assert candidate.range is not None, candidate.unknown


class TestSchema:
    def test_is_a_schema(self) -> None:
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_names_what_the_loader_knows(self) -> None:
        definitions = SCHEMA["$defs"]
        assert definitions["features"]["items"]["enum"] == [f.name for f in all_features()]
        assert set(definitions["settings"]["properties"]) == {"profile", *PolicySettings._fields}

    def test_describes_every_key(self) -> None:
        def undescribed(schema: Any) -> list[str]:
            if isinstance(schema, list):
                return [name for item in schema for name in undescribed(item)]
            if not isinstance(schema, dict):
                return []
            own = [
                name
                for name, value in schema.get("properties", {}).items()
                if "description" not in value and "$ref" not in value
            ]
            inner = {k: v for k, v in schema.items() if k not in ("examples", "not", "enum")}
            return own + [name for value in inner.values() for name in undescribed(value)]

        assert undescribed(SCHEMA) == []

    @pytest.mark.parametrize(
        "text",
        [
            "{}",
            "policy_version: 2",
            "policy_version: '1'",
            "policy_version: 1\ntabels: {}",
            "policy_version: 1\ntables:",
            "policy_version: 1\nclients: trino@476",
            "policy_version: 1\nclients: [476]",
            "policy_version: 1\nclients: [trino 476]",
            "policy_version: 1\nclients: [a/b/c]",
            "policy_version: 1\nclients: [trino: 476]",
            "policy_version: 1\nclients: [{access: [read]}]",
            "policy_version: 1\nclients: [{client: trino@476, access: [write]}]",
            "policy_version: 1\nclients: [{client: trino@476, access: []}]",
            "policy_version: 1\nclients: [{client: trino@476, access: [read, read]}]",
            "policy_version: 1\nclients: [{client: trino@476, stream: yes}]",
            "policy_version: 1\nclients: [{client: trino@476, stream: true, share: true}]",
            "policy_version: 1\ntables: {a: {max_reader_version: 4}}",
            "policy_version: 1\ntables: {a: {max_writer_version: '5'}}",
            "policy_version: 1\ntables: {a: {max_raeder_version: 1}}",
            "policy_version: 1\ntables: {a: {forbid_features: [deletionvectors]}}",
            "policy_version: 1\ntables: {a: {forbid_features: [clustering, clustering]}}",
            "policy_version: 1\ntables: {a: {isolation: SnapshotIsolation}}",
            "policy_version: 1\ntables: {a: {require_properties: {k: 1.5}}}",
            "policy_version: 1\ntables: {a: {require_properties: {k: [1]}}}",
            "policy_version: 1\ntables: {a: {maintenance_windows: [{from: 1:00, to: 2:00}]}}",
            "policy_version: 1\n"
            "tables: {a: {maintenance_windows: [{days: mon, from: 1:00, to: 2:00}]}}",
            "policy_version: 1\n"
            "tables: {a: {maintenance_windows: [{days: daily, from: 24:00, to: 2:00}]}}",
            "policy_version: 1\nseverities: {DP101: fatal}",
            "policy_version: 1\nseverities: {error: off}",
            "policy_version: 1\nwaivers: [{rule: DP101, reason: x}]",
            "policy_version: 1\nwaivers: [{rule: DP101, reason: '', expires: 2027-01-01}]",
            "policy_version: 1\nwaivers: [{rule: DP101, reason: x, expires: soon}]",
            "policy_version: 1\nwaivers: [{rule: DP101, reason: x, expires: 2027-13-01}]",
            "policy_version: 1\ndefine: {my client: {name: X, ranges: []}}",
            "policy_version: 1\ndefine: {x: {name: X}}",
            "policy_version: 1\ndefine: {x: {name: X, ranges: [{from: 2.10}]}}",
        ],
    )
    def test_refuses_what_the_loader_refuses(self, text: str, tmp_path: Path) -> None:
        assert accepted(text, tmp_path) == (False, False)

    @pytest.mark.parametrize(
        "text",
        [
            "policy_version: 1",
            "policy_version: 1\nclients: [bigquery, databricks-runtime@14.3 LTS, a/b@1]",
            "policy_version: 1\nclients: [{client: trino@476, as: me, stream: true}]",
            "policy_version: 1\nseverities: {DP101: off}",
            "policy_version: 1\ntables: {'*': {isolation: write_serializable}}",
            "policy_version: 1\ntables: {a: {require_properties: {k: true, l: 1, m: x}}}",
            "policy_version: 1\n"
            "tables: {a: {maintenance_windows: [{days: [mon], from: 22:00, to: 24:00}]}}",
            "policy_version: 1\nwaivers: [{rule: DP101, reason: x, expires: 2027-01-01}]",
            "policy_version: 1\ndefine: {x: {name: X, ranges: [{read: {legacy: [1]}}]}}",
        ],
    )
    def test_takes_what_the_loader_takes(self, text: str, tmp_path: Path) -> None:
        assert accepted(text, tmp_path) == (True, True)
