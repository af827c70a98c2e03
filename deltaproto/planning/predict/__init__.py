"""Predict the effects of statements on a table, commit by commit, as in Delta Spark. Pure."""
