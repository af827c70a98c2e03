"""User-written SQL statements as planner input; start with `parse.parse`."""
