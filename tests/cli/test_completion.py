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
    "check t --client deltalake/py": "deltalake/pyarrow@1.6.6",
    "plan-upgrade t --isolation Wr": "WriteSerializable",
    "conflicts --exception Concurrent": "ConcurrentAppendException",
    "rollout pa": "pause",
    "catalogs t": "test",
    "plan-upgrade t --enable deletionv": "deletionVectors",
    "plan-downgrade t --drop COLUMNM": "columnMapping",
    "check t --client TRI": "trino@483",
    "plan-upgrade t --set delta.enablechangedata": "delta.enableChangeDataFeed=",
    "explain dp10": "DP102",
    "features CLUS": "clustering",
    "plan-upgrade t --isolation wr": "WriteSerializable",
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


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["check", "t", "--client", "trino", "@", "4"], "@483"),
        (["check", "t", "--client", "trino", "@"], "@483"),
        (["check", "t", "--client", "trino", "@4"], "@483"),
        (["check", "t", "--client", "=", "tri"], "trino@483"),
        (["check", "t", "--client", "=", "trino", "@", "4"], "@483"),
        (["check", "t", "--client", "trino", "@", "476", "--client", "tri"], "trino@483"),
        (["check", "t", "--client", "trino", "@", "476", "--form"], "--format"),
        (["plan-upgrade", "my\\ table", "--set", "delta.appendO"], "delta.appendOnly="),
    ],
)
def test_words_that_bash_splits(words: list[str], offered: str) -> None:
    line = "\n".join(["deltaproto", *words])
    shown = complete(
        _DELTAPROTO_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words))
    )
    assert shown.split() == [offered]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("shown", [False, True])
def test_bash_adds_no_space_after_an_equals_sign(shown: bool, tmp_path: Path) -> None:
    # The option then takes the name of the shell.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = ["--show-completion", "bash"] if shown else []
    source = named if shown else {"_DELTAPROTO_COMPLETE": "source_bash"}
    script = subprocess.run(
        [PROGRAM, *words], capture_output=True, text=True, check=True, env={**os.environ, **source}
    ).stdout
    file = tmp_path / "completion"
    file.write_text(
        script.replace("complete -o", "true -o")
        + "\ncompopt() { echo compopt $*; }\n"
        + 'COMP_WORDS=(deltaproto plan-upgrade t --set "$1") COMP_CWORD=4\n'
        + f"_deltaproto_completion {PROGRAM}\necho $COMPREPLY\n"
    )
    for typed, printed in {
        "delta.appendO": "compopt -o nospace\ndelta.appendOnly=\n",
        "nothing": "\n",
    }.items():
        ran = subprocess.run(["bash", file, typed], capture_output=True, text=True, check=False)
        assert ran.stdout == printed, ran


@pytest.mark.parametrize(("typed", "offered"), TYPED.items())
def test_zsh_and_fish_are_offered(typed: str, offered: str) -> None:
    line = {"_TYPER_COMPLETE_ARGS": f"deltaproto {typed}"}
    zsh = complete(_DELTAPROTO_COMPLETE="complete_zsh", **line)
    assert offered in zsh.split() if offered[-1] == "=" else f'"{offered}"' in zsh
    fish = {"_DELTAPROTO_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert offered in complete(**fish, **line).split()


def test_zsh_and_fish_replace_a_word_with_its_option() -> None:
    line = {"_TYPER_COMPLETE_ARGS": "deltaproto check t --client=deltalake/"}
    offered = ["--client=deltalake/engine@1.6.6", "--client=deltalake/pyarrow@1.6.6"]
    shown = complete(_DELTAPROTO_COMPLETE="complete_zsh", **line)
    assert shown == '_arguments \'*: :(("{}"\n"{}"))\'\n'.format(*offered)
    fish = {"_DELTAPROTO_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert complete(**fish, **line).split() == offered
    line = {"_TYPER_COMPLETE_ARGS": "deltaproto plan-upgrade t --set=delta.appendO"}
    shown = complete(_DELTAPROTO_COMPLETE="complete_zsh", **line)
    assert shown == "compadd -S '' -- --set=delta.appendOnly=\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes(tmp_path: Path) -> None:
    script = complete(_DELTAPROTO_COMPLETE="source_fish")
    asked = "complete -C 'deltaproto check t --client=trin'"
    variables = {"HOME": str(tmp_path), "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["fish", "--no-config", "-c", f"{script}\n{asked}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )
    assert ran.stdout == "--client=trino@483\n"
