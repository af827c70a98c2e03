"""What was measured, in each format, without measuring anything."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from deltaproto.certification.entry import Discrepancy
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.clients.measurement import (
    MeasuredOutcome,
    Measurement,
    MeasurementCell,
    ResultColumn,
)
from deltaproto.clients.model import Access, Verdict
from deltaproto.render.certification import MEANINGS, Certified, write_certified
from deltaproto.render.interface import PageFormat
from deltaproto.render.schemas import load_schema
from tests.certification.made import case
from tests.support.contract import validate

HOSTILE = "<script>alert(1)</script> | `x` \x1b[31m ‮"
CELLS = (
    MeasurementCell("plain", ResultColumn.ROWS, MeasuredOutcome.RIGHT),
    MeasurementCell("plain", ResultColumn.APPEND, MeasuredOutcome.REFUSED, HOSTILE),
    MeasurementCell("a.present", ResultColumn.ROWS, MeasuredOutcome.WRONG, "20 rows instead of 18"),
    MeasurementCell("a.present", ResultColumn.COUNT, MeasuredOutcome.CRASHED, "gone"),
    MeasurementCell(
        "a.present", ResultColumn.TOTAL, MeasuredOutcome.TIMED_OUT, "no response within 3 s"
    ),
    MeasurementCell("a.present", ResultColumn.APPEND, MeasuredOutcome.NOT_OFFERED),
)


def certified(*cells: MeasurementCell, differences: tuple[Discrepancy, ...] = ()) -> Certified:
    measured = Measurement(
        "mine", "scan", "1.0", "1.0", 1, "abc", "2026-11-22", "deltaproto 0", "3.11",
        ("mine==1.0",), 2, 12.3, cells or CELLS,
    )  # fmt: skip
    cases = {
        "plain": case(),
        "a.present": case("a.present", feature="a", state=FeatureEvidence.PRESENT),
    }
    return Certified(measured, cases, ("mine/scan@1.0", "--kit", "a b"), differences)


def written(format_: PageFormat, found: Certified | None = None) -> str:
    file = io.StringIO()
    write_certified(found or certified(), format_, file, color=False)
    return file.getvalue()


@pytest.mark.parametrize("format_", list(PageFormat))
def test_each_format_tells_what_is_wrong_and_how_to_see_it_again(format_: PageFormat) -> None:
    text = written(format_)
    assert "20 rows instead of 18" in text
    command = "deltaproto certify mine/scan@1.0 --kit 'a b' --only a.present --operation rows"
    assert command in text.replace("&#39;", "'").replace("&#x27;", "'")


@pytest.mark.parametrize("format_", [PageFormat.MARKDOWN, PageFormat.HTML, PageFormat.TEXT])
def test_what_clients_say_stays_text(format_: PageFormat) -> None:
    text = written(format_)
    assert "\x1b" not in text
    assert "‮" not in text
    if format_ is not PageFormat.TEXT:
        assert "<script>alert" not in text


def test_json_follows_its_schema() -> None:
    left = Discrepancy("plain", Access.READ, Verdict.OK, MeasuredOutcome.WRONG, "because")
    document = json.loads(written(PageFormat.JSON, certified(differences=(left,))))
    validate("certify", document)
    assert document["differences"][0]["looser"] is True
    assert document["counts"] == {
        "right": 1, "refused": 1, "timed out": 1, "crashed": 1, "WRONG": 1, "not offered": 1
    }  # fmt: skip


def test_the_schema_has_every_word_of_the_code() -> None:
    cell: dict[str, Any] = load_schema("certify")["$defs"]["cell"]["properties"]
    assert cell["outcome"]["enum"] == [str(each) for each in MeasuredOutcome]
    assert cell["operation"]["enum"] == [str(each) for each in ResultColumn]
    assert set(cell["state"]["enum"]) == set(FeatureEvidence)
    assert set(MEANINGS) == set(MeasuredOutcome)


def test_a_clean_client_is_told_so() -> None:
    fine = certified(MeasurementCell("plain", ResultColumn.ROWS, MeasuredOutcome.RIGHT))
    assert "Nothing went wrong silently" in written(PageFormat.MARKDOWN, fine)
    assert "outcome    right" in written(PageFormat.TEXT, fine)


def test_a_promise_too_many_stands_out() -> None:
    left = Discrepancy("plain", Access.READ, Verdict.OK, MeasuredOutcome.WRONG, "because")
    text = written(PageFormat.TEXT, certified(differences=(left,)))
    assert "promises too much on 1 of them" in text
