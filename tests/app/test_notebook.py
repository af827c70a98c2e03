"""The notebook of the examples does what it says."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.engines import needs_delta
from tests.support.spark_settings import SHORT_LIVED

NOTEBOOK = Path(__file__).parents[2] / "examples" / "downgrade.ipynb"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.heavy
@needs_delta("4.4", "the engine that a plan is for by itself")
def test_the_notebook_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", SHORT_LIVED)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = [
        "".join(each.get("text", "") for each in cell.outputs if each.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    _made, inspected, shut_out, planned, dry, done, again = said
    assert inspected.startswith("(3,7)")
    assert "deletionVectors is in use" in inspected
    assert "trino@422 read refused deletionVectors" in shut_out
    assert "DROP FEATURE `deletionVectors`" in planned or "DROP FEATURE deletionVectors" in planned
    assert dry.startswith("ready")
    assert "FAILED" not in dry
    assert done.startswith("done")
    assert "refused" not in again
    assert again.count(" ok ") == 2


def test_it_is_kept_without_what_it_printed() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
