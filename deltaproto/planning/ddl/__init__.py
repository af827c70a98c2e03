"""Statements that people write, as plans take them: `parse.parse` is the way in."""
