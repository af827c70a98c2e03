"""Tokens of Spark SQL. Knows nothing of Delta."""
