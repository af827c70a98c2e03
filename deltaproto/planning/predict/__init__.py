"""What statements do to a table, commit by commit, as Delta Spark does it. Pure."""
