"""`deltaproto certify`, as people call it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltaproto.certification.entry import known_tables
from deltaproto.certification.fixtures.case import Kit, load_kit
from deltaproto.certification.fixtures.make import make_kit
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.entry import parse_client
from deltaproto.clients.measurement import measurement_from_json
from deltaproto.errors import EngineError, UsageError
from tests.certification.conftest import ADAPTERS
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.engines import needs_delta

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_delta("4.4", "the tables of the kit")]
Certify = Callable[..., Ran]


@pytest.fixture
def certify(cli: Callable[..., Ran], kit: Kit) -> Certify:
    def run(adapter: str, *words: str) -> Ran:
        own = ("--adapter", str(ADAPTERS / f"{adapter}.py"), "--kit", str(kit.folder))
        return cli("certify", f"{adapter}@1.2.3", *own, *words)

    return run


def test_json_is_as_the_schema_says(certify: Certify) -> None:
    ran = certify(
        "ignores_vectors", "--operation", "rows", "--operation", "count", "--format", "json"
    )
    assert ran.code == 1
    validate("certify", ran.json)
    assert (ran.json["client"], ran.json["version"]) == ("ignores_vectors", "1.2.3")
    wrong = [cell for cell in ran.json["cells"] if cell["outcome"] == "WRONG"]
    assert {cell["table"] for cell in wrong} >= {"deletionVectors.present"}
    assert sum(ran.json["counts"].values()) == len(ran.json["cells"])
    assert all(
        (cell["reproduce"] is None) == (cell["outcome"] != "WRONG") for cell in ran.json["cells"]
    )


def test_one_command_shows_a_wrong_answer_again(certify: Certify, cli: Callable[..., Ran]) -> None:
    ran = certify("ignores_vectors", "--only", "deletionVectors.*", "--format", "json")
    for cell in ran.json["cells"]:
        if cell["outcome"] != "WRONG":
            continue
        tool, *words = shlex.split(cell["reproduce"])
        assert tool == "deltaproto"
        again = cli(*words, "--format", "json")
        assert again.code == 1
        (only,) = again.json["cells"]
        assert (only["outcome"], only["why"]) == ("WRONG", cell["why"])


def test_a_report_for_people(certify: Certify) -> None:
    text = certify("ignores_vectors", "--operation", "rows", "--no-color")
    assert text.code == 1
    assert "20 rows instead of 18 (unexpected: 3, 14)" in text.out
    assert "--only deletionVectors.present --operation rows" in text.out
    assert "Every result was right on" in text.out
    for format_ in ("markdown", "html"):
        page = certify("ignores_vectors", "--operation", "rows", "--format", format_)
        assert "unexpected: 3, 14" in page.out
        assert "deletionVectors.present" in page.out
    single = certify("ignores_vectors", "--only", "plain", "--operation", "rows", "--no-color")
    assert single.code == 0
    assert "outcome    right" in single.out


def test_results_and_entry_are_written(
    certify: Certify, cli: Callable[..., Ran], kit: Kit, tmp_path: Path
) -> None:
    results, entry = tmp_path / "results.json", tmp_path / "entry.yaml"
    ran = certify("ignores_vectors", "--results", str(results), "--entry", str(entry))
    assert ran.code == 1
    measured = measurement_from_json(results.read_text(), "results")
    assert measured.kit_digest == kit.digest
    plain = yaml.safe_load(entry.read_text())
    candidate = ClientCatalog([parse_client(plain, "entry")]).resolve("ignores_vectors@1.2.3")
    assert candidate.range is not None
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients:\n- client: ignores_vectors@1.2.3\n  access: [read]\n"
    )
    for table, verdict in (
        ("deletionVectors.present", "wrong"),
        ("plain", "ok"),
        ("deletionVectors.enabled", "ok"),
    ):
        words = ("check", str(kit.folder / "tables" / table), "--policy", str(policy))
        checked = cli(*words, "--client-file", str(entry), "--format", "json", "--look-in-files")
        if checked.code == 2:
            checked = cli(*words, "--client-file", str(entry), "--format", "json")
        (said,) = checked.json["verdicts"]
        assert said["verdict"] == verdict, (table, said)
        assert said["confidence"] == "measured"


def test_fail_on(certify: Certify) -> None:
    words = ("--only", "deletionVectors.present", "--operation", "rows")
    assert certify("ignores_vectors", *words).code == 1
    assert certify("ignores_vectors", *words, "--fail-on", "never").code == 0
    stopped = ("--only", "plain", "--operation", "total")
    assert certify("misbehaves", *stopped).code == 0
    assert certify("misbehaves", *stopped, "--fail-on", "warning").code == 1


@pytest.mark.parametrize(
    ("words", "code", "cause", "hint"),
    [
        ((), 2, "no client given", "deltalake/engine@"),
        (("nobody@1",), 2, "no adapter for nobody", "--adapter"),
        (("trin@1",), 2, "no adapter for trin", 'did you mean "trino"?'),
        (("x", "--command", "a 'b"), 2, "--command: no closing quotation", "quote it"),
        (("x", "--adapter", "a.py", "--command", "true"), 2, "used together", "one way"),
        (("x", "--adapter", "/none.py"), 2, "no adapter at /none.py", "Python file"),
        (("x", "--command", "true", "--operation", "dance"), 2, "unknown operation", "rows"),
        (
            ("x", "--command", "true", "--only", "dance"),
            2,
            "unknown reference table",
            "deletionVectors",
        ),
        (("x", "--command", "true", "--kit", "/none"), 2, "no kit in /none", "--make-kit"),
        (("x", "--command", "/none", "--operation", "rows"), 3, "cannot start /none", "--command"),
        # Spark must see the tables that clients write.
        (("x", "--command", "true", "--spark-remote", "sc://x"), 2, "No such", "--spark-conf"),
    ],
)
def test_mistakes(
    words: tuple[str, ...], code: int, cause: str, hint: str, cli: Callable[..., Ran], kit: Kit
) -> None:
    given = words if "--kit" in words else (*words, "--kit", str(kit.folder))
    ran = cli("certify", *given)
    assert ran.code == code, ran
    assert cause in ran.err
    assert hint in ran.err
    assert ran.out == ""


def test_an_adapter_that_does_not_start(cli: Callable[..., Ran], kit: Kit, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name\n")
    words = ("--kit", str(kit.folder), "--operation", "rows")
    ran = cli("certify", "x", "--adapter", str(broken), *words)
    assert ran.code == 3
    assert "No module named 'nothing_of_that_name'" in ran.err


def test_a_kit_is_made_the_same_again(spark: Any, kit: Kit, tmp_path: Path) -> None:
    some = ("plain", "deletionVectors.present", "protocol.unknown-reader")
    one, other = (make_kit(spark, tmp_path / name, only=some) for name in ("a", "b"))
    assert one.digest == other.digest
    assert one.cases == other.cases
    assert load_kit(one.folder) == one
    whole = {case.name: case for case in kit.cases}
    assert [whole[case.name] for case in one.cases] == list(one.cases)
    index = json.loads((one.folder / "kit.json").read_text())
    assert index["made_with"]["spark"] == spark.version
    with pytest.raises(UsageError, match="is not empty"):
        make_kit(spark, one.folder)


def test_the_command_says_what_it_created(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaproto.certification.fixtures import make

    two = [each for each in make.recipes() if each.name in ("plain", "appendOnly.listed")]
    monkeypatch.setattr(make, "recipes", lambda: two)
    ran = cli("certify", "--make-kit", str(tmp_path / "kit"))
    assert (ran.code, ran.out) == (0, "")
    assert f"created 2 reference tables in {tmp_path / 'kit'}" in ran.err
    assert len(load_kit(tmp_path / "kit").cases) == 2


def test_a_kit_that_comes_out_otherwise_is_an_error(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deltaproto.certification.fixtures import make

    recipes = [recipe._replace(lost=(3,)) for recipe in make.recipes() if recipe.name != "plain"]
    plain = [recipe for recipe in make.recipes() if recipe.name == "plain"]
    monkeypatch.setattr(make, "recipes", lambda: (*recipes, *plain))
    with pytest.raises(EngineError, match="is wrong"):
        make_kit(spark, tmp_path / "kit", only=("deletionVectors.present",))
    assert not (tmp_path / "kit").exists(), "half a kit is no kit"


def test_what_the_kit_says_is_what_the_reader_sees(kit: Kit) -> None:
    known = {each.case.name: each.needs for each in known_tables(kit)}
    assert known["deletionVectors.present"].holds("deletionVectors") is True
    assert known["deletionVectors.enabled"].holds("deletionVectors") is False
    assert known["deletionVectors.enabled"].uses("deletionVectors") is True
    assert known["deletionVectors.listed"].uses("deletionVectors") is False
    assert known["columnMapping.renamed"].modes == (("columnMapping", "name"),)
    assert known["domainMetadata.present"].holds("domainMetadata") is True
    for case in kit.cases:
        assert dict(case.protocol) == dict(known[case.name].protocol.to_action())
