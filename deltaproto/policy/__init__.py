"""Findings on tables, the rules that make them, and the severities that decide exit codes."""
