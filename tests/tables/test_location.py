"""What people write for a table."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import LocationKind, locate, location_at
from deltaproto.tables.storage import open_log

PATHS = st.text(
    st.characters(blacklist_characters="\0/", blacklist_categories=("Cs",)), min_size=1, max_size=30
)


@given(st.lists(PATHS, min_size=1, max_size=4))
def test_a_path_and_its_uri_are_one_place(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    place = locate(path)
    assert place.path is not None
    assert place.uri == "file://" + quote(place.path)
    assert locate(place.uri).path == place.path
    assert locate("delta.`" + path.replace("`", "``") + "`").path == place.path


@given(st.text(max_size=40))
def test_any_text_is_a_place_or_an_error(text: str) -> None:
    if "\0" in text:
        return
    try:
        place = locate(text)
    except TableError:
        return
    assert place.text == text
    assert (place.path is not None) == (place.kind is LocationKind.PATH)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("schema.table", LocationKind.NAME),
        ("catalog.schema.table", LocationKind.NAME),
        ("catalog.`odd name`.t", LocationKind.NAME),
        ("./schema.table", LocationKind.PATH),
        ("table", LocationKind.PATH),
        ("a.b.c.d", LocationKind.PATH),
        ("s3://bucket/t", LocationKind.URI),
        ("abfss://c@a.dfs.core.windows.net/t", LocationKind.URI),
        ("file:/t", LocationKind.PATH),
        ("file://localhost/t", LocationKind.PATH),
    ],
)
def test_kinds(
    text: str, kind: LocationKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate(text).kind is kind


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("dbfs:/user/hive/warehouse/t", "dbfs:///user/hive/warehouse/t"),
        ("hdfs:/lake/t/", "hdfs:///lake/t"),
        ("viewfs://cluster/lake/t", "viewfs://cluster/lake/t"),
    ],
)
def test_hadoop_writes_addresses_with_one_slash(
    text: str, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catalogs store such locations; they are no paths below the working directory."""
    monkeypatch.chdir(tmp_path)
    assert locate(text)[:] == (text, LocationKind.URI, None, uri)
    with pytest.raises(TableError, match="only be opened through Spark") as refused:
        open_log(locate(text), {})
    assert refused.value.code is ErrorCode.STORAGE
    Path(tmp_path, text).mkdir(parents=True)
    assert (locate(text).kind is LocationKind.PATH) is ("//" not in text)


def test_what_exists_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.delta").mkdir()
    assert locate("orders.delta").path == os.path.join(tmp_path, "orders.delta")


@given(st.text(alphabet="ab/._ %ü\n", max_size=12))
def test_a_found_path_is_what_locate_makes_of_it(tail: str) -> None:
    path = os.path.normpath("/" + tail.lstrip("/"))
    assert location_at(path, "name") == locate(path)._replace(text="name")
