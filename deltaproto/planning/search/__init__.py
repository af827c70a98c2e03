"""Find the cheapest statements that reach a goal. Pure."""
