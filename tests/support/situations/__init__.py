"""Situations in which something is not looked at or not known (docs/incomplete-answers.md)."""
