"""`python -m deltaproto`, and the program `deltaproto`."""

import sys

# As in `cli/signals.py`, which may be the module whose import was interrupted.
_INTERRUPTED_EXIT_CODE = 130


def run() -> None:
    """Run the command line, and end the process; also if interrupted while modules are imported."""
    try:
        from deltaproto.cli.main import run_process

        run_process()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED_EXIT_CODE)


if __name__ == "__main__":
    run()
