"""What each client version can read and write: the catalogue, and matching a table with it."""
