"""Which features Databricks may turn on by itself, and for which clients that is a problem."""
