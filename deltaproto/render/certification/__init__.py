"""What was measured of a client, in each format."""
