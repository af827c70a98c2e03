"""The report on a fleet."""
