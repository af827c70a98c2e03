"""`python -m deltaproto`."""

import sys

from deltaproto.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
