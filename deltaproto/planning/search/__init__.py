"""From a goal to the cheapest statements that reach it. Pure."""
