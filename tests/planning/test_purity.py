"""planning/ imports no engine, reads no clock and no file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import deltaproto.planning

FOLDER = Path(deltaproto.planning.__file__).parent
FORBIDDEN = {"pyspark", "delta", "deltalake", "pyarrow", "obstore", "time", "datetime", "os", "io"}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def calls(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


def test_no_module_imports_what_is_impure() -> None:
    modules = sorted(FOLDER.rglob("*.py"))
    assert len(modules) > 20
    for path in modules:
        assert not imported(path) & FORBIDDEN, path
        assert not calls(path) & {"open", "print", "input"}, path


def test_planning_brings_no_engine_along() -> None:
    code = (
        "import sys, deltaproto.planning.downgrade, deltaproto.planning.upgrade; "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "heavy = {'pyspark', 'deltalake', 'pyarrow', 'obstore', 'delta'}; "
        "sys.exit(f'imported {loaded & heavy}' if loaded & heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
