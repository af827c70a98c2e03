"""Credentials leave nothing behind in what is written, and nothing else is touched."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import TableError, UsageError
from deltaproto.location import locate
from deltaproto.redaction import (
    HIDDEN,
    Redactor,
    has_credentials,
    redact_address,
    redact_addresses_in,
)
from deltaproto.tables.storage.objects import translate_store_errors

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


BLOB = "https://a.blob.core.windows.net/c/t"
ENCODED_ADDRESSES = (
    f"{BLOB}?%53%49%47={CANARY}",
    f"{BLOB}?a=1%26sig={CANARY}",
    f"{BLOB}?sv=1&amp;sig={CANARY}",
    f"{BLOB}?sv=1&#x26;sig={CANARY}",
    f"{BLOB}?sv=1&amp;sig&#61;{CANARY}",
    f"{BLOB}?sv=1&sig&equals;{CANARY}",
    f"{BLOB}&quest;sig={CANARY}",
    f"{BLOB}?s&#105;g={CANARY}",
    f"{BLOB}?s&#8203;ig={CANARY}",
    f"{BLOB}?sv=1\\u0026sig={CANARY}",
    f"{BLOB}\\u003fsig\\u003d{CANARY}",
    f"{BLOB}?sv=1\\\\u0026sig\\\\u003d{CANARY}",
    f"{BLOB}?s\\u0069g={CANARY}",
    f"{BLOB}?sv=1&si\ng={CANARY}",
    f"{BLOB}?sv=1&s\\nig={CANARY}",
    f"{BLOB}?sv=1&\r\nsig\t=\n{CANARY}",
    f"https://a.blob.core.windows.net/c/\nt?sv=1&s\ni\ng={CANARY}",
    f"{BLOB}?sig='{CANARY}'",
    f'{BLOB}?sig="{CANARY}"',
    f"{BLOB}?sig=`{CANARY}`",
    f'{BLOB}?sig=\\"{CANARY}\\"',
    f"https://me&colon;{CANARY}&commat;host/t",
    f"https://me&#58;{CANARY}&#64;host/t",
    f"https:\\/\\/me:{CANARY}@host\\/t",
    f"https:%2F%2Fme:{CANARY}@host/t",
    f"https%3A%2F%2Fme%3A{CANARY}%40host%2Ft",
    f"https%253A%252F%252Fa%252Ft%253Fsig%253D{CANARY}",
    f"https://me:\n{CANARY}@host/t",
    f"https://\nme:{CANARY}@host/t",
    f"s3://b/t?s&#x69;g={CANARY}",
    f"JDBC&colon;oracle:thin:scott/{CANARY}@h",
    f"jdbc:postgresql://h/db?pass%77ord={CANARY}",
)


@pytest.mark.parametrize("address", ENCODED_ADDRESSES)
def test_an_encoded_address_in_a_text(address: str) -> None:
    for text in (address, f"cannot read {address} now", f'{{"message": "cannot read {address}"}}'):
        for redact in (Redactor(), redact_addresses_in):
            assert CANARY not in redact(text), text
            assert HIDDEN in redact(text)
    assert CANARY not in UsageError(f"cannot read {address}", f"check {address}").message
    assert CANARY not in redact_address(address)
    assert has_credentials(address)


@pytest.mark.parametrize(
    "text",
    [
        f"sv=1 sig={CANARY}",
        f'{{"sig": "{CANARY}"}}',
        f'{{\\"password\\": \\"{CANARY}\\"}}',
        f"X-Api-Key: {CANARY}",
        f"<password>{CANARY}</password>",
        f"pass%77ord={CANARY}",
        f"%7B%22password%22%3A%22{CANARY}%22%7D",
        f"secret_access_key =\n  {CANARY}",
        f"{BLOB}?sv=1&sig=abcdef\n{CANARY}{CANARY}",
    ],
)
def test_an_encoded_option_in_a_text(text: str) -> None:
    assert CANARY not in Redactor()(text)


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
        "ALTER TABLE delta.`/data/a%20b` SET TBLPROPERTIES ('a&b' = '\\\\n')",
        "s3://bucket/a%20b/x&y=1\nhint: check the path",
        "cannot read https://h/t?x=1\nsignature of f\\u0041",
        "GET https://h/c?list-type=2&prefix=a%2Fb\nStatus 403\n<Error><Code>Denied</Code></Error>",
        "policy.yaml:3:1: token > x & y%",
        "C:\\users\\new\\table",
        "secret.yaml: cannot be read",
        "a/token-policy.yml:3:1: unknown client",
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
    "text",
    [
        *("x" * 200_000, "token" * 10_000, "a." * 100_000, "eyJ" * 70_000, "secret=" * 30_000),
        *("\\" * 100_000, "%25" * 60_000, "&#65;" * 50_000, "https://h/" + "a\n" * 100_000),
        *("\\u0041" * 30_000, "?sig" * 40_000, "https://a\n" * 20_000),
    ],
)
def test_long_texts_are_read_in_bounded_time(text: str) -> None:
    assert Redactor({"k": "v"})(text)


@pytest.mark.parametrize(
    "name",
    ["AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_SAS_TOKEN", "GOOGLE_SERVICE_ACCOUNT_KEY"],
)
def test_the_environment_is_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/home/me/credentials")
    assert CANARY not in Redactor()(f"it says {CANARY}")
    assert "/home/me" in Redactor()("no file /home/me/credentials")


def test_forms_and_parts_of_a_secret_are_known() -> None:
    secret = f"{CANARY}/+="
    signature = f"sv=1&sig={quote(secret, safe='')}&se=2"
    key_file = json.dumps({"client_email": "me@x", "private_key": f"-----BEGIN-----\n{secret}\n"})
    redact = Redactor({"sas_token": signature}, {"google_service_account_key": key_file})
    encoded = base64.b64encode(secret.encode()).decode()
    for form in (secret, quote(secret, safe=""), encoded):
        assert redact(f"it says {form} here") == f"it says {HIDDEN} here"
    assert redact("of me@x") == "of me@x"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"s3://me:{CANARY}@lake/t", f"s3://{HIDDEN}@lake/t"),
        (f"delta.`s3a://me:{CANARY}@lake/t`", f"delta.`s3a://{HIDDEN}@lake/t`"),
        (f"https://x/t?sv=1&sig={CANARY}", f"https://x/t?sv=1&sig={HIDDEN}"),
        (f"abfss://c@a.dfs.core.windows.net/t?sig={CANARY}", None),
        (f"abfs://c@a.dfs.core.windows.net/t?sv=1&SIG={CANARY}&st=1", None),
        (f"az://c/t?sv=1&sig={CANARY}", None),
        (f"azure://c/t#token={CANARY}", None),
        (f"wasbs://c@a.blob.core.windows.net/t?sig={CANARY}", None),
        (f"abfss://user:{CANARY}@a.dfs.core.windows.net/t", None),
        (f"gs://lake/t?X-Goog-Signature={CANARY}", None),
        (f"gs://lake/t?access_token={CANARY}", None),
        (f"s3://lake/t?X-Amz-Security-Token={CANARY}", None),
        (f"s3a://AKIA0:{CANARY}/with/slash@lake/t", None),
        (f"s3://lake/t%3Fsig%3D{CANARY}", None),
        (f"https://{CANARY}@host/t", None),
        (f"jdbc:postgresql://user:{CANARY}@host/db", None),
        (f"jdbc:postgresql://host/db?user=a&password={CANARY}", None),
        (f"jdbc:sqlserver://host:1433;user=a;password={CANARY}", None),
        (f"jdbc:databricks://host:443/default;AuthMech=3;UID=token;PWD={CANARY}", None),
        (f"hdfs://user:{CANARY}@host/t", None),
    ],
)
def test_addresses_are_shown_without_credentials(address: str, shown: str | None) -> None:
    assert shown is None or redact_address(address) == shown
    shown = redact_address(address)
    assert CANARY not in shown
    assert CANARY not in Redactor()(f"cannot read {address}: it says {address!r}")
    with pytest.raises(TableError) as refused:
        locate(address)
    assert CANARY not in f"{refused.value.message} {refused.value.hint}"
    assert has_credentials(address)
    assert has_credentials(shown)


@pytest.mark.parametrize(
    "address",
    [
        "abfss://lake@account.dfs.core.windows.net/t",
        "s3://lake/me:secret@x/t",
        "s3://lake/sales.parquet/AKIA_table-1/token",
        "s3://lake/part=a/se=1/token=2",
        "https://host:8443/container/a@b",
        "file:///data/t?sig=1",
        "gs://lake/a;b/c&d",
        "./password=1/t",
        "a.b.c",
    ],
)
def test_addresses_without_credentials_stay(address: str) -> None:
    assert redact_address(address) == address
    assert not has_credentials(address)


def test_what_a_store_says_is_hidden() -> None:
    options = {"aws_secret_access_key": CANARY}
    with pytest.raises(TableError) as raised, translate_store_errors("s3://lake/t", options):
        raise OSError(f"the store says {CANARY}")
    assert raised.value.message == f"cannot read s3://lake/t: the store says {HIDDEN}"


@pytest.mark.parametrize("length", [0, 1, 50])
def test_names_around_a_key_do_not_hide_it(length: int) -> None:
    name = f"{'a.' * (length // 2)}secret{'_b' * (length // 2)}"
    assert "canary" not in Redactor()(f"{name} = canary, and {name}: 'canary'")


@pytest.mark.parametrize("half", [chr(0xDCFF), chr(0xD800)])
def test_half_characters_are_redacted_as_well(half: str) -> None:
    secret = f"canary-of-some-length{half}"
    redact = Redactor({"aws_secret_access_key": secret})
    assert "canary" not in redact(f"it was {secret}, refused")
