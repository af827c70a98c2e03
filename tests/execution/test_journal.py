"""The journal: what it says after crashes, damage, and beside another run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution import run_log
from deltaproto.execution.run_log import (
    AuditLog,
    Journal,
    JournalError,
    PlanLockedError,
    journal_path,
    read_journal,
)
from deltaproto.planning.plan import Fingerprint
from deltaproto.protocol.protocol import Protocol
from deltaproto.redaction import HIDDEN, Redactor

PLAN = "0123456789abcdef"
DONE = {
    "steps_done": 2,
    "early": ["deletionVectors"],
    "version": 7,
    "protocol": Protocol(1, 2).to_action(),
    "metadata": "digest",
}


def add_done(folder: Path) -> Path:
    with Journal(str(folder), PLAN) as journal:
        journal.add("begin", 1.0, actor="ada", host="h", pid=3)
        journal.add("done", 2.0, **DONE)
        return journal.path


def test_what_was_added_is_what_is_read(tmp_path: Path) -> None:
    found = read_journal(add_done(tmp_path), PLAN)
    assert (found.done, found.early, found.since) == (2, frozenset({"deletionVectors"}), 2.0)
    assert found.baseline == Fingerprint(None, 7, Protocol(1, 2), "digest")
    assert found.holder == "ada on h, process 3"


def test_no_journal_says_nothing(tmp_path: Path) -> None:
    assert read_journal(journal_path(str(tmp_path), PLAN), PLAN).done == 0


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_off_is_as_if_it_were_not_there(cut: int, tmp_path: Path) -> None:
    path = add_done(tmp_path)
    with Journal(str(tmp_path), PLAN) as journal:
        journal.add("done", 3.0, **{**DONE, "steps_done": 3})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    left = read_journal(path, PLAN).done
    assert left == (3 if cut == 1 else 2)
    with Journal(str(tmp_path), PLAN) as journal:
        journal.add("done", 4.0, **{**DONE, "steps_done": 4})
    assert read_journal(path, PLAN).done == 4


def test_a_journal_of_another_plan_is_refused(tmp_path: Path) -> None:
    path = add_done(tmp_path)
    with pytest.raises(UsageError, match="not a journal of plan"):
        read_journal(path, "f" * 16)


def test_a_line_that_lies_is_refused(tmp_path: Path) -> None:
    path = add_done(tmp_path)
    with path.open("a") as file:
        file.write(json.dumps({"event": "done", "at": 1, "plan": PLAN, "steps_done": "x"}) + "\n")
    with pytest.raises(UsageError, match="is damaged"):
        read_journal(path, PLAN)


def test_who_holds_it_is_named(tmp_path: Path) -> None:
    with Journal(str(tmp_path), PLAN) as journal:
        journal.add("begin", 1.0, actor="ada", host="h", pid=3)
        with pytest.raises(PlanLockedError, match="ada on h, process 3") as raised:
            Journal(str(tmp_path), PLAN)
        assert raised.value.exit_code is ExitCode.STALE
    Journal(str(tmp_path), PLAN).__exit__(None, None, None)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("")
    with pytest.raises(UsageError, match="cannot write the journal"):
        Journal(str(tmp_path / "folder"), PLAN)


def test_a_full_disk(tmp_path: Path) -> None:
    with Journal(str(tmp_path), PLAN) as journal:
        # The only device that is always full.
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, journal._file._file)
        with pytest.raises(JournalError, match="No space left"):
            journal.add("done", 1.0)


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes: a write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestAudit:
    def test_lines_hold_no_credentials(self, tmp_path: Path) -> None:
        audit = AuditLog(
            str(tmp_path / "deep" / "audit.jsonl"), Redactor({"sas_token": "s3cr3tvalue"})
        )
        assert audit.add(message="x s3cr3tvalue", commits=[1]) is None
        audit.close()
        (line,) = (tmp_path / "deep" / "audit.jsonl").read_text().splitlines()
        assert json.loads(line)["message"] == f"x {HIDDEN}"

    def test_a_line_that_was_cut_off_spoils_no_other(self, tmp_path: Path) -> None:
        file = tmp_path / "audit.jsonl"
        file.write_text('{"step": "s1"}\n{"step": "s')
        audit = AuditLog(str(file), Redactor())
        audit.add(step="s2")
        audit.close()
        assert json.loads(file.read_text().splitlines()[-1])["step"] == "s2"

    @pytest.mark.parametrize("readable", [True, False])
    def test_a_line_cut_off_by_a_full_disk_does_not_damage_the_next_line(
        self, readable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "audit.jsonl"
        audit = AuditLog(str(file), Redactor())
        audit.add(step="s1")
        if not readable:
            monkeypatch.setattr(run_log, "_ends_mid_line", lambda path: False)
        with file_size_limit(file.stat().st_size + 9):
            assert "No space left" in (audit.add(step="s2") or "")
        assert audit.add(step="s3") is None
        audit.close()
        first, part, last = file.read_text().splitlines()
        assert len(part) == 9
        assert [json.loads(line)["step"] for line in (first, last)] == ["s1", "s3"]

    def test_a_line_that_another_process_adds_meanwhile_is_not_cut_off(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "audit.jsonl"

        class Growing(io.FileIO):
            def seek(self, offset: int, whence: int = 0, /) -> int:
                at = super().seek(offset, whence)
                with open(path, "ab") as other:
                    other.write(b'{"n": 2}\n')
                return at

        path.write_text('{"n": 1}\n')
        monkeypatch.setattr(Path, "open", lambda path, mode: Growing(path, mode))
        audit = AuditLog(str(path), Redactor())
        audit.add(n=3)
        audit.close()
        numbers = [json.loads(line)["n"] for line in path.read_bytes().splitlines()]
        assert numbers == [1, 2, 3]

    def test_a_line_for_which_there_is_half_the_room_is_told(self, tmp_path: Path) -> None:
        # A pipe that is all but full takes the beginning of a line.
        read, write = os.pipe()
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, b"x" * 4096)
        os.read(read, 4096)
        audit = AuditLog(str(tmp_path / "audit.jsonl"), Redactor())
        os.dup2(write, audit._file._file)
        assert "No space left" in (audit.add(message="x" * 100_000) or "")
        audit.close()

    def test_a_full_disk_is_told_and_stops_nothing(self) -> None:
        audit = AuditLog("/dev/full", Redactor())
        said = audit.add(message="x")
        audit.close()
        assert said is not None
        assert "No space left" in said

    def test_a_place_that_cannot_be_written(self) -> None:
        with pytest.raises(UsageError, match="cannot write the audit log"):
            AuditLog("/proc/no/audit.jsonl", Redactor())
