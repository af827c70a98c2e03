"""Clients as they are stored for loading: nothing is lost."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from deltaproto.clients.catalog import (
    load_shipped_client,
    parse_shipped_client,
    shipped_client_ids,
)
from deltaproto.clients.model import (
    Access,
    AppliesTo,
    Client,
    Confidence,
    Evidence,
    Handling,
    KnownBad,
    Path,
    ProtocolGate,
    Range,
    Verdict,
    VersionedHazards,
)
from deltaproto.clients.stored import decode_client, encode_client
from tests.support.failures import each_row

texts = st.text(max_size=5)
names = st.frozensets(texts, max_size=3)
numbers = st.frozensets(st.integers(1, 6), max_size=3)
accesses = st.frozensets(st.sampled_from(Access))
handlings = st.builds(Handling, st.sampled_from(Verdict), texts, texts)
hazards = st.dictionaries(st.tuples(texts, st.sampled_from(Access)), handlings, max_size=4)
gates = st.builds(
    ProtocolGate,
    numbers,
    st.none() | names,
    names,
    names,
    st.none() | names,
    st.dictionaries(texts, names, max_size=2),
    st.none() | numbers,
    st.none() | names,
)
problems = st.builds(
    KnownBad,
    names,
    accesses,
    texts,
    texts,
    st.booleans(),
    st.sampled_from(AppliesTo),
    st.frozensets(st.tuples(st.integers(1, 3), st.integers(1, 7)), max_size=2),
    st.booleans(),
    st.booleans(),
)
paths = st.builds(
    Path,
    st.none() | texts,
    st.none() | gates,
    st.none() | gates,
    accesses,
    st.lists(problems, max_size=2).map(tuple),
    hazards,
)
versions = st.none() | texts
ranges = st.lists(
    st.builds(
        Range,
        versions,
        versions,
        st.lists(paths, max_size=2).map(tuple),
        st.sampled_from(Confidence),
        st.lists(st.builds(Evidence, texts, texts, versions), max_size=2).map(tuple),
        texts,
        st.booleans(),
        names,
        st.booleans(),
        versions,
        st.booleans(),
    ),
    max_size=2,
).map(tuple)
clients = st.builds(
    Client,
    texts,
    texts,
    st.lists(texts, max_size=2).map(tuple),
    texts,
    ranges,
    ranges,
    st.lists(st.builds(VersionedHazards, versions, versions, hazards, versions), max_size=3).map(
        tuple
    ),
)


@given(clients)
def test_a_stored_client_is_the_same_client(client: Client) -> None:
    text = json.dumps(encode_client(client))
    assert decode_client(json.loads(text)) == client


@each_row("name", shipped_client_ids())
def test_what_is_loaded_is_what_its_yaml_file_says(name: str) -> None:
    assert load_shipped_client(name) == parse_shipped_client(name)
