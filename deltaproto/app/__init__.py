"""The Python API. Everything is imported from `deltaproto` itself.

The functions do what the commands of the same names do, but return results instead of printing
them.
"""

import logging

# Without a handler, Python prints warnings of a library to standard error.
logging.getLogger("deltaproto").addHandler(logging.NullHandler())
