"""What fuzzing found, each as small as it could be made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deltaproto.errors import DeltaprotoError, ErrorCode, TableError, UsageError
from deltaproto.execution.plan_file import read_plans
from deltaproto.inspection.age import SavedAges
from deltaproto.inspection.saved import saved_entries
from deltaproto.location import locate
from deltaproto.plan_inputs.from_snapshot import input_from_saved
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from tests.conftest import Ran
from tests.fuzz.targets import TARGETS, options

Cli = Callable[..., Ran]
DEADLY = 2918
"""a seed: Arrow ends the whole process when it is asked for the statistics of this checkpoint"""


def test_a_damaged_checkpoint_does_not_end_the_process() -> None:
    code = (
        "from tests.fuzz.targets import TARGETS; target = TARGETS['checkpoint']; "
        f"target.holds(target.case({DEADLY}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-500:]


@pytest.mark.parametrize("name", ["file:///data/\ud800", "/data/\ud800", "delta.`/\udfff`"])
def test_half_a_character_in_a_name(name: str) -> None:
    with pytest.raises(TableError) as raised:
        locate(name)
    assert raised.value.code is ErrorCode.NOT_FOUND


def test_bytes_of_a_table_list_that_are_no_text_are_a_name() -> None:
    assert locate("file:///data/\udcff%20x").path == "/data/\udcff x"


def test_a_plan_with_endless_numbers(tmp_path: Path) -> None:
    document = json.loads(TARGETS["plan"].corpus()[0])
    document["steps"][0]["commits"]["max"] = float("inf")
    document[CHECKSUM_FIELD] = compute_checksum(document)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="is not a plan"):
        read_plans(str(file))


def test_a_saved_feature_of_no_known_kind(tmp_path: Path) -> None:
    document = json.loads(TARGETS["saved-inspection"].corpus()[1])
    document["tables"][0]["features"][0]["kind"] = "reader"
    file = tmp_path / "saved.json"
    file.write_text(json.dumps(document))
    ages = SavedAges(str(file), datetime.now(UTC))
    (entry,) = saved_entries(str(file), ages)
    with pytest.raises(UsageError, match="is not the output of `inspect --format json`"):
        input_from_saved(entry, str(file), ages)


def test_options_that_are_no_text(cli: Cli, tmp_path: Path) -> None:
    ran = cli("inspect", "s3://b/t", "--storage-option", "aws_secret_access_key=canary\udcff")
    assert (ran.code, "not valid UTF-8" in ran.err, "canary" in ran.out + ran.err) == (
        2,
        True,
        False,
    )


def test_a_secret_that_slipped_into_another_option_is_not_told() -> None:
    with pytest.raises(DeltaprotoError) as raised:
        options(b"azure_storage_account_name=a\xe2\x80\xae_account_key=Y2FuYXJ5c2VjcmV0\n  ")
    assert "Y2Fu" not in raised.value.message


def test_an_error_is_one_line_whatever_it_quotes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    entry = {"id": "ours", "name": "a", "versions": "x\nhint: all is well", "ranges": []}
    file.write_text(json.dumps(entry))
    ran = cli("clients", "ours", "--client-file", str(file))
    assert ran.code == 2
    assert [line.partition(":")[0] for line in ran.err.splitlines()] == ["error", "hint"]
