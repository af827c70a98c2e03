"""Shell completion of the installed program: commands, options and values."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rotating

PROGRAM = Path(sys.executable).parent / "deltaproto"
TYPED = {
    "plan-": "plan-upgrade",
    "inspect --rea": "--reader",
    "inspect --reader de": "delta-rs",
    "plan-downgrade --hist": "--history",
    "plan-upgrade t --enable deletionV": "deletionVectors",
    "plan-downgrade t --drop columnM": "columnMapping",
    "check t --client tri": "trino@483",
    "plan-upgrade t --for-client deltal": "deltalake@1.6.6",
    "plan-upgrade t --set delta.enableChangeData": "delta.enableChangeDataFeed=",
    "explain DP10": "DP102",
    "explain client-ref": "client-refused",
    "features clus": "clustering",
    "clients tri": "trino",
}


def complete(**variables: str) -> str:
    ran = subprocess.run(
        [PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **variables}
    )
    return ran.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(shell: str, tmp_path: Path) -> None:
    script = complete(_DELTAPROTO_COMPLETE=f"source_{shell}")
    assert "deltaproto" in script
    if (found := shutil.which(shell)) is not None:
        file = tmp_path / "completion"
        file.write_text(script)
        subprocess.run([found, "-n", file], check=True)


@pytest.mark.parametrize(("typed", "offered"), TYPED.items())
def test_bash_is_offered(typed: str, offered: str) -> None:
    line = f"deltaproto {typed}"
    last = str(len(line.split()) - 1)
    shown = complete(_DELTAPROTO_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=last)
    assert offered in shown.split()


@pytest.mark.parametrize(("typed", "offered"), TYPED.items())
def test_zsh_and_fish_are_offered(typed: str, offered: str) -> None:
    line = {"_TYPER_COMPLETE_ARGS": f"deltaproto {typed}"}
    assert f'"{offered}"' in complete(_DELTAPROTO_COMPLETE="complete_zsh", **line)
    fish = {"_DELTAPROTO_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert offered in complete(**fish, **line).split()
