"""What changed between two scans of an inventory."""
