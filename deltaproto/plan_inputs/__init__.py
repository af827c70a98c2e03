"""Tables read for the planner, and plans made of them."""
