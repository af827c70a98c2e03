"""The measurement of a client, in each format."""
