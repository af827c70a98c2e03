"""What a log stores is shown without credentials, and otherwise as it is."""

from __future__ import annotations

import json

import pytest

from deltaproto.protocol.stored_secrets import (
    hide_in_column,
    hide_in_commit_info,
    hide_in_name,
    hide_in_property,
    hide_in_schema,
)

ADDRESS = "https://x.example/a?sig=c4n4ryV4lue9c4n4ryV4lue9"
CANARY = "c4n4ry"


@pytest.mark.parametrize("length", [0, 1000, 1001, 40_000])
def test_a_schema_keeps_its_form_and_loses_its_credentials(length: int) -> None:
    field = {"name": "id", "type": "long", "metadata": {"comment": f"{'x ' * length}{ADDRESS}"}}
    text = json.dumps({"type": "struct", "fields": [field]})
    found = json.loads(hide_in_schema(text))
    assert found["fields"][0]["name"] == "id"
    comment = found["fields"][0]["metadata"]["comment"]
    assert comment.startswith("x " * length + "https://x.example/a")
    assert CANARY not in comment
    plain = text.replace(ADDRESS, "plain")
    assert hide_in_schema(plain) == plain
    assert CANARY not in hide_in_schema(f"not JSON {ADDRESS}")


@pytest.mark.parametrize("length", [0, 1000, 1001])
def test_columns_and_properties_of_any_length(length: int) -> None:
    padded = "x " * length + ADDRESS
    assert CANARY not in hide_in_column(padded)
    assert hide_in_column("x" * length) == "x" * length
    for key in ("team", "delta.constraints.c", "custom.url"):
        name, value = hide_in_property(key, padded)
        assert name == key
        assert value is not None
        assert value.startswith("x " * length)
        assert CANARY not in value
    assert hide_in_property("team", "x" * length) == ("team", "x" * length)
    assert hide_in_property("team", None) == ("team", None)
    assert hide_in_property("db.password", "hunter2") == ("db.password", "***")


def test_a_long_value_is_not_kept_in_memory() -> None:
    from deltaproto.protocol import stored_secrets

    cached = stored_secrets._without_in_property
    cached.cache_clear()
    hide_in_property("k", "v" * 1000)
    assert cached.cache_info().currsize == 1
    hide_in_property("k", "v" * 1001)
    assert cached.cache_info().currsize == 1


def test_names_and_commits() -> None:
    assert hide_in_name("deletionVectors") == "deletionVectors"
    assert hide_in_name("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0").startswith("0f1e2d3c")
    assert CANARY not in hide_in_name(ADDRESS)
    info = {"engineInfo": ADDRESS, "job": {"jobName": ADDRESS}, "operationParameters": {"p": 1}}
    assert CANARY not in json.dumps(hide_in_commit_info(info))
    assert info["operationParameters"] == {"p": 1}
