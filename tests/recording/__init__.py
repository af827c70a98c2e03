"""Record what Spark does in a test, and replay it in a run without Spark."""
