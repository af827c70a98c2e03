"""deltaproto: inspect and change the protocol of Delta Lake tables without breaking anyone."""

__version__ = "0.1.0"
