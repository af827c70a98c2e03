"""Fleets: discovery of tables, scans, and the inventory that stores their results."""
