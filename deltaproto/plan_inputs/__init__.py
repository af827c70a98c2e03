"""Read tables for the planner, and build plans from them."""
