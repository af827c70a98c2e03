"""Tables about their protocol alone: each feature listed, each version pair, and odd ones."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.certification.kit.recipe import Edit, Recipe, State
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Kind

_STRANGE = "nobodyKnowsThisFeature"


def generated() -> Iterator[Recipe]:
    """All of them."""
    yield from _listed()
    yield from _pairs()
    yield from _odd()


def _listed() -> Iterator[Recipe]:
    for feature in catalogue.all_features():
        names = sorted(catalogue.closure({feature.name}))
        readers = tuple(n for n in names if catalogue.record(n).kind is Kind.READER_WRITER)
        with_ = [name for name in names if name != feature.name]
        about = f"{feature.name} is listed" + (f" with {', '.join(with_)}" if with_ else "")
        yield Recipe(
            f"{feature.name}.listed",
            feature.name,
            State.LISTED,
            f"{about}; nothing uses it",
            edit=Edit((3 if readers else 1, 7), readers or None, tuple(names)),
        )


def _pairs() -> Iterator[Recipe]:
    for reader in (1, 2):
        for writer in range(1, 7):
            yield Recipe(
                f"protocol.{reader}-{writer}",
                None,
                State.PROTOCOL,
                f"reader version {reader}, writer version {writer}",
                edit=Edit((reader, writer)),
            )


def _odd() -> Iterator[Recipe]:
    def odd(name: str, about: str, edit: Edit, *must_refuse: str) -> Recipe:
        return Recipe(
            f"protocol.{name}", None, State.PROTOCOL, about, edit=edit, must_refuse=must_refuse
        )

    yield odd("1-7", "(1,7) with no feature", Edit((1, 7), None, ()))
    yield odd(
        "2-7",
        "(2,7): columnMapping in the writer's list only",
        Edit((2, 7), None, ("columnMapping",)),
    )
    yield odd("3-7-empty", "(3,7) with empty lists", Edit((3, 7), (), ()))
    yield odd(
        "unknown-writer",
        "a writer feature that nobody knows: it may be read, never written",
        Edit((1, 7), None, (_STRANGE,)),
        "write",
    )
    yield odd(
        "unknown-reader",
        "a reader feature that nobody knows: it must be refused",
        Edit((3, 7), (_STRANGE,), (_STRANGE,)),
        "read",
        "write",
    )
    yield odd("4-7", "reader version 4, which nobody knows", Edit((4, 7), (), ()), "read", "write")
    yield odd("1-8", "writer version 8, which nobody knows", Edit((1, 8), None, ()), "write")
