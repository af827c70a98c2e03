"""The client catalog, and matching its client versions with tables."""
