"""What a log stores is shown without credentials, and otherwise as it is."""

from __future__ import annotations

import json

import pytest

from deltaproto.protocol.stored_secrets import (
    hide_in_addresses,
    hide_in_commit_info,
    hide_in_json,
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
    assert CANARY not in hide_in_addresses(padded)
    assert hide_in_addresses("x" * length) == "x" * length
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

    for cached, hide, longest in (
        (stored_secrets._without_in_property, lambda text: hide_in_property("k", text), 1000),
        (stored_secrets._without_address, hide_in_addresses, 1000),
        (stored_secrets._without, hide_in_name, 1000),
        (stored_secrets._without_in_schema, hide_in_schema, 1 << 15),
    ):
        cached.cache_clear()
        hide("v" * longest)
        assert cached.cache_info().currsize == 1
        hide("v" * (longest + 1))
        assert cached.cache_info().currsize == 1


def test_names_and_commits() -> None:
    assert hide_in_name("deletionVectors") == "deletionVectors"
    assert hide_in_name("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0").startswith("0f1e2d3c")
    assert CANARY not in hide_in_name(ADDRESS)
    info = {"engineInfo": ADDRESS, "job": {"jobName": ADDRESS}, "operationParameters": {"p": 1}}
    assert CANARY not in json.dumps(hide_in_commit_info(info))
    assert info["operationParameters"] == {"p": 1}


def test_each_text_of_a_commit_that_is_shown_loses_its_credentials() -> None:
    shown = (
        *("operation", "engineInfo", "clientVersion", "userName", "userId", "clusterId"),
        "isolationLevel",
    )
    info: dict[str, object] = {name: f"{name} {ADDRESS}" for name in shown}
    info |= {"job": {"jobName": ADDRESS}, "notebook": {"notebookId": [ADDRESS, 7]}, "version": 3}
    found = hide_in_commit_info(info)
    assert found is info
    assert {name: found[name] for name in shown} == {
        name: f"{name} https://x.example/a?sig=***" for name in shown
    }
    assert found["job"] == {"jobName": "https://x.example/a?sig=***"}
    assert found["notebook"] == {"notebookId": ["https://x.example/a?sig=***", 7]}
    assert hide_in_commit_info({"operation": 1}) == {"operation": 1}


def test_json_of_any_form_keeps_it() -> None:
    assert hide_in_json({ADDRESS: [ADDRESS, None, 1.5]}) == {
        "https://x.example/a?sig=***": ["https://x.example/a?sig=***", None, 1.5]
    }
    assert hide_in_json({"a": ["b"]}, str.upper) == {"A": ["B"]}
    nested: object = ADDRESS
    for _ in range(5000):
        nested = [nested]
    assert hide_in_json(nested) is None


def test_names_that_look_like_keys() -> None:
    key = "AKIA0123456789ABCDEF"
    assert hide_in_name(key) == "***"
    assert hide_in_name(key[:-1]) == key[:-1]
    # The length of a UUID, and another number of hyphens or another sign.
    for text in (f"a-{key}-bbbbbbbbb-ccc", f"a.{key}-b-c-d-eeeeeee"):
        assert len(text) == 36
        assert hide_in_name(text) == text.replace(key, "***")
    assert hide_in_name(f"{key} {'x' * 1000}") == f"*** {'x' * 1000}"


def test_properties_that_are_named_like_secrets() -> None:
    assert hide_in_property("db.password", "") == ("db.password", "")
    assert hide_in_property("db.password", "*********(redacted)") == (
        "db.password",
        "*********(redacted)",
    )
    assert hide_in_property("Delta.constraints.token", "a > 1 AND token = 'x'") == (
        "Delta.constraints.token",
        "a > 1 AND token = 'x'",
    )
    assert hide_in_property("note", "password: hunter2") == ("note", "password: ***")


def test_a_schema_that_is_nested_too_deeply_loses_its_credentials() -> None:
    text = "[" * 10_000 + f'"{ADDRESS}"'
    assert hide_in_schema(text) == text.replace("c4n4ryV4lue9c4n4ryV4lue9", "***")
