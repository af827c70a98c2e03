"""Findings about tables, the rules that produce them, and the severities that set exit codes."""
