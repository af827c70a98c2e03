"""The documents on what was measured, and where it differs from what was known before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from deltaproto.certification.entry import Discrepancy
from deltaproto.certification.outcomes import KnownTable, collect_outcomes
from deltaproto.clients.measurement import MeasuredOutcome, Measurement
from deltaproto.clients.model import Access, Verdict
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind
from deltaproto.render.certification import count_outcomes
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Line,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    listed,
)
from deltaproto.render.document.markdown import document_markdown

Differences = Mapping[str, Sequence[Discrepancy]]
_HEAD = "<!-- Made by `make certify`; what is written here by hand is lost. -->\n\n"
_ACCESS = (Access.READ, Access.APPEND)
_MOST, _MORE = 12, " and {} more"


def _kits(measured: Sequence[Measurement]) -> str:
    """The newest kit, and how many were only tried on an older one, which has fewer tables."""
    kits = sorted({(each.kit_version, each.kit_digest) for each in measured}, reverse=True)
    (version, digest), *older = kits
    text = f"kit {version} ({digest})"
    for version, digest in older:
        count = sum(each.kit_digest == digest for each in measured)
        text += f"; {count} of them only on those of kit {version} ({digest})"
    return text


def measured_document(
    measured: Sequence[Measurement], differences: Differences, left: Differences
) -> str:
    """What was measured, and where ranges of the catalog or the entries say otherwise."""
    clients = len({each.client for each in measured})
    tables = len({cell.case for each in measured for cell in each.cells})
    rows: list[Sequence[Line]] = [
        (
            (m.name,),
            (m.release,),
            (m.date,),
            *((f"{count_outcomes(m.cells).get(o, 0)}",) for o in _SHOWN),
        )
        for m in measured
    ]
    blocks: list[Block] = [
        Paragraph(
            (
                f"{len(measured)} versions and paths of {clients} clients were tried on up to "
                f"{tables} reference tables of {_kits(measured)}. ",
                Code("make certify"),
                " repeats it. Under WRONG stands how many operations went wrong without an error: ",
                Code("deltaproto clients ID@VERSION"),
                " tells with which features, and ",
                Code("deltaproto certify ID@VERSION --only TABLE --operation NAME"),
                " shows one of them again.",
            )
        ),
        TableBlock(("Client", "Calls itself", "On", *(str(each) for each in _SHOWN)), rows),
        Section(
            "ranges",
            "Where the catalog's ranges say otherwise",
            [
                Paragraph(
                    (
                        "Ranges hold for many versions; they come from source code, documents "
                        "and earlier trials. For the versions above, what was measured goes before "
                        "them. ",
                        Strong("Bold"),
                        " is where a range promises more than the client keeps.",
                    )
                ),
                _listed(differences),
            ],
        ),
        Section(
            "entries",
            "What catalog entries cannot say",
            [
                Paragraph(
                    (
                        "An entry says what becomes of a table feature by feature. These tables "
                        "fared otherwise, for reasons that lie in a combination, or in no feature "
                        "at all.",
                    )
                ),
                _listed(left),
            ],
        ),
    ]
    return _HEAD + document_markdown(Document("What was measured", (), blocks))


_SHOWN = (
    MeasuredOutcome.RIGHT,
    MeasuredOutcome.REFUSED,
    MeasuredOutcome.WRONG,
    MeasuredOutcome.CRASHED,
    MeasuredOutcome.TIMED_OUT,
)


def _listed(differences: Differences) -> Block:
    rows: list[Sequence[Line]] = []
    for name, found in differences.items():
        grouped: dict[tuple[bool, str, str, str], list[Discrepancy]] = {}
        for each in found:
            key = (not each.looser, str(each.access), str(each.verdict), str(each.outcome))
            grouped.setdefault(key, []).append(each)
        for (careful, access, verdict, outcome), group in sorted(grouped.items()):
            said = f"{verdict}, measured {outcome}"
            rows.append(
                (
                    (name,),
                    (access,),
                    (said if careful else Strong(said),),
                    listed([each.case for each in group], _MOST, _MORE),
                    (group[0].why,),
                )
            )
    if not rows:
        return Paragraph(("Nowhere.",))
    return TableBlock(("Client", "Access", "Says", "Tables", "Of the first"), rows)


def survey_document(
    file: Path, measured: Sequence[Measurement], tables: Iterable[KnownTable]
) -> str:
    """Each disagreement with a survey of documents and sources, made before anything was tried.

    Args:
        file: clients with ranges of versions, the highest protocol versions and the features.
    """
    survey = {
        each["id"]: each for each in yaml.safe_load(file.read_text(encoding="utf-8"))["clients"]
    }
    known = {each.case.name: each for each in tables}
    rows: list[Sequence[Line]] = []
    agreeing = asked = 0
    for each in measured:
        said = _surveyed(survey, each)
        if said is None:
            continue
        grouped: dict[tuple[str, str, str], list[str]] = {}
        reasons: dict[tuple[str, str, str], str] = {}
        for (case, access), found in collect_outcomes(each.cells).items():
            if access not in _ACCESS:
                continue
            verdict = _says(said, known[case], access)
            asked += 1
            fine = {MeasuredOutcome.RIGHT: Verdict.OK, MeasuredOutcome.REFUSED: Verdict.REFUSED}
            if fine.get(found.outcome) is verdict:
                agreeing += 1
                continue
            key = (str(access), str(verdict), str(found.outcome))
            grouped.setdefault(key, []).append(case)
            reasons.setdefault(key, found.why)
        for key, cases in sorted(grouped.items()):
            access_, verdict_, outcome_ = key
            told = (each.name, access_, verdict_, outcome_)
            why = reasons[key] or "it answers"
            rows.append([*((text,) for text in told), listed(cases, _MOST, _MORE), (why,)])
    blocks: list[Block] = [
        Paragraph(
            (
                "Before anything was tried, documents and source code were surveyed: which "
                f"protocol versions and features each client takes. Of {asked:,} cells, a table "
                f"read or appended to, {agreeing:,} came out as that survey said. The others are "
                "here, and all are settled in one way: ",
                Code("check"),
                " and ",
                Code("clients"),
                " go by what was measured. There are four kinds.",
            )
        ),
        Bullets(
            [
                (
                    Strong("ok, measured refused"),
                    ": the gate lets the table through and the engine fails later, or the release "
                    "learned it later than its documents say.",
                ),
                (
                    Strong("ok, measured WRONG"),
                    ": the client takes the feature, and breaks a promise that goes with it.",
                ),
                (
                    Strong("refused, measured right"),
                    ": nothing checks the feature and nothing in the table needed it, or the "
                    "survey knew an older release.",
                ),
                (
                    Strong("refused, measured WRONG"),
                    ": nothing checks the feature, and rows or promises are lost. These are the "
                    "ones to fear.",
                ),
            ]
        ),
        TableBlock(
            ("Client", "Access", "Survey", "Measured", "Tables", "Of the first"),
            rows,
        ),
    ]
    return _HEAD + document_markdown(Document("Documents against measurements", (), blocks))


def _surveyed(survey: Mapping[str, Any], measured: Measurement) -> Mapping[str, Any] | None:
    entry = survey.get(measured.client)
    if entry is None or measured.version is None:
        return None
    for each in entry["versions"]:
        span = each["range"]
        path = each.get("path")
        if path is not None and measured.path is not None and path != measured.path:
            continue
        if span == "*" or Version(measured.version) in SpecifierSet(span.replace(" ", "")):
            return dict(each)
    return None


def _says(said: Mapping[str, Any], known: KnownTable, access: Access) -> Verdict:
    protocol = known.needs.protocol
    reader = _passes(
        said.get("reader"), protocol.min_reader_version, protocol.reader_features, reads=True
    )
    if access is Access.READ:
        return Verdict.OK if reader else Verdict.REFUSED
    writer = _passes(
        said.get("writer"), protocol.min_writer_version, protocol.writer_features, reads=False
    )
    return Verdict.OK if reader and writer else Verdict.REFUSED


def _passes(
    side: Mapping[str, Any] | None, version: int, listed: frozenset[str] | None, *, reads: bool
) -> bool:
    if side is None:
        return False
    top = 3 if reads else 7
    if side["max_version"] < top or version > top:
        return version <= side["max_version"]
    if version in (side.get("legacy_versions") or ()):
        return True
    implied = (
        feature_catalog.features_implied_by(version, 6)
        if reads
        else feature_catalog.features_implied_by(2, version)
    )
    if reads:
        implied = frozenset(
            name
            for name in implied
            if feature_catalog.feature_record(name).kind is FeatureKind.READER_WRITER
        )
    needed = (listed or frozenset()) if version == top else implied
    return needed <= set(side.get("features") or ())
