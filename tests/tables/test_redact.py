"""Credentials leave nothing behind in what is written, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.tables.redact import HIDDEN, Redactor

CANARY = "c4n4ryV4lue9"


@pytest.mark.parametrize(
    "text",
    [
        f"s3://user:{CANARY}@bucket/table",
        f"https://x.blob.core.windows.net/c?sv=1&sig={CANARY}&se=2",
        f"GET /t?X-Amz-Signature={CANARY}&x=1",
        f"Authorization: Bearer {CANARY}abc",
        f"fs.s3a.secret.key={CANARY}",
        f"'azure_storage_account_key' = '{CANARY}'",
        f'{{"aws_secret_access_key": "{CANARY}"}}',
        f"password={CANARY}, retry",
        f"OPTIONS (session_token '{CANARY}')".replace("token '", "token = '"),
    ],
)
def test_what_looks_like_a_credential_is_hidden(text: str) -> None:
    hidden = Redactor()(text)
    assert CANARY not in hidden
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "text",
    ["AKIAABCDEFGHIJKLMNOP", f"dapi{'0a' * 16}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbg"],
)
def test_known_forms_of_tokens_are_hidden(text: str) -> None:
    assert text not in Redactor()(f"error with {text} here")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE delta.`/data/orders` DROP FEATURE `deletionVectors` TRUNCATE HISTORY",
        "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "s3://bucket/key/part=1/disaster",
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "delta.setTransactionRetentionDuration = interval 7 days",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert Redactor({"region": "eu", "allow_http": "true"})(text) == text


@given(
    st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=8, max_size=40),
    st.sampled_from(["aws_secret_access_key", "sas_token", "fs.s3a.access.key", "password"]),
    st.text(max_size=30),
    st.text(max_size=30),
)
def test_the_value_of_a_secret_option_never_appears(
    value: str, name: str, before: str, after: str
) -> None:
    assert value not in Redactor({name: value})(f"{before}{value}{after}").replace(HIDDEN, "")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["x" * 200_000, "token" * 10_000, "a." * 100_000, "eyJ" * 70_000, "secret=" * 30_000]
)
def test_long_texts_are_read_in_bounded_time(text: str) -> None:
    assert Redactor({"k": "v"})(text)


@pytest.mark.parametrize("length", [0, 1, 50])
def test_names_around_a_key_do_not_hide_it(length: int) -> None:
    name = f"{'a.' * (length // 2)}secret{'_b' * (length // 2)}"
    assert "canary" not in Redactor()(f"{name} = canary, and {name}: 'canary'")
