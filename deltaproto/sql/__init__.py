"""Tokens of Spark SQL, independent of Delta."""
