"""The fleet: finding tables, reading them all, and the inventory that keeps the answers."""
