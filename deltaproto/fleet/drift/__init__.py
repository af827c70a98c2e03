"""Changes between two scans of an inventory."""
