"""The conformance kit: small reference tables made by Spark, with answers that are known."""
