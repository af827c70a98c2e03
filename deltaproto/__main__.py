"""`python -m deltaproto`."""

from deltaproto.cli.main import run_process

if __name__ == "__main__":
    run_process()
