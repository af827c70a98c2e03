"""The fleet report."""
