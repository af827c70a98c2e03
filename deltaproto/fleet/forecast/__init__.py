"""Which features Databricks may turn on automatically, and for which clients that is a problem."""
