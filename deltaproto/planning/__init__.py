"""Turn goals into plans. Pure: no engines, clocks or files."""
