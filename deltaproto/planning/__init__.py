"""Goals in, plans out: pure, without engines, clocks and files."""
