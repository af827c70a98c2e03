"""Which clients can use a table, in rows for text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from deltaproto.clients.model import Verdict
from deltaproto.clients.usability import Usability, VersionSpan
from deltaproto.counts import first_names

_SHOWN_BECAUSE = 3
UNDECLARED = (
    "No client is declared, so nothing fails; --policy FILE or --client ID@VERSION declares one."
)


def rows(
    usability: Sequence[Usability], *, every_version: bool
) -> tuple[list[str], list[list[str]]]:
    """Return the headings, and one row for each client and path, or for each span of versions."""
    accesses = list(dict.fromkeys(str(each.access) for each in usability))
    if every_version:
        return ["client", "access", "versions", "verdict", "decided by"], list(_spans(usability))
    found: dict[str, dict[str, Usability]] = {}
    for each in usability:
        found.setdefault(each.named, {})[str(each.access)] = each
    return ["client", "newest", *accesses, "decided by"], [
        _row(name, by_access, accesses) for name, by_access in found.items()
    ]


def _row(name: str, by_access: dict[str, Usability], accesses: list[str]) -> list[str]:
    each = next(iter(by_access.values()))
    failing = [
        one.newest
        for one in by_access.values()
        if one.offered and one.newest.verdict is not Verdict.OK
    ]
    because = tuple(dict.fromkeys(feature for span in failing for feature in span.because))
    reasons = "; ".join(dict.fromkeys(span.reason for span in failing))
    decides = first_names(because, _SHOWN_BECAUSE) if because else reasons
    cells = [_cell(by_access[access]) if access in by_access else "-" for access in accesses]
    return [name, each.newest.last or "", *cells, decides]


def _cell(each: Usability) -> str:
    if not each.offered:
        before = each.spans[-2] if len(each.spans) > 1 else each.newest
        return f"ok < {each.newest.first}" if before.verdict is Verdict.OK else "-"
    if each.newest.verdict is Verdict.OK:
        return "ok" if each.since is None else f"ok >= {each.since}"
    shout = str(each.newest.verdict).upper()
    return shout if each.never else f"{shout} >= {each.newest.first}"


def _spans(usability: Iterable[Usability]) -> Iterator[list[str]]:
    for each in usability:
        for number, span in enumerate(each.spans):
            named = [each.named, str(each.access)] if number == 0 else ["", ""]
            verdict = str(span.verdict)
            if span.verdict is not Verdict.OK:
                verdict = verdict.upper() if span.offered else "-"
            why = first_names(span.because, _SHOWN_BECAUSE) if span.because else span.reason
            yield [*named, _versions(each.spans, number), verdict, why]


def _versions(spans: Sequence[VersionSpan], number: int) -> str:
    """Return the versions of a span: from its first to before the first of the next span."""
    first = spans[number].first
    end = spans[number + 1].first if number + 1 < len(spans) else None
    if first is None:
        return f"< {end}" if end else "all"
    return f">= {first}, < {end}" if end else f">= {first}"


def usability_fields(each: Usability) -> dict[str, Any]:
    """Return one client, path and access as JSON, without its table."""
    return {
        "client": each.client.id,
        "path": each.path,
        "access": str(each.access),
        "offered": each.offered,
        "newest": each.newest.last,
        "verdict": str(each.newest.verdict),
        "since": each.since,
        "because": list(each.newest.because),
        "ranges": [
            {
                "first": span.first,
                "last": span.last,
                "verdict": str(span.verdict),
                "offered": span.offered,
                "because": list(span.because),
                "reason": span.reason or None,
            }
            for span in each.spans
        ],
    }
