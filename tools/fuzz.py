"""Fuzz one target with atheris, which looks for inputs that reach new code.

    python -m tools.fuzz commit                     until something escapes, or Ctrl-C
    python -m tools.fuzz checkpoint -runs=100000    so many inputs

Every option after the target is libFuzzer's. `pip install atheris`, which has wheels for Linux.
What escapes is written to `crash-…`; `python -m tools.fuzz TARGET crash-…` tries it again.
The tests damage whole documents of the same targets, without atheris (`tests/fuzz`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main() -> int:
    import atheris

    with atheris.instrument_imports(include=["deltaproto"]):
        from tests.fuzz.targets import TARGETS

    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        print(f"error: no such target\nhint: one of {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    target = TARGETS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        for number, document in enumerate(target.corpus()):
            Path(folder, f"{number}").write_bytes(document)
        options = sys.argv[2:]
        where = [] if any(not each.startswith("-") for each in options) else [folder]
        atheris.Setup([sys.argv[0], *options, *where], target.holds)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
