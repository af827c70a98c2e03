"""Random protocols."""

from __future__ import annotations

from hypothesis import strategies as st

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, FeatureStatus
from deltaproto.protocol.protocol import Protocol

NAMES = sorted(feature.name for feature in feature_catalog.all_features())
REGISTERED = sorted(
    feature.name
    for feature in feature_catalog.all_features()
    if feature.status in (FeatureStatus.STABLE, FeatureStatus.PREVIEW)
)
UNKNOWN = ("zzzWriterThing", "zzzReaderThing")

legacy_pairs = st.one_of(
    st.tuples(st.integers(1, 2), st.integers(1, 6)).map(lambda pair: Protocol(*pair))
)


@st.composite
def table_features(draw: st.DrawFn, names: list[str] = NAMES, closed: bool = False) -> Protocol:
    """A valid protocol with explicit lists, normalized or not."""
    chosen = frozenset(draw(st.sets(st.sampled_from(names), max_size=12)))
    if closed:
        chosen = feature_catalog.with_required_features(chosen)
    needed = max((feature_catalog.feature_record(name).min_reader for name in chosen), default=1)
    reader = draw(st.integers(needed, 3))
    for_readers = frozenset(
        n for n in chosen if feature_catalog.feature_record(n).kind is FeatureKind.READER_WRITER
    )
    if reader == 2 and needed < 2:
        reader = 1
    return Protocol(reader, 7, for_readers if reader == 3 else None, chosen)


def protocols(names: list[str] = NAMES, closed: bool = False) -> st.SearchStrategy[Protocol]:
    """Legacy pairs and table-features protocols."""
    return st.one_of(legacy_pairs, table_features(names, closed))


@st.composite
def lowest_protocols(draw: st.DrawFn) -> Protocol:
    """Protocols in their lowest form, requirements met."""
    return draw(protocols(closed=True)).lowest()
